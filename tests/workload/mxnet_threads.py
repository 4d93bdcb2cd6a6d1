#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Successive threads that call MXNet, more than mxbpf has slots for at a time.

Prints "ready PID", waits for SIGUSR1, starts and joins 1500 threads, each of which calls waitall() once.
"""
import os
import signal
import threading

from mxnet import nd

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
N = 1500


def main():
    nd.ones((2, 2)).wait_to_read()
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    for _ in range(N):
        t = threading.Thread(target=nd.waitall)
        t.start()
        t.join()
    print(N, 'one after another', flush=True)


main()
