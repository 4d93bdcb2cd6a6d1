#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Children that end in every way that a program can, right after operators.

Prints "ready PID", calls operators until SIGUSR1, then forks a child for each way, and prints "WAY STATUS", with -N for signal N.
"""
import atexit
import glob
import os
import signal
import sys
import threading

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # in the threads that libraries start, too

import torch  # noqa: E402

torch.set_num_threads(1)


def operators():
    x = torch.ones(8, 8)
    for _ in range(50):
        torch.relu(torch.mm(x, x))


def branch(x):
    for _ in range(20):
        x = torch.relu(x)
    return x


@torch.jit.script
def futures(x):
    future = torch.jit.fork(branch, x)
    return torch.jit.wait(future)


def state_of(task):
    try:
        with open(task + '/stat') as f:
            return f.read().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return 'S'


def settle():
    """PyTorch aborts a process that ends while a thread of its pool drops a tensor. Waits until all of these threads sleep."""
    me, calm = str(threading.get_native_id()), 0
    while calm < 3:
        os.sched_yield()  # it lets go of Python's lock
        tasks = [t for t in glob.glob('/proc/self/task/*') if os.path.basename(t) != me]
        calm = calm + 1 if all(state_of(t) == 'S' for t in tasks) else 0
        threading.Event().wait(0.01)


def by_return():
    operators()


def by_status():
    operators()
    sys.exit(3)


def by_exit_at_once():
    operators()
    os._exit(4)


def by_exception():
    operators()
    os.close(2)
    raise ValueError('not caught')


def by_signal():
    operators()
    os.kill(os.getpid(), signal.SIGTERM)


def by_abort():
    operators()
    os.abort()


def by_exit_of_a_thread():
    """It ends the thread only."""
    def body():
        operators()
        sys.exit(5)
    t = threading.Thread(target=body)
    t.start()
    t.join()
    operators()


def by_exit_handler():
    """Operators run while Python ends."""
    atexit.register(operators)
    sys.exit(6)


def by_return_after_jit_fork():
    for _ in range(50):
        futures(torch.ones(8, 8))
    settle()


WAYS = [by_return, by_status, by_exit_at_once, by_exception, by_signal, by_abort, by_exit_of_a_thread, by_exit_handler,
        by_return_after_jit_fork]

print('ready', os.getpid(), flush=True)
while not signal.sigtimedwait([signal.SIGUSR1], 0.01):
    operators()  # the agent enters there
for way in WAYS:
    child = os.fork()
    if not child:
        break
    print(way.__name__, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
way()
