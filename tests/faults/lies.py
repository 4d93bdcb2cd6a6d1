#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: lies.py LIBRARY MAPPER STEP COMMAND [ARGUMENT...]

MAPPER (tests/prog/maps_elf.c) maps a copy of LIBRARY, named libmxnet.so in the current directory, as a loader would, and runs
none of its code. Then the fields of its headers, sections, dynamic section, notes, hash table and symbols lie, one at a time: they
are written in place, so that the file and the memory of the process say the same. Each time COMMAND runs, with {pid} replaced. It
must end in time with a status of at most 5 and within 1 GiB of address space, and the process must live. STEP: try every STEP-th
lie only. What went wrong is printed, and the status is 1."""
import os
import resource
import subprocess
import sys

SECONDS = 20
MEMORY = 1 << 30
EHDR = (('type', 16, 2), ('machine', 18, 2), ('version', 20, 4), ('entry', 24, 8), ('phoff', 32, 8), ('shoff', 40, 8), ('flags', 48, 4),
        ('ehsize', 52, 2), ('phentsize', 54, 2), ('phnum', 56, 2), ('shentsize', 58, 2), ('shnum', 60, 2), ('shstrndx', 62, 2))
PHDR = (('type', 0, 4), ('flags', 4, 4), ('offset', 8, 8), ('vaddr', 16, 8), ('paddr', 24, 8), ('filesz', 32, 8), ('memsz', 40, 8), ('align', 48, 8))
SHDR = (('name', 0, 4), ('type', 4, 4), ('flags', 8, 8), ('addr', 16, 8), ('offset', 24, 8), ('size', 32, 8), ('link', 40, 4), ('info', 44, 4),
        ('align', 48, 8), ('entsize', 56, 8))
SYM = (('name', 0, 4), ('info', 4, 1), ('other', 5, 1), ('shndx', 6, 2), ('value', 8, 8), ('size', 16, 8))
SYMBOLS = 12
WORDS = 8


def number(data, at, size):
    return int.from_bytes(data[at:at + size], 'little')


def fields(data):
    """Yields (name, offset, bytes)."""
    phoff, shoff = number(data, 32, 8), number(data, 40, 8)
    phnum, shnum = number(data, 56, 2), number(data, 60, 2)
    yield from ((f'ident[{i}]', i, 1) for i in range(7))
    yield from ((f'header.{n}', at, size) for n, at, size in EHDR)
    for i in range(phnum):
        yield from ((f'segment[{i}].{n}', phoff + 56 * i + at, size) for n, at, size in PHDR)
    for i in range(shnum):
        head = shoff + 64 * i
        yield from ((f'section[{i}].{n}', head + at, size) for n, at, size in SHDR)
        kind, start, size = number(data, head + 4, 4), number(data, head + 24, 8), number(data, head + 32, 8)
        if kind == 6:  # dynamic
            yield from ((f'dynamic[{k // 8}]', start + k, 8) for k in range(0, size, 8))
        elif kind in (2, 11):  # symbols
            for k in range(min(SYMBOLS, size // 24)):
                yield from ((f'symbol[{k}].{n}', start + 24 * k + at, n_bytes) for n, at, n_bytes in SYM)
        elif kind in (7, 0x6ffffff6) or (kind == 1 and size and number(data, head + 8, 8) == 2):  # notes, hash, tables of unwinding
            yield from ((f'contents[{i}][{k}]', start + k, 4) for k in range(0, min(4 * WORDS, size - 3), 4))


def lies(data):
    for k, (name, at, size) in enumerate(fields(data)):
        top, now = (1 << 8 * size) - 1, number(data, at, size)
        values = (0, 1, top, top >> 1, now + 1 & top, now ^ 1 << (8 * size - 4), 0x7ffffffffffff000 & top)
        for value in values[k % 7:] + values[:k % 7]:
            if value != now:
                yield name, at, size, value


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def attempt(command):
    """Returns what is wrong, or None."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS, preexec_fn=limit,
                              check=False)
    except subprocess.TimeoutExpired:
        return f'it ran for more than {SECONDS} s'
    if 0 <= done.returncode <= 5:
        return None
    return f'status {done.returncode}: {done.stderr[-300:]}'


def main():
    library, mapper, step, command = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    with open(library, 'rb') as file:
        whole = file.read()
    with open('libmxnet.so', 'wb') as file:
        file.write(whole)
    with subprocess.Popen([mapper, 'libmxnet.so'], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        command = [word.replace('{pid}', str(process.pid)) for word in command]
        wrong = tried = 0
        fd = os.open('libmxnet.so', os.O_WRONLY)
        for k, (name, at, size, value) in enumerate(lies(whole)):
            if k % step:
                continue
            os.pwrite(fd, value.to_bytes(size, 'little'), at)
            why = attempt(command)
            if why or process.poll() is not None:
                wrong += 1
                print(f'{name} = {value:#x}: {why or "the process has ended"}')
            os.pwrite(fd, whole[at:at + size], at)
            tried += 1
        print(f'{tried} lies')
        process.kill()
    return 1 if wrong or not tried else 0


if __name__ == '__main__':
    sys.exit(main())
