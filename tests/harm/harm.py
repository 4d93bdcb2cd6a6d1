#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects the agent into running programs (job.py) and kills mxbpf with SIGKILL at random moments. The programs must go on with
the same results to the last bit, their import tables must be as before, and their memory must not grow.

  harm.py --mxbpf MXBPF --python PYTHON --dir DIR [--injections N] [--whole N] [--allocators NAME,NAME] [--seed N]
  --injections  kills per allocator (default 10)
  --whole       windows per allocator that end by SIGINT, before and between the kills (default 2)
  --seconds     stop early after this time

Programs run side by side, one per allocator. Prints a line for each, and exits with 1 if one was harmed.
"""
import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = '/usr/lib/x86_64-linux-gnu/'
ALLOCATORS = {
    'glibc': {},
    'jemalloc': {'LD_PRELOAD': LIBRARIES + 'libjemalloc.so.2', 'MALLOC_CONF': 'narenas:1'},
    'tcmalloc': {'LD_PRELOAD': LIBRARIES + 'libtcmalloc_minimal.so.4'},
    'mimalloc': {'LD_PRELOAD': LIBRARIES + 'libmimalloc.so.2'},
}
AGENT = '/memfd:mxbpf-agent'
WAIT_S = 120       # a program that makes no progress for so long is harmed
RESTORE_S = 40     # the agent waits 15 s for an mxbpf that was killed before it attached
WARM_UP = 0.3      # share of the windows after which memory must not grow
GROWTH_KB = 24 << 10
GROWTH_MAPS = 40


class Harmed(Exception):
    pass


# ---- import tables

def mappings(pid):
    """(start, end, permissions, offset, path) of each mapping."""
    out = []
    with open(f'/proc/{pid}/maps') as f:
        for line in f:
            part = line.split(None, 5)
            start, end = (int(x, 16) for x in part[0].split('-'))
            out.append((start, end, part[1], int(part[2], 16), part[5].strip() if len(part) > 5 else ''))
    return out


def slots_of(path):
    """Addresses in the file of the entries of its import tables (JUMP_SLOT, GLOB_DAT)."""
    with open(path, 'rb') as f:
        data = f.read(64)
        if data[:5] != b'\x7fELF\x02':
            return []
        phoff, = struct.unpack_from('<Q', data, 32)
        phentsize, phnum = struct.unpack_from('<HH', data, 54)
        f.seek(phoff)
        table = f.read(phentsize * phnum)
        heads = [struct.unpack_from('<IIQQQQQQ', table, i * phentsize) for i in range(phnum)]

        def at(va, n):
            for kind, _, off, start, _, filesz, _, _ in heads:
                if kind == 1 and start <= va < start + filesz:
                    f.seek(off + va - start)
                    return f.read(n)
            return b''
        dynamic = [h for h in heads if h[0] == 2]
        if not dynamic:
            return []
        f.seek(dynamic[0][2])
        tags = dict(struct.iter_unpack('<QQ', f.read(dynamic[0][5] // 16 * 16)))
        relocs = [(tags.get(23), tags.get(2, 0)), (tags.get(7), tags.get(8, 0))]
        return [off for va, n in relocs if va for off, info, _ in struct.iter_unpack('<QQq', at(va, n // 24 * 24))
                if info & 0xffffffff in (6, 7)]


class Tables:
    """The import tables of the libraries that a program keeps."""

    def __init__(self, pid, never):
        self.pid, self.slots = pid, {}
        base = {}
        for start, _, _, off, path in mappings(pid):
            if path.startswith('/') and os.path.exists(path) and path != never and off == 0:
                base.setdefault(path, start)
        for path, start in base.items():
            if 'libc10' in path or 'libtorch' in path or 'churn' in path or path.endswith('/libc.so.6'):
                self.slots[path] = [start + va for va in slots_of(path)]
        self.before = self.read()

    def read(self):
        with open(f'/proc/{self.pid}/mem', 'rb', 0) as mem:
            return {path: self.words(mem, slots) for path, slots in self.slots.items()}

    @staticmethod
    def words(mem, slots):
        if not slots:
            return ()
        low, high = min(slots), max(slots) + 8
        pages = os.pread(mem.fileno(), high - low, low) if high - low < 64 << 20 else None
        if pages is not None and len(pages) == high - low:
            return tuple(struct.unpack_from('<Q', pages, s - low)[0] for s in slots)
        return tuple(struct.unpack('<Q', os.pread(mem.fileno(), 8, s))[0] for s in slots)

    def changed(self):
        """(entries that lead to the agent, other entries that are not as before and were bound before)"""
        maps = mappings(self.pid)
        own = {p: (min(m[0] for m in maps if m[4] == p), max(m[1] for m in maps if m[4] == p)) for p in self.slots}
        agent = [(start, end) for start, end, _, _, path in maps if path.startswith(AGENT)]
        ours = others = 0
        for path, now in self.read().items():
            for was, value in zip(self.before[path], now):
                if was == value:
                    continue
                if any(start <= value < end for start, end in agent):
                    ours += 1
                elif not own[path][0] <= was < own[path][1]:  # else it is bound since
                    others += 1
        return ours, others


# ---- a program

class Job:
    def __init__(self, name, args):
        self.name, self.args = name, args
        self.random = random.Random(f'{args.seed} {name}')
        self.kills = self.whole = self.pending = self.loaded = 0
        self.seen, self.error = [], None

    def start(self):
        files = [os.path.join(self.args.dir, n) for n in ('churn.so', 'freed.so')]
        out = open(os.path.join(self.args.dir, self.name + '.out'), 'w')
        self.log = open(os.path.join(self.args.dir, self.name + '.log'), 'w')
        self.process = subprocess.Popen([self.args.python, os.path.join(HERE, 'job.py'), *files], stdout=out, stderr=self.log,
                                        env=dict(os.environ, OMP_NUM_THREADS='1', **ALLOCATORS[self.name]))
        self.out = out.name
        self.wait_line(lambda lines: any(x.startswith('ready') for x in lines))
        self.progress()
        self.tables = Tables(self.process.pid, files[1])

    def wait_line(self, is_there):
        until = time.monotonic() + WAIT_S
        while True:
            with open(self.out) as f:
                lines = f.read().splitlines()
            if is_there(lines):
                return lines
            if self.process.poll() is not None:
                raise Harmed(f'it ended with status {self.process.returncode}')
            if time.monotonic() > until:
                raise Harmed(f'it made no progress in {WAIT_S} s')
            time.sleep(0.005)

    def rounds(self, lines):
        return sum(x.startswith('round') for x in lines)

    def progress(self):
        """Waits for two whole rounds."""
        with open(self.out) as f:
            n = self.rounds(f.read().splitlines())
        self.wait_line(lambda lines: self.rounds(lines) >= n + 2)

    def memory(self):
        with open(f'/proc/{self.process.pid}/status') as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))
        return rss, len(mappings(self.process.pid))

    def window(self, whole):
        options = self.random.choice([['--memory'], [], ['--sched'], ['--probes', 'op'], ['--backward']])
        p = subprocess.Popen([self.args.mxbpf, '--agent', '--pid', str(self.process.pid), '--no-follow', *options], text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        took = time.monotonic()
        if whole:
            said = ''
            for line in p.stderr:
                said += line
                if line.startswith('attached'):
                    break
            self.attach_s = max(getattr(self, 'attach_s', 0.2), time.monotonic() - took)
            time.sleep(self.random.uniform(0, 0.1))
            p.send_signal(signal.SIGINT)
            rest = p.stderr.read()
            if p.wait() not in (0, 5):  # mxbpf gave up, which harms nobody
                print(f'{self.name}: mxbpf {options} ended with status {p.returncode}: {said}{rest}', flush=True)
            self.whole += 1
        else:
            time.sleep(self.random.uniform(0, self.attach_s * 1.3))
            p.kill()
            p.wait()
            self.kills += 1
        p.stderr.close()
        self.loaded += any(m[4].startswith(AGENT) for m in mappings(self.process.pid))
        self.progress()
        ours, others = self.tables.changed()
        self.pending += bool(ours)
        if others:
            raise Harmed(f'{others} entries of its import tables are neither as before nor lead to the agent')
        self.seen.append(self.memory())

    def restored(self):
        until = time.monotonic() + RESTORE_S
        while self.tables.changed()[0]:
            if time.monotonic() > until:
                raise Harmed(f'{self.tables.changed()[0]} entries of its import tables still lead to the agent')
            self.progress()

    def judge_memory(self):
        warm = self.seen[int(len(self.seen) * WARM_UP):]
        if len(warm) < 4:
            return ''
        half = len(warm) // 2
        rss, maps = (sorted(x[i] for x in warm[half:])[half // 2] - sorted(x[i] for x in warm[:half])[half // 2] for i in (0, 1))
        if len(warm) > 100 and (rss > GROWTH_KB or maps > GROWTH_MAPS):
            raise Harmed(f'its memory grew by {rss} KiB and {maps} mappings in {len(warm)} windows')
        return f'; from the first to the second half its memory grew by {rss} KiB and {maps} mappings'

    def end(self):
        self.process.send_signal(signal.SIGTERM)  # it waits for its children
        if self.process.wait(WAIT_S):
            raise Harmed(f'it ended with status {self.process.returncode}')
        self.wait_line(lambda lines: lines[-1].startswith('equal '))

    def run(self):
        try:
            self.start()
            windows = [True] * self.args.whole + [False] * self.args.injections
            rest = windows[1:]
            self.random.shuffle(rest)
            for whole in windows[:1] + rest:  # the first one is whole: it shows how long an attach takes
                if time.monotonic() > self.args.until:
                    break
                self.window(whole)
            if not self.loaded:
                raise Harmed('the agent was never loaded')
            self.restored()
            self.grown = self.judge_memory()
            self.end()
        except Exception as e:  # the other programs go on
            self.error = f'{type(e).__name__}: {e}'
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def main():
    args = argparse.ArgumentParser()
    args.add_argument('--mxbpf', required=True)
    args.add_argument('--python', required=True)
    args.add_argument('--dir', required=True)
    args.add_argument('--injections', type=int, default=10)
    args.add_argument('--whole', type=int, default=2)
    args.add_argument('--allocators', default=','.join(ALLOCATORS))
    args.add_argument('--seed', type=int, default=1)
    args.add_argument('--seconds', type=float, default=1e9)
    args = args.parse_args()
    args.until = time.monotonic() + args.seconds
    for name in ('churn.so', 'freed.so'):
        subprocess.run(['cc', '-O1', '-shared', '-fPIC', '-o', os.path.join(args.dir, name), os.path.join(HERE, 'churn.c')],
                       check=True)
    names = [n for n in args.allocators.split(',') if os.path.exists(ALLOCATORS[n].get('LD_PRELOAD', '/'))]
    jobs = [Job(n, args) for n in names]
    threads = [threading.Thread(target=j.run) for j in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for j in jobs:
        if j.error:
            print(f'{j.name}: harmed after {j.kills} kills and {j.whole} whole windows: {j.error}')
        else:
            print(f'{j.name}: {j.kills} kills and {j.whole} whole windows, {j.loaded} with the agent loaded, {j.pending} left entries '
                  f'for a while{j.grown}')
    sys.exit(any(j.error for j in jobs))


main()
