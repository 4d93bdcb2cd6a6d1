#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job with planted causes of idle time of a GPU, on the mock (tests/gpu/double).

Each step lets the GPU run out of work for ten reasons: data, a wait of the host, Python code that computes, sleeps, or has
to share its CPU with another process, an operator on the CPU, one that sleeps, another GPU, a copy, and a process that is late for an
exchange. One step waits longer for its data than the others.
Begins when the file --go is there. Prints one line of JSON: for how long the GPU ran nothing for each reason, by the job's own clock;
"disturbed" is how long the job had no CPU for other reasons than that process, which a busy machine makes it wait for.
"""
import argparse
import ctypes
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist

from gpuops import Ops, add_arguments

MS = 1000000
LIBRARY = torch.library.Library("gpuops", "DEF")
CAUSES = ("data", "host_waits", "program_cpu", "program_blocked", "program_no_cpu", "cpu", "blocked", "event", "copy", "others")
SLOW_STEP = 12


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def spin(ns):
    until = now() + ns
    while time.clock_gettime_ns(time.CLOCK_MONOTONIC) < until:
        pass


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.200 if index == SLOW_STEP else 0.020)
        return torch.ones(4)


def account():
    """Now, and for how long the thread has been ready until then and had no CPU, in ns. On a busy machine that is in each cause."""
    with open("/proc/thread-self/schedstat", "rb", 0) as f:
        while True:
            before, at = f.read(), now()
            f.seek(0)
            if f.read().split()[1] == before.split()[1]:
                return at, int(before.split()[1])
            f.seek(0)


class Gpu:
    """Launches work one after another, and knows when the GPU has run out of it."""

    def __init__(self, ops):
        self.ops, self.until = ops, 0
        self.waited = account()[1]
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.cuda.double_next_ns.argtypes = ctypes.c_uint64,
        self.cuda.double_free_at.restype = ctypes.c_uint64
        self.idle = dict.fromkeys(CAUSES, 0)
        self.disturbed = 0

    def give(self, cause):
        """The GPU has run nothing since it ran out of work because of `cause`."""
        at, waited = account()
        if self.until and at > self.until:
            without = min(waited - self.waited, at - self.until)
            self.idle[cause] += at - self.until - without
            if cause.startswith("program"):
                self.idle["program_no_cpu"] += without
            else:
                self.disturbed += without
            self.until = at
        self.waited = waited

    def launch(self, ns, cause):
        self.give(cause)
        self.ops.lib.gpuops_launch(b"planted", ns, 0)
        self.until = self.cuda.double_free_at()

    def run_out(self):
        """Sleeps until the GPU has run out of work. It goes on a little later."""
        time.sleep(max(self.until - now(), 0) / 1e9)
        self.give("program_blocked")

    def copy(self, ns):
        """Copies to the GPU, which runs nothing else meanwhile."""
        self.cuda.double_next_ns(ns)
        self.ops.lib.gpuops_copy(True, True, 4096, 0)
        self.idle["copy"] += ns
        self.until = self.cuda.double_free_at()

    def wait_for_other(self, ns):
        """The next launch waits for a kernel of another GPU."""
        self.ops.lib.gpuops_device(1)
        self.ops.lib.gpuops_launch(b"other", ns, 0)
        until = self.cuda.double_free_at()
        self.ops.lib.gpuops_device(0)
        self.ops.lib.gpuops_wait_for_device(0, 1)
        self.idle["event"] += max(until - max(now(), self.until), 0)
        self.until = max(until, self.until)


class Late:
    """A process that is 6 ms late for each exchange."""

    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        store = os.path.join(tempfile.mkdtemp(), "store")
        self.child = os.fork()
        dist.init_process_group("gloo", init_method="file://" + store, rank=int(not self.child), world_size=2)
        if self.child:
            os.close(self.read_end)
            return
        os.close(self.write_end)
        while os.read(self.read_end, 1):
            time.sleep(0.006)
            dist.all_reduce(torch.ones(1))
        os._exit(0)

    def exchange(self):
        os.write(self.write_end, b"x")
        dist.all_reduce(torch.ones(1))

    def end(self):
        os.close(self.write_end)
        os.waitpid(self.child, 0)


class Rival:
    """A process that takes a half of this thread's CPU when it is told to."""

    def __init__(self, ns):
        self.cpus = os.sched_getaffinity(0)
        self.cpu = {min(self.cpus)}
        self.read_end, self.write_end = os.pipe()
        self.child = os.fork()
        if self.child:
            os.close(self.read_end)
            return
        os.close(self.write_end)
        os.sched_setaffinity(0, self.cpu)
        while os.read(self.read_end, 1):
            spin(ns)
        os._exit(0)

    def share(self, ns):
        """Computes for ns beside the other process."""
        os.sched_setaffinity(0, self.cpu)
        os.write(self.write_end, b"x")
        spin(ns)
        os.sched_setaffinity(0, self.cpus)

    def end(self):
        os.close(self.write_end)
        os.waitpid(self.child, 0)


def step(gpu, late, rival, batches, optimizer):
    x = next(batches)
    gpu.launch(3 * MS, "data")
    gpu.ops.lib.gpuops_sync()
    spin(2 * MS)  # beside the kernel, if the program had not waited
    gpu.launch(1 * MS, "host_waits")
    gpu.run_out()
    spin(20 * MS)
    gpu.launch(1 * MS, "program_cpu")
    gpu.run_out()
    time.sleep(0.008)
    gpu.launch(1 * MS, "program_blocked")
    gpu.run_out()
    rival.share(24 * MS)
    gpu.launch(1 * MS, "program_cpu")
    torch.ops.gpuops.think(x)
    gpu.launch(1 * MS, "cpu")
    torch.ops.gpuops.nap(x)
    gpu.launch(2 * MS, "blocked")
    gpu.wait_for_other(6 * MS)
    gpu.launch(2 * MS, "event")
    gpu.copy(5 * MS)
    gpu.launch(1 * MS, "copy")
    gpu.run_out()
    late.exchange()
    gpu.launch(2 * MS, "others")
    optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, "mapped", "gpu")
    parser.add_argument("--go", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rival = Rival(24 * MS)
    late = Late()
    ops = Ops(args.gpu, True)
    gpu = Gpu(ops)
    LIBRARY.define("think(Tensor x) -> Tensor")
    LIBRARY.impl("think", lambda x: spin(8 * MS) or x.clone(), "CPU")
    LIBRARY.define("nap(Tensor x) -> Tensor")
    LIBRARY.impl("nap", lambda x: time.sleep(0.006) or x.clone(), "CPU")
    batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=1, num_workers=0))
    weight = torch.ones(4, requires_grad=True)
    weight.grad = torch.ones(4)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    ops.lib.gpuops_init()
    x = torch.ones(4)
    print("ready", os.getpid(), flush=True)
    while not os.path.exists(args.go):
        x.add_(1)  # an operator, at whose entry the agent comes in
        time.sleep(0.01)
    for _ in range(args.steps):
        step(gpu, late, rival, batches, optimizer)
    ops.lib.gpuops_sync()
    late.end()
    rival.end()
    ctypes.CDLL("libcuda.so.1").double_write_account()
    print(json.dumps(gpu.idle | {"disturbed": gpu.disturbed}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
