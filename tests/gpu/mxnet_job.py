#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MXNet training job whose custom operators run kernels on the mock of a GPU (tests/gpu/double).

The arrays are on the CPU. MXNet runs custom operators in threads of their own, where they launch kernels and copies. The
operator gpu_worker launches kernels on a worker of the engine. Prints "ready PID" after the first step, and at the end one
line of JSON: its own account of what each operator launched, by the names of MXNet's profiler. Like MXNet's builds for
CUDA, the job has no libcupti mapped unless --cupti mapped is given.
"""
import argparse
import ctypes
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet as mx  # noqa: E402
from mxnet import autograd, nd  # noqa: E402

from gpuops import NAMES, Loop, add_arguments  # noqa: E402

OPS = None


class Dense(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if OPS:
            OPS.kernel("gpu_dense::pure_python", "gemm", 150)
            OPS.kernel("gpu_dense::pure_python", "add", 25, how="gpuops_launch_ex")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if OPS:
            OPS.kernel("_backward_gpu_dense::pure_python", "gemm_dx", 120)
            OPS.kernel("_backward_gpu_dense::pure_python", "gemm_dw", 130, "side")
        self.assign(in_grad[0], req[0], out_grad[0])


class Load(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if OPS:
            OPS.copy("gpu_load::pure_python", 1 << 18)
            OPS.copy("gpu_load::pure_python", 1 << 20, pinned=True)
            OPS.set("gpu_load::pure_python", 4096)
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


class Item(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if OPS:
            OPS.copy("gpu_item::pure_python", 4, to_device=False, wait=True)
            OPS.wait("gpu_item::pure_python")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


def register(name, operator):
    class Properties(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return operator()

    mx.operator.register(name)(Properties)


class Task(ctypes.Structure):
    """struct task of libgpuops.so."""
    _fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64), ("stream", ctypes.c_uint32), ("kernels", ctypes.c_uint32)]


class Context(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


CPU = Context(1, 0)
NAME = b"gpu_worker"
TASK = Task(NAMES["relu"].encode(), 40000, 0, 2)


def push(ops, array):
    """Pushes an operator that launches kernels, without Python, on a worker of the engine."""
    handles = (ctypes.c_void_p * 1)(array.handle)
    work = ctypes.cast(ops.lib.gpuops_task, ctypes.c_void_p)
    mx.base.check_call(mx.base._LIB.MXEnginePushSyncND(work, ctypes.byref(TASK), None, ctypes.byref(CPU), None, 0, handles, 1,
                                                       None, 0, NAME))
    for _ in range(TASK.kernels):
        ops.count(NAME.decode(), NAMES["relu"], TASK.ns)


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
        if gpu:
            push(loop.ops, weight)
        nd.waitall()

    return loop.run(step)


if __name__ == "__main__":
    sys.exit(main())
