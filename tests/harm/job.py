#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program to be harmed: trains a net with a known result again and again, while its threads allocate and free, load and
unload a library, fork, and execute programs. Prints "ready PID" and then "round N" after each training. Exits with 9 if a
result differs in one bit from the first one.

  job.py CHURN_LIBRARY FREED_LIBRARY    the second one is loaded and unloaded
"""
import _ctypes
import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import torch

CHILD_S = 40  # it computes for milliseconds

churn_library, freed_library = sys.argv[1:]
library = ctypes.CDLL(churn_library)
library.churn.restype = ctypes.c_uint64
library.churn.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
failures = []
stop = threading.Event()


def fail(what):
    failures.append(what)
    print('differs:', what, file=sys.stderr, flush=True)
    os._exit(9)


def trained():
    """Returns the bits of a small net after three steps."""
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(24, 48), torch.nn.Tanh(), torch.nn.LayerNorm(48), torch.nn.Linear(48, 8))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(16, 24), torch.randn(16, 8)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    bits = hashlib.sha256()
    for p in net.parameters():
        bits.update(p.detach().numpy().tobytes())
    return bits.hexdigest()


def churns(seed):
    first = library.churn(seed, 20000)
    while not stop.is_set():
        if library.churn(seed, 20000) != first or not first:
            fail('blocks of memory')


def tensors(seed):
    """Allocates and frees tensors of many sizes, with sums that are exact."""
    n = seed
    while not stop.is_set():
        kept = [torch.ones(n * k % 4001 + 1) for k in range(20)]
        if sum(float(t.sum()) for t in kept) != sum(n * k % 4001 + 1 for k in range(20)):
            fail('tensors')
        n += 1
        stop.wait(0.002)


def loads():
    while not stop.is_set():
        handle = _ctypes.dlopen(freed_library, os.RTLD_NOW)
        _ctypes.dlclose(handle)
        stop.wait(0.003)


def ended(child):
    """Returns the exit code of a child. One that inherited a lock that somebody held never ends."""
    until = time.monotonic() + CHILD_S
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    return f'none after {CHILD_S} s'


def forks():
    """A child computes with the entries that it has inherited. Another one executes a program."""
    while not stop.is_set():
        child = os.fork()
        if not child:
            os._exit(0 if float((torch.ones(100) * 2).sum()) == 200 else 1)
        code = ended(child)
        if code:
            fail(f'the exit code of a child that was forked: {code}')
        if subprocess.run(['/bin/sh', '-c', 'exit 3']).returncode != 3:
            fail('a program that was executed')
        stop.wait(0.05)


torch.set_num_threads(1)
expected = trained()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
threads = [threading.Thread(target=f, args=a) for f, a in ((churns, (11,)), (churns, (12,)), (tensors, (5,)), (loads, ()), (forks, ()))]
for t in threads:
    t.start()
print('ready', os.getpid(), flush=True)
rounds = 0
while not stop.is_set():
    if trained() != expected:
        fail('the net')
    rounds += 1
    print('round', rounds, flush=True)
for t in threads:
    t.join()
print('equal', rounds, flush=True)
