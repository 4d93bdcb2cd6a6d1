#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One deterministic program for every MXNet from 1.5 to 2.0: eager, hybridized and static nets, Module, LSTM, Dropout, Custom,
user annotations, memory traffic, waits. Skips parts that a version does not support, and prints "without ..." for them.

  prog.py --bare              only the section, between the two gates of ../judge/gate.py
  prog.py --builtin PREFIX    the section under MXNet's profiler, without gates
  --bulk                      with bulking, MXNet's default
  --without PART[,PART]       leaves parts of the section out
"""
import argparse
import gc
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bare', action='store_true')
    p.add_argument('--builtin', metavar='PREFIX')
    p.add_argument('--bulk', action='store_true')
    p.add_argument('--rounds', type=int, default=2)
    p.add_argument('--without', default='')
    args = p.parse_args()
    if args.bare == bool(args.builtin):
        p.error('either --bare or --builtin PREFIX')
    return args


ARGS = parse_args()
os.environ.setdefault('OMP_NUM_THREADS', '1')
if not ARGS.bulk:  # see ../judge/prog.py
    os.environ['MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN'] = '0'
os.environ['MXNET_MKLDNN_ENABLED'] = os.environ['MXNET_ONEDNN_ENABLED'] = '0'  # see ../judge/prog.py
os.environ['MXNET_STORAGE_FALLBACK_LOG_VERBOSE'] = '0'
os.environ['MXNET_USE_MKLDNN_RNN'] = os.environ['MXNET_USE_ONEDNN_RNN'] = '0'  # requires oneDNN

import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon, nd, profiler  # noqa: E402

NUMPY = not hasattr(mx, 'mod')  # 2.0 has numpy arrays and no Module
if NUMPY:
    mx.npx.set_np()
array_of = mx.np if NUMPY else nd


class Double(mx.operator.CustomOp):
    delay_s = 0

    def forward(self, is_train, req, in_data, out_data, aux):
        time.sleep(self.delay_s)
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


class Triple(autograd.Function):
    def forward(self, x):
        return x * 3

    def backward(self, dy):
        return dy * 3


@mx.operator.register('double')
class DoubleProp(mx.operator.CustomOpProp):
    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Double()


def make_net(**hybridize):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(4, 3, activation='relu'), gluon.nn.MaxPool2D(), gluon.nn.BatchNorm(),
            gluon.nn.Dense(16, activation='relu'), gluon.nn.Dropout(0.2), gluon.nn.Dense(10))
    net.initialize()
    if hybridize:
        net.hybridize(**hybridize)
    return net


class Marks:
    def __init__(self):
        domain = profiler.Domain('Domain of the program')
        self.task, self.frame = profiler.Task(domain, 'a task'), profiler.Frame(domain, 'a frame')
        self.event, self.counter = profiler.Event('an event'), profiler.Counter(domain, 'a counter')
        self.marker = profiler.Marker(domain, 'a marker')

    def run(self):
        for mark in self.task, self.frame, self.event:
            mark.start()
            mark.stop()
        self.counter.set_value(7)
        self.counter.increment(2)
        self.counter -= 3
        self.marker.mark('process')


class Work:
    """Everything that the section needs. A warm-up does everything that happens only once."""

    def __init__(self):
        mx.random.seed(1)
        self.data = array_of.random.uniform(size=(4, 3, 12, 12)) if NUMPY else nd.random.uniform(shape=(4, 3, 12, 12))
        self.label = array_of.arange(4)
        self.loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        self.nets = {'eager': make_net(), 'hybridized': make_net(active=True),
                     'static_shape': make_net(static_alloc=True, static_shape=True)}
        self.trainers = {name: gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.01})
                         for name, net in self.nets.items()}
        self.lstm = gluon.rnn.LSTM(8, 1)
        self.lstm.initialize()
        self.sequence = array_of.ones((5, 4, 6))
        self.ones = nd.ones((5, 4))
        self.big = array_of.ones((1200, 1200))
        self.marks = Marks()
        self.module = None if NUMPY else self.make_module()
        self.kept = []

    def make_module(self):
        sym = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=8, name='fc1')
        sym = mx.sym.Activation(sym, act_type='relu', name='relu1')
        sym = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(sym, num_hidden=4, name='fc2'), name='softmax')
        module = mx.mod.Module(sym, context=mx.cpu())
        module.bind([('data', (4, 6))], [('softmax_label', (4,))])
        module.init_params()
        module.init_optimizer(optimizer_params={'learning_rate': 0.01})
        self.batch = mx.io.DataBatch([nd.ones((4, 6))], [nd.arange(4)])
        return module

    def train(self, name):
        with autograd.record():
            loss = self.loss_of(self.nets[name](self.data), self.label)
        loss.backward()
        self.trainers[name].step(4)
        nd.waitall()

    def eager(self):
        self.train('eager')

    def hybridized(self):
        self.train('hybridized')

    def static_shape(self):
        self.train('static_shape')
        self.nets['static_shape'](self.data)
        nd.waitall()

    def module_of_symbols(self):
        if self.module:
            self.module.forward_backward(self.batch)
            self.module.update()
            nd.waitall()

    def rnn(self):
        with autograd.record():
            out = self.lstm(self.sequence)
        out.backward()
        nd.waitall()

    def dropout(self):
        with autograd.record():
            (mx.npx.dropout if NUMPY else nd.Dropout)(self.sequence, p=0.5)
        nd.waitall()

    def custom(self):
        x = self.ones + 1
        x.attach_grad()
        with autograd.record():
            y = Triple()(nd.Custom(x, op_type='double'))
        y.backward()
        nd.waitall()

    def crowd(self):
        """MXNet adds a thread for Custom operators when all others are busy, and each thread seeds a generator of its own at its
        first operator. After this, as many threads as the section may need have done so."""
        Double.delay_s = 0.1
        outputs = [nd.Custom(self.ones + i, op_type='double') for i in range(4)]
        nd.waitall()
        Double.delay_s = 0
        return outputs

    def user_marks(self):
        self.marks.run()

    def memory(self):
        for size in (1, 1000, 4096, 250000):
            kept = [array_of.zeros((size,)) for _ in range(3)]
            kept.append(kept[0] + kept[1])
            kept.append(kept[2].copy())
            nd.waitall()
            del kept
            nd.waitall()

    def waits(self):
        # Long enough to be running still: MXNet pushes a WaitForVar operator only then.
        array_of.dot(self.big, self.big).wait_to_read()
        small = self.big[:8, :8].sum()
        nd.waitall()
        small.asnumpy()

    def settle(self):
        """Waits like settle() of ../judge/prog.py."""
        for _ in range(3):
            nd.waitall()
            self.kept.append(array_of.zeros((1,)))
        nd.waitall()

    def section(self, warm_up=False):
        # MXNet also counts annotations from before its profiler runs.
        left = ARGS.without.split(',') + ['user_marks'] * warm_up
        for _ in range(ARGS.rounds):
            for part in (self.eager, self.hybridized, self.static_shape, self.module_of_symbols, self.rnn, self.dropout,
                         self.custom, self.user_marks, self.memory, self.waits):
                if part.__name__ not in left:
                    part()
        self.settle()


def main():
    work = Work()
    work.crowd()
    for _ in range(2):
        work.section(warm_up=True)
    gc.collect()
    gc.disable()
    work.settle()

    builtin = ARGS.builtin and gate.Builtin(ARGS.builtin)
    gate.run(work.section, builtin, ARGS.bare)
    if builtin:
        builtin.write()


main()
