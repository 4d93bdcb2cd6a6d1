# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job that calls CUDA's libraries, and its own account of the calls as one line of JSON: count and ns by name.

usage: calls.py DIRECTORY runtime|driver|both|hang|none|throws [ROUNDS]
The libraries are those of the mock in DIRECTORY. They are loaded after the first operator, as `dlopen` does. `driver` is a
program with a static runtime: it loads only libcuda. `both` also loads a second libcudart. `hang` waits for a kernel that takes an hour. The job prints "ready PID", goes on
at SIGUSR1, loads the libraries, and ends after ROUNDS. With EARLY in the environment it has loaded them before "ready", and with
GO it does not wait. TRITON is a library to load; then the job also launches by the driver, as code that Triton compiled does.
"""
import ctypes
import json
import os
import signal
import sys
import time

import torch

directory, kind = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 20
account = {}


def call(library, name, *args, shown=None):
    begin = time.monotonic_ns()
    getattr(library, name)(*args)
    entry = account.setdefault(shown or name, [0, 0])
    entry[0] += 1
    entry[1] += time.monotonic_ns() - begin


def load(name):
    return ctypes.CDLL(os.path.join(directory, name))


def run_runtime(ops, libraries):
    ops.gpuops_launch(b"a_kernel", ctypes.c_uint64(20_000_000), 1)
    account.setdefault("cudaLaunchKernel", [0, 0])[0] += 1
    if "TRITON" in os.environ:
        ops.gpuops_launch_driver(b"compiled", ctypes.c_uint64(1000), 1)
        account.setdefault("cuLaunchKernel", [0, 0])[0] += 1
    call(ops, "gpuops_sync_stream", 1, shown="cudaStreamSynchronize")
    for library in libraries:
        call(library, "cudaDeviceSynchronize")
        memory = ctypes.c_void_p()
        call(library, "cudaMalloc", ctypes.byref(memory), ctypes.c_size_t(4096))
        call(library, "cudaMemset", memory, 0, ctypes.c_size_t(4096))
        call(library, "cudaFree", memory)


def run_driver(cuda):
    memory = ctypes.c_void_p()
    call(cuda, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096), shown="cuMemAlloc")
    call(cuda, "cuMemsetD8_v2", memory, 0, ctypes.c_size_t(4096), shown="cuMemsetD8")
    call(cuda, "cuCtxSynchronize")
    call(cuda, "cuMemFree_v2", memory, shown="cuMemFree")


def run_hang(ops):
    ops.gpuops_launch(b"endless", ctypes.c_uint64(3600 * 10**9), 1)
    ops.gpuops_sync_stream(1)


def run_throws(runtime):
    caught = sum(runtime.call_and_catch() for i in range(100))
    account["caught"] = [caught, 0]


def prepare():
    """Returns a function that does one round."""
    if kind in ("runtime", "both", "hang"):
        if "TRITON" in os.environ:
            ctypes.CDLL(os.environ["TRITON"])
        ops = load("libgpuops.so")
        ops.gpuops_init()
        if kind == "hang":
            return lambda: run_hang(ops)
        libraries = [load("libcudart.so.12")] + ([load("old/libcudart.so.11.0")] if kind == "both" else [])
        return lambda: run_runtime(ops, libraries)
    if kind == "driver":
        cuda = load("libcuda.so.1")
        cuda.cuInit(0)
        context = ctypes.c_void_p()
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        cuda.cuCtxSetCurrent(context)
        return lambda: run_driver(cuda)
    if kind == "throws":
        runtime = load("libcudart.so.12")
        return lambda: run_throws(runtime)
    return lambda: None


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
a = torch.ones(8, 8)
one_round = prepare() if "EARLY" in os.environ else None
print("ready", os.getpid(), flush=True)
if "GO" not in os.environ:
    signal.sigwait([signal.SIGUSR1])
a = a @ a
one_round = one_round or prepare()
account.clear()
if "GO" in os.environ:  # what gpuops_init() does
    account.update(cudaMalloc=[1, 0], cudaMallocHost=[1, 0])
for _ in range(rounds):
    a = torch.ones(8, 8) @ torch.ones(8, 8)
    one_round()
print(json.dumps(account), flush=True)
