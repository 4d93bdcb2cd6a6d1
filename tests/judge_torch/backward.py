# SPDX-License-Identifier: Apache-2.0
"""Compares mxbpf's forward and backward operators with torch.profiler's own events. Exit 0 if nothing differs.

  backward.py BUILTIN REPORT [--all-names]
  backward.py BUILTIN TRACE --numbers [--all-names]

BUILTIN is the file of prog.py --builtin, REPORT that of `mxbpf report --backward --format json` for the same program. By torch's
rule, which is mxbpf's, the operator that made a node is the last one to begin with its number. Two things are no operators to
mxbpf: names that only torch.profiler has (the forward of a custom Function), and a graph of TorchScript, which makes its node
after its last operator. Their nodes have their own names. --all-names: the former are operators, as for a callback. --numbers:
compares the sequence numbers in mxbpf's trace of the same run, one by one: those of all nodes and of the operators that made them.
"""
import collections
import json
import sys

import compare
import kineto

FUNCTION, BACKWARD = 0, 1
GRAPH = '::DifferentiableGraphBackward'


class Events:
    def __init__(self, events):
        self.events = events
        self.makers = {}
        for i, event in enumerate(events):
            if event['scope'] == FUNCTION and event['sequence'] >= 0 and not event['annotation'] and \
                    not event['name'].startswith('autograd::engine'):
                key = event['thread'], event['sequence']
                if key not in self.makers or events[self.makers[key]]['start_us'] <= event['start_us']:
                    self.makers[key] = i

    def maker(self, node):
        return self.makers.get((node['forward_thread'], node['sequence']))

    def origin(self, event):
        """Returns the backward node around it, or None."""
        while event['parent'] is not None:
            event = self.events[event['parent']]
            if event['scope'] == BACKWARD:
                return event
        return None

    def rows(self, unseen):
        """Returns {name: [forward calls, runs of nodes, runs of deeper nodes]}"""
        rows, counted = collections.defaultdict(lambda: [0, 0, 0]), set()
        for node in self.events:
            if node['scope'] != BACKWARD or node['sequence'] < 0:
                continue
            root, deeper, maker = node, 0, self.maker(node)
            while maker is not None and self.origin(self.events[maker]):
                root, deeper = self.origin(self.events[maker]), 1
                maker = self.maker(root)
            seen = maker is not None and not unseen(self.events[maker]['name']) and not root['name'].endswith(GRAPH)
            row = rows[self.events[maker]['name'] if seen else root['name']]
            row[0] += seen and maker not in counted
            row[1 + deeper] += 1
            counted.add(maker)
        return dict(rows)


    def numbers(self, unseen):
        """Returns (name, number, forward thread) of nodes and of their operators, once each."""
        nodes = [e for e in self.events if e['scope'] == BACKWARD and e['sequence'] >= 0]
        makers = {self.maker(node) for node in nodes if not node['name'].endswith(GRAPH)} - {None}
        return {(e['name'], e['sequence'], e['forward_thread']) for e in nodes + [self.events[i] for i in makers] if not unseen(e['name'])}


def compare_numbers(builtin, trace, unseen):
    """mxbpf may have numbers of more operators, because a node need not run."""
    with open(builtin) as f:
        events = json.load(f)['events']
    want, known = Events(events).numbers(unseen), {(e['name'], e['sequence'], e['forward_thread']) for e in events}
    got = {(e['name'], e['args']['Sequence number'], e['args']['Fwd thread id']) for e in kineto.read(trace)
           if 'Sequence number' in e.get('args', {})}
    for number in sorted(want - got):
        print('%-40s %d of thread %d: not seen by mxbpf' % number)
    for number in sorted(got - known):
        print('%-40s %d of thread %d: mxbpf alone has it' % number)
    if not want or want - got or got - known:
        return 1
    print('equal: %d numbers' % len(want))
    return 0


def main():
    unseen = compare.unseen_by_callback if '--all-names' in sys.argv[3:] else compare.unseen
    if '--numbers' in sys.argv[3:]:
        return compare_numbers(*sys.argv[1:3], unseen)
    with open(sys.argv[1]) as f:
        want = Events(json.load(f)['events']).rows(unseen)
    with open(sys.argv[2]) as f:
        report = json.load(f)
    got = {row['name']: [row['count'], row['backward_count'], row['deeper_count']] for row in report['backward']['operators']}
    for name in sorted(set(want) | set(got)):
        if want.get(name) != got.get(name):
            print('%-40s torch.profiler %s, mxbpf %s' % (name, want.get(name), got.get(name)))
    for row in report['backward']['operators']:
        if (row['count'] > 0) != (row['total_ns'] > 0) or (row['backward_count'] > 0) != (row['backward_ns'] > 0):
            print('%-40s calls without time, or time without calls' % row['name'])
            return 1
    if want != got or not want:
        return 1
    print('equal: %d operators, %d runs of their nodes, %d of deeper ones' % (
        len(want), sum(row[1] for row in want.values()), sum(row[2] for row in want.values())))
    return 0


sys.exit(main())
