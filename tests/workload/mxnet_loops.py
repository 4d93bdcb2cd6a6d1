#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training loops of MXNet in all their forms, each in a process of its own, which keeps its own account: the number of steps, the
time in ns from the end of the first to the end of the last, the slowest step, and the step that it made slow.

usage: mxnet_loops.py MODE...    prints a line of JSON for each
"""
import json
import os
import sys
import time

os.environ.setdefault('OMP_NUM_THREADS', '1')

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet import autograd, gluon, nd  # noqa: E402

STEPS, SLOW, BATCH = 20, 12, 8
NAP, LONG_NAP = 0.01, 0.6


class Clock:
    """The program's own account of its steps."""

    def __init__(self):
        self.ends = []

    def nap(self):
        time.sleep(LONG_NAP if len(self.ends) == SLOW else NAP)

    def step(self):
        self.ends.append(time.perf_counter_ns())

    def account(self):
        took = [b - a for a, b in zip(self.ends, self.ends[1:])]
        return {'steps': len(self.ends), 'ns': self.ends[-1] - self.ends[0], 'slow': 1 + took.index(max(took)), 'planted': SLOW}


def dense(units=4):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(16, activation='relu'), gluon.nn.Dense(units))
    net.initialize()
    return net


def gluon_loop(hybridize=None, passes=1, optimizer='sgd', **more):
    clock, net, loss_of = Clock(), dense(), gluon.loss.L2Loss()
    if hybridize is not None:
        net.hybridize(**hybridize)
    if passes > 1:
        net.collect_params().setattr('grad_req', 'add')
    trainer = gluon.Trainer(net.collect_params(), optimizer, {'learning_rate': 0.01}, **more)
    x, y = nd.ones((BATCH, 10)), nd.ones((BATCH, 4))
    for _ in range(STEPS):
        clock.nap()
        for _ in range(passes):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
        trainer.step(BATCH)
        clock.step()
        loss.asnumpy()
    return clock.account()


def rivals_loop():
    """Two trainers in one iteration, each with a backward pass of its own."""
    clock, nets = Clock(), (dense(), dense())
    trainers = [gluon.Trainer(net.collect_params(), 'adam') for net in nets]
    x = nd.ones((BATCH, 10))
    for _ in range(STEPS):
        clock.nap()
        for net, trainer in zip(nets, trainers):
            with autograd.record():
                loss = net(x).mean()
            loss.backward()
            trainer.step(BATCH)
            if trainer is trainers[0]:
                clock.step()
        loss.asnumpy()
    return clock.account()


class Naps(mx.io.NDArrayIter):
    clock = None

    def next(self):
        self.clock.nap()
        return super().next()


def module_loop(devices=1):
    clock = Clock()
    data, label = mx.sym.Variable('data'), mx.sym.Variable('softmax_label')
    net = mx.sym.FullyConnected(data, num_hidden=4)
    net = mx.sym.SoftmaxOutput(net, label, name='softmax')
    batches = Naps(np.ones((STEPS * BATCH, 10), 'float32'), np.zeros(STEPS * BATCH, 'float32'), BATCH)
    batches.clock = clock
    module = mx.mod.Module(net, context=[mx.cpu(i) for i in range(devices)])
    update = module.update

    def timed():
        update()
        clock.step()
    module.update = timed
    module.fit(batches, num_epoch=1, kvstore='local', optimizer='sgd')
    return clock.account()


class Samples(gluon.data.Dataset):
    """A batch takes its worker 60 ms. The slow step's takes much longer."""

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, i):
        time.sleep(1 if i == SLOW * BATCH else 0.06 / BATCH)
        return np.ones(10, 'float32'), np.ones(4, 'float32')


def train(batches):
    clock, net, loss_of = Clock(), dense(), gluon.loss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), 'sgd')
    for x, y in batches:
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(BATCH)
        clock.step()
    return clock.account()


def loader_loop():
    return train(gluon.data.DataLoader(Samples(), BATCH, num_workers=1, prefetch=1))


def iterator_loop():
    """A C++ iterator; counts its own calls."""
    for name, columns in (('x', 10), ('y', 4)):
        np.savetxt(name + '.csv', np.ones((STEPS * BATCH, columns)), delimiter=',')
    calls = {'MXDataIterNext': 0, 'MXDataIterBeforeFirst': 0}
    lib = mx.io.io._LIB

    class Counted:
        def __getattr__(self, name):
            if name in calls:
                calls[name] += 1
            return getattr(lib, name)
    mx.io.io._LIB = Counted()
    batches = mx.io.CSVIter(data_csv='x.csv', data_shape=(10,), label_csv='y.csv', label_shape=(4,), batch_size=BATCH)
    batches.reset()
    account = train((b.data[0], b.label[0]) for b in batches)
    return dict(account, calls=calls)


MODES = {
    'eager': gluon_loop,
    'hybrid': lambda: gluon_loop({}),
    'static': lambda: gluon_loop({'static_alloc': True, 'static_shape': True}),
    'accumulate': lambda: gluon_loop({}, passes=3),
    'unfused': lambda: gluon_loop({}, optimizer='adadelta'),
    'rivals': rivals_loop,
    'module': module_loop,
    'module2': lambda: module_loop(2),
    'loader': loader_loop,
    'iterator': iterator_loop,
}


def main():
    for mode in sys.argv[1:]:
        pid = os.fork()
        if not pid:
            account = dict(MODES[mode](), mode=mode, pid=os.getpid())
            nd.waitall()
            print(json.dumps(account), flush=True)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
