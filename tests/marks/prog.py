#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with user annotations, which prints its own account of them.

  prog.py [--builtin PREFIX] [--gates] [--threads N] [--hostile] [--steps N]

It creates domains, tasks, frames, events, counters and markers before the measured section, so a tracer that attaches there
has not seen their creation. Its account of the section is a line of JSON on stdout: the rows for each category of dumps(), and
for a counter the number of values, the least, the most and the last.
"""
import argparse
import collections
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402

from mxnet import profiler  # noqa: E402

HOSTILE = ['quote " back \\ slash', 'tab\tnew\nline', 'a::b', 'a,frame', 'ümläut', '\x1b[31mred', 'x' * 127, '%s%n', ' ']


class Told:
    """The program's own account."""

    def __init__(self):
        self.lock = threading.Lock()
        self.rows = collections.defaultdict(dict)

    def span(self, category, name, n=1):
        with self.lock:
            self.rows[category][name] = self.rows[category].get(name, 0) + n

    def value(self, category, name, value):
        with self.lock:
            row = self.rows[category].setdefault(name, {'count': 0, 'min': value, 'max': value})
            row.update(count=row['count'] + 1, last=value, min=min(row['min'], value), max=max(row['max'], value))


class Counter:
    """A counter whose values only one thread sets."""

    def __init__(self, told, domain, name):
        self.told, self.domain, self.name, self.now = told, domain, name, 0
        self.counter = profiler.Counter(domain, name)

    def set(self, value):
        self.counter.set_value(value)
        self.now = value
        self.told.value(str(self.domain), self.name, value)

    def add(self, delta):
        if delta < 0:
            self.counter.decrement(-delta)
        else:
            self.counter.increment(delta)
        self.now += delta
        self.told.value(str(self.domain), self.name, self.now)


def work(us):
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end:
        pass


def section(args, told, domains, marks):
    load, train = domains
    task, other, frame, event, level, items, marker = marks
    for i in range(args.steps):
        frame.start()
        task.start()
        work(300)
        event.start()
        work(100)
        event.stop()
        task.stop()
        other.start()
        work(50 * (i % 3))
        other.stop()
        items.add(3)
        items.add(-1)
        level.set(1000 + (i * 7) % 50)
        marker.mark('process' if i % 2 else 'thread')
        frame.stop()
    told.span('load', 'read', args.steps)
    told.span('train', 'read', args.steps)
    told.span('train,frame', 'step', args.steps)
    told.span('event', 'inner', args.steps)


def many_threads(args, told, domain):
    """Tasks that start on one thread and end on another, and a counter that all of them change."""
    shared = profiler.Counter(domain, 'shared', 100)
    tasks = [profiler.Task(domain, 'across') for _ in range(args.threads * args.steps)]
    told.value(str(domain), 'shared', 100)

    def first(k):
        for i in range(args.steps):
            tasks[k * args.steps + i].start()
            shared.increment(2)

    def second(k):
        for i in range(args.steps):
            tasks[k * args.steps + i].stop()
            shared.decrement(1)

    for part in (first, second):
        threads = [threading.Thread(target=part, args=(k,)) for k in range(args.threads)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    n = args.threads * args.steps
    told.span(str(domain), 'across', n)
    told.rows[str(domain)]['shared'].update(count=1 + 2 * n, last=100 + n, min=100, max=100 + 2 * n)
    return tasks, shared


def hostile(told):
    kept = []
    for name in HOSTILE:
        domain = profiler.Domain(name)
        task, counter, event = profiler.Task(domain, name), profiler.Counter(domain, 'of ' + name), profiler.Event(name)
        task.start()
        event.start()
        event.stop()
        task.stop()
        counter.set_value(5)
        profiler.Marker(domain, name).mark('global')
        kept += [domain, task, counter, event]
        told.span(name, name)
        told.span('event', name)
        told.value(name, ('of ' + name)[:127], 5)
    return kept


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--builtin', metavar='PREFIX')
    p.add_argument('--gates', action='store_true')
    p.add_argument('--threads', type=int, default=0)
    p.add_argument('--steps', type=int, default=20)
    p.add_argument('--hostile', action='store_true')
    args = p.parse_args()
    told = Told()
    if args.builtin:
        profiler.pause()  # MXNet keeps annotations from before its profiler's first run
    load, train = profiler.Domain('load'), profiler.Domain('train')
    level, items = Counter(told, train, 'level'), Counter(told, train, 'items')
    items.counter.set_value(40)  # before the section, which adds to this value
    items.now = 40
    marks = (profiler.Task(load, 'read'), profiler.Task(train, 'read'), profiler.Frame(train, 'step'),
             profiler.Event('inner'), level, items, profiler.Marker(train, 'here'))
    builtin = gate.Builtin(args.builtin) if args.builtin else None
    # The profiler starts before the gate, so both see the same calls.
    if builtin:
        builtin.start()
    if args.gates:
        gate.begin()
    section(args, told, (load, train), marks)
    kept = many_threads(args, told, load) if args.threads else None
    kept = kept, hostile(told) if args.hostile else None
    if args.gates:
        gate.end()
    if builtin:
        builtin.stop()
        builtin.write()
    with open('told.json', 'w') as f:
        json.dump(told.rows, f)


if __name__ == '__main__':
    main()
