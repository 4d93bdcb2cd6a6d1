#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ordinary MXNet training job: a gluon CNN with data loading on the CPU. It knows nothing of mxbpf.

Prints "ready PID" after the first step and then a line per second; ends cleanly on SIGTERM and SIGINT.
The same --seed, --steps and --threads give bit-identical parameters.
"""
import argparse
import hashlib
import os
import signal
import sys
import time


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--steps', type=int, default=0, help='training steps; 0: until a signal comes')
    p.add_argument('--seconds', type=float, default=0, help='end after so long; 0: no limit')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--batch', type=int, default=32)
    p.add_argument('--hybridize', choices=('none', 'dynamic', 'static'), default='dynamic')
    p.add_argument('--threads', type=int, default=0, help='OpenMP threads; 0: OMP_NUM_THREADS, or 1 if that is unset')
    p.add_argument('--tiny', action='store_true', help='a small net on small images: many short operators')
    p.add_argument('--print-result', action='store_true', help='print a hash of the final parameters')
    return p.parse_args()


ARGS = parse_args()
# The OpenMP runtime reads this when libmxnet.so is loaded, so it must be set before the import.
if ARGS.threads:
    os.environ['OMP_NUM_THREADS'] = str(ARGS.threads)
os.environ.setdefault('OMP_NUM_THREADS', '1')

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet import autograd, gluon, nd  # noqa: E402

CLASSES = 10


def make_dataset(tiny):
    """Images of ten distinguishable classes: each has a bright square at a place of its own, in noise."""
    count, channels, size = (64, 1, 12) if tiny else (512, 3, 28)
    rng = np.random.RandomState(ARGS.seed)
    labels = rng.randint(0, CLASSES, count)
    images = rng.normal(0, 0.3, (count, channels, size, size)).astype('float32')
    for image, label in zip(images, labels):
        row, column = divmod(int(label), 4)
        image[:, 3 * row:3 * row + 3, 3 * column:3 * column + 3] += 1
    return gluon.data.ArrayDataset(images, labels.astype('float32'))


def make_net(tiny):
    layer = gluon.nn
    net = layer.HybridSequential()
    channels, units = (4, 16) if tiny else (32, 128)
    net.add(layer.Conv2D(channels, 3, padding=1), layer.BatchNorm(), layer.Activation('relu'), layer.MaxPool2D(),
            layer.Conv2D(2 * channels, 3, padding=1), layer.BatchNorm(), layer.Activation('relu'), layer.MaxPool2D(),
            layer.Flatten(), layer.Dense(units, activation='relu'), layer.Dropout(0.2), layer.Dense(CLASSES))
    net.initialize(mx.init.Xavier())
    if ARGS.hybridize != 'none':
        static = ARGS.hybridize == 'static'
        net.hybridize(static_alloc=static, static_shape=static)
    return net


def batches(loader):
    while True:
        yield from loader


def result(net):
    digest = hashlib.sha256()
    for _, parameter in sorted(net.collect_params().items()):
        digest.update(parameter.data().asnumpy().tobytes())
    return digest.hexdigest()


def main():
    stopped = []
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda number, frame: stopped.append(number))
    mx.random.seed(ARGS.seed)
    np.random.seed(ARGS.seed)  # the loader shuffles with numpy's generator

    batch = min(ARGS.batch, 16) if ARGS.tiny else ARGS.batch
    loader = gluon.data.DataLoader(make_dataset(ARGS.tiny), batch, shuffle=True, last_batch='discard')
    net = make_net(ARGS.tiny)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.05, 'momentum': 0.9})
    accuracy = mx.metric.Accuracy()

    begin = reported = time.monotonic()
    reported_step = 0
    for step, (data, label) in enumerate(batches(loader), 1):
        began = time.monotonic()
        with autograd.record():
            output = net(data)
            loss = loss_of(output, label)
        loss.backward()
        trainer.step(batch)
        accuracy.update([label], [output])
        now = time.monotonic()
        if step == 1:
            nd.waitall()
            print('ready', os.getpid(), flush=True)
        elif now - reported >= 1:
            print('step %d  %.1f steps/s  loss %.4f  accuracy %.3f' % (
                step, (step - reported_step) / (now - reported), loss.mean().asscalar(), accuracy.get()[1]), flush=True)
            accuracy.reset()
            reported, reported_step = now, step
        if stopped or step == ARGS.steps or (ARGS.seconds and now - begin >= ARGS.seconds):
            break
        if ARGS.tiny and not ARGS.steps:
            time.sleep(min(3 * (now - began), 0.02))  # leaves CPU time for tests that run in parallel
    nd.waitall()
    if ARGS.print_result:
        print('result', step, result(net), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
