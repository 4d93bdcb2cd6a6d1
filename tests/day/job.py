# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job that day.py commands. Each line of its input is a command; it answers each with "did CALLS ITERATIONS", what it
and its children have done so far, or ends.

  step N     N iterations, with seven calls of sinh in each
  fork K N   K children, one after the other, each with N calls
  exec K     K children that execute another program
  burst N    N calls
"""
import ctypes
import os
import subprocess
import sys

import torch

ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: SIGKILL
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(2048))
optimizer = torch.optim.SGD([weight], lr=0.1)
calls = iterations = 0


def call(n):
    with torch.no_grad():
        for _ in range(n):
            torch.sinh(weight)


def step(n):
    for _ in range(n):
        call(7)
        weight.sum().backward()
        optimizer.step()
    return 7 * n, n


def fork(children, n):
    for _ in range(children):
        child = os.fork()
        if not child:
            call(n)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit('a child died')
    return children * n, 0


def execute(children):
    for _ in range(children):
        subprocess.run(['true'], check=True)
    return 0, 0


def burst(n):
    call(n)
    return n, 0


weight.sum().backward()
optimizer.step()
print('ready', os.getpid(), flush=True)
for line in sys.stdin:
    name, *numbers = line.split()
    did = {'step': step, 'fork': fork, 'exec': execute, 'burst': burst}[name](*map(int, numbers))
    calls += did[0]
    iterations += did[1]
    print('did', calls, iterations, flush=True)
