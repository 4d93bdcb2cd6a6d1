#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the allocators of allocators.cpp in operators, between the gates of tests/judge/gate.py. Writes what the library and
torch.profiler counted in between to FILE as JSON.

  allocators.py LIBRARY FILE [--busy] [--late LIBRARY] [--profiler]
  --late      loads this copy of the library after the window has begun, and uses it, too
  --profiler  torch.profiler records the window as well, with its memory
"""
import argparse
import ctypes
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402

import torch  # noqa: E402
from torch.profiler import record_function  # noqa: E402

ROUNDS = 40
FIELDS = ['live', 'reserved', 'blocks', 'bytes', 'frees']


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.device_take.restype = ctypes.c_void_p
        self.lib.device_take.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.lib.device_give.argtypes = [ctypes.c_int, ctypes.c_void_p]

    def account(self):
        of = {}
        for ordinal, name in ((-1, 'cpu/0'), (0, 'cuda/0'), (1, 'cuda/1')):
            words = (ctypes.c_size_t * 5)()
            self.lib.account_of(ordinal, words)
            of[name] = dict(zip(FIELDS, words))
        return of

    def use(self, kept):
        blocks = []
        for i in range(ROUNDS):
            with record_function(f'device {i % 2}'):
                blocks.append((i % 2, self.lib.device_take(i % 2, 1000 * (i + 1))))
            if i % 3 == 0:
                with record_function('give'):
                    self.lib.device_give(*blocks.pop(0))
        kept.extend(blocks)


def host():
    kept = [torch.ones(1000 + i) for i in range(ROUNDS)]
    del kept[::2]
    return [t * 2 for t in kept]


def profiled_bytes(profile):
    """Bytes by device: [allocated, freed], as the profiler's events of memory have them."""
    of = {}
    for e in profile.profiler.kineto_results.events():
        if e.name() == '[memory]':
            name = 'cpu/0' if 'CPU' in str(e.device_type()) else f'cuda/{e.device_index()}'
            of.setdefault(name, [0, 0])[e.nbytes() < 0] += abs(e.nbytes())
    return of


def main():
    args = argparse.ArgumentParser()
    args.add_argument('library')
    args.add_argument('file')
    args.add_argument('--busy', action='store_true')
    args.add_argument('--late')
    args.add_argument('--profiler', action='store_true')
    args = args.parse_args()
    torch.set_num_threads(1)
    libs, kept = [Library(args.library)], []
    libs[0].use(kept)
    if args.busy:
        gate.busy(lambda: torch.ones(3) + 1)
    gate.begin()
    before = libs[0].account()
    profile = torch.profiler.profile(profile_memory=True) if args.profiler else None
    if profile:
        profile.start()
        kept.append(host())  # with PyTorch's own allocator, which only the profiler keeps an account of
    torch.zeros(1000).share_memory_()  # it ends without a report that counts
    libs[0].lib.register_cpu()
    kept.append(host())
    if args.late:
        libs.append(Library(args.late))
        before = {d: {f: n + libs[1].account()[d][f] for f, n in of.items()} for d, of in before.items()}
    for lib in libs:
        lib.use(kept)
    if profile:
        profile.stop()
    after = {d: {f: sum(lib.account()[d][f] for lib in libs) for f in FIELDS} for d in before}
    gate.end()
    books = {d: {f: after[d][f] - before[d][f] for f in FIELDS} for d in before}
    for d in books:
        books[d]['reserved_now'] = max(lib.account()[d]['reserved'] for lib in libs)
    with open(args.file, 'w') as f:
        json.dump({'account': books, 'profiler': profiled_bytes(profile) if profile else None}, f)


main()
