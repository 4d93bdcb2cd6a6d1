#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Allocates known sizes with known operators, keeps and frees them, and keeps an account: the peak, its owners, and what is left.
Runs between the gates of tests/judge/gate.py. Writes the account to FILE as JSON.

  held.py mxnet|torch FILE [--steps N] [--seed N] [--pool] [--busy]
  --pool    for MXNet 2.0 with MXNET_CPU_MEM_POOL_TYPE=Round: the account includes the pool's reservations
  --busy    prints "busy PID" before it is ready, and calls an operator until it may go on
"""
import argparse
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402

os.environ.setdefault('OMP_NUM_THREADS', '1')
FLOAT_BYTES = 4


class MXNet:
    """Each call has completed, with its memory allocated or freed, when it returns."""
    sized_frees = True  # frees of memory from before

    def __init__(self):
        import mxnet as mx
        self.mx = mx
        self.base = {}

    def ops(self):
        return ['_ones', '_zeros', '_mul_scalar']

    def make(self, op, n):
        nd = self.mx.nd
        if op == '_mul_scalar':
            a = self.base[n] * 2
        else:
            a = nd.ones((n,)) if op == '_ones' else nd.zeros((n,))
        a.wait_to_read()
        return a

    def settle(self):
        self.mx.nd.waitall()


class Torch:
    sized_frees = False

    def __init__(self):
        import torch
        torch.set_num_threads(1)
        self.torch = torch
        self.base = {}

    def ops(self):
        return ['aten::ones', 'aten::zeros', 'aten::clone', 'aten::neg']

    def make(self, op, n):
        if op == 'aten::clone':
            return self.base[n].clone()
        if op == 'aten::neg':
            return self.base[n].neg()
        return self.torch.ones(n) if op == 'aten::ones' else self.torch.zeros(n)

    def settle(self):
        pass


class Pool:
    """Rounds up to powers of two, at least a page, and keeps freed memory."""

    def __init__(self):
        self.free, self.taken, self.peak, self.used = {}, 0, 0, 0

    @staticmethod
    def rounded(n):
        return max(4096, 1 << (n - 1).bit_length())

    def take(self, n):
        n = self.rounded(n)
        if self.free.get(n):
            self.free[n] -= 1
        else:
            self.taken += n

    def give(self, n):
        self.free[self.rounded(n)] = self.free.get(self.rounded(n), 0) + 1

    def note(self, used):
        if self.taken > self.peak:
            self.peak, self.used = self.taken, used


class Books:
    def __init__(self, ops):
        self.rows = {op: {'allocs': 0, 'frees': 0, 'alloc_bytes': 0, 'free_bytes': 0} for op in ops + ['[before]']}
        self.live = dict.fromkeys(self.rows, 0)
        self.peak, self.at_peak, self.when = 0, dict(self.live), None

    def total(self):
        return sum(self.live.values())

    def took(self, op, n, when):
        self.rows[op]['allocs'] += 1
        self.rows[op]['alloc_bytes'] += n
        self.live[op] += n
        if self.total() > self.peak:
            self.peak, self.at_peak, self.when = self.total(), dict(self.live), when

    def gave(self, op, n):
        self.rows[op]['frees'] += 1
        self.rows[op]['free_bytes'] += n
        self.live[op] -= n

    def told(self):
        holders = {op: dict(row, peak_bytes=self.at_peak[op], live_bytes=self.live[op],
                            live_blocks=0 if op == '[before]' else row['allocs'] - row['frees'])
                   for op, row in self.rows.items()}
        return {'peak_bytes': self.peak, 'peak_unix_ns': self.when, 'live_bytes': self.total(), 'holders': holders}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('runtime', choices=('mxnet', 'torch'))
    p.add_argument('books', metavar='FILE')
    p.add_argument('--steps', type=int, default=200)
    p.add_argument('--seed', type=int, default=7)
    p.add_argument('--pool', action='store_true')
    p.add_argument('--busy', action='store_true')
    args = p.parse_args()

    pool = Pool()
    rt = MXNet() if args.runtime == 'mxnet' else Torch()
    rng = random.Random(args.seed)
    sizes = [rng.randrange(1000, 400000) for _ in range(12)]
    for n in sizes:
        rt.base[n] = rt.make(rt.ops()[0], n)
        pool.take(n * FLOAT_BYTES)
    old = [('[before]', n, rt.make(rt.ops()[1], n)) for n in sizes[:5]]
    for n in sizes[:5]:
        pool.take(n * FLOAT_BYTES)
    rt.settle()

    if args.busy:
        gate.busy(lambda: rt.make(rt.ops()[0], 1))
    gate.begin()
    books, held = Books(rt.ops()), []
    for step in range(args.steps):
        if step % 37 == 11 and old:
            op, n, array = old.pop()
            del array
            rt.settle()
            books.gave(op, n * FLOAT_BYTES if rt.sized_frees else 0)
            pool.give(n * FLOAT_BYTES)
        elif held and rng.random() < 0.45:
            op, n, array = held.pop(rng.randrange(len(held)))
            del array
            rt.settle()
            books.gave(op, n * FLOAT_BYTES)
            pool.give(n * FLOAT_BYTES)
        else:
            op, n = rng.choice(rt.ops()), rng.choice(sizes)
            began = time.time_ns()
            held.append((op, n, rt.make(op, n)))
            books.took(op, n * FLOAT_BYTES, [began, time.time_ns()])
            pool.take(n * FLOAT_BYTES)
            pool.note(books.total())
    rt.settle()
    with open(args.books, 'w') as f:
        told = books.told()
        if args.pool:
            told['pool'] = {'last_bytes': pool.taken, 'peak_bytes': pool.peak, 'used_bytes': pool.used}
        json.dump(told, f)
    gate.end()


main()
