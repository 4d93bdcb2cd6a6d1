#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program whose annotated parts each wait for something else. It knows nothing of mxbpf.

Prints "ready PID" and sleeps until SIGUSR1. Then it repeats for --seconds: computing (only computes), locked (another thread
holds the lock), reading (a file, from a cold cache), mapped (the file through page faults) and napping. Prints "done RUN_NS
WAIT_NS", the main thread's CPU time and run-queue wait since the signal by /proc, and sleeps until SIGTERM.
"""
import argparse
import mmap
import os
import signal
import sys
import tempfile
import threading
import time

import torch

PIECE = 1 << 20
PAGE = 4096


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--seconds', type=float, default=2)
    p.add_argument('--cpu', type=int, help='the only one that it may use')
    p.add_argument('--only', help='one of the parts')
    return p.parse_args()


class Holder(threading.Thread):
    """Holds the lock for 5 ms on each request."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lock, self.asked, self.has = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
        self.start()

    def run(self):
        while True:
            self.asked.acquire()
            with self.lock:
                self.has.release()
                time.sleep(0.005)


HOLDER = Holder()


def computing(_):
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        sum(range(1000))


def locked(_):
    with HOLDER.lock:
        pass


def reading(file):
    file.seek(0)
    while file.read(PIECE):
        pass


def mapped(file):
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as m:
        m.madvise(mmap.MADV_RANDOM)
        for off in range(0, len(m), 64 * PAGE):
            m[off]


def napping(_):
    time.sleep(0.005)


PARTS = (computing, locked, reading, mapped, napping)


def main():
    args = parse_args()
    if args.cpu is not None:
        os.sched_setaffinity(0, {args.cpu})
    torch.set_num_threads(1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    with tempfile.NamedTemporaryFile(dir=os.environ.get('BATS_TEST_TMPDIR'), buffering=0) as file:
        file.write(os.urandom(8 * PIECE))
        os.fsync(file.fileno())
        with torch.profiler.record_function('before'):
            torch.ones(1)
        print('ready', os.getpid(), flush=True)
        signal.sigwait({signal.SIGUSR1})
        schedstat = '/proc/self/task/%d/schedstat' % threading.get_native_id()
        with open(schedstat) as f:
            before = [int(n) for n in f.read().split()]
        end = time.monotonic() + args.seconds
        while time.monotonic() < end:
            for part in PARTS:
                if args.only and args.only != part.__name__:
                    continue
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                if part is locked:
                    HOLDER.asked.release()
                    HOLDER.has.acquire()
                with torch.profiler.record_function(part.__name__):
                    part(file)
        with open(schedstat) as f:
            after = [int(n) for n in f.read().split()]
        print('done', after[0] - before[0], after[1] - before[1], flush=True)
        signal.sigwait({signal.SIGTERM})


sys.exit(main())
