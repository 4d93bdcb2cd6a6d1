#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training job whose operators run kernels on the mock of a GPU (tests/gpu/double).

The tensors are on the CPU. Each operator of the library `gpuops` launches kernels, copies or waits, in the forward and in
the backward pass. Prints "ready PID" after the first step, and at the end one line of JSON: its own account of what each
operator launched.
"""
import argparse
import sys

import torch

from gpuops import Loop, add_arguments

LIBRARY = torch.library.Library("gpuops", "DEF")


def define(loop):
    """Defines the operators. Their names in the profiler are gpuops::NAME."""
    ops, devices = loop.ops, loop.args.devices

    def add(name, schema, work):
        def run(*args):
            work("gpuops::" + name)
            return args[0].clone()
        LIBRARY.define(name + schema)
        LIBRARY.impl(name, run, "CPU")

    def gemm(operator):
        ops.kernel(operator, "gemm", 150)
        ops.kernel(operator, "stub", 20)

    def gemm_backward(operator):
        ops.kernel(operator, "gemm_dx", 120)
        ops.kernel(operator, "gemm_dw", 130, "side")

    def relu_backward(operator):
        ops.kernel(operator, "relu_dx", 15, how="gpuops_launch_ex")

    def step(operator):
        ops.set(operator, 1 << 16)
        ops.kernel(operator, "add", 30)
        ops.kernel(operator, "triton", 10, how="gpuops_launch_driver")

    def load(operator):
        ops.copy(operator, 1 << 18)
        ops.copy(operator, 1 << 20, pinned=True)

    def item(operator):
        ops.copy(operator, 4, to_device=False, wait=True)
        ops.wait(operator, "compute")

    add("gemm", "(Tensor x) -> Tensor", gemm)
    add("gemm_backward", "(Tensor x) -> Tensor", gemm_backward)
    add("relu", "(Tensor x) -> Tensor", lambda operator: ops.kernel(operator, "relu", 10, how="gpuops_launch_ex"))
    add("relu_backward", "(Tensor x) -> Tensor", relu_backward)
    add("load", "(Tensor x) -> Tensor", load)
    add("item", "(Tensor x) -> Tensor", item)
    add("replay", "(Tensor x) -> Tensor", ops.graph)
    add("step", "(Tensor x) -> Tensor", step)
    add("burst", "(Tensor x) -> Tensor", loop.burst)
    add("others", "(Tensor x) -> Tensor", lambda operator: ops.others(operator, devices))


class Gemm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.ops.gpuops.gemm(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.ops.gpuops.gemm_backward(grad)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.ops.gpuops.relu(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.ops.gpuops.relu_backward(grad)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, "mapped", "gpu")
    args = parser.parse_args()
    loop = Loop(args)
    torch.set_num_threads(1)
    define(loop)
    weight = torch.ones(32, 32, requires_grad=True)
    data = torch.ones(32, 32)
    graph = (("relu", 40), ("reduce", 60), ("relu", 40))

    def step(gpu):
        x = torch.ops.gpuops.load(data) if gpu else data
        x = torch.mm(x, weight)
        if gpu:
            x = Relu.apply(Gemm.apply(x))
        x.sum().backward()
        with torch.no_grad():
            weight.sub_(0.001 * weight.grad)
            weight.grad.zero_()
            if gpu:
                torch.ops.gpuops.step(weight)
                torch.ops.gpuops.replay(weight)
                torch.ops.gpuops.item(weight)
                if loop.bursts:
                    torch.ops.gpuops.burst(weight)
                if args.devices > 1:
                    torch.ops.gpuops.others(weight)

    return loop.run(step, lambda: loop.ops.capture("gpuops::replay", graph))


if __name__ == "__main__":
    sys.exit(main())
