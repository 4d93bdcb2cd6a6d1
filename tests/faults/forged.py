#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: forged.py MXBPF RECORDING N

Forges N recordings, whose sums are right: words of their records, sizes, counts and names are what an attacker wrote. Each is
reported, merged with the recording and compared with it. Then N results of `report -f json` whose values have other types are
compared with it. mxbpf must end in time, in 1 GiB of address space, with a status of its own, and print no control byte. What it
did instead is printed, and the status is 1. The numbers are those of a generator with a fixed seed, so each run is the same."""
import copy
import json
import random
import resource
import struct
import subprocess
import sys
import zlib

SECONDS = 20
MEMORY = 1 << 30
HEAD, SUM = 80, 12  # struct mxbpf_chunk
WORDS = (0, 1, 2, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0x8000000000000000, 0xffffffffffffffff)
VALUES = (None, True, -1, 0, 1e308, -1e308, 2**64, 1.5, '', 'x' * 70000, [], {}, [{}], [[]], [None], {'': None}, '\x1b[2J\u202e')
NAME = '\x1b]0;x\x07\u202e<script>%n'.encode()


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def wrong_with(*command):
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return f'it ran for more than {SECONDS} s'
    if done.returncode not in range(6) and done.returncode != 10:
        return f'status {done.returncode}: {done.stderr[-300:]}'
    printed = done.stdout + done.stderr
    if any(byte < 32 and byte not in (9, 10) for byte in printed) or '\u202e'.encode() in printed:
        return 'it printed a control byte or a mark of direction'
    return None


def chunks(data):
    """Yields offset and bytes of each chunk's payload; the head is before it."""
    at = data.find(b'CHNK')
    while at >= 0:
        size = struct.unpack_from('<I', data, at + 8)[0]
        yield at, size
        at = data.find(b'CHNK', at + HEAD + size)


def sum_again(data, at, size):
    struct.pack_into('<I', data, at + SUM, 0)
    struct.pack_into('<I', data, at + SUM, zlib.crc32(bytes(data[at:at + HEAD + size])))


def forge(whole, places, chance):
    data = bytearray(whole)
    for _ in range(chance.randint(1, 6)):
        at, size = chance.choice(places)
        if size < 64:
            continue
        word = at + HEAD + 8 * chance.randrange(size // 8 - 4)
        kind = chance.randrange(4)
        if kind == 0:
            data[word:word + len(NAME)] = NAME
        else:
            width = (1, 2, 4, 8)[chance.randrange(4)]
            value = chance.choice(WORDS) & (1 << 8 * width) - 1
            offset = word + width * chance.randrange(8 // width)
            data[offset:offset + width] = value.to_bytes(width, 'little')
        sum_again(data, at, size)
    return data


def paths(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], path + (key,))
    elif isinstance(value, list):
        for i in range(min(2, len(value))):
            yield from paths(value[i], path + (i,))


def change(result, path, value):
    result = copy.deepcopy(result)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


def main():
    mxbpf, recording, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chance = random.Random(1)
    wrong = 0

    def attempt(what, *command):
        nonlocal wrong
        why = wrong_with(mxbpf, *command)
        if why:
            wrong += 1
            print(f'{what}: mxbpf {" ".join(command)}: {why}')

    with open(recording, 'rb') as file:
        whole = file.read()
    places = list(chunks(whole))
    for i in range(n):
        with open('forged.mxd', 'wb') as file:
            file.write(forge(whole, places, chance))
        attempt(f'recording {i}', 'report', 'forged.mxd', recording)
        attempt(f'recording {i}', 'report', 'forged.mxd', '--all')
        attempt(f'recording {i}', 'diff', recording, 'forged.mxd')
    result = json.loads(subprocess.run([mxbpf, 'report', recording, '-f', 'json'], capture_output=True, check=True).stdout)
    places = list(paths(result))
    for i in range(n):
        path, value = places[i % len(places)], VALUES[i % len(VALUES)]
        with open('forged.json', 'w', encoding='utf-8') as file:
            json.dump(change(result, path, value), file)
        attempt(f'{path} = {str(value)[:20]}', 'diff', recording, 'forged.json')
    for path in (('tables',), ('target',), ('window',), ('iterations',), ('findings',)):
        with open('forged.json', 'w', encoding='utf-8') as file:
            json.dump(change(result, path, [{}]), file)
        attempt(f'{path} = [{{}}]', 'diff', 'forged.json', 'forged.json')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
