#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints bytes of a process's memory where it maps a library executable.

usage: code_bytes.py PID LIBRARY OFFSET...      the byte at each file offset, one line "OFFSET BYTE" each, in hexadecimal
       code_bytes.py PID LIBRARY --changed      the file offsets where memory differs from the file
       code_bytes.py PID LIBRARY --boundaries   the number of these offsets, and each that is not the start of an
                                                instruction when objdump decodes its function
"""
import bisect
import re
import subprocess
import sys
import tempfile

CHUNK = 1 << 16


def mappings(pid, library):
    maps = []
    with open(f'/proc/{pid}/maps') as f:
        for line in f:
            fields = line.split(None, 5)
            if len(fields) == 6 and 'x' in fields[1] and library in fields[5]:
                start, end = (int(a, 16) for a in fields[0].split('-'))
                maps.append((start, end, int(fields[2], 16), fields[5].rstrip('\n')))
    return maps


def changed(mem, maps):
    for start, end, off, path in maps:
        with open(path, 'rb', buffering=0) as f:
            for at in range(0, end - start, CHUNK):
                mem.seek(start + at)
                f.seek(off + at)
                now, was = mem.read(min(CHUNK, end - start - at)), f.read(CHUNK)
                if now[:len(was)] != was[:len(now)]:
                    yield from (off + at + i for i, (a, b) in enumerate(zip(now, was)) if a != b)


def shift_of(path):
    """Returns address minus file offset in the segment with the code."""
    headers = subprocess.run(['readelf', '-lW', path], stdout=subprocess.PIPE, universal_newlines=True).stdout
    off, va = re.search(r'LOAD +0x(\w+) 0x(\w+) .* R E ', headers).groups()
    return int(va, 16) - int(off, 16)


def functions(path):
    lines = subprocess.run(['readelf', '-sW', path], stdout=subprocess.PIPE, universal_newlines=True).stdout.splitlines()
    found = set()
    for fields in (line.split(None, 7) for line in lines):
        if len(fields) == 8 and fields[3] == 'FUNC' and fields[6] != 'UND' and int(fields[2], 0):
            found.add((int(fields[1], 16), int(fields[2], 0)))
    return sorted(found)


def boundaries(offsets, path):
    shift, funcs, bad, unnamed = shift_of(path), functions(path), [], 0
    for off in offsets:
        start, size = funcs[bisect.bisect(funcs, (off + shift, 1 << 62)) - 1]
        if off + shift >= start + size:
            unnamed += 1
            continue
        with open(path, 'rb') as f, tempfile.NamedTemporaryFile() as code:
            f.seek(start - shift)
            code.write(f.read(size))
            code.flush()
            text = subprocess.run(['objdump', '-D', '-b', 'binary', '-m', 'i386:x86-64', code.name], stdout=subprocess.PIPE,
                                  universal_newlines=True).stdout
        if not re.search(rf'^ +{off + shift - start:x}:\t', text, re.M):
            bad.append(off)
    print(len(offsets), 'changed,', unnamed, 'in functions without a name,', len(bad), 'within an instruction', *map(hex, bad))


def main():
    pid, library, what = sys.argv[1], sys.argv[2], sys.argv[3:]
    maps = mappings(pid, library)
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as mem:
        if what == ['--changed']:
            print(*(f'{off:x}' for off in changed(mem, maps)))
            return
        if what == ['--boundaries']:
            boundaries(list(changed(mem, maps)), maps[0][3])
            return
        for off in (int(o, 16) for o in what):
            start = next(s - o for s, e, o, _ in maps if o <= off < o + e - s)
            mem.seek(start + off)
            print(f'{off:x} {mem.read(1).hex()}')


if __name__ == "__main__":
    main()
