#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job whose matrix products and activations run kernels of a planned duration on the mock of a GPU (tests/gpu/double).

Begins when the file --go is there. Prints one line of JSON: for each operator and the shape of its first input, how often it
was called and how long its kernels took.
"""
import argparse
import collections
import ctypes
import json
import os
import sys
import time

import torch

from gpuops import Ops, add_arguments

LIBRARY = torch.library.Library("aten", "IMPL")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, "mapped", "gpu")
    parser.add_argument("--go", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    ops = Ops(args.gpu, True)
    truth = collections.defaultdict(lambda: {"calls": 0, "ns": 0})
    tensors = {n: torch.ones(n, n, dtype=torch.float16) for n in (64, 1024, 2048)}

    def run(name, a, kernels):
        """Launches kernels of so many ns and computes nothing."""
        row = truth["%s %d" % (name, a.shape[0])]
        row["calls"] += 1
        row["ns"] += sum(ops.lib.gpuops_launch(b"planned", ns, 0) for ns in kernels)
        return a

    LIBRARY.impl("mm", lambda a, b: run("aten::mm", a, (2000, 500) if a.shape[0] > 64 else (3000,)), "CPU")
    LIBRARY.impl("relu", lambda a: run("aten::relu", a, (4000,)), "CPU")
    ops.lib.gpuops_init()
    x = torch.ones(4)
    print("ready", os.getpid(), flush=True)
    while not os.path.exists(args.go):
        x.add_(1)  # an operator, at whose entry the agent comes in
        time.sleep(0.01)
    for _ in range(200):
        torch.mm(tensors[1024], tensors[1024])
        torch.mm(tensors[64], tensors[64])
        torch.relu(tensors[2048])
        torch.mm(tensors[1024], tensors[1024])
    ops.lib.gpuops_sync()
    ctypes.CDLL("libcuda.so.1").double_write_account()
    print(json.dumps(truth), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
