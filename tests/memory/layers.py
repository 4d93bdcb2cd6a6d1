#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hybridized net whose outputs of layers are kept, with bulks. Prints the bytes of each layer's outputs."""
import json
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ['MXNET_MKLDNN_ENABLED'] = '0' # oneDNN keeps copies of weights in other layouts
import mxnet as mx  # noqa: E402
from mxnet import gluon  # noqa: E402

BATCH, STEPS = 16, 5


class Net(gluon.HybridBlock):
    def __init__(self):
        super().__init__(prefix='net_')
        with self.name_scope():
            self.one = gluon.nn.Dense(64, in_units=128, use_bias=False, prefix='one_')
            self.two = gluon.nn.Dense(32, in_units=64, use_bias=False, prefix='two_')

    def hybrid_forward(self, F, x):
        one = self.one(x)
        return one, self.two(one)


net = Net()
net.initialize()
net.hybridize()
x = mx.nd.ones((BATCH, 128))
kept = []
for _ in range(STEPS):
    with mx.autograd.record(): # has bulks, and outputs of its own for each step
        kept.append(net(x))
mx.nd.waitall()
with open(sys.argv[1], 'w') as f:
    json.dump({'net_one_fwd': STEPS * BATCH * 64 * 4, 'net_two_fwd': STEPS * BATCH * 32 * 4}, f)
os._exit(0)
