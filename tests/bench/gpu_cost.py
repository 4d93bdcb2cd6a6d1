#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a record of CUPTI costs the job, on the mock of a GPU: the CPU time that the agent needs for a full buffer of
records (a third each are kernels, calls of the runtime, calls of the driver), with mxbpf attached, and that of its bell alone.
Then what mxbpf leaves behind: the CPU time of a launch before its first window and after its tenth.

  gpu_cost.py [ROUNDS]   needs root, MXBPF, O and a Python with MXNet; prints medians
"""
import ctypes
import os
import re
import statistics
import struct
import subprocess
import sys
import threading
import time

O = os.environ["O"]
BUFFERS = 100
WINDOWS = 10
LAUNCHES = 20000
BATCH = 185  # MXBPF_AGENT_GPU_BATCH
HEAD, RECORD, OVERHEAD = 24, 88, 7


class Agent:
    """mxbpf --gpu on this process."""

    def __init__(self, nd):
        self.stop = threading.Event()
        self.nd = nd
        self.child = subprocess.Popen([os.environ["MXBPF"], "--pid", str(os.getpid()), "--gpu", "--probes", "mark", "--format", "json",
                                       "-o", "gpu_cost.json"], stderr=subprocess.PIPE, text=True)
        for line in self.child.stderr:
            if line.startswith("CUPTI delivers records"):
                return
        sys.exit("gpu_cost.py: mxbpf did not hold CUPTI")

    def end(self):
        self.child.send_signal(2)
        self.child.communicate()


def bell_address():
    symbols = subprocess.check_output(["nm", "-D", O + "/gen/agent.so"], text=True)
    offset = int(re.search(r"(\w+) T mxbpf_agent_bell", symbols)[1], 16)
    with open("/proc/self/maps") as maps:
        return offset + min(int(m[1], 16) for m in re.finditer(r"^(\w+)-.*memfd:mxbpf-agent", maps.read(), re.M))


def launch_ns(ops):
    """The CPU time of a launch in the thread that launches."""
    times = []
    for _ in range(9):
        begun = time.thread_time_ns()
        ops.gpu_burst(LAUNCHES)
        times.append((time.thread_time_ns() - begun) / LAUNCHES)
        ops.gpuops_sync()
    return statistics.median(times)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    from mxnet import nd
    ops, _ = ctypes.CDLL(O + "/gpu/libgpuops.so"), ctypes.CDLL(O + "/gpu/libcupti.so.12")
    cost = ctypes.CDLL(O + "/gpu/libgpucost.so")
    cost.ring.restype = ctypes.c_uint64
    cost.ring.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint
    ops.gpu_burst(1000)
    ops.gpuops_sync()
    threading.Thread(target=lambda: [nd.ones(1).wait_to_read() or time.sleep(0.02) for _ in iter(int, 1)], daemon=True).start()
    cost.client_keep.restype = ctypes.c_long
    cost.client_give.restype = ctypes.c_uint64
    n = cost.client_keep(ops.gpu_burst, ops.gpuops_sync)
    assert n > 900, n
    records, bells = [], []
    batch = struct.pack("<QIIII", 0, 0, BATCH, 0, 1) + (bytes(RECORD - 4) + struct.pack("<I", OVERHEAD)) * BATCH
    before = launch_ns(ops)
    for n_window in range(max(rounds, WINDOWS)):
        agent = Agent(nd)
        if n_window >= rounds:
            agent.end()
            continue
        records.append(cost.client_give(BUFFERS) / BUFFERS / n)
        bells.append(cost.ring(bell_address(), batch, 2000) / 2000 / BATCH)
        agent.end()
    print("agent, per record, bell included: %.0f ns (goal 100); bell, per record in batches of %d: %.1f ns (goal 15)" % (
        statistics.median(records), BATCH, statistics.median(bells)))
    after = launch_ns(ops)
    print("a launch, before the first window: %.0f ns; after window %d: %.0f ns, %.2f times as much (goal 1.05)" % (
        before, max(rounds, WINDOWS), after, after / before))
    os._exit(0)


if __name__ == "__main__":
    main()
