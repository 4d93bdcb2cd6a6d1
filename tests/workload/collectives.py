# SPDX-License-Identifier: Apache-2.0
"""A rank of a job that exchanges by gloo, with ranks that are late on purpose, and the comparison of its account with mxbpf's.

collectives.py DIR                as a rank of torchrun: prints `ready PID`, waits for DIR/go, and writes when each of its collectives
                                  began and ended to DIR/rank.*
collectives.py DIR JSON [TRACE]   compares the accounts of all ranks with a report of mxbpf, and with a timeline
"""
import glob
import json
import os
import sys
import time

HERE = sys.argv[1]
RANKS, STEPS = 4, 12
LATE = {'all_reduce': 2, 'all_gather': 1}  # rank that comes LATE_S later than the others
LATE_S = 0.04
FACTORS = {'all_reduce': lambda n: 2 * (n - 1) / n, 'all_gather': lambda n: (n - 1) / n, 'all_to_all': lambda n: (n - 1) / n,
           'broadcast': lambda n: 1}
NAMES = {4: 'ranks 0-3', 2: 'ranks 0-1'}


def near(found, told, share, least=0):
    return abs(found - told) <= max(told * share, least)


def account(parts):
    """What the ranks' clocks say of one operation: parts[rank] has a (start, end) for each call."""
    calls = list(zip(*parts.values()))
    last = [max(start for start, _ in call) for call in calls]
    moves = [max(end for _, end in call) - at for call, at in zip(calls, last)]
    waits = [sum(at - start for start, _ in call) / len(call) for call, at in zip(calls, last)]
    ranks = [list(parts)[max(range(len(call)), key=lambda i: call[i][0])] for call in calls]
    return len(calls), sum(waits) / len(calls), sum(moves) / len(calls), max(set(ranks), key=ranks.count)


def wrong_in(row, op, size, n, parts):
    calls, wait, move, last = account(parts)
    if (row['calls'], row['parts'], row['parts_matched']) != (calls, calls * n, calls * n):
        yield f"{row['calls']} calls, {row['parts']} parts, {row['parts_matched']} matched; told {calls} calls of {n}"
    if row['bytes'] != size or row['world_size'] != n:
        yield f"{row['bytes']} bytes of {row['world_size']}, told {size} of {n}"
    if op in LATE and n == RANKS:
        if row['last'] != f'rank {last}' or last != LATE[op] or not near(row['late_ns'], LATE_S * 1e9, 0.1):
            yield f"{row['last']} is last, late by {row['late_ns']}; told {last}, planted {LATE[op]}, {LATE_S} s"
        if not near(row['wait_ns'], wait, 0.05):
            yield f"waits {row['wait_ns']}, told {wait}"
    if op in FACTORS and not near(row['bus_bytes_per_second'], size / move * 1e9 * FACTORS[op](n), 0.25):
        yield f"bus bandwidth {row['bus_bytes_per_second']}, told {size / move * 1e9 * FACTORS[op](n)}"


def wrong_in_trace(path, told):
    """The parts of a collective have one number, and those of later ones have larger numbers."""
    with open(path) as f:
        spans = [e for e in json.load(f)['traceEvents'] if e['name'] == 'gloo:all_reduce' and e['ph'] == 'X']
    for n in NAMES:
        numbers = {}
        for e in sorted(spans, key=lambda e: e['ts']):
            if e['args'].get('Group size') == n:
                numbers.setdefault(e['pid'], []).append(e['args']['Seq'])
        one = list(numbers.values())[0] if numbers else []
        if len(numbers) != n or any(of != one for of in numbers.values()) or sorted(set(one)) != one or len(one) != told[n]:
            yield f'numbers of all_reduce in the group of {n}: {numbers}'


def compare(path, *traces):
    told = {}
    for name in sorted(glob.glob(HERE + '/rank.*')):
        with open(name) as f:
            one = json.load(f)
        for op, size, n, start, end in one['calls']:
            told.setdefault((op, size, n), {}).setdefault(one['rank'], []).append((start, end))
    with open(path) as f:
        rows = {(row['name'], row['bytes'], row['group']): row for row in json.load(f)['collectives']['operations']}
    wrong = [f'{key}: {what}' for key, parts in told.items()
             for what in (wrong_in(rows[key[0], key[1], NAMES[key[2]]], *key, parts)
                          if (key[0], key[1], NAMES[key[2]]) in rows else [f'not among {list(rows)}'])]
    wrong += [f'{key}: never called' for key in rows if not any((op, size, NAMES[n]) == key for op, size, n in told)]
    wrong += [what for trace in traces for what in wrong_in_trace(trace, {n: len(told['all_reduce', 4 << 20, n][0]) for n in NAMES})]
    print(f'{len(told)} operations', *wrong, sep='\n')
    return len(told) != 6 or bool(wrong)


def rank():
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    number, calls = dist.get_rank(), []
    half, some = dist.new_group([0, 1]), torch.ones(1 << 20)

    def call(op, size, n, work, *args, **named):
        if n == RANKS and LATE.get(op) == number:
            time.sleep(LATE_S)
        start = time.monotonic_ns()
        work(*args, **named)
        calls.append((op, size, n, start, time.monotonic_ns()))

    parts, each = [torch.empty(1 << 18) for _ in range(RANKS)], torch.ones(1 << 18)
    os.write(1, b'ready %d\n' % os.getpid())  # in one write: ranks share the pipe
    while not os.path.exists(HERE + '/go'):
        torch.ones(2).add_(1)
        time.sleep(0.005)
    call('barrier', None, RANKS, dist.barrier)
    for _ in range(STEPS):
        call('all_reduce', 4 << 20, RANKS, dist.all_reduce, some)
        if number < 2:  # as much as before, while the others go on
            call('all_reduce', 4 << 20, 2, dist.all_reduce, some, group=half)
        call('barrier', None, RANKS, dist.barrier)
        call('all_gather', 4 << 20, RANKS, dist.all_gather, parts, each)
        call('broadcast', 4 << 20, RANKS, dist.broadcast, some, 0)
        call('all_to_all', 4 << 20, RANKS, dist.all_to_all_single, torch.empty(1 << 20), some)
        some.fill_(1)
    dist.destroy_process_group()
    with open(f'{HERE}/rank.{number}', 'w') as f:
        json.dump({'rank': number, 'calls': calls}, f)


if __name__ == '__main__':
    sys.exit(compare(*sys.argv[2:]) if len(sys.argv) > 2 else rank())
