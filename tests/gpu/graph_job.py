#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job that captures operators as a CUDA graph and replays it, on the mock of a GPU (tests/gpu/double).

It captures one graph when it has started, and another when the file --go is there. Then each step replays both, and runs
an operator that is in no graph. Prints one line of JSON: its own account, by the operator that captured each kernel.
"""
import argparse
import collections
import ctypes
import json
import os
import sys
import time

import torch

from gpuops import STREAMS, Ops, add_arguments

LIBRARY = torch.library.Library("gpuops", "DEF")


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.gpuops.outer(torch.ops.gpuops.relu(torch.ops.gpuops.relu(x)))


class Graphs:
    """Counts what the operators launch while a graph is captured, for its replays."""

    def __init__(self, ops):
        self.ops, self.captured, self.sums = ops, None, collections.defaultdict(collections.Counter)

    def launch(self, operator, name, us):
        self.ops.lib.gpuops_launch(name.encode(), us * 1000, STREAMS["side"])
        if self.captured is None:
            self.sums[operator].update(kernels=1, ns=us * 1000)
        else:
            self.captured.append((operator, us * 1000))

    def capture(self, model, x):
        self.captured = []
        self.ops.lib.gpuops_capture_begin(STREAMS["side"])
        model(x)
        self.ops.lib.gpuops_launch(b"no_operator", 5000, STREAMS["side"])
        graph, captured, self.captured = self.ops.lib.gpuops_capture_end(STREAMS["side"]), self.captured, None
        return graph, captured

    def replay(self, graph):
        """The kernel that no operator captured belongs to the launch."""
        self.ops.lib.gpuops_graph_launch(graph[0], STREAMS["side"])
        self.sums["gpuops::replay"].update(kernels=1, ns=5000)
        for operator, ns in graph[1]:
            self.sums[operator].update(kernels=1, ns=ns, replayed=1, replayed_ns=ns)

    def replay_unseen(self, graph):
        self.ops.lib.gpuops_graph_launch(graph[0], STREAMS["side"])
        self.sums["gpuops::replay"].update(kernels=1 + len(graph[1]), ns=5000 + sum(ns for _, ns in graph[1]))


def define(graphs):
    def add(name, run):
        LIBRARY.define(name + "(Tensor x) -> Tensor")
        LIBRARY.impl(name, lambda x: run(x) or x.clone(), "CPU")

    def outer(x):
        graphs.launch("gpuops::outer", "outer_kernel", 30)
        torch.ops.gpuops.relu(x)

    add("relu", lambda x: graphs.launch("gpuops::relu", "relu_kernel", 40))
    add("outer", outer)
    add("replay", lambda x: [graphs.replay(graphs.seen), graphs.replay_unseen(graphs.unseen)] and None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, "mapped", "gpu")
    parser.add_argument("--go", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    ops = Ops(args.gpu, args.cupti == "mapped")
    graphs, model, x = Graphs(ops), Model(), torch.ones(4)
    define(graphs)
    ops.lib.gpuops_init()
    graphs.unseen = graphs.capture(model, x)
    print("ready", os.getpid(), flush=True)
    while not os.path.exists(args.go):
        x.add_(1)  # an operator, at whose entry the agent comes in
        time.sleep(0.01)
    graphs.sums.clear()
    graphs.seen = graphs.capture(model, x)
    for _ in range(args.steps):
        torch.ops.gpuops.replay(x)
        torch.ops.gpuops.relu(x)
        time.sleep(args.pause_ms / 1000)
    ops.lib.gpuops_sync()
    ctypes.CDLL("libcuda.so.1").double_write_account()
    print(json.dumps(graphs.sums), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
