#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A deterministic program with operators written in Python, of two types, forward and backward, beside others in bulks.

  custom.py --bare             the section alone, between the two gates of gate.py
  custom.py --builtin PREFIX   the section under MXNet's profiler
  custom.py --throw TIMES      "ready PID", waits for SIGUSR1, then TIMES each: operators that fail in bulks and outside of them, those
                               that operators of Python push, these themselves, a call of a store; prints how many failures
                               came back
  custom.py --pushed           pushes a bulk with operators that have a state behind one that waits for SIGUSR1, "ready PID"; then
                               the same bulk once more
"""
import argparse
import gc
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ['MXNET_MKLDNN_ENABLED'] = '0'

import gate  # noqa: E402
import mxnet as mx  # noqa: E402
from mxnet import autograd, nd  # noqa: E402

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


class Sigmoid(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], 1 / (1 + nd.exp(-in_data[0])))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        y = out_data[0]
        self.assign(in_grad[0], req[0], out_grad[0] * y * (1 - y))


class Failing(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], nd.random.normal(0, -1, in_data[0].shape))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


class Waiting(Sigmoid):
    go = threading.Event()

    def forward(self, is_train, req, in_data, out_data, aux):
        self.go.wait()
        super().forward(is_train, req, in_data, out_data, aux)


def register(name, operator):
    class Prop(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            return operator()

    mx.operator.register(name)(Prop)


class Raising(Sigmoid):
    def forward(self, is_train, req, in_data, out_data, aux):
        raise ValueError('in the program')


register('sigmoid', Sigmoid)
register('other', Sigmoid)
register('failing', Failing)
register('waiting', Waiting)
register('raising', Raising)


def section():
    for name in ('sigmoid', 'other'):
        for _ in range(3):
            x = nd.ones((4, 5))
            x.attach_grad()
            with autograd.record():
                y = nd.relu(nd.Custom(x * 2, op_type=name)) * 3
            y.backward()
            nd.waitall()


def caught(failure):
    try:
        failure()
        nd.waitall()
    except mx.base.MXNetError:
        return 1
    return 0


def in_bulk():
    with mx.engine.bulk(8):
        x = nd.ones((2, 2)) * 2
        (nd.random.normal(0, -1, (2, 2)) + x).wait_to_read()


def alone():
    nd.random.normal(0, -1, (2, 2)).wait_to_read()


def in_custom():
    nd.Custom(nd.ones((2, 2)), op_type='failing').wait_to_read()


def in_python():
    nd.Custom(nd.ones((2, 2)), op_type='raising').wait_to_read()


def in_store():
    mx.kv.create('local').pull('nobody put it there', out=nd.ones((2, 2)))


def throw(times):
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    kinds = (in_bulk, alone, in_custom, in_python, in_store)
    counts = [0] * len(kinds)
    for _ in range(times):
        for i, kind in enumerate(kinds):
            counts[i] += caught(kind)
        x = nd.arange(6)
        if nd.relu(x * 2 + 1).sum().asscalar() != 36:
            sys.exit('an operator among failures has another result')
    print('caught', ', '.join('%d %s' % (n, kind.__name__) for n, kind in zip(counts, kinds)), flush=True)


def drop(x):
    with autograd.train_mode(), mx.engine.bulk(8):
        return nd.Dropout(nd.Dropout(x) * 2)


def pushed():
    nd.waitall()
    drop(nd.Custom(nd.ones((4, 5)), op_type='waiting'))
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    Waiting.go.set()
    nd.waitall()
    drop(nd.ones((4, 5)))
    nd.waitall()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bare', action='store_true')
    p.add_argument('--builtin', metavar='PREFIX')
    p.add_argument('--throw', type=int, default=0)
    p.add_argument('--pushed', action='store_true')
    args = p.parse_args()
    if args.throw:
        return throw(args.throw)
    if args.pushed:
        return pushed()
    for _ in range(2):
        section()
    gc.collect()
    gc.disable()
    nd.waitall()
    builtin = args.builtin and gate.Builtin(args.builtin)
    if builtin:
        builtin.start()
    else:
        gate.begin()
    section()
    if builtin:
        builtin.stop()
        builtin.write()
    else:
        gate.end()


main()
