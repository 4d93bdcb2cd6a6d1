#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the accounts of spans with the scheduler's tracepoints of the same time, as perf recorded them.

usage: account.py TRACE SWITCHES    mxbpf's trace, and the output of perf script for sched_switch and sched_wakeup

Compares the time on CPU, the run-queue wait and the blocked time of each span in which its thread left its CPU. Prints the
differences; exit 1 if the median is 10 us or more, or p95 100 us or more.
"""
import bisect
import json
import re
import sys

LINE = re.compile(r'\s(\d+)\.(\d{9}): +sched:sched_(switch|wakeup): (.*)')
SWITCH = re.compile(r'prev_comm=.* prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) ')
WAKEUP = re.compile(r'comm=.* pid=(\d+) prio=')
RUNS, WAITS, BLOCKED, UNKNOWN = range(4)


AFTER = {'runs': RUNS, 'preempted': WAITS, 'sleeps': BLOCKED, 'woken': WAITS}
MAY_BE = {'runs': (WAITS,), 'preempted': (RUNS,), 'sleeps': (RUNS,), 'woken': (BLOCKED,)}


def change(changes, ns, event):
    before = changes[-1][1] if changes else UNKNOWN
    if event == 'woken' and before in (RUNS, WAITS): # woken before it was asleep
        return
    if before != UNKNOWN and before not in MAY_BE[event]: # perf has missed an event
        changes[-1] = (changes[-1][0], UNKNOWN)
    changes.append((ns, AFTER[event]))


def states(path):
    """Returns tid -> [(ns, state from then on)], and the time of the last line."""
    of, ns = {}, 0
    for line in open(path, errors='replace'):
        m = LINE.search(line)
        if not m:
            continue
        ns = int(m[1] + m[2])
        if m[3] == 'wakeup':
            change(of.setdefault(int(WAKEUP.match(m[4])[1]), []), ns, 'woken')
            continue
        prev, state, following = SWITCH.match(m[4]).groups()
        change(of.setdefault(int(prev), []), ns, 'preempted' if state.startswith('R') else 'sleeps')
        change(of.setdefault(int(following), []), ns, 'runs')
    return of, ns


def account(changes, start, end):
    """Returns the time in each state, and how often the thread left its CPU; None if that is unknown."""
    i = bisect.bisect(changes, (start, UNKNOWN)) - 1
    times, left, at = [0, 0, 0], 0, start
    if i < 0:
        return None
    while at < end:
        until = min(changes[i + 1][0] if i + 1 < len(changes) else end, end)
        if changes[i][1] == UNKNOWN:
            return None
        times[changes[i][1]] += until - at
        at = until
        i += 1
        left += at < end and changes[i - 1][1] == RUNS
    return times, left


def spans(trace):
    """Returns (tid, start, end, [on CPU, runnable, blocked], number of times that it left its CPU)"""
    w = trace['otherData']['window']
    base = w['start_mono_ns'] - (w['start_unix_ns'] - trace['baseTimeNanoseconds'])
    for e in trace['traceEvents']:
        a = e.get('args', {})
        left = a.get('nvcsw', 0) + a.get('nivcsw', 0)
        if e['ph'] != 'X' or not left or 'end_thread' in a:
            continue
        start, dur = round(e['ts'] * 1000), round(e['dur'] * 1000)
        # A span without any of these events was on CPU from start to end.
        times = [round(a.get(k + '_us', 0) * 1000) for k in ('on_cpu', 'runq', 'blocked')]
        times[0] = times[0] if any(times) else dur
        assert sum(times) == dur, e
        yield a.get('thread', e['tid']), base + start, base + start + dur, times, left, bool(a.get('migrated'))


def main():
    of, last = states(sys.argv[2])
    errors, miscounted, moved = [], 0, 0
    for tid, start, end, times, left, migrated in spans(json.load(open(sys.argv[1]))):
        truth = account(of.get(tid, []), start, end) if end <= last else None
        if not truth:
            continue
        errors.append(max(abs(a - b) for a, b in zip(times, truth[0])))
        miscounted += left != truth[1]
        moved += migrated
    errors.sort()
    n = len(errors)
    median, p95 = errors[n // 2], errors[n * 95 // 100]
    print(f'{n} spans with switches, {moved} of them on two CPUs, {miscounted} with another number of them: off by '
          f'{median / 1e3:.1f} us in the median, p95 {p95 / 1e3:.1f} us, max {errors[-1] / 1e3:.1f} us')
    assert n >= 50, n
    assert miscounted <= n / 100, miscounted
    assert median < 10_000 and p95 < 100_000


main()
