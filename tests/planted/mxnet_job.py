#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An MXNet training job with a fault that was planted on purpose, or with none. It knows nothing of mxbpf.

usage: mxnet_job.py FAULT [--seconds N]     prints "ready PID" after five steps; ends at SIGTERM or after N seconds
"""
import argparse
import os
import signal
import sys
import tempfile
import time

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

from common import compute_beside, own

KEPT = []


def net(width=256, depth=3, hybrid=True):
    n = nn.HybridSequential()
    for _ in range(depth):
        n.add(nn.Dense(width, activation='relu'))
    n.add(nn.Dense(10))
    n.initialize(mx.init.Xavier())
    if hybrid:
        n.hybridize()
    return n


class Samples(gluon.data.Dataset):
    """256 features and a label; subclasses make it slow."""
    def __init__(self, count=100000, width=256):
        self.count = count
        self.row = mx.random.uniform(shape=(width,)).asnumpy()

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.row, float(i % 10)


class Sleeping(Samples):
    def __getitem__(self, i):
        time.sleep(0.002)  # a slow remote store
        return super().__getitem__(i)


class Decoding(Samples):
    def __getitem__(self, i):
        total = 0
        for k in range(6000):  # a decoder in Python
            total += k * i
        return super().__getitem__(i)


def train(batch_of, width=256, depth=3, hybrid=True, step=None, inner=None, wait=True):
    model = net(width, depth, hybrid)
    trainer = gluon.Trainer(model.collect_params(), 'sgd', {'learning_rate': 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    n = 0
    for x, y in batch_of():
        x, y = x.as_in_context(mx.cpu()), y.as_in_context(mx.cpu())  # workers hand over shared memory
        with autograd.record():
            out = model(x)
            if inner:
                out = inner(out)
            loss = loss_of(out, y)
        loss.backward()
        trainer.step(x.shape[0])
        if wait:
            loss.wait_to_read()
        if step:
            step(n, model, x, loss)
        n += 1
        if n == 5:
            print('ready', os.getpid(), flush=True)


def same(batch=64, width=256):
    x, y = mx.random.uniform(shape=(batch, width)), nd.array([i % 10 for i in range(batch)])

    def batches():
        while True:
            yield x, y
    return batches


def loader(data, workers, batch=64):
    def batches():
        while True:
            yield from gluon.data.DataLoader(data, batch, num_workers=workers)
    return batches


def tiny(out):
    for _ in range(300):
        out = out + 0.001
    return out


def each_value(n, model, x, loss):
    for i in range(loss.shape[0]):
        (loss[i] * 2).asscalar()  # one value at a time


def leak(n, model, x, loss):
    KEPT.append(x * 2)
    KEPT[-1].wait_to_read()


def evaluate(n, model, x, loss):
    if n % 10 == 9:
        for _ in range(30):
            nd.softmax(model(x)).wait_to_read()


def checkpoint(n, model, x, loss):
    if n % 12 == 11:
        with tempfile.TemporaryDirectory() as d:
            for _ in range(25):
                model.save_parameters(os.path.join(d, 'p'))


def straggler():
    """Two workers, a server and a scheduler. One worker has more to do. The other prints the number of the launcher."""
    launcher = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../workload/mxnet_job.py')
    if 'DMLC_ROLE' not in os.environ:
        os.execv(sys.executable, [sys.executable, launcher, '2', os.path.abspath(__file__), 'straggler'])
    store = mx.kv.create('dist_sync')  # a server and a scheduler stay here
    model, loss_of = net(128), gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(model.collect_params(), 'sgd', {'learning_rate': 0.01}, kvstore=store)
    x, y = next(same(64, 128)())
    n = 0
    while True:
        with autograd.record():
            loss = loss_of(model(x), y)
        loss.backward()
        if store.rank:
            time.sleep(0.06)  # its samples are longer
        trainer.step(64)
        loss.wait_to_read()
        model[0].weight.data().wait_to_read()
        n += 1
        if n == 5 and not store.rank:
            print('ready', os.getppid(), flush=True)


FAULTS = {
    'healthy': lambda: train(same(256, 512), 512),
    'healthy-wide': lambda: train(same(256, 1024), 1024, 2),
    'healthy-deep': lambda: train(same(512, 384), 384, 8),
    'healthy-async': lambda: train(same(256, 512), 512, 3),
    'loader-sleeps': lambda: train(loader(Sleeping(), 1)),
    'loader-decodes': lambda: train(loader(Decoding(), 1)),
    'loader-main': lambda: train(loader(Decoding(), 0)),
    'tiny': lambda: train(same(8, 32), 32, 2, hybrid=False, inner=tiny),
    'sync': lambda: train(same(64, 256), 256, 2, step=each_value),
    'own': lambda: train(same(64, 512), 512, step=own),
    'lock': lambda: (compute_beside(), train(same(64, 512), 512))[1],
    'straggler': straggler,
    'leak': lambda: train(same(256, 512), 512, step=leak),
    'evaluation': lambda: train(same(128, 512), 512, step=evaluate),
    'checkpoint': lambda: train(same(128, 512), 512, step=checkpoint),
}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('fault', choices=FAULTS)
    p.add_argument('--seconds', type=int, default=0)
    args = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if args.seconds:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.alarm(args.seconds)
    mx.random.seed(1)
    FAULTS[args.fault]()


sys.exit(main())
