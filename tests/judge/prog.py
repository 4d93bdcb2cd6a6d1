#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One deterministic program: eager, hybridized and static nets, segments, memory traffic, waits.

  prog.py --bare                    only the section, between the two gates of gate.py
  prog.py --builtin PREFIX          the section under MXNet's profiler, without gates
  prog.py --builtin PREFIX --gates  both, for a run with two profilers
  --no-aggregate                    MXNet's profiler without aggregate statistics
  --bulk                            with bulking, MXNet's default
"""
import argparse
import gc
import os

import gate


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bare', action='store_true')
    p.add_argument('--builtin', metavar='PREFIX')
    p.add_argument('--gates', action='store_true')
    p.add_argument('--no-aggregate', action='store_true')
    p.add_argument('--bulk', action='store_true')
    p.add_argument('--rounds', type=int, default=3, help='how often the section does its work')
    args = p.parse_args()
    if args.bare == bool(args.builtin):
        p.error('either --bare or --builtin PREFIX')
    return args


ARGS = parse_args()
os.environ.setdefault('OMP_NUM_THREADS', '1')
if not ARGS.bulk:
    # Aggregate statistics disable bulking. This disables it in every run: eager backward and both directions of CachedOp. The
    # EXEC_TRAIN and EXEC_INFERENCE switches have no effect on CachedOp, and INFERENCE=0 would remove the segments that both
    # profilers show.
    os.environ['MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN'] = '0'

# With oneDNN, a weight is copied to another layout or not, depending on whether the worker or the program uses it first. So two
# profiled runs differ in DeleteVariable and allocations.
os.environ['MXNET_MKLDNN_ENABLED'] = '0'

import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon, nd  # noqa: E402


def make_net(**hybridize):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3, activation='relu'), gluon.nn.MaxPool2D(), gluon.nn.BatchNorm(),
            gluon.nn.Dense(32, activation='relu'), gluon.nn.Dropout(0.2), gluon.nn.Dense(10))
    net.initialize()
    if hybridize:
        net.hybridize(**hybridize)
    return net


class Work:
    """Everything that the section needs. A warm-up does everything that happens only once."""

    def __init__(self):
        mx.random.seed(1)
        self.data = nd.random.uniform(shape=(8, 3, 16, 16))
        self.label = nd.arange(8)
        self.loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        nets = (make_net(), make_net(active=True), make_net(static_alloc=True, static_shape=True))
        self.static = nets[-1]
        self.jobs = [(net, gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.01})) for net in nets]
        self.big = nd.ones((2000, 2000))
        self.kept = []

    def train(self, net, trainer):
        with autograd.record():
            loss = self.loss_of(net(self.data), self.label)
        loss.backward()
        trainer.step(8)

    def segments(self):
        """Inference of a static net: several operators are one engine operator named A,B,C."""
        self.static(self.data)
        nd.waitall()

    def memory(self):
        for size in (1, 1000, 4096, 250000):
            kept = [nd.zeros((size,)) for _ in range(3)]
            kept.append(kept[0] + kept[1])
            kept.append(kept[2].copy())
            nd.waitall()
            del kept
            nd.waitall()

    def waits(self):
        # Long enough to be running still: MXNet pushes a WaitForVar operator only then.
        nd.dot(self.big, self.big).wait_to_read()
        small = self.big[:8, :8].sum()
        nd.waitall()
        small.asscalar()

    def settle(self):
        """waitall() returns when the last operator has completed, but its worker frees that operator's arrays later. It has
        done so when it has run another operator, which holds nothing to free."""
        for _ in range(3):
            nd.waitall()
            self.kept.append(nd.zeros((1,)))
        nd.waitall()

    def section(self):
        for _ in range(ARGS.rounds):
            for net, trainer in self.jobs:
                self.train(net, trainer)
                nd.waitall()
            self.segments()
            self.memory()
            self.waits()
        self.settle()


def main():
    work = Work()
    for _ in range(2):
        work.section()
    # A garbage collection in the section would free arrays at random times.
    gc.collect()
    gc.disable()
    work.settle()

    builtin = ARGS.builtin and gate.Builtin(ARGS.builtin, not ARGS.no_aggregate)
    gate.run(work.section, builtin, ARGS.bare or ARGS.gates)
    if builtin:
        builtin.write()


main()
