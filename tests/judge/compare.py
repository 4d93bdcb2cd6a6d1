#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the counts of two profilers for the same section: rows and counts of operators and of the C API, number and bytes of
allocations. Exit 0: equal; 1: different, and every difference is printed; 2: bad input.

  compare.py BUILTIN OTHER [--bytes-of PREFIX] [--may-race ROW]...

Each side is a file, or the PREFIX of gate.py's files (PREFIX.json, PREFIX.trace.json). The formats are MXNet's table and JSON,
by MXNet or mxbpf, and `mxbpf --format json`.
"""
import argparse
import collections
import json
import os
import re
import sys

# C API calls that the program does not make, so they are not compared. Everything else is.
NOT_JUDGED = {
    'MXSetProcessProfilerConfig': 'profiler.set_config(); MXNet hides its profiler\'s own calls from its tables',
    'MXSetProcessProfilerState': 'profiler.set_state(); hidden likewise',
    'MXAggregateProfileStatsPrintEx': 'profiler.dumps(); hidden likewise',
    'MXDumpProcessProfile': 'profiler.dump(); hidden likewise',
    'MXNotifyShutdown': 'interpreter shutdown: mxnet.base calls it at exit, after any profile has been printed',
}
# Operations that MXNet pushes without a name, for example a copy from numpy: mxbpf shows them, MXNet's profiler does not.
UNNAMED = '[unnamed]'
# MXNet combines operators into these unless it profiles. mxbpf shows both.
BULK = 'ImperativeBulk'
# Sums over all rows, computed from the rows, because a side may omit them.
API_CALLS = 'MXNet C API Calls'
API_CONCURRENCY = 'MXNet C API Concurrency'

Memory = collections.namedtuple('Memory', 'events allocs frees alloc_bytes free_bytes')


class Side:
    def __init__(self, name):
        self.name = name
        self.operators = collections.Counter()
        self.api = collections.Counter()
        self.memory = {}  # device -> Memory; None if the format does not have it


def device_of(row):
    return row.partition('Memory: ')[2].rstrip() or row


def from_rows(name, tables):
    """Reads MXNet's layouts: {category: {row: count}}."""
    side = Side(name)
    side.operators.update(tables.get('operator', {}))
    side.api.update(tables.get('MXNET_C_API', {}))
    for row, count in tables.get('Device Storage', {}).items():
        side.memory[device_of(row)] = Memory(count, None, None, None, None)
    return side


def read_table(name, text):
    tables, rows = collections.defaultdict(collections.Counter), None
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith('=====') and i:
            rows = tables[lines[i - 1].rstrip()]
        # A name may contain anything. Numbers follow it: a count, then three or four with four decimals.
        match = re.match(r'^(.*?) +(\d+)((?: +\d+\.\d{4}){3,4})$', line)
        if match and rows is not None:
            rows[match[1]] += int(match[2])
    return from_rows(name, tables)


def read_mxnet_json(name, data):
    tables = collections.defaultdict(collections.Counter)
    for part in ('Time', 'Memory'):
        for category, rows in data.get(part, {}).items():
            for row, values in rows.items():
                tables[category][row] += values['Count']
    return from_rows(name, tables)


def read_mxbpf_json(name, data):
    side = Side(name)
    for table, counter in (('operator', side.operators), ('MXNET_C_API', side.api)):
        for row in data['tables'].get(table, []):
            # MXNet shows a segment as one operator without those inside, and runs no bulks while it profiles.
            if row['name'] not in (UNNAMED, BULK) and row['count'] != row.get('in_segments', 0):
                counter[row['name']] += row['count'] - row.get('in_segments', 0)
    for row in data['tables'].get('Device Storage', []):
        side.memory[row['device']] = Memory(row['allocs'] + row['frees'], row['allocs'], row['frees'], row['alloc_bytes'],
                                            row['free_bytes'])
    lost = {kind: data['loss'][kind] for kind in ('dropped', 'unreadable', 'unmatched') if data['loss'][kind]}
    if lost:
        print('note: %s says that it lost %s' % (name, lost))
    return side


