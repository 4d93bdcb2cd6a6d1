#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that knows the perf events of its calls: each count lies between the kernel's own readings for the thread
inside the call and around it.

Prints "ready PID", makes its calls on SIGUSR1, and prints a line of JSON: {call: {event: [least, most]}}. Each call is an
annotation with operators in it:
  burn   computes for a while
  touch  writes to PAGES untouched pages
  sleep  sleeps NAPS times
A thread that starts then runs operators for SECONDS.
"""
import ctypes
import json
import mmap
import os
import resource
import signal
import struct
import sys
import threading
import time

import torch
from torch.profiler import record_function

PAGES = 3000
NAPS = 40
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0
TASK_CLOCK = None


def open_task_clock():
    """Opens the event PERF_COUNT_SW_TASK_CLOCK of the running thread. The thread's CPU time is another clock: it omits interrupts,
    stolen time and the context switches themselves, which were 3 % of a call on a busy machine."""
    PERF_EVENT_OPEN, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK = 298, 1, 1 # x86-64
    attr = struct.pack('IIQ', PERF_TYPE_SOFTWARE, 112, PERF_COUNT_SW_TASK_CLOCK).ljust(112, b'\0')
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(PERF_EVENT_OPEN, attr, 0, -1, -1, 0)
    if fd < 0:
        sys.exit('perf_event_open: %s' % os.strerror(ctypes.get_errno()))
    return fd


def accounts():
    """Readings for the running thread."""
    use = resource.getrusage(resource.RUSAGE_THREAD)
    return {'task-clock': int.from_bytes(os.read(TASK_CLOCK, 8), 'little'), 'minor-faults': use.ru_minflt, 'page-faults': use.ru_minflt + use.ru_majflt,
            'context-switches': use.ru_nvcsw + use.ru_nivcsw}


def burn(x):
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        torch.mm(x, x)


def touch(_):
    memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(PAGES):
        memory[page * mmap.PAGESIZE] = 1
    memory.close()


def sleep(_):
    for _ in range(NAPS):
        time.sleep(0.001)


def difference(before, after):
    return {name: after[name] - before[name] for name in before}


def measured(call, x):
    outer = accounts()
    with record_function(call.__name__):
        inner = accounts()
        call(x)
        least = difference(inner, accounts())
    most = difference(outer, accounts())
    return {name: [least[name], most[name]] for name in least}


def late(x):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        torch.relu(x)


def main():
    global TASK_CLOCK
    TASK_CLOCK = open_task_clock()
    torch.set_num_threads(1)
    x = torch.randn(200, 200)
    for call in (burn, touch, sleep): # warm-up
        measured(call, x)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    known = {call.__name__: measured(call, x) for call in (burn, touch, sleep)}
    assert known['touch']['page-faults'][0] >= PAGES
    assert known['sleep']['context-switches'][0] >= NAPS
    thread = threading.Thread(target=late, args=(x,))
    thread.start()
    thread.join()
    print(json.dumps(known))


if __name__ == '__main__':
    main()
