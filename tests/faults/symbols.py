#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: symbols.py LIBRARY later|sizeless|ifunc

Writes into the symbols of all functions of a library, in place: they begin one byte later, have no size, or are of the type IFUNC."""
import os
import struct
import sys

fd = os.open(sys.argv[1], os.O_RDWR)
data = os.read(fd, 1 << 24)
sections, n = struct.unpack_from('<Q', data, 40)[0], struct.unpack_from('<H', data, 60)[0]
changed = 0
for i in range(n):
    _, kind, _, _, start, size, *_ = struct.unpack_from('<IIQQQQIIQQ', data, sections + 64 * i)
    for at in range(start, start + size if kind in (2, 11) else start, 24):
        _, info, _, section, value, _ = struct.unpack_from('<IBBHQQ', data, at)
        if info & 15 != 2 or not section or not value:
            continue
        if sys.argv[2] == 'later':
            os.pwrite(fd, struct.pack('<Q', value + 1), at + 8)
        elif sys.argv[2] == 'sizeless':
            os.pwrite(fd, bytes(8), at + 16)
        else:
            os.pwrite(fd, bytes([info & 0xf0 | 10]), at + 4)
        changed += 1
sys.exit(changed < 100)
