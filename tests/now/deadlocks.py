# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for locks of Python. usage: deadlocks.py with|acquire|self|healthy. Prints "ready" when they wait."""
import os
import sys
import threading
import time

import torch  # noqa: F401  mxbpf looks at processes of a runtime

KIND = sys.argv[1]
first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def reader():
    with first:
        both.wait()
        with second:  # reader waits
            pass


def writer():
    with second:
        both.wait()
        with first:  # writer waits
            pass


def taker():
    first.acquire()
    both.wait()
    second.acquire()


def giver():
    second.acquire()
    both.wait()
    first.acquire()


class Cache:
    def __init__(self):
        self.guard = threading.Lock()

    def get(self):
        with self.guard:
            return self.refresh()

    def refresh(self):
        with self.guard:
            return 1


def patient():
    for _ in range(3):
        with first:  # leaves what it had on the stack of the frame
            pass
    both.wait()
    both.wait()  # the main thread has the lock from now on
    with first:
        pass


def start(**functions):
    threads = [threading.Thread(target=function, name=name, daemon=True) for name, function in functions.items()]
    for thread in threads:
        thread.start()
    return threads


def wait_for(threads):
    """Returns when each of them sleeps in a futex without a time limit, and not in the barrier."""
    for thread in threads:
        while True:
            with open(f'/proc/self/task/{thread.native_id}/syscall', encoding='ascii') as f:
                call = f.read().split()
            if call[0] == '202' and call[4] == '0x0' and sys._current_frames()[thread.ident].f_code.co_filename == __file__:
                break


if KIND == 'with':
    threads = start(loading=reader, logging=writer)
elif KIND == 'acquire':
    threads = start(loading=taker, logging=giver)
elif KIND == 'self':
    threads = start(caching=Cache().get)
else:
    threads = start(waiting=patient)
    both.wait()
    first.acquire()
    both.wait()
wait_for(threads)
print('ready', os.getpid(), flush=True)
time.sleep(120)  # the test ends it
