#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job with planted causes of idle time of a GPU, on the double (tests/gpu/double).

Each step lets the GPU run out of work for four reasons: data, the program's own code, an operator on the CPU, a wait of the
host. Begins when the file --go is there. Prints one line of JSON: for how long the GPU ran nothing for each of them, by the job's own clock.
"""
import argparse
import ctypes
import json
import os
import sys
import time

import torch

from gpuops import Ops, add_arguments

MS = 1000000
LIBRARY = torch.library.Library("gpuops", "DEF")


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
        time.sleep(0.030)
        return torch.ones(4)


class Gpu:
    """Launches kernels one after another, and knows when the GPU has run out of them."""

    def __init__(self, ops):
        self.ops, self.until = ops, 0
        self.idle = dict.fromkeys(("data", "program", "cpu", "host_waits"), 0)

    def launch(self, ns, cause):
        """The GPU ran nothing until now because of `cause`."""
        at = now()
        if self.until:
            self.idle[cause] += max(at - self.until, 0)
        self.ops.lib.gpuops_launch(b"planted", ns, 0)
        self.until = max(at, self.until) + ns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, "mapped", "gpu")
    parser.add_argument("--go", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    ops = Ops(args.gpu, True)
    gpu = Gpu(ops)
    LIBRARY.define("think(Tensor x) -> Tensor")
    LIBRARY.impl("think", lambda x: spin(8 * MS) or x.clone(), "CPU")
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
        x = next(batches)
        gpu.launch(3 * MS, "data")
        ops.lib.gpuops_sync()
        spin(2 * MS)  # beside the kernel, if the program had not waited
        gpu.launch(1 * MS, "host_waits")
        spin(8 * MS)
        gpu.launch(1 * MS, "program")
        torch.ops.gpuops.think(x)
        optimizer.step()
        gpu.launch(1 * MS, "cpu")
    ops.lib.gpuops_sync()
    ctypes.CDLL("libcuda.so.1").double_write_account()
    print(json.dumps(gpu.idle), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
