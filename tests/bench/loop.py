#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MXNet job for the bench, with the commands of job.py and one of these loops.

  loop.py tiny TRACE    an eager net so small that a step is only calls and short operators
  loop.py static TRACE  a hybridized net with static_alloc and static_shape
  loop.py kv TRACE      tiny with its parameters in a KVStore: a push and a pull of each per step
  loop.py cnn TRACE     a convolutional net with real work in its operators
  loop.py calls TRACE   no training: the cheapest call of the C API in a loop
  loop.py launch TRACE  no training: launches of kernels on the mock of a GPU (tests/gpu/double), whose libraries are in
                        $O/gpu; a launch takes about 1 us there

TRACE: the path of MXNet's own profiler's file. Its kinds are "trace", "aggregate" and "late", a trace that is written only at
the end.
"""
import ctypes
import json
import os
import subprocess
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')

import mxnet as mx  # noqa: E402
import mxnet.libinfo  # noqa: E402
from mxnet import autograd, gluon, nd, profiler  # noqa: E402

import job  # noqa: E402


def dense_net():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(16, activation='relu'), gluon.nn.Dense(16, activation='relu'), gluon.nn.Dense(4))
    return net


def conv_net():
    net = gluon.nn.HybridSequential()
    for channels in (16, 32):
        net.add(gluon.nn.Conv2D(channels, 3, padding=1), gluon.nn.BatchNorm(), gluon.nn.Activation('relu'),
                gluon.nn.MaxPool2D())
    net.add(gluon.nn.Dense(64, activation='relu'), gluon.nn.Dense(4))
    return net


LOOPS = {
    'tiny': (dense_net, (8, 10), {}),
    'static': (dense_net, (8, 10), {'static_alloc': True, 'static_shape': True}),
    'kv': (dense_net, (8, 10), {}),
    'cnn': (conv_net, (32, 3, 28, 28), {}),
}


class Job(job.Loop):
    def __init__(self, kind):
        make_net, shape, hybridize = LOOPS[kind]
        mx.random.seed(1)
        self.net = make_net()
        self.net.initialize()
        if hybridize:
            self.net.hybridize(**hybridize)
        self.data = nd.random.uniform(shape=shape)
        self.label = nd.arange(shape[0]) % 4
        self.loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        store = {'kvstore': mx.kv.create('local'), 'update_on_kvstore': True} if kind == 'kv' else {}
        self.trainer = gluon.Trainer(self.net.collect_params(), 'sgd', {'learning_rate': 0.01}, **store)

    def step(self):
        with autograd.record():
            loss = self.loss_of(self.net(self.data), self.label)
        loss.backward()
        self.trainer.step(self.data.shape[0])
        loss.asnumpy()

    def settle(self):
        nd.waitall()


class Calls(job.Loop):
    def __init__(self):
        self.call, self.version = mx.base._LIB.MXGetVersion, ctypes.byref(ctypes.c_int())

    def step(self):
        for _ in range(100):
            self.call(self.version)


class Launches(job.Loop):
    def __init__(self):
        self.ops = ctypes.CDLL(os.path.join(os.environ['O'], 'gpu/libgpuops.so'))
        self.ops.gpuops_init()

    def step(self):
        self.ops.gpu_burst(1000)
        self.ops.gpuops_sync()


class Builtin(job.Builtin):
    """MXNet's own profiler, as a user would start it. It writes a trace once a second in any case."""

    def __init__(self, trace):
        self.trace, self.kind = trace, None

    def begin(self, kind):
        self.kind = kind
        profiler.set_config(profile_all=True, aggregate_stats=kind == 'aggregate', continuous_dump=kind != 'late',
                            filename=self.trace)
        profiler.set_state('run')

    def end(self):
        profiler.set_state('stop')
        table = profiler.dumps(format='json') if self.kind == 'aggregate' else ''
        if table:
            return lambda: self.count_table(json.loads(table))
        profiler.dump()
        return self.count_trace

    # mxbpf's events are operators, calls, allocations and frees, without the two user counters of the calls.
    @staticmethod
    def count_table(table):
        rows = {**table['Time'], **table['Memory']}
        return sum(row['Count'] for category in rows.values() for name, row in category.items()
                   if not name.startswith('MXNet C API'))

    def count_trace(self):
        count = subprocess.run(['grep', '-c', '-e', '"ph": "b"', '-e', '"cat": "Device Storage"', self.trace],
                               stdout=subprocess.PIPE, check=True)
        return int(count.stdout)


if __name__ == '__main__':
    loop = {'calls': Calls, 'launch': Launches}.get(sys.argv[1], lambda: Job(sys.argv[1]))
    job.serve(loop(), Builtin(sys.argv[2]), mxnet.libinfo.find_lib_path()[0])
