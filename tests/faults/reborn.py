#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: reborn.py LIBRARY [N]
Has the toy MXNet in LIBRARY and starts child processes, each with the pid that a line of input asks for (0: any):
  calls PID N   a forked child that calls MXNDArrayWaitAll() N times at SIGUSR1 and ends
  execs PID N [LIBRARY]
                one that executes this program for that, with that library if there is one
  sleeps PID    one that executes sleep; SIGUSR1 ends it
  ends PID      sends SIGUSR1 to a child and waits for its end
Prints "ready PID", and "born PID" or "ended PID" after each line. N: it is such a child."""
import ctypes
import os
import signal
import sys

sys.dont_write_bytecode = True  # the tests leave nothing in the tree
from pids import fork

library = ctypes.CDLL(sys.argv[1])


def call(count):
    signal.sigwait({signal.SIGUSR1})
    for _ in range(count):
        library.MXNDArrayWaitAll()
    os._exit(0)


def calls(pid, count):
    child = fork(pid)
    if not child:
        call(count)
    return 'born', child


def execs(pid, count, other=sys.argv[1]):
    here, there = os.pipe()
    child = fork(pid)
    if not child:
        os.dup2(there, 1)  # the new program closes it when it has mapped the library
        os.execv(sys.executable, [sys.executable, sys.argv[0], other, str(count)])
    os.close(there)
    os.read(here, 1)
    os.close(here)
    return 'born', child


def sleeps(pid):
    here, there = os.pipe()  # exec closes the child's end
    child = fork(pid)
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        os.execvp('sleep', ['sleep', 'infinity'])
    os.close(there)
    os.read(here, 1)
    os.close(here)
    return 'born', child


def ends(pid):
    os.kill(pid, signal.SIGUSR1)
    os.waitpid(pid, 0)
    return 'ended', pid


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
if sys.argv[2:]:
    os.close(1)
    call(int(sys.argv[2]))
print('ready', os.getpid(), flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    print(*{'calls': calls, 'execs': execs, 'sleeps': sleeps, 'ends': ends}[word](*map(int, rest[:2]), *rest[2:]), flush=True)
