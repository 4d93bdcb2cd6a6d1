#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators that fail and are caught, synchronously (at the call) and asynchronously (at the wait).

Prints "ready PID", waits for SIGUSR1, and fails --times times each way (default 200). After each two failures a backward pass
runs, whose gradients it checks. Prints "caught 200 sync, 200 async".
"""
import argparse
import os
import signal
import sys

import mxnet as mx
from mxnet import autograd, nd

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


def sync_failure():
    nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))  # incompatible shapes: the call throws


def async_failure():
    nd.random.normal(0, -1, (2, 2)).wait_to_read()  # a negative scale: the engine throws at the wait


def caught(failure):
    try:
        failure()
    except mx.base.MXNetError:
        return 1
    return 0


def gradient():
    x = nd.arange(6).reshape((2, 3))
    x.attach_grad()
    with autograd.record():
        y = nd.dot(nd.relu(x), nd.ones((3, 2))) * x.slice_axis(1, 0, 2)
    y.backward()
    return x.grad.asnumpy().tobytes()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--times', type=int, default=200)
    args = p.parse_args()
    expected = gradient()
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    sync = late = 0
    for _ in range(args.times):
        sync += caught(sync_failure)
        late += caught(async_failure)
        if gradient() != expected:
            sys.exit('a backward pass among failures has another result')
    print(f'caught {sync} sync, {late} async', flush=True)


main()
