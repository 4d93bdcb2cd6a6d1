#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MXNet training job whose custom operators run kernels on the double of a GPU (tests/gpu/double).

The arrays are on the CPU. MXNet's engine runs custom operators in threads of its own, where they launch kernels and
copies. Prints "ready PID" after the first step, and at the end one line of JSON: its own account of what each operator
launched. Like MXNet's builds for CUDA, the job has no libcupti mapped unless --cupti mapped is given.
"""
import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx  # noqa: E402
from mxnet import autograd, nd  # noqa: E402

from gpuops import Loop, add_arguments  # noqa: E402

OPS = None


class Dense(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if OPS:
            OPS.kernel("gpu_dense", "gemm", 150)
            OPS.kernel("gpu_dense", "add", 25, how="gpuops_launch_ex")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if OPS:
            OPS.kernel("_backward_gpu_dense", "gemm_dx", 120)
            OPS.kernel("_backward_gpu_dense", "gemm_dw", 130, "side")
        self.assign(in_grad[0], req[0], out_grad[0])


class Load(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if OPS:
            OPS.copy("gpu_load", 1 << 18)
            OPS.copy("gpu_load", 1 << 20, pinned=True)
            OPS.set("gpu_load", 4096)
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


class Item(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if OPS:
            OPS.copy("gpu_item", 4, to_device=False, wait=True)
            OPS.wait("gpu_item")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


def register(name, operator):
    class Properties(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return operator()

    mx.operator.register(name)(Properties)


def main():
    global OPS
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, "absent", "gpu/old")
    args = parser.parse_args()
    loop = Loop(args)
    for name, operator in (("gpu_dense", Dense), ("gpu_load", Load), ("gpu_item", Item)):
        register(name, operator)
    weight = nd.ones((32, 32))
    weight.attach_grad()
    data = nd.ones((32, 32))

    def step(gpu):
        global OPS
        OPS = loop.ops if gpu else None
        with autograd.record():
            x = nd.dot(nd.Custom(data, op_type="gpu_load"), weight)
            loss = nd.Custom(x, op_type="gpu_dense").sum()
        loss.backward()
        weight[:] = weight - 0.001 * weight.grad
        nd.Custom(loss, op_type="gpu_item").wait_to_read()
        nd.waitall()

    return loop.run(step)


if __name__ == "__main__":
    sys.exit(main())
