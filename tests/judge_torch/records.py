# SPDX-License-Identifier: Apache-2.0
"""Reads a recording (include/mxbpf_file.h, include/mxbpf_event.h) without mxbpf."""
import collections
import json
import struct

import kineto

DATA, AGG = 2, 3
SPAN, NAME = 1, 8
USER, SEQ, BACKWARD = 4, 8, 16
SPAN_NAME, ARGS_NAME = 0, 2
COMPILED_KERNEL = 4  # a class that torch.profiler does not have

Span = collections.namedtuple('Span', 'start name flags args seq')


def chunks(data):
    """Yields the payloads of chunks with records: slots until the end chunks, and these."""
    header, slots, slot_bytes, end = struct.unpack_from('<I8xQQQ', data, 12)
    for start, stop in [(at, at + slot_bytes) for at in range(slots, end, slot_bytes)] + [(end, len(data))]:
        while start + 80 <= stop:
            magic, kind, size = struct.unpack_from('<IH2xI', data, start)
            if magic != 0x4b4e4843:
                break
            if kind in (DATA, AGG):
                yield data[start + 80:start + 80 + size]
            start += 80 + size


def read(path):
    """Returns [Span] of operators in order of their starts, {id: name} and {id: names of kind ARGS}."""
    with open(path, 'rb') as f:
        data = f.read()
    spans, names, args = [], {}, {}
    for chunk in chunks(data):
        at = 0
        while at < len(chunk):
            kind, size = struct.unpack_from('<HH', chunk, at)
            if kind == NAME:
                ident, length, what = struct.unpack_from('<QII', chunk, at + 16)
                text = chunk[at + 32:at + 32 + length].decode()
                {SPAN_NAME: names, ARGS_NAME: args}.get(what, {})[ident] = text
            elif kind == SPAN:
                start, = struct.unpack_from('<Q', chunk, at + 8)
                name, = struct.unpack_from('<Q', chunk, at + 32)
                cls, flags = struct.unpack_from('<BB', chunk, at + 60)
                details = struct.unpack_from('<QQQQ', chunk, at + 80) if size >= 112 else (0, 0, 0, 0)
                if cls != COMPILED_KERNEL:
                    spans.append(Span(start, name, flags, details[0], details[2]))
            at += size
    return sorted(spans), names, args


def links(recording):
    """Like kineto.links(): the operator that made node N is the last to begin with N on its thread."""
    spans, names, _ = recording
    makers, count = {}, collections.Counter()
    for span in spans:
        if not span.flags & SEQ:
            continue
        if not span.flags & BACKWARD:
            makers[span.seq] = span
        elif span.seq in makers:
            count[names[makers[span.seq].name], names[span.name]] += 1
    return kineto.listed(count)


def slices(recording):
    """Like kineto.slices()."""
    spans, names, args = recording
    tensors = {0: ''}
    for ident, text in args.items():
        sizes, types, _ = map(json.loads, text.split('\n'))
        tensors[ident] = kineto.tensors(types, sizes)
    return kineto.listed(collections.Counter((names[span.name], tensors[span.args]) for span in spans))


def arguments(recording):
    """Like kineto.arguments()."""
    spans, names, args = recording
    return sorted({names[span.name] + json.dumps([json.loads(line) for line in args[span.args].split('\n')])
                   for span in spans if span.args})
