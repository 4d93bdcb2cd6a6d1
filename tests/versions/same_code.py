#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares functions of two libraries instruction by instruction, whatever addresses are in them.

usage: same_code.py LIBRARY LIBRARY REGEX       those whose symbols match; prints their number, and each that differs

Exit code 1 if one differs, or is in one library only, or none matches.
"""
import re
import subprocess
import sys

NEAR_BYTES = 0x10000


def lines_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout.splitlines()


def functions(library, wanted):
    found = {}
    for fields in (line.split() for line in lines_of('readelf', '-sW', library)):
        if len(fields) == 8 and fields[3] == 'FUNC' and fields[2] != '0' and wanted.search(fields[7]):
            found[fields[7]] = int(fields[1], 16), int(fields[2], 0)
    return found


def disassembled(library, functions_of):
    """Returns {address: instruction} of the functions. objdump reads all symbols each time, so neighbours are read at once."""
    ranges = []
    for start, size in sorted(functions_of.values()):
        if ranges and start - ranges[-1][1] < NEAR_BYTES:
            ranges[-1][1] = start + size
        else:
            ranges.append([start, start + size])
    texts = {}
    for start, end in ranges:
        for line in lines_of('objdump', '-d', '--no-show-raw-insn', f'--start-address={start}', f'--stop-address={end}', library):
            text = re.match(r' +([0-9a-f]+):\t(.*)', line)
            if text:
                texts[int(text[1], 16)] = text[2]
    return texts


def code(texts, start, size):
    """Returns its instructions, with the target's name for a call or jump elsewhere and nothing for a reference to data."""
    instructions = []
    for address in range(start, start + size):
        if address not in texts:
            continue
        text = re.sub(r' *#.*', '', re.sub(r'\S+\(%rip\)', 'data', texts[address]))
        target = re.match(r'(call|j\w+) +([0-9a-f]+) <([^>+]*)', text)
        if target and start <= int(target[2], 16) < start + size:
            text = f'{target[1]} {int(target[2], 16) - start:#x}'
        elif target:
            text = f'{target[1]} {target[3]}'
        instructions.append(text.rstrip())
    return instructions


def main():
    one, other = sys.argv[1:3]
    wanted = re.compile(sys.argv[3])
    ours, theirs = functions(one, wanted), functions(other, wanted)
    our_code, their_code = disassembled(one, ours), disassembled(other, theirs)
    differ = [name for name in ours.keys() | theirs.keys()
              if name not in ours or name not in theirs or code(our_code, *ours[name]) != code(their_code, *theirs[name])]
    print(len(ours), 'functions,', len(differ), 'differ', *differ)
    return 1 if differ or not ours else 0


if __name__ == '__main__':
    sys.exit(main())
