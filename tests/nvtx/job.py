# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job with ranges of NVTX: those of libraries made of ranges.c, and with `python` those of the package nvtx.

usage: job.py ROUNDS TOOL LIBRARY...     TOOL: 1 if a tool sees the ranges, else 0
Each library writes its account to LIBRARY.told. The job runs an operator in each range of Python. With GO in the environment it does
not wait for SIGUSR1 after "ready PID". With GPU, the directory of the mock, a range of Python launches a kernel.
"""
import ctypes
import os
import signal
import sys
import time

import torch

rounds, tool, libraries = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
torch.ones(2) + 1
loaded = [(path, ctypes.CDLL(path)) for path in libraries if path != "python"]
going = []
signal.signal(signal.SIGUSR1, lambda *_: going.append(1))
print("ready", os.getpid(), flush=True)
while "GO" not in os.environ and not going:
    time.sleep(0.005)
for path, library in loaded:
    assert library.ranges_run(rounds, tool, (path + ".told").encode()) == 2
if "python" in libraries:
    import nvtx

    x = torch.ones(64, 64)
    gpu = ctypes.CDLL(os.environ["GPU"] + "/libgpuops.so") if "GPU" in os.environ else None
    if gpu:
        gpu.gpuops_init()
    for i in range(rounds):
        with nvtx.annotate("step", color="blue", domain="train"):
            torch.mm(x, x)
            with nvtx.annotate("add"):
                torch.add(x, x)
                if gpu:
                    gpu.gpuops_launch(b"a_kernel", ctypes.c_uint64(20_000), 1)
            if gpu:
                gpu.gpuops_sync_stream(1)
print("done", flush=True)
