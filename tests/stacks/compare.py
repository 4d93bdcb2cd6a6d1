#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the stacks of a recording with prog.py's own account of the same calls: file, line, function of every frame.
Exit 0: equal; 1: different, and the first differences are printed.

usage: compare.py SAID RECORDING
"""
import collections
import json
import re
import sys

import recording

FRAMES_MAX = 32
BYTES_MAX = 4096
CUT, GONE = b'...', b'[its code is gone]'
DYING = b'cell-', b'made-', b'<string>', b'<script>'  # files of code that is freed
CALLS = 'MXNDArrayWaitAll', 'aten::neg_'


def one_line(text):
    return re.sub('[\x00-\x1f\x7f]', '?', text).encode(errors='surrogateescape')


def line_of(frame):
    file, line, function = frame
    file = re.sub('.*?/(site|dist)-packages/', '', one_line(file[:1024]).decode('latin-1')).encode('latin-1')
    return b'%s(%d): %s' % (file, line, one_line(function[:256]))


def text_of(stack):
    text, lines = b'', [line_of(frame) for frame in stack]
    for i, line in enumerate(lines):
        if i == FRAMES_MAX or len(text) + len(line) + 1 >= BYTES_MAX - len(CUT) - 1:
            return text + CUT
        text += line + b'\n'
    return text[:-1]


def may_be(seen, said):
    """Returns whether a recorded stack equals the program's, except for frames whose code may be gone."""
    seen, said = seen.split(b'\n'), text_of(said).split(b'\n')
    return len(seen) == len(said) and all(a == b or a == GONE and b.startswith(DYING) for a, b in zip(seen, said))


def main():
    with open(sys.argv[1]) as f:
        said = json.load(f)
    calls = collections.defaultdict(list)
    for span in recording.spans(sys.argv[2]):
        if span.name in CALLS:
            calls[span.tid].append(span.stack)
    bad, gone, told = [], 0, 0
    for tid in set(map(int, said['stable'])) | set(calls):
        stable, dying = said['stable'].get(str(tid), []), said['dying'].get(str(tid), [])
        seen = calls[tid]
        if len(seen) != len(stable) + len(dying):
            bad.append('thread %d: %d calls were seen, %d were made' % (tid, len(seen), len(stable) + len(dying)))
            continue
        for i, (a, b) in enumerate(zip(seen, stable)):
            if a != text_of(b):
                bad.append('thread %d, call %d: %r is not %r' % (tid, i, a, text_of(b)))
        for a, b in zip(seen[len(stable):], dying):
            if a is None or not may_be(a, b):
                bad.append('thread %d, dying: %r is not %r' % (tid, a, text_of(b)))
            elif GONE in a.split(b'\n'):
                gone += 1
            else:
                told += 1
    if not told:
        bad.append('of code that went away nothing was told')
    print('%d calls on %d threads, of code that went away %d told and %d not; %d differ' % (
        sum(map(len, calls.values())), len(calls), told, gone, len(bad)))
    for line in bad[:5]:
        print(line)
    return bool(bad)


sys.exit(main())
