# SPDX-License-Identifier: Apache-2.0
"""Reads a trace in Kineto's conventions, torch's or any other, in a form for comparison."""
import collections
import json

SLICES = ('cpu_op', 'user_annotation')


def read(path):
    with open(path) as f:
        return json.load(f)['traceEvents']


def memory(trace):
    """Returns the allocator's reports one by one: signed bytes in order of time, for each device."""
    steps = collections.defaultdict(list)
    for e in sorted((e for e in trace if e.get('name') == '[memory]'), key=lambda e: e['ts']):
        kind, number = e['args']['Device Type'], e['args'].get('Device Id', -1)
        steps['cpu' if kind == 0 else 'device %d/%d' % (kind, number)].append(e['args']['Bytes'])
    return dict(steps)


def unpaired(trace):
    """Returns frees with another size than the allocation at their address."""
    live, wrong = {}, 0
    for e in sorted((e for e in trace if e.get('name') == '[memory]'), key=lambda e: e['ts']):
        place, size = (e['pid'], e['args']['Addr']), e['args']['Bytes']
        wrong += (size > 0 and place in live) or (size < 0 and live.get(place, -size) != -size)
        live.pop(place, None)
        if size > 0:
            live[place] = size
    return wrong


def links(trace):
    """Returns the arrows from forward operator to backward node: [[forward, backward, number]]. An arrow starts and ends at
    exactly the start of its slice; among slices with the same start it means the innermost."""
    names, ends = {}, collections.defaultdict(dict)
    for e in sorted((e for e in trace if e.get('ph') == 'X' and e.get('cat') == 'cpu_op'), key=lambda e: -e['dur']):
        names[e['tid'], e['ts']] = e['name']
    for e in trace:
        if e.get('cat') == 'fwdbwd':
            ends[e['id']][e['ph']] = names.get((e['tid'], e['ts']), 'no slice')
    count = collections.Counter((e.get('s', 'no start'), e.get('f', 'no end')) for e in ends.values())
    return listed(count)


LIST_MAX = 30  # Kineto writes at most this many tensors


def tensors(types, sizes):
    """Returns the tensors of a call. One without dimensions looks like an argument that is no tensor."""
    return ' '.join('%s%s' % (t, json.dumps(s)) for t, s in zip(types or (), sizes or ()) if 0 < len(s) <= LIST_MAX)


def slices(trace):
    """Returns [[name, sizes and types of tensors, number]] without iterations, which mxbpf finds without annotations, too."""
    count = collections.Counter()
    for e in trace:
        if e.get('ph') == 'X' and e.get('cat') in SLICES and not e['name'].startswith('ProfilerStep#'):
            count[e['name'], tensors(e['args'].get('Input type'), e['args'].get('Input Dims'))] += 1
    return listed(count)


def annotations(trace):
    return {e['name'] for e in trace if e.get('cat') == 'user_annotation' and not e['name'].startswith('ProfilerStep#')}


def arguments(trace):
    """Returns the complete inputs of operators: [name + JSON of sizes, types and strides]"""
    return sorted({e['name'] + json.dumps([e['args'][key] for key in ('Input Dims', 'Input type', 'Input Strides')])
                   for e in trace if e.get('cat') == 'cpu_op' and 'Input Dims' in e['args']})


def listed(count):
    return sorted([*key, n] for key, n in count.items())
