#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the counts of two profilers for the same section: rows of operators, backward nodes and annotations with their calls and
bytes, allocations, arrows from forward to backward. Exit 0: equal; 1: different, and every difference is printed; 2: bad input.

  compare.py BUILTIN OTHER [--calls] [--all-names] [--launched] [--trace TRACE [--shapes SHAPED]]

BUILTIN is the file of prog.py --builtin, OTHER another such file or that of `mxbpf --format json`. --trace: also compares arrows
and slices of OTHER's trace in Kineto's conventions or of mxbpf's recording (.mxd). --shapes: compares slices with the sizes and
types of tensors in SHAPED, a file of prog.py --shapes; OTHER's rows are by shape then. --calls: does not compare bytes of rows.
--all-names: OTHER must have rows that only torch.profiler can name, if a callback sees them. --launched: BUILTIN is of
prog.py --whole, and OTHER of a launched program.
"""
import argparse
import collections
import json
import os
import re
import sys

import kineto
import records

# Titles of mxbpf's tables.
OPERATOR_TABLES = ('operator',)
MEMORY_TABLE = 'memory'
CPU = 'cpu/0'

# Rows that only torch.profiler can have: torch creates these names only for an active profiler, and they are in no register and
# no memory otherwise. Another profiler may omit such a row, or must have its count. No other row may be missing, and none may be
# added.
UNSEEN = (
    (r'detach_?', 'RECORD_FUNCTION inside VariableType::detach: the row below each aten::detach'),
    (r'Square|SplitTwo|Fails|Inward', "forward of the programs' custom Functions: named by THPFunction_apply for a profiler only"),
    (r'scripted_loop|forward|<backward op>', 'RECORD_TORCHSCRIPT_FUNCTION: one row around all operators of a graph'),
    (r'Torch-Compiled Region: \d+/\d+|TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue|'
     r'## Call CompiledFxGraph \w+ ##', 'dynamo and inductor ask whether a profiler is on before they annotate'),
    (r'CompiledFunction', 'forward of a custom Function that dynamo makes'),
)

# Python code writes these only if torch.profiler itself is active, so a callback does not see them either.
UNSEEN_BY_CALLBACK = r'Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue|## Call CompiledFxGraph \w+ ##'

# Nodes that no operator makes. torch.profiler draws their arrows from the previous operator.
MADE_BETWEEN = r'torch::jit::.*::DifferentiableGraphBackward'

# Rows whose bytes are not compared. Either an exception left the operator, and its own frees cannot be told from those of its
# callers during unwinding. Or a backward pass of depth 60 or more continued in another thread, whose bytes do not count for
# calls of the first. {program: rows}
BYTES_NOT_COMPARED = {
    'threads': ('aten::mv', 'aten::addmv_'),
    'exceptions': ('aten::linalg_inv', 'aten::_linalg_check_errors', 'aten::add_'),
    'deep': ('InwardBackward', 'autograd::engine::evaluate_function: InwardBackward'),
}

# `import torch` runs this function of TorchScript.
IMPORTED = 'defaults'

Row = collections.namedtuple('Row', 'calls bytes own_bytes')
Memory = collections.namedtuple('Memory', 'allocs frees alloc_bytes free_bytes')
NO_ROW = Row(0, 0, 0)


class Side:
    def __init__(self, name):
        self.name = name
        self.rows = {}  # name -> Row
        self.program = None
        self.unseen_bytes = collections.Counter()  # name -> own bytes of rows below it that only torch.profiler has
        self.memory = {}  # device -> Memory
        self.links = None  # Counter of (forward, backward)
        self.slices = None  # Counter of (name, tensors)
        self.arguments = set()
        self.by_shape = collections.Counter()  # (name, shapes) -> calls
        self.lost = {}


def add_row(side, name, row):
    side.rows[name] = Row(*(a + b for a, b in zip(side.rows.get(name, NO_ROW), row)))


def unseen(row):
    return any(re.fullmatch(pattern, row) for pattern, _ in UNSEEN)


def unseen_by_callback(row):
    return re.fullmatch(UNSEEN_BY_CALLBACK, row)


def add_trace(side, links, slices):
    side.links = side.links or collections.Counter()
    side.links.update({(forward, backward): n for forward, backward, n in links})
    side.slices = side.slices or collections.Counter()
    side.slices.update({(name, tensors): n for name, tensors, n in slices})


def add_unseen_bytes(side, events):
    for event in events:
        above = event
        while above and unseen(above['name']):
            above = None if above['parent'] is None else events[above['parent']]
        if above and above is not event:
            side.unseen_bytes[above['name']] += event['self_bytes']


def add_report(side, report):
    add_unseen_bytes(side, report['events'])
    for name, row in report['rows'].items():
        add_row(side, name, row)
    if not report['memory']:
        side.memory = None  # --all-threads
    for device, steps in (report['memory'] or {}).items():
        new = (sum(s > 0 for s in steps), sum(s < 0 for s in steps), sum(s for s in steps if s > 0),
               -sum(s for s in steps if s < 0))
        old = side.memory.get(device, (0, 0, 0, 0))
        side.memory[device] = Memory(*(a + b for a, b in zip(old, new)))
    if 'links' in report:
        add_trace(side, report['links'], report['slices'])
        side.arguments.update(report['arguments'])
        side.by_shape.update({(name, shapes): n for name, shapes, n in report['by_shape']})


def read_builtin(name, data):
    side = Side(name)
    side.program = data['program']
    add_report(side, data)
    if 'other_thread' in data:
        # torch.profiler counted that thread's work in another run, and the program counted it in this one.
        other = data['other_thread']
        for row, calls in data['own_calls'].items():
            counted = other['rows'].get(row, NO_ROW)[0]
            if counted != calls or row in data['rows']:
                raise ValueError('%s: the program called it %d times on its other thread, torch.profiler says %d' % (
                    row, calls, counted))
        add_report(side, other)
    return side


def read_mxbpf(name, data):
    side = Side(name)
    for table in OPERATOR_TABLES:
        for row in data['tables'].get(table, []):
            add_row(side, row['name'], (row['count'], row.get('alloc_bytes', 0), row.get('self_alloc_bytes', 0)))
            # key_averages() omits lists.
            shapes = [[] if s and isinstance(s[0], list) else s for s in row.get('shapes', [])]
            side.by_shape[row['name'], str(shapes)] += row['count']
    for row in data['tables'].get(MEMORY_TABLE, []):
        device = 'cpu' if row['device'] == CPU else row['device']
        side.memory[device] = Memory(row['allocs'], row['frees'], row['alloc_bytes'], row['free_bytes'])
    # Loss of the scheduler's source loses no calls.
    of_switches = next((of for of in data.get('sources', []) if of['source'] == 'scheduler'), {})
    side.lost = {kind: n - of_switches.get(kind, 0) for kind, n in data['loss'].items()
                 if n > of_switches.get(kind, 0) and kind not in ('attempted', 'stored')}
    return side


def load(path):
    with open(path) as f:
        data = json.load(f)
    return (read_mxbpf if 'schema_version' in data else read_builtin)(os.path.basename(path), data)


def row_differences(a, b, calls, all_names):
    for name in sorted(set(a.rows) | set(b.rows)):
        left, right = a.rows.get(name, NO_ROW), b.rows.get(name, NO_ROW)
        if right == NO_ROW and (unseen_by_callback if all_names else unseen)(name):
            continue
        if not any(map(unseen, b.rows)):
            left = left._replace(own_bytes=left.own_bytes + a.unseen_bytes[name])
        calls_only = calls or b.memory is None or name in BYTES_NOT_COMPARED.get(a.program, ())
        for field, x, y in zip(Row._fields, left, right):
            if x != y and (field == 'calls' or not calls_only):
                yield 'row     %-60s %8d %8d' % (name + ' ' + field, x, y)


def memory_differences(a, b):
    if b is None:
        return
    for device in sorted(set(a) | set(b)):
        left, right = a.get(device), b.get(device)
        if not left or not right:
            yield 'memory  %s: %s and %s' % (device, left or 'no row', right or 'no row')
            continue
        for field, x, y in zip(Memory._fields, left, right):
            if x != y:
                yield 'memory  %-60s %8d %8d' % (device + ' ' + field, x, y)


def differences(kind, a, b):
    for key in sorted(set(a) | set(b)):
        if a[key] != b[key] and not ((unseen(key[0]) or re.fullmatch(MADE_BETWEEN, key[1])) and not b[key]):
            yield '%-7s %-60s %8d %8d' % (kind, ' -> '.join(key), a[key], b[key])


def trace_differences(path, trace):
    """Compares data that the counts do not show: categories, and every report of the allocator. The order of frees differs between
    two runs of torch.profiler, too."""
    with open(path) as f:
        data = json.load(f)
    own, its = {e['name'] for e in data['events'] if e['annotation']}, kineto.annotations(trace)
    yield from ('annotation %s' % name for name in sorted(own ^ its))
    if kineto.unpaired(trace):
        yield 'memory  %d reports do not fit their addresses' % kineto.unpaired(trace)
    for device, steps in ({} if 'other_thread' in data else data['memory'] or {}).items():
        if sorted(kineto.memory(trace).get(device, [])) != sorted(steps):
            yield 'memory  %s: not the same reports one by one' % device


def without_tensors(slices):
    names = collections.Counter()
    for (name, _), n in slices.items():
        names[name, ''] += n
    return names


def take_edges(a, b):
    """The window of a launched program is wider than torch.profiler's: `import torch` runs a function of TorchScript, and the
    exit of the interpreter frees memory."""
    imported = b.rows.pop(IMPORTED)
    if imported.calls > 1:
        b.rows[IMPORTED] = imported._replace(calls=imported.calls - 1)
    for device, m in b.memory.items():
        if device in a.memory:
            b.memory[device] = m._replace(frees=a.memory[device].frees, free_bytes=a.memory[device].free_bytes)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('builtin')
    p.add_argument('other')
    p.add_argument('--trace', metavar='TRACE')
    p.add_argument('--shapes', metavar='SHAPED')
    p.add_argument('--calls', action='store_true')
    p.add_argument('--all-names', action='store_true')
    p.add_argument('--launched', action='store_true')
    args = p.parse_args()
    a, b = load(args.builtin), load(args.other)
    if not a.rows or not a.memory or (args.trace and not a.links):
        raise ValueError('%s: operators, allocations or arrows are missing' % args.builtin)
    if args.launched:
        take_edges(a, b)
    if args.trace:
        kind = records if args.trace.endswith('.mxd') else kineto
        trace = kind.read(args.trace)
        b.links = b.slices = None
        add_trace(b, kind.links(trace), kind.slices(trace))
        b.arguments = set(kind.arguments(trace))
    wrong = ['lost    %s says: %s' % (side.name, side.lost) for side in (a, b) if side.lost]
    wrong += [*row_differences(a, b, args.calls, args.all_names), *memory_differences(a.memory, b.memory)]
    if args.trace and kind is kineto:
        wrong += trace_differences(args.builtin, trace)
    if b.links is not None:
        wrong += differences('arrow', a.links, b.links)
        wrong += differences('slice', without_tensors(a.slices), without_tensors(b.slices))
    if args.shapes:
        shaped = load(args.shapes)
        wrong += differences('slice', shaped.slices, b.slices)
        wrong += differences('shape', shaped.by_shape, b.by_shape)
        # Types of non-tensors, and strides. torch's trace still has duplicates, so it may have more.
        wrong += ['not seen by %s: %s' % (args.shapes, text) for text in sorted(b.arguments - shaped.arguments)]
    if wrong:
        print('%-68s %8s %8s' % ('', a.name, b.name))
        print('\n'.join(wrong))
        return 1
    missing = set(a.rows) - set(b.rows)
    print('equal: %d rows (%d runs)%s%s; %s' % (
        len(b.rows), sum(row.calls for row in b.rows.values()), ', %d arrows' % sum(b.links.values()) if b.links is not None else '',
        '; not seen, as expected: ' + ', '.join(sorted(missing)) if missing else '',
        '; '.join('%s %d allocations, %d frees, %d bytes and %d' % (device, m.allocs, m.frees, m.alloc_bytes, m.free_bytes)
                  for device, m in sorted(a.memory.items()))))
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as e:
        print('compare: %s: %s' % (type(e).__name__, e), file=sys.stderr)
        sys.exit(2)
