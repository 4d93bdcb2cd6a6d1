#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An annotated part that computes for about a millisecond, repeatedly, and once takes much longer for a given reason. Prints
"ready PID", waits for SIGUSR1, prints "usual" after enough repetitions, waits for SIGUSR1 again, runs the slow one, prints
"done" and waits for SIGTERM."""
import mmap
import os
import signal
import sys
import tempfile
import threading
import time

import torch
from torch.profiler import record_function

USUAL = 40
MB = 1 << 20


def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def preempted():
    """Preempted by a busy process on the same CPU, which the test starts."""
    return lambda: compute(0.03)


def lock():
    """A lock that another thread holds."""
    held = threading.Lock()
    held.acquire()

    def hold():
        time.sleep(0.03)
        held.release()
    thread = threading.Thread(target=hold)

    def wait():
        thread.start()
        held.acquire()
    return wait


def read():
    """A file read past the page cache. The disk writes to memory directly, so the thread computes at most a tenth of the time."""
    file = tempfile.NamedTemporaryFile(dir='.')
    file.write(os.urandom(64 * MB))
    file.flush()
    os.fsync(file.fileno())
    direct, buffer = os.open(file.name, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, MB)
    buffer[:] = b'x' * MB

    def fill():
        for at in range(0, 64 * MB, MB):
            os.preadv(direct, [buffer], at)
        file.close()
    return fill


def faults():
    """Freshly mapped memory."""
    source, fresh = b'x' * (64 * MB), mmap.mmap(-1, 64 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, 'MADV_NOHUGEPAGE'):
        fresh.madvise(mmap.MADV_NOHUGEPAGE)

    def touch():
        fresh[:] = source
    return touch


def main():
    torch.set_num_threads(1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    unusual = {'preempted': preempted, 'lock': lock, 'read': read, 'faults': faults}[sys.argv[1]]()
    print('ready', os.getpid(), flush=True)
    signal.sigwait({signal.SIGUSR1})
    for _ in range(USUAL):
        with record_function('part'):
            compute(0.001)
    print('usual', flush=True)
    signal.sigwait({signal.SIGUSR1})
    with record_function('part'):
        unusual()
    print('done', flush=True)
    signal.pause()


if __name__ == '__main__':
    main()
