#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two traces of the same calls: time on CPU, run-queue wait and blocked time by the agent and by probes. Both sessions
ran at the same time. Exits with 1 if they disagree. The probes read the kernel's account of the thread at both ends of a call.
usage: accounts.py AGENT.json PROBES.json LEAST STOLEN_NS     LEAST: number of calls that both must have; STOLEN_NS: time stolen
by the hypervisor. The kernel does not say from which thread, so it makes the values of probes estimates."""
import bisect
import collections
import json
import sys

PARTS = ('on_cpu_us', 'runq_us', 'blocked_us')


def load(path):
    """Returns (thread, name) -> calls, each (start, duration, parts), by start in us of the monotonic clock"""
    trace = json.load(open(path))
    base = trace['otherData']['window']['start_mono_ns'] / 1000
    calls = collections.defaultdict(list)
    for e in trace['traceEvents']:
        if e['ph'] == 'X' and e.get('cat') in ('cpu_op', 'user_annotation'):
            parts = [e['args'].get(part, 0) for part in PARTS]
            calls[e['tid'], e['name']].append((e['ts'] + base, e['dur'], parts if any(parts) else [e['dur'], 0, 0]))
    for of in calls.values():
        of.sort()
    return calls


def pairs(agent, probes):
    """Returns calls that begin and end at the same time. A thread may lose its CPU between the readings of both."""
    for key, calls in agent.items():
        others = probes.get(key, [])
        starts = [call[0] for call in others]
        for start, dur, parts in calls:
            at = bisect.bisect(starts, start)
            near = min(others[max(at - 1, 0):at + 1], key=lambda call: abs(call[0] - start), default=None)
            if near and abs(near[0] - start) < 100 and abs(near[1] - dur) < 100:
                yield dur, parts, near[2]


def tolerance(path):
    """Tolerance of the sums, and part of the calls that may differ beyond the usual. The kernel may hide threads from programs
    (those of process 1 in a sandbox), and mxbpf itself may get no CPU for long. The agent's session says what it has not
    seen, or has seen late."""
    unseen = sum(of[kind] for of in json.load(open(path))['otherData']['sources'] for kind in ('late', 'unmatched', 'dropped'))
    return 0.1 if unseen else 0.01


def main():
    both = list(pairs(load(sys.argv[1]), load(sys.argv[2])))
    near = sum(abs(a[0] - p[0]) <= 10 + dur / 100 for dur, a, p in both) / max(len(both), 1)
    sums = [[sum(side[part] for side in sides) for part in range(3)] for sides in ([b[1] for b in both], [b[2] for b in both])]
    stolen_us = int(sys.argv[4]) / 1000
    total = sum(sums[1])
    part = tolerance(sys.argv[1])
    most = total * part + min(stolen_us, total / 20)
    window_us = json.load(open(sys.argv[1]))['otherData']['window']['duration_ns'] / 1000
    alike = 0.96 - part - min(stolen_us / window_us, 0.05)
    print(f'{len(both)} calls, on the CPU {near:.1%} alike; agent {sums[0]}, probes {sums[1]} us, may differ by {most:.0f}, at least {alike:.1%} alike')
    ok = len(both) >= int(sys.argv[3]) and near >= alike and sums[1][1] > 0 and sums[1][2] > 0
    return 0 if ok and all(abs(a - p) <= most for a, p in zip(*sums)) else 1


if __name__ == '__main__':
    sys.exit(main())
