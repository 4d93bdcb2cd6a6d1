#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the memory of a GPU in mxbpf's JSON with the account of memory_job.py, to the byte.

  memory_compare.py BOOKS TABLES [lines]
"""
import json
import sys

LINES = {'gpumem::linear': 'forward', 'gpumem::relu': 'forward', 'gpumem::log': 'log'}


def owners(rows, value, blocks=None):
    of = {}
    for row in rows:
        had = of.setdefault(row['name'], [0, 0])
        had[0] += row[value]
        had[1] += row[blocks] if blocks else 0
    return {name: had for name, had in of.items() if had[0] and name != '[before]'}


def known(held):
    return {op: list(of) for op, of in held.items() if op != 'before'}


def main():
    books, tables = (json.load(open(path)) for path in sys.argv[1:3])
    memory = tables['memory']
    device = next(d for d in memory['devices'] if d['device'] == 'cuda/0')
    mine = [h for h in memory['holders'] if h['device'] == 'cuda/0']
    allocator = device['allocator']
    same = [
        ('allocated', allocator['allocated_bytes'], books['allocated']),
        ('reserved', allocator['reserved_bytes'], books['reserved']),
        ('unused', allocator['unused_peak_bytes'], books['largest_unused']),
        ('before', allocator['before_bytes'], books['held']['before'][0]),
        ('unexplained', allocator['unexplained_bytes'], 0),
        ('held', owners(mine, 'live_bytes', 'live_blocks'), known(books['held'])),
        ('at peak', owners(mine, 'peak_bytes'), {op: [of[0], 0] for op, of in known(books['held_at_peak']).items()}),
        ('failures', len(memory['failures']), books['failures']),
    ]
    for f, truth in zip(memory['failures'], books['failed']):
        same += [
            ('asked by', f['name'], truth['op']),
            ('wanted', f['wanted_bytes'], truth['wanted']),
            ('allocated then', f['allocated_bytes'], truth['allocated']),
            ('reserved then', f['reserved_bytes'], truth['reserved']),
            ('held then', owners(f['holders'], 'live_bytes', 'live_blocks'), known(truth['held'])),
            ('before then', f['before_bytes'], truth['held']['before'][0]),
        ]
        if 'lines' in sys.argv:
            same += [('line of ' + h['name'], h['line'].rsplit(': ', 1)[1], LINES[h['name']]) for h in f['holders']]
            same.append(('line', f['line'].rsplit(': ', 1)[1], 'run_out'))
    wrong = [f'{what}: {got}, not {want}' for what, got, want in same if got != want]
    sys.exit('\n'.join(wrong) or 0)


main()
