#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the byte of a process's memory at each file offset of a library that it maps executable.

usage: code_bytes.py PID LIBRARY OFFSET...      a line "OFFSET BYTE" each, in hexadecimal
"""
import sys


def main():
    pid, library, offsets = sys.argv[1], sys.argv[2], [int(o, 16) for o in sys.argv[3:]]
    maps = []
    with open(f'/proc/{pid}/maps') as f:
        for line in f:
            fields = line.split(None, 5)
            if len(fields) == 6 and 'x' in fields[1] and library in fields[5]:
                start, end = (int(a, 16) for a in fields[0].split('-'))
                maps.append((start, end, int(fields[2], 16)))
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as mem:
        for off in offsets:
            start = next(s - o for s, e, o in maps if o <= off < o + e - s)
            mem.seek(start + off)
            print(f'{off:x} {mem.read(1).hex()}')


main()
