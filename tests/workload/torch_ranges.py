#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program whose annotations cross on one thread, and that knows how long each was open.

Three coroutines keep a record_function open across `await` (after sumerc/yappi issues 21 and 58). Then LINKS annotations follow
each other such that one is open at any time, more than a thread can have open at once.

Prints "ready PID", works on SIGUSR1, and prints a line of JSON: {name: {"calls": N, "least_ns": A, "most_ns": B}, "mm": N}. The
sum of the durations of a name lies between A and B.
"""
import asyncio
import json
import os
import signal
import time

import torch
from torch.profiler import record_function

ROUNDS = 5
LINKS = 1500
told = {'mm': 0}
x = torch.randn(32, 32)


def mm():
    torch.mm(x, x)
    told['mm'] += 1


class Timed:
    """An annotation: its start and end lie between two readings of the clock each."""

    def __init__(self, name):
        self.range, self.name = record_function(name), name

    def __enter__(self):
        self.before = time.monotonic_ns()
        self.range.__enter__()
        self.begun = time.monotonic_ns()
        return self

    def __exit__(self, *_):
        ends = time.monotonic_ns()
        self.range.__exit__(None, None, None)
        ended = time.monotonic_ns()
        row = told.setdefault(self.name, {'calls': 0, 'least_ns': 0, 'most_ns': 0})
        row['calls'] += 1
        row['least_ns'] += ends - self.begun
        row['most_ns'] += ended - self.before


async def request(name, seconds):
    for _ in range(ROUNDS):
        with Timed(name):
            mm()
            await asyncio.sleep(seconds)
            mm()


async def requests():
    await asyncio.gather(request('slow', 0.050), request('medium', 0.025), request('quick', 0.010))


def chain():
    link = Timed('link').__enter__()
    for _ in range(LINKS - 1):
        after = Timed('link').__enter__()
        mm()
        link.__exit__()
        link = after
    link.__exit__()


def main():
    torch.set_num_threads(1)
    torch.mm(x, x)
    going = []
    signal.signal(signal.SIGUSR1, lambda *_: going.append(1))
    print('ready', os.getpid(), flush=True)
    while not going: # the agent is loaded at an operator
        torch.relu(x)
        time.sleep(0.005)
    asyncio.run(requests())
    chain()
    with Timed('last'):
        mm()
    print(json.dumps(told))


if __name__ == '__main__':
    main()
