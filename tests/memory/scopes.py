#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MXNet 2.0: a net with parameters made in a profiler scope. Writes their bytes to FILE.  scopes.py FILE"""
import json
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon, profiler  # noqa: E402

with profiler.scope('net:'):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(64, in_units=128, use_bias=False), gluon.nn.Dense(32, in_units=64, use_bias=False))
    net.initialize()
    mx.npx.waitall() # the graph renames arrays that have no memory yet
net.hybridize()
x = mx.np.ones((16, 128))
with autograd.record():
    loss = (net(x) ** 2).sum()
loss.backward()
mx.npx.waitall()
parameters = [p.data().size * 4 for p in net.collect_params().values()]
with open(sys.argv[1], 'w') as f:
    json.dump({'net': sum(parameters), 'parameters': parameters}, f)
os._exit(0)
