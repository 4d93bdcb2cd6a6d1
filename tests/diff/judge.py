#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges `mxbpf diff` on recordings of a real PyTorch job with planted changes: what is found, what is a false alarm.

usage: judge.py record DIR [--rounds N] [--first NR] [--seconds S] [--seed N] [--plants NAME...]
       judge.py judge DIR [--recordings N] [--draws N] [--seed N] [-v]
A round records the job once without a change and once with each plant, in random order, each time in a new process. The next
job starts while one is recorded, which is noise on purpose. `judge` compares each plant with the base of its round, and bases
of neighbouring rounds with each other: nothing changed between these. With --recordings N, each side has those of N rounds;
with --draws N, of random ones, so pairs share recordings.
Exit code 1 if a base differs from a base, or if a plant of 5 % or more is found in fewer than 19 of 20 pairs.
environment: MXBPF, PYTHON_TORCH
"""
import argparse
import collections
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
MXBPF = os.environ.get('MXBPF', f'{REPO}/build/mxbpf')
PYTHON = os.environ.get('PYTHON_TORCH', f'{REPO}/build/deps/torch/bin/python')
BASE = 'base'
# Several plants in one job save recordings. Each of them must be found in its own row.
PLANTS = ['op+data+memory2', 'op5', 'data+memory5', 'op10', 'data+memory10', 'op+data+memory50']
# What a plant may change: its own rows, of which one must be certain.
ROWS = {'op': r'aten::bmm$', 'data': r'waiting for data$|enumerate\(DataLoader\)', 'memory': r'memory'}
ALIKE = r'iteration$'


def planted(plant):
    """Splits 'data+memory5' into (['data', 'memory'], 5)."""
    what, percent = re.fullmatch(r'([a-z+]+)([0-9]+)', plant).groups()
    return what.split('+'), int(percent)


class Job:
    """A job that stops itself when it is ready."""

    def __init__(self, plant):
        args = []
        if plant != BASE:
            what, percent = planted(plant)
            args = [a for w in what for a in (w, str(percent))]
        self.child = subprocess.Popen([PYTHON, f'{HERE}/job.py', '600', *args], stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, STOP_READY='1'))

    def record(self, path, seconds):
        os.kill(self.child.pid, signal.SIGCONT)
        done = subprocess.run([MXBPF, 'record', '-q', '--force', '--pid', str(self.child.pid), '-d', f'{seconds}s', '-o', path],
                              check=False, timeout=seconds + 60)
        if done.returncode:
            print(f'{path}: exit status {done.returncode}; this pair is left out', file=sys.stderr)
            os.remove(path)

    def wait_ready(self):
        assert self.child.stdout.readline().startswith('ready'), 'the job has failed'
        os.waitpid(self.child.pid, os.WUNTRACED)

    def end(self):
        self.child.kill()
        self.child.wait()


def record(args):
    os.makedirs(args.dir, exist_ok=True)
    order = random.Random(args.seed)
    todo = []
    for nr in range(args.first, args.first + args.rounds):
        plants = [BASE, *args.plants]
        order.shuffle(plants)
        todo += [(nr, plant) for plant in plants]
    jobs = [Job(todo[0][1])]
    try:
        for i, (nr, plant) in enumerate(todo):
            jobs[0].wait_ready()
            if i + 1 < len(todo):
                jobs.append(Job(todo[i + 1][1]))
            jobs[0].record(f'{args.dir}/{nr:02}-{plant}.mxd', args.seconds)
            jobs.pop(0).end()
            print(f'{i + 1} of {len(todo)}', end='\r', file=sys.stderr, flush=True)
    finally:
        for job in jobs:
            job.end()


def compare(a, b):
    """Returns the names of the rows that are certain, with their changes, and all rows."""
    command = [MXBPF, 'diff', '-f', 'json']
    for path in a:
        command += ['--base', path]
    out = json.loads(subprocess.run([*command, *b], check=True, stdout=subprocess.PIPE, timeout=300).stdout)
    rows = out['rows'] + ([dict(out['memory_peak'], name='memory.peak')] if 'memory_peak' in out else [])
    return {r['name']: r for r in rows if r['certain']}, {r['name']: r for r in rows}


def tell(rows):
    return ', '.join(f"{name} {100 * r['own_change']:+.1f}%" for name, r in rows.items())


def groups_of(rounds, size, args):
    """Returns lists of rounds: those that follow each other, or --draws random ones."""
    if args.draws:
        draw = random.Random(args.seed)
        return [sorted(draw.sample(rounds, size)) for _ in range(args.draws)]
    return [rounds[k:k + size] for k in range(0, len(rounds) - size + 1, size)]


def judge_plant(files, plant, args):
    """Returns counts: pairs, how often each thing that is planted was found, and pairs with another row ('wrong')."""
    what, percent = planted(plant)
    count = collections.Counter()
    for group in groups_of([nr for nr in files if BASE in files[nr] and plant in files[nr]], args.recordings, args):
        certain, rows = compare([files[nr][BASE] for nr in group], [files[nr][plant] for nr in group])
        count['pairs'] += 1
        right = set()
        for w in what:
            own = {name for name in certain if re.match(ROWS[w], name)}
            count[w] += any(certain[name]['own_change'] > 0 for name in own)
            right |= own
        wrong = {name: r for name, r in certain.items() if name not in right and not re.match(ALIKE, name)}
        count['iteration'] += any(re.match(ALIKE, name) for name in certain)
        count['wrong'] += bool(wrong)
        if args.verbose:
            watched = {name: r for name, r in rows.items() if any(re.match(ROWS[w], name) for w in what)}
            noise = ', '.join(f"{100 * r['own_change']:+.1f}+-{100 * r['noise']:.1f}% p {r['p']}" for r in watched.values())
            print(f'  {group} {plant}: {noise}; certain: {tell(certain)}')
    count['percent'] = percent
    return count


def judge_none(files, args):
    """Compares bases with bases: each with the next one, or those of every other round with the rest."""
    count = collections.Counter()
    bases = [nr for nr in files if BASE in files[nr]]
    single = args.recordings == 1 and not args.draws
    for group in zip(bases, bases[1:]) if single else groups_of(bases, 2 * args.recordings, args):
        certain, _ = compare([files[nr][BASE] for nr in group[::2]], [files[nr][BASE] for nr in group[1::2]])
        count['pairs'] += 1
        count['wrong'] += bool(certain)
        if certain:
            print(f'  {group} {BASE}: {tell(certain)}')
    return count


def judge(args):
    files = collections.defaultdict(dict)
    for path in sorted(glob.glob(f'{args.dir}/*-*.mxd')):
        nr, plant = os.path.basename(path)[:-4].split('-')
        files[int(nr)][plant] = path
    none = judge_none(files, args)
    bad = none['wrong'] > 0
    lines = [f"{'nothing':14} {'':7} {none['pairs']:5} {'-':>7} {'-':>9} {none['wrong']:11}"]
    for plant in [p for p in PLANTS if any(p in r for r in files.values())]:
        count = judge_plant(files, plant, args)
        for what in planted(plant)[0]:
            lines.append(f"{what:14} {count['percent']:+5} % {count['pairs']:5} {count[what]:7} {count['iteration']:9} "
                         f"{count['wrong']:11}")
            bad |= count['percent'] >= 5 and count[what] < 0.95 * count['pairs']
    print(f"{'planted':14} {'by':>7} {'pairs':>5} {'found':>7} {'iteration':>9} {'other rows':>11}")
    print('\n'.join(lines))
    return int(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser('record')
    one.add_argument('dir')
    one.add_argument('--rounds', type=int, default=21)
    one.add_argument('--first', type=int, default=0, help='number of the first round')
    one.add_argument('--seconds', type=int, default=6)
    one.add_argument('--seed', type=int, default=1)
    one.add_argument('--plants', nargs='*', default=PLANTS)
    one.set_defaults(run=record)
    two = commands.add_parser('judge')
    two.add_argument('dir')
    two.add_argument('--recordings', type=int, default=1, metavar='N', help='of each side')
    two.add_argument('--draws', type=int, default=0, metavar='N', help='compare those of N random groups of rounds')
    two.add_argument('--seed', type=int, default=1)
    two.add_argument('-v', '--verbose', action='store_true')
    two.set_defaults(run=judge)
    args = parser.parse_args()
    return args.run(args)


if __name__ == '__main__':
    sys.exit(main())
