#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that nested time counts once and equals torch.profiler's in the same run of the program `nested`.

  nested.py BUILTIN NAME.json THREAD.json DEVICE.json

BUILTIN is the file of prog.py --builtin --all-threads --gates, the others are `mxbpf --format json`, --by name, thread and device.
"""
import collections
import json
import sys

UNNAMED = '[unnamed]'  # record_function('')
OVERHEAD = 0.1  # relative to a row's total time, and
SLACK_NS = 3e6  # two profilers delay each other


def builtin_rows(events):
    """Returns {(name, annotation): [calls, total, self]}, FunctionEvent's cpu_time_total and self_cpu_time_total."""
    nested = collections.Counter()
    for e in events:
        if e['parent'] is not None:
            nested[e['parent']] += e['dur_us']
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for i, e in enumerate(events):
        if e['name'] != '[memory]':
            row = rows[e['name'] or UNNAMED, e['annotation']]
            for k, n in enumerate((1, 1000 * e['dur_us'], 1000 * (e['dur_us'] - nested[i]))):
                row[k] += n
    return rows


def main():
    with open(sys.argv[1]) as f:
        torch = builtin_rows(json.load(f)['events'])
    data = [json.load(open(path)) for path in sys.argv[2:5]]
    window = data[0]['window']['duration_ns']
    names, threads, devices = (d['tables']['operator'] for d in data)
    # Both profilers were in the same run, so that torch.profiler's times have mxbpf's cost in them.
    own = {(r['name'], r.get('annotation', False)): (r['count'], r['raw_total_ns'], r['raw_self_ns']) for r in names}
    assert len(own) == len(names)
    assert own['aten::mm', True][0] == 5 and torch['aten::mm', True][0] == 5
    assert own['aten::mm', False][0] == torch['aten::mm', False][0] >= 90, own['aten::mm', False]
    assert set(own) == set(torch), set(own) ^ set(torch)
    # If a thread loses its CPU between the two profilers' starts of a call, only one of them counts the wait for the call.
    waited = sum(r['account']['runq_ns'] for r in threads)
    for key, (calls, total, self_ns) in own.items():
        its = torch[key]
        print('%-60s %6d %12d %12d, torch.profiler %6d %12d %12d' % (key[0], calls, total, self_ns, *its))
        assert calls == its[0]
        apart = max(abs(total - its[1]), abs(self_ns - its[2]))
        assert apart < OVERHEAD * its[1] + SLACK_NS + waited, (key, apart, waited)
    whole = sum(r['self_ns'] for r in names)
    for rows, most in ((threads, window), (devices, window * len(threads))):
        assert all(r['total_ns'] == r['self_ns'] <= most for r in rows), (rows, most)
        assert not any('max_ns' in r for r in rows), rows # calls of many names, nested in one another
        assert all(sum(r['account'][k] for k in ('on_cpu_ns', 'runq_ns', 'blocked_ns', 'elsewhere_ns')) == r['total_ns'] for r in rows)
        assert sum(r['total_ns'] for r in rows) == whole
        assert sum(r['count'] for r in rows) == sum(r['count'] for r in names)
    # The sleeps are in no operator: they are blocked time, counted once although up to three annotations enclose them.
    naps = 0.02e9 * (5 + 2 * 3 + 10)
    blocked = sum(r['account']['blocked_ns'] for r in threads)
    print('window %d, self %d, blocked %d, naps %d' % (window, whole, blocked, naps))
    assert 0.9 * naps < blocked <= 1.1 * naps + 20e6, blocked
    assert sum(r['account']['blocked_ns'] for r in names) > 1.8 * naps


main()
