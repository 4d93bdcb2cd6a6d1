#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job that prints its own layers: training steps of a hybridized net, then inference with it.

Prints "ready PID", waits for SIGUSR1, makes --steps training steps and as many forward passes, and prints as JSON the operator
of each node of its graph, from its symbol. --static: its graph is static and runs in segments.
"""
import argparse
import json
import os
import signal

os.environ.setdefault('OMP_NUM_THREADS', '1')

import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon, nd  # noqa: E402

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


def named_net():
    """Names the parts of symbols, because MXNet 2.0 numbers the nodes of unnamed nets."""
    mx.npx.set_np()
    s = mx.sym.Convolution(mx.sym.var('data'), kernel=(3, 3), num_filter=8, name='net_conv0_fwd')
    s = mx.sym.Activation(s, act_type='relu', name='net_relu0_fwd')
    s = mx.sym.Pooling(s, kernel=(2, 2), pool_type='max', name='net_pool0_fwd')
    s = mx.sym.Dropout(mx.sym.FullyConnected(s, num_hidden=32, name='net_dense0_fwd'), p=0.2, name='net_dropout0_fwd')
    s = mx.sym.FullyConnected(s, num_hidden=10, name='net_dense1_fwd').as_np_ndarray()
    return gluon.SymbolBlock(s, [mx.sym.var('data').as_np_ndarray()]), s


def gluon_net():
    net = gluon.nn.HybridSequential(prefix='net_')
    with net.name_scope():
        net.add(gluon.nn.Conv2D(8, 3), gluon.nn.BatchNorm(), gluon.nn.Activation('relu'), gluon.nn.MaxPool2D(),
                gluon.nn.Dense(32, activation='relu'), gluon.nn.Dropout(0.2), gluon.nn.Dense(10))
    return net, None


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--steps', type=int, default=10)
    p.add_argument('--static', action='store_true')
    args = p.parse_args()
    numpy = not hasattr(mx, 'mod')
    net, symbol = named_net() if numpy else gluon_net()
    net.initialize()
    net.hybridize(static_alloc=args.static, static_shape=args.static)
    data = mx.np.random.uniform(size=(4, 3, 16, 16)) if numpy else nd.random.uniform(shape=(4, 3, 16, 16))

    def train():
        with autograd.record():
            out = net(data)
        out.backward()
        nd.waitall()

    train()
    net(data).wait_to_read()
    symbol = symbol if numpy else net(mx.sym.var('data'))
    nodes = {n['name']: n['op'] for n in json.loads(symbol.tojson())['nodes'] if n['op'] != 'null'}
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    for _ in range(args.steps):
        train()
    for _ in range(args.steps):
        net(data).wait_to_read()
    nd.waitall()
    print(json.dumps(nodes), flush=True)


main()
