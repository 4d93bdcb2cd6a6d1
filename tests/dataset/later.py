#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes another recording of a recording: of a later day, of another host, or with a slower operator.
usage: later.py IN OUT [--days N] [--host NAME] [--slower OPERATOR=FACTOR] [--rename OPERATOR=HEX]"""
import argparse
import json
import struct
import zlib

HEADER, CHUNK = 64, 80
META, DATA, AGG = 1, 2, 3
SPAN, ROW, NAME = 1, 2, 8


def records(payload):
    at = 0
    while at + 16 <= len(payload):
        kind, size = struct.unpack_from('<HH', payload, at)
        if size < 16:
            return
        yield at, kind, size
        at += size


def scaled(payload, at, factor):
    value, = struct.unpack_from('<Q', payload, at)
    struct.pack_into('<Q', payload, at, int(value * factor))


def change_meta(payload, args):
    meta = json.loads(payload.rstrip(b'\0'))
    meta['start_unix_ns'] = str(int(meta['start_unix_ns']) + args.days * 86400 * 10**9)
    if args.host:
        meta['hostname'] = args.host
        for label in meta.get('labels', []):
            label['hostname'] = args.host
    text = json.dumps(meta, separators=(',', ':'), ensure_ascii=False).encode()
    assert len(text) <= len(payload), 'the new text is %d bytes too long' % (len(text) - len(payload))
    payload[:] = text.ljust(len(payload), b'\0')


def change_records(payload, args, ids):
    for at, kind, size in records(payload):
        if kind == NAME:
            name_id, length = struct.unpack_from('<QI', payload, at + 16)
            text = at + 32
            if payload[text:text + length] == args.operator:
                ids.add(name_id)
                if args.to:
                    payload[text:text + length] = args.to.ljust(length)[:length]
        elif kind == SPAN and struct.unpack_from('<Q', payload, at + 32)[0] in ids:
            scaled(payload, at + 16, args.factor)
            scaled(payload, at + 24, args.factor)
        elif kind == ROW and struct.unpack_from('<Q', payload, at + 16)[0] in ids:
            scaled(payload, at + 32, args.factor)
            scaled(payload, at + 40, args.factor)


def chunks(data):
    at = HEADER
    while at + CHUNK <= len(data):
        magic, kind, _, size = struct.unpack_from('<IHHI', data, at)
        if magic != 0x4b4e4843:  # the padding of a slot
            at += 8
            continue
        yield at, kind, size
        at += CHUNK + size


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('input')
    parser.add_argument('output')
    parser.add_argument('--days', type=int, default=0)
    parser.add_argument('--host')
    parser.add_argument('--slower', default='=1')
    parser.add_argument('--rename')
    args = parser.parse_args()
    operator, factor = args.slower.rsplit('=', 1)
    args.operator, args.factor, args.to = operator.encode(), float(factor), None
    if args.rename:
        operator, to = args.rename.rsplit('=', 1)
        args.operator, args.to = operator.encode(), bytes.fromhex(to)
    with open(args.input, 'rb') as f:
        data = bytearray(f.read())
    ids = set()
    for at, kind, size in chunks(data):
        payload = data[at + CHUNK:at + CHUNK + size]
        if kind == META:
            change_meta(payload, args)
        elif kind in (DATA, AGG):
            change_records(payload, args, ids)
        data[at + CHUNK:at + CHUNK + size] = payload
        struct.pack_into('<I', data, at + 12, 0)
        struct.pack_into('<I', data, at + 12, zlib.crc32(data[at:at + CHUNK + size]))
    with open(args.output, 'wb') as f:
        f.write(data)


main()
