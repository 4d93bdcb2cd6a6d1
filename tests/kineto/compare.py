#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a trace of Kineto with the account that tests/kineto/job.py has printed. usage: compare.py TRACE ACCOUNT"""
import bisect
import collections
import json
import sys


def within_steps(trace):
    """Counts the operators in each annotation job_step of a trace in JSON."""
    with open(trace) as f:
        events = [e for e in json.load(f)['traceEvents'] if e.get('cat') in ('cpu_op', 'user_annotation')]
    steps = sorted((e['ts'], e['ts'] + e['dur']) for e in events if e['name'] == 'job_step')
    begins = [begin for begin, _ in steps]
    counts = [collections.Counter() for _ in steps]
    for e in events:
        number = bisect.bisect(begins, e['ts']) - 1
        if e['cat'] == 'cpu_op' and number >= 0 and e['ts'] + e['dur'] <= steps[number][1]:
            counts[number][e['name']] += 1
    return counts


def compare(trace, expected):
    """Checks every step that Kineto's trace has whole, which the last one is not: the end of the window cuts it."""
    counts = within_steps(trace)[:-1]
    assert counts, 'no step'
    for count in counts:
        assert count == expected, (count, expected)
    print(len(counts))


if __name__ == '__main__':
    compare(sys.argv[1], collections.Counter(json.loads(sys.argv[2])))
