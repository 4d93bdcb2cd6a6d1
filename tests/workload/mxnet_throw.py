#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators that fail and are caught, synchronously (at the call) and asynchronously (at the wait).

Prints "ready PID", waits for SIGUSR1, fails 200 times each way, prints "caught 200 sync, 200 async".
"""
import os
import signal

import mxnet as mx
from mxnet import nd

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
N = 200


def sync_failure():
    nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))  # shapes that do not fit: thrown by the call


def async_failure():
    nd.random.normal(0, -1, (2, 2)).wait_to_read()  # a negative scale: thrown by the engine, at the wait


def caught(failure):
    try:
        failure()
    except mx.base.MXNetError:
        return 1
    return 0


def main():
    nd.ones((2, 2)).wait_to_read()
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    sync = sum(caught(sync_failure) for _ in range(N))
    late = sum(caught(async_failure) for _ in range(N))
    print(f'caught {sync} sync, {late} async', flush=True)


main()