def trace_memory(path):
    """Reads allocations one by one from the running totals in MXNet's trace. They are written thread by thread in whole
    microseconds, so with several threads the order of two close ones is a guess; under NaiveEngine it is exact."""
    with open(path) as f:
        events = [e for e in json.load(f)['traceEvents'] if e.get('ph') == 'C' and e.get('cat') == 'Device Storage']
    events.sort(key=lambda e: e['ts'])
    last, steps = collections.Counter(), collections.defaultdict(list)
    for event in events:
        for row, value in event['args'].items():
            steps[device_of(row)].append(value - last[row])
            last[row] = value
    return {device: Memory(len(s), sum(d > 0 for d in s), sum(d < 0 for d in s), sum(d for d in s if d > 0),
                           -sum(d for d in s if d < 0)) for device, s in steps.items()}


def load(path):
    name = os.path.basename(path)
    if not os.path.isfile(path):
        path += '.json' if os.path.isfile(path + '.json') else '.table.txt'
    with open(path) as f:
        text = f.read()
    if not text.lstrip().startswith('{'):
        return read_table(name, text)
    data = json.loads(text)
    return read_mxbpf_json(name, data) if 'schema_version' in data else read_mxnet_json(name, data)


def check_sums(side):
    """Checks that the two rows over all calls agree with the rows below them, and drops them. Returns the differences."""
    rows = {row: n for row, n in side.api.items() if row not in (API_CALLS, API_CONCURRENCY)}
    calls, wrong = sum(rows.values()), []
    for row, expected in ((API_CALLS, calls), (API_CONCURRENCY, 2 * calls)):
        if row in side.api and side.api[row] != expected:
            wrong.append((row, side.api[row], expected))
    side.api = collections.Counter({row: n for row, n in rows.items() if row not in NOT_JUDGED})
    return ['MXNET_C_API %s: %s is %d, its rows make %d' % (side.name, row, is_, be) for row, is_, be in wrong]


def differences(title, a, b, may_race):
    for row in sorted(set(a) | set(b)):
        if a[row] == b[row]:
            continue
        text = '%s  %-40s %8s %8s' % (title, row, a[row] or 'no row', b[row] or 'no row')
        if row in may_race:
            print('race:  ' + text)
        else:
            yield text


def memory_differences(a, b):
    for device in sorted(set(a) | set(b)):
        left, right = a.get(device), b.get(device)
        if not left or not right:
            yield 'Device Storage  %s: %s and %s' % (device, left or 'no row', right or 'no row')
            continue
        for field, x, y in zip(Memory._fields, left, right):
            if x is not None and y is not None and x != y:
                yield 'Device Storage  %s %s: %d and %d' % (device, field, x, y)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('builtin')
    p.add_argument('other')
    p.add_argument('--bytes-of', metavar='PREFIX', help='take the bytes of BUILTIN from PREFIX.trace.json')
    p.add_argument('--may-race', metavar='ROW', action='append', default=[],
                   help='operator row whose count is a race in the program itself: printed, not judged')
    args = p.parse_args()
    a, b = load(args.builtin), load(args.other)
    if not a.operators or not a.api or not a.memory:
        raise ValueError('%s: operators, C API calls or allocations are missing' % args.builtin)
    wrong = check_sums(a) + check_sums(b)
    if args.bytes_of:
        exact = trace_memory(args.bytes_of + '.trace.json')
        wrong += ['bytes-of: ' + d for d in memory_differences(a.memory, exact)]
        a.memory = exact
    wrong += differences('operator   ', a.operators, b.operators, args.may_race)
    wrong += differences('MXNET_C_API', a.api, b.api, ())
    wrong += memory_differences(a.memory, b.memory)
    if wrong:
        print('%-53s %8s %8s' % ('', a.name, b.name))
        print('\n'.join(wrong))
        return 1
    memory = ', '.join('%s %d allocations and frees%s' % (
        device, m.events, '' if None in (m.alloc_bytes, b.memory[device].alloc_bytes) else
        ', %d bytes allocated, %d freed' % (m.alloc_bytes, m.free_bytes)) for device, m in sorted(a.memory.items()))
    print('equal: %d operator rows (%d runs), %d C API rows (%d calls), %s' % (
        len(a.operators), sum(a.operators.values()), len(a.api), sum(a.api.values()), memory))
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as e:
        print('compare: %s: %s' % (type(e).__name__, e), file=sys.stderr)
        sys.exit(2)
