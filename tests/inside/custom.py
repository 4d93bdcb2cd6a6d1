#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A deterministic program with operators written in Python, of two types, forward and backward, next to other operators in bulks.

  custom.py --bare             only the section, between the two gates of gate.py
  custom.py --builtin PREFIX   the section under MXNet's profiler
  custom.py --seeds PREFIX     a section in which threads of Python operators are new and seed their generators, between the gates
                               and under MXNet's profiler at once, which writes a trace and so leaves bulks on
  ... --more                   another section: autograd Functions, operators in operators, and some that fail
  custom.py --linger           prints "ready PID"; after each SIGUSR1 an operator begins ("begun"), which ends with SIGUSR2
  custom.py --throw TIMES      prints "ready PID", waits for SIGUSR1, then makes each of these fail TIMES times: operators in and
                               outside of bulks, those that Python operators push, Python operators, a store call; prints how
                               many failures came back
  custom.py --pushed           pushes a bulk of stateful operators behind one that waits for SIGUSR1, prints "ready PID"; then
                               pushes the bulk again
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

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])


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


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, dy):
        return nd.exp(dy) * self.saved_tensors[0]


class Noisy(autograd.Function):
    def forward(self, x):
        return x + nd.random.normal(0, 1, x.shape)

    def backward(self, dy):
        return dy * nd.random.normal(0, 1, dy.shape)


class FailingSquare(Square):
    def backward(self, dy):
        nd.tanh(dy)
        raise ValueError('in the program')


class Nesting(Sigmoid):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = nd.ones(in_data[0].shape)
        x.attach_grad()
        with autograd.record():
            y = Square()(nd.relu(x)) * 2
        y.backward()
        self.assign(out_data[0], req[0], in_data[0] + x.grad)


class RaisingBackward(Sigmoid):
    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        nd.tanh(out_grad[0])
        raise ValueError('in the program')


class Lingering(Sigmoid):
    def forward(self, is_train, req, in_data, out_data, aux):
        print('begun', flush=True)
        signal.sigwait([signal.SIGUSR2])


def register(name, operator):
    class Prop(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            return operator()

    mx.operator.register(name)(Prop)


class Raising(Sigmoid):
    def forward(self, is_train, req, in_data, out_data, aux):
        nd.sqrt(in_data[0])
        raise ValueError('in the program')


class Block(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.Custom(F.tanh(x) * 2, op_type='sigmoid')


register('sigmoid', Sigmoid)
register('other', Sigmoid)
register('failing', Failing)
register('waiting', Waiting)
register('raising', Raising)
register('raising_backward', RaisingBackward)
register('nesting', Nesting)
register('lingering', Lingering)


def section():
    for name in ('sigmoid', 'other'):
        for _ in range(3):
            x = nd.ones((4, 5))
            x.attach_grad()
            with autograd.record():
                y = nd.relu(nd.Custom(x * 2, op_type=name)) * 3
            y.backward()
            nd.waitall()


def backward_of(function):
    x = nd.ones((4, 5))
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    nd.waitall()


def section_more():
    """No operators come before the failing ones: MXNet would skip them in a bulk, and count them as done alone."""
    block = Block()
    block.hybridize()
    for function in (lambda x: Square()(nd.relu(x * 2)) * 3,
                     lambda x: block(Square()(block(x))),
                     lambda x: nd.Custom(nd.relu(x), op_type='nesting') * 3,
                     FailingSquare(),
                     lambda x: nd.Custom(x, op_type='raising'),
                     lambda x: nd.Custom(x, op_type='sigmoid'),
                     lambda x: nd.Custom(x, op_type='raising_backward'),
                     lambda x: nd.Custom(x, op_type='sigmoid')):
        caught(lambda: backward_of(function))
        caught(nd.waitall)


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


def seeds(prefix):
    nd.waitall()
    builtin = gate.Builtin(prefix, aggregate=False)
    builtin.start()
    gate.begin()
    with mx.engine.bulk(8):
        backward_of(lambda x: Noisy()(x * 2))
    builtin.stop()
    gate.end()
    builtin.write()


def linger():
    print('ready', os.getpid(), flush=True)
    while True:
        signal.sigwait([signal.SIGUSR1])
        nd.Custom(nd.ones((2, 2)), op_type='lingering').wait_to_read()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bare', action='store_true')
    p.add_argument('--builtin', metavar='PREFIX')
    p.add_argument('--throw', type=int, default=0)
    p.add_argument('--pushed', action='store_true')
    p.add_argument('--more', action='store_true')
    p.add_argument('--seeds', metavar='PREFIX')
    p.add_argument('--linger', action='store_true')
    args = p.parse_args()
    if args.linger:
        return linger()
    if args.seeds:
        return seeds(args.seeds)
    if args.throw:
        return throw(args.throw)
    if args.pushed:
        return pushed()
    run = section_more if args.more else section
    for _ in range(2):
        run()
    gc.collect()
    gc.disable()
    nd.waitall()
    builtin = args.builtin and gate.Builtin(args.builtin)
    gate.run(run, builtin, not builtin)
    if builtin:
        builtin.write()


main()
