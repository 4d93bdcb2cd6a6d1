#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Points mxbpf, as a user types it, at jobs with a planted cause and at their healthy twins, and compares its findings with the
cause.

usage: run.py [--runs N] [--seconds S] [--view late|launcher|job] NAME...       or "all"; NAME.py is a file of this folder

A program says in its head what is right:
  FINDING = 'key' or {'key', ...}   one of these must be the first or second finding, and must name the line of the program that ends
                                    with "# CAUSE", if there is one; the twin must not have it
  SAYS = 'words'                    the sentence of that finding has them
  ALSO = {'key', ...}               findings that both may have beside it, because they are true of both
  OPTIONS = ['--sched']             of mxbpf
  PYTHON = 'mxnet'                  the job needs MXNet, not PyTorch
  RUN = {'NAME': 'value'}           environment of the job with the cause, but not of its twin
  WHO = False                       the finding need not name the process that is late
  TWIN = False                      the twin is another program's, and is not run again
If it prints two processes behind "ready", mxbpf is pointed at the first one, and the finding must name the second one.
Prints a line for each run, and exits with 1 if any was wrong.
environment: MXBPF, PYTHON (of MXNet), PYTHON_TORCH
"""
import argparse
import ast
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# What the load of the machine and mxbpf itself explain, whatever the job does.
LOAD = {'neighbours', 'stolen', 'throttled', 'watching'}

NO_EVENT = 5  # exit code of mxbpf: it has recorded nothing, as of a job that hangs


class Job:
    """A program with a cause, and its twin."""
    def __init__(self, name):
        self.name, self.path = name, f'{HERE}/{name}.py'
        with open(self.path, encoding='utf-8') as f:
            text = f.read()
        said = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and node.targets[0].id in ('FINDING', 'SAYS', 'ALSO', 'OPTIONS', 'PYTHON', 'RUN', 'TWIN', 'WHO'):
                said[node.targets[0].id] = ast.literal_eval(node.value)
        finding = said['FINDING']
        self.finding = {finding} if isinstance(finding, str) else set(finding)
        self.also = set(said.get('ALSO', ()))
        self.says = said.get('SAYS', '')
        self.options = said.get('OPTIONS', [])
        self.python = os.environ['PYTHON' if said.get('PYTHON') == 'mxnet' else 'PYTHON_TORCH']
        self.env = said.get('RUN', {})
        self.twin = said.get('TWIN', True)
        self.who = said.get('WHO', True)
        self.lines = [f'{name}.py({n}): ' for n, line in enumerate(text.splitlines(), 1) if line.endswith('# CAUSE')]

    def start(self, healthy):
        return subprocess.Popen([self.python, '-u', self.path, *(['--healthy'] if healthy else [])], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=os.environ | ({} if healthy else self.env))

    def wrong(self, found, pid):
        """Returns what is wrong with the findings of the job with the cause, or ''. pid: the process that must be named, or ''."""
        best = [f for f in found[:2] if f['finding'] in self.finding]
        if not best:
            return 'the first two findings are others'
        if self.lines and not any(line in f['text'] + (f['evidence'] or '') for f in best for line in self.lines):
            return f'the line is not {self.lines[0]}'
        if not any(self.says in f['text'] for f in best):
            return f'it does not say "{self.says}"'
        if pid and self.who and not any(f'rocess {pid}' in f['text'] + (f['evidence'] or '') for f in best):
            return f'it is not about process {pid}'
        return ''

    def alarm(self, found):
        """The same for the twin."""
        more = {f['finding'] for f in found} - LOAD - self.also
        return f'false alarm: {" ".join(sorted(more))}' if more else ''


def end(started):
    started.stdin.close()
    try:
        started.wait(10)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()


def look(job, started, seconds, view):
    """Returns the findings about a job that waits for its line, and the process that they must name, or ''."""
    ready = started.stdout.readline().split()
    if ready[:1] != ['ready']:
        sys.exit(f'{job.name} did not start')
    started.stdin.write('\n')
    started.stdin.flush()
    with tempfile.TemporaryDirectory() as d:
        at = {'late': ready[-1:], 'launcher': [str(started.pid)], 'job': [ready[1], '--job']}.get(view, ready[1:2])
        code = subprocess.run([os.environ['MXBPF'], '--pid', *at, '-d', f'{seconds}s', *job.options, '-o', f'{d}/t.json'],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120).returncode
        if code not in (0, NO_EVENT):
            sys.exit(f'{job.name}: mxbpf ended with {code}')
        with open(f'{d}/t.json', encoding='utf-8') as f:
            return json.load(f)['findings'], ' '.join(ready[2:])


def judge(job, seconds, view):
    """Both start at once, and the twin waits until the other one is done."""
    both = [job.start(False), job.start(True)] if job.twin else [job.start(False)]
    good = 0
    try:
        for healthy, started in enumerate(both):
            found, pid = look(job, started, seconds, view)
            end(started)
            wrong = job.alarm(found) if healthy else job.wrong(found, pid)
            good += not wrong
            print('WRONG' if wrong else 'right', job.name + (' (healthy)' if healthy else ''), wrong, flush=True)
            for f in found:
                print('     ', f['finding'], f['share_permille'], f['text'], '|', f['evidence'] or '')
    finally:
        for started in both:
            end(started)
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='+', metavar='NAME')
    p.add_argument('--runs', type=int, default=1)
    p.add_argument('--seconds', type=float, default=5)
    p.add_argument('--view', choices=['first', 'late', 'launcher', 'job'], default='first', help='of ranks: what mxbpf is pointed at')
    args = p.parse_args()
    names = args.names if args.names != ['all'] else sorted(
        os.path.basename(f)[:-3] for f in glob.glob(f'{HERE}/*.py') if os.path.basename(f) not in ('run.py', 'common.py', 'ranks.py'))
    good = total = 0
    for name in names * args.runs:
        job = Job(name)
        good += judge(job, args.seconds, args.view)
        total += 1 + job.twin
    print(f'{good} of {total} are right')
    return good != total


if __name__ == '__main__':
    sys.exit(main())
