# SPDX-License-Identifier: Apache-2.0
"""Several processes at once: what mxbpf itself takes for ten of PyTorch, idle and at 5,000 events a second each, and how long it
takes to attach to all of a machine that runs a thousand others."""
import contextlib
import json
import os
import re
import subprocess
import tempfile
import time

from proc import BenchError, cpu_ns, memory

TARGETS = 10
RATE = 5000 # events a second, about: PACED makes nine in each step
OTHERS = 1000
SETTLE_S = 3 # names and lines are learned first
PACED = '''
import sys, time, torch
torch.set_num_threads(1)
one, steps, begin, n = torch.ones(4), int(sys.argv[1]) // 9 // 50, time.monotonic(), 0
print('ready', flush=True)
while True:
    for _ in range(steps):
        torch.mul(one.sinh() + one, one)
    n += 1
    time.sleep(max(0, begin + n * 0.02 - time.monotonic()))
'''
OTHER = 'import ctypes, json, ssl, signal; signal.pause()'


@contextlib.contextmanager
def processes(commands):
    """Yields their pids. They end with the block."""
    started = []
    try:
        for argv, wait in commands:
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if wait else subprocess.DEVNULL))
        for proc, (_, wait) in zip(started, commands):
            if wait and proc.stdout.readline() != b'ready\n':
                raise BenchError('a process of the bench did not start')
        yield [proc.pid for proc in started]
    finally:
        for proc in started:
            proc.kill()
            proc.wait()
            if proc.stdout:
                proc.stdout.close()


def paced(bench, rate):
    return [([bench.python_torch, '-c', PACED, str(rate)], True)] * TARGETS


def find(pattern, text):
    match = re.search(pattern, text)
    if not match:
        raise BenchError(f'mxbpf did not say {pattern!r}: {text}')
    return int(match[1])


def share_of(bench, rate):
    """Returns the CPU time per second, the memory, and the events of a session on ten targets."""
    seconds = bench.steady_s / 2
    with processes(paced(bench, rate)) as pids, tempfile.TemporaryFile('w+') as err:
        tool = subprocess.Popen([bench.mxbpf, '--exact', '--pid', ','.join(map(str, pids)), '-d', f'{SETTLE_S + seconds + 1}s', '--verbose',
                                 '--format', 'json'], stdout=subprocess.PIPE, stderr=err, text=True)
        try:
            while 'attached: ' not in open(f'/proc/self/fd/{err.fileno()}', encoding='utf-8').read():
                time.sleep(0.05)
            time.sleep(SETTLE_S)
            before, begin = cpu_ns(tool.pid), time.monotonic_ns()
            time.sleep(seconds)
            share = (cpu_ns(tool.pid) - before) / (time.monotonic_ns() - begin)
            own = memory(tool.pid)
            result = json.loads(tool.communicate()[0])
        finally:
            tool.kill()
            tool.wait()
        err.seek(0)
        maps = find(r'BPF maps take (\d+) KiB', err.read()) << 10
    return {'cpu_share': share, 'own_bytes': own['anon_bytes'] + own['file_bytes'], 'maps_bytes': maps, 'dropped': result['loss']['dropped'],
            'events_per_s': result['loss']['stored'] / result['window']['duration_ns'] * 1e9}


def attach_ms(bench):
    command = [bench.mxbpf, '--exact', '--host', '--probes', 'op', '-d', '100ms', '--format', 'json']
    done = [subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
            for _ in range(bench.attaches)]
    return [find(r'attached: \d+ probes in (\d+) ms', text) for text in done]


def host(bench):
    """Attaching alone, and among a thousand others of which half run Python."""
    result = {'idle': share_of(bench, 0), 'busy': share_of(bench, RATE)}
    others = [(['sleep', 'infinity'], False), ([os.path.realpath('/usr/bin/python3'), '-c', OTHER], False)] * (OTHERS // 2)
    with processes(paced(bench, 400)):
        result['attach_alone_ms'] = attach_ms(bench)
        with processes(others):
            time.sleep(SETTLE_S)
            result['attach_ms'] = attach_ms(bench)
    return result
