# SPDX-License-Identifier: Apache-2.0
"""Reads the records of a recording of `mxbpf record`, according to include/mxbpf_file.h and mxbpf_event.h."""
import collections
import struct

FILE_HEADER = struct.Struct('<8sHHIQQQQQII')
CHUNK = struct.Struct('<IHHIIQQ6Q')
CHUNK_MAGIC, CHUNK_DATA = 0x4b4e4843, 2
REC = struct.Struct('<HHIQ')
SPAN, NAME = 1, 8
SPAN_FIELDS = struct.Struct('<QQQQIIIBBHqqQQQQ')
NAME_FIELDS = struct.Struct('<QII')
NAME_SPAN, NAME_ARGS, NAME_STACK = 0, 2, 3

Span = collections.namedtuple('Span', 'name stack args ts tid pid flags seq origin')


def records(path):
    with open(path, 'rb') as f:
        data = f.read()
    header = FILE_HEADER.unpack_from(data)
    slots, slot_bytes, end = header[5:8]
    for slot in range(slots, end or len(data), slot_bytes):
        at = slot
        while at + CHUNK.size <= slot + slot_bytes:
            chunk = CHUNK.unpack_from(data, at)
            if chunk[0] != CHUNK_MAGIC:
                break
            at += CHUNK.size
            if chunk[1] == CHUNK_DATA:
                part = at
                while part < at + chunk[3]:
                    rec = REC.unpack_from(data, part)
                    yield rec, data[part + REC.size:part + rec[1]]
                    part += rec[1]
            at += chunk[3]


def spans(path):
    """Returns spans with details by start time."""
    names, found = {}, []
    for (kind, _, tgid, ts), body in records(path):
        if kind == NAME:
            id_, length, which = NAME_FIELDS.unpack_from(body)
            names[which, id_] = body[NAME_FIELDS.size:NAME_FIELDS.size + length]
        elif kind == SPAN and len(body) >= SPAN_FIELDS.size:
            found.append((ts, tgid, SPAN_FIELDS.unpack_from(body)))
    return [Span(names.get((NAME_SPAN, s[2]), b'?').decode(), names.get((NAME_STACK, s[13])), names.get((NAME_ARGS, s[12])), ts,
                 s[4], tgid, s[8], s[14], s[15]) for ts, tgid, s in sorted(found, key=lambda f: f[0])]
