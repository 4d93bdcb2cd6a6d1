# SPDX-License-Identifier: Apache-2.0
"""Compares ranges of NVTX in a trace of mxbpf with the accounts of ranges.c: number, thread, begin and end of each.

usage: compare.py TRACE ACCOUNT...
"""
import collections
import json
import sys
import time

SLACK_NS = 200_000  # the trace has times of the wall clock, which may be slewed meanwhile

trace = json.load(open(sys.argv[1]))
wall_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
base_ns = int(trace["baseTimeNanoseconds"]) - wall_ns

told = collections.defaultdict(list)
for path in sys.argv[2:]:
    for line in open(path, encoding="utf-8"):
        name, tid, *times = line.rstrip("\n").split("\t")
        told[name, int(tid)].append([int(t) for t in times])

seen = collections.defaultdict(list)
names = {name for name, _ in told}
for event in trace["traceEvents"]:
    if event.get("name") in names and event.get("ph") in ("X", "i"):
        tid = event["args"].get("thread", event["tid"])
        begin = base_ns + event["ts"] * 1000
        seen[event["name"], int(tid)].append((begin, begin + event["dur"] * 1000 if event["ph"] == "X" else None))

for key in told.keys() | seen.keys():
    assert len(told[key]) == len(seen[key]), f"{key}: {len(told[key])} told, {len(seen[key])} seen"
    for (a, b, c, d), (begin, end) in zip(sorted(told[key]), sorted(seen[key])):
        assert a - SLACK_NS <= begin <= b + SLACK_NS, f"{key}: begins at {begin}, told {a} to {b}"
        assert end is None if not d else c - SLACK_NS <= end <= d + SLACK_NS, f"{key}: ends at {end}, told {c} to {d}"
print(sum(map(len, told.values())), "ranges and marks agree")
