#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the stacks of a recording with torch.profiler's in the same section: files and functions down to section(), and the
modules, for each ATen operator in order. Operators in a backward node have the stack of backward(), but torch.profiler gives
them the stack of the first operator with the node's number. Exit 0: nothing differs.

torch.profiler has the line where a function begins and mxbpf the line that runs, which must not be before it.

mxbpf cuts a stack where it cannot read the memory of the process, and counts that as unreadable. At most UNREADABLE different
stacks (default: 0) may be cut; what is left of them must be the beginning of torch.profiler's.

usage: compare_torch.py BUILTIN RECORDING [UNREADABLE]
"""
import collections
import json
import re
import sys

import recording

BACKWARD = ('torch/autograd/graph.py', '_engine_run_backward')
LAST = 'section'

# Frames that torch itself omits (torch.autograd.profiler_util), and its names for modules' calls.
LEFT_OUT = (('autograd/__init__', '_make_grads'), ('autograd/__init__', 'backward'), ('torch/tensor', 'backward'),
            ('nn/modules/module.py', '_wrapped_call_impl'))

Stack = collections.namedtuple('Stack', 'frames lines modules')


def parse(lines):
    frames, numbers, modules = [], [], []
    for line in lines:
        module = re.fullmatch(r'nn\.Module: (.*?)(_\d+)?', line)
        frame = re.fullmatch(r'(.*)\((\d+)\): (.*)', line)
        if module:
            modules.append(module[1])
        elif frame and not any(file in frame[1] and frame[3] == function for file, function in LEFT_OUT):
            frames.append((re.sub(r'^(\.\./)+', '', frame[1]), frame[3]))
            numbers.append(int(frame[2]))
            if frame[3] == LAST:
                break
    return Stack(frames, numbers, modules)


def seen(path):
    """Returns [name, lines, whether it ran in a node]"""
    return [(span.name, (span.stack or b'').decode().split('\n'), span.origin)
            for span in recording.spans(path) if span.name.startswith('aten::')]


def same(ours, theirs):
    return (len(ours.frames) == len(theirs.frames) and ours.modules == theirs.modules
            and all(a[0].endswith(b[0]) and a[1] == b[1] for a, b in zip(ours.frames, theirs.frames))
            and all(a >= b for a, b in zip(ours.lines, theirs.lines)))


def is_cut(lines, ours, theirs):
    """Returns true if our stack is marked as cut and is the beginning of theirs."""
    n = len(ours.frames)
    return lines[-1] == '...' and same(ours, Stack(theirs.frames[:n], theirs.lines[:n], theirs.modules[:len(ours.modules)]))


def main():
    with open(sys.argv[1]) as f:
        theirs = [row for row in json.load(f) if row[0].startswith('aten::')]
    ours = seen(sys.argv[2])
    if [name for name, _, _ in ours] != [name for name, _ in theirs]:
        sys.exit('%d operators here, %d there, or others' % (len(ours), len(theirs)))
    bad = modules = frames = backward = 0
    unreadable = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    cut = set()  # an operator in an operator has the stack of the outer one
    for (name, a, node), (_, b) in zip(ours, theirs):
        x, y = parse(a), parse(b)
        if node or not any(b):  # torch has no stack for nodes that no operator made
            y = x if any(file.endswith(BACKWARD[0]) and function == BACKWARD[1] for file, function in x.frames) else y
            backward += 1
        modules += len(x.modules)
        frames += len(x.frames)
        if same(x, y):
            continue
        if is_cut(a, x, y):
            cut.add(tuple(a))
        else:
            bad += 1
            if bad <= 3:
                print('%s\n  %s\n  is not\n  %s' % (name, '\n  '.join(a), '\n  '.join(b)))
    print('%d operators, %d of them in nodes, %d frames, %d modules; %d differ' % (len(ours), backward, frames, modules, bad))
    print('%d stacks are cut' % len(cut))
    return bad > 0 or len(cut) > unreadable or not frames or not modules or not backward


sys.exit(main())
