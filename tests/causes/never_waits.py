# SPDX-License-Identifier: Apache-2.0
"""A program that calls a net of MXNet in a loop, and never waits for what it returns. The twin waits every tenth time."""
import time

import mxnet as mx

from common import HEALTHY, begin, going

FINDING = 'backlog'
PYTHON = 'mxnet'

net = mx.gluon.nn.HybridSequential()
for _ in range(3):
    net.add(mx.gluon.nn.Dense(1024, activation='relu'))
net.initialize()
net.hybridize()
net(mx.nd.ones((128, 1024))).wait_to_read()
begin()
calls = 0
while going():
    out = net(mx.nd.ones((128, 1024)))  # CAUSE
    calls += 1
    if HEALTHY and calls % 10 == 0:
        out.wait_to_read()
    time.sleep(0.003)
