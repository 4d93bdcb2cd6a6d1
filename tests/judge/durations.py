#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares operator durations event by event, from one run under both profilers.

  durations.py BUILTIN_TRACE.json MXBPF_TRACE.json[.gz] [--share 95]

MXNet writes B/E pairs in whole microseconds since the epoch and truncates each end, so its durations are up to 1 us too long or
too short. There is no tolerance for that. mxbpf writes X events relative to baseTimeNanoseconds. Exit 0: every event has its
partner and enough of them agree; 1: not; 2: bad input.
"""
import argparse
import collections
import gzip
import json
import statistics
import sys

LIMIT_US = 5.0
LIMIT_SHARE = 0.05

Event = collections.namedtuple('Event', 'name tid start_us dur_us')


def read_json(path):
    with (gzip.open if path.endswith('.gz') else open)(path, 'rt') as f:
        return json.load(f)


def builtin_events(path):
    """B and E of an operator are neighbours in its thread, which runs one operator at a time, except for nested ones."""
    open_events, events = collections.defaultdict(list), []
    for e in read_json(path)['traceEvents']:
        if e.get('cat') != 'operator' or e['ph'] not in 'BE':
            continue
        stack = open_events[e['tid'], e['name']]
        if e['ph'] == 'B':
            stack.append(e['ts'])
        elif stack:
            start = stack.pop()
            events.append(Event(e['name'], e['tid'], float(start), float(e['ts'] - start)))
    return events


def mxbpf_events(path):
    trace = read_json(path)
    base_us, base_rest_ns = divmod(int(trace['baseTimeNanoseconds']), 1000)
    return [Event(e['name'], e['tid'], base_us + (e['ts'] + base_rest_ns / 1000), e['dur'])
            for e in trace['traceEvents'] if e.get('ph') == 'X' and e.get('cat') == 'cpu_op' and
            not e['args'].get('in_segment')]


def by_key(events, key):
    groups = collections.defaultdict(list)
    for e in sorted(events, key=lambda e: e.start_us):
        groups[key(e)].append(e)
    return groups


def thread_map(builtin, mxbpf):
    """MXNet numbers threads by a hash of its own. Threads are matched by the operators that they ran at the time."""
    votes, mine = collections.defaultdict(collections.Counter), by_key(mxbpf, lambda e: e.name)
    for name, theirs in by_key(builtin, lambda e: e.name).items():
        if len(theirs) == len(mine[name]):
            for b, m in zip(theirs, mine[name]):
                votes[b.tid][m.tid] += 1
    return {tid: count.most_common(1)[0][0] for tid, count in votes.items()}


def match(builtin, mxbpf):
    """Returns pairs, and events without a partner. Matches by (name, thread) in order first, and the rest by name in order, for
    operators that one side shows on another thread or lane."""
    threads = thread_map(builtin, mxbpf)
    theirs = by_key(builtin, lambda e: (e.name, threads.get(e.tid)))
    mine = by_key(mxbpf, lambda e: (e.name, e.tid))
    pairs, left_b, left_m = [], [], []
    for key in set(theirs) | set(mine):
        b, m = theirs.get(key, []), mine.get(key, [])
        if len(b) == len(m):
            pairs += zip(b, m)
        else:
            left_b += b
            left_m += m
    theirs, mine = by_key(left_b, lambda e: e.name), by_key(left_m, lambda e: e.name)
    alone = []
    for name in sorted(set(theirs) | set(mine)):
        b, m = theirs.get(name, []), mine.get(name, [])
        if len(b) == len(m):
            pairs += zip(b, m)
        else:
            alone.append('%s: %d and %d events' % (name, len(b), len(m)))
    return pairs, alone


def agrees(builtin_us, mxbpf_us):
    return abs(mxbpf_us - builtin_us) <= max(LIMIT_US, LIMIT_SHARE * builtin_us)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('builtin')
    p.add_argument('mxbpf')
    p.add_argument('--share', type=float, default=95.0, help='percent that must agree')
    args = p.parse_args()
    builtin, mxbpf = builtin_events(args.builtin), mxbpf_events(args.mxbpf)
    if not builtin:
        raise ValueError('%s has no operator' % args.builtin)
    pairs, alone = match(builtin, mxbpf)
    for line in alone:
        print('no partner: ' + line)
    if not pairs:
        return 1

    bad = [(b, m) for b, m in pairs if not agrees(b.dur_us, m.dur_us)]
    share = 100.0 * (len(pairs) - len(bad)) / len(pairs)
    difference = [m.dur_us - b.dur_us for b, m in pairs]
    print('%d operators matched, %.2f %% within 5 us or 5 %%' % (len(pairs), share))
    print('mxbpf less built-in: median %+.2f us; starts: median %+.2f us' % (
        statistics.median(difference), statistics.median(m.start_us - b.start_us for b, m in pairs)))
    for b, m in sorted(bad, key=lambda pair: -abs(pair[1].dur_us - pair[0].dur_us))[:5]:
        print('  off: %-30s built-in %.0f us, mxbpf %.2f us' % (b.name, b.dur_us, m.dur_us))
    return int(bool(alone) or share < args.share)


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as e:
        print('durations: %s: %s' % (type(e).__name__, e), file=sys.stderr)
        sys.exit(2)
