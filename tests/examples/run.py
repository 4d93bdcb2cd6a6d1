#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one of programs.py, as its authors wrote it, in the working directory, with generated data, a seed and a digest of its
result.

  run.py NAME            once; prints the digest
  run.py NAME --serve    repeatedly in one process: each line of stdin is one run. After `plain` the program runs alone,
                         prints "done" and waits for a line, so that an attached tracer can detach. After `builtin OUT` it
                         runs under the runtime's own profiler (MXNet: OUT is a prefix). Each run ends with
                         "result DIGEST".
  --shapes               torch.profiler with record_shapes

The digest covers all that the program printed and saved, except times and process ids.
"""
import argparse
import gc
import hashlib
import json
import os
import random
import re
import runpy
import sys
import warnings
import zipfile

os.environ.setdefault('OMP_NUM_THREADS', '1')
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'judge'), os.path.join(HERE, 'stand_in')]

import files  # noqa: E402
import gate  # noqa: E402
import inputs  # noqa: E402
from programs import PROGRAMS  # noqa: E402

# Text that differs between two runs: times, rates, process ids, ports, addresses.
VOLATILE = [
    r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ ', r'ms/batch +[\d.]+', r'time: +[\d.]+s', r'Speed: [\d.]+ samples/sec',
    r'Time cost=[\d.]+', r'\[\d\d:\d\d:\d\d\] [^ ]*:', r'0x[0-9a-f]+', r'\[?[WEI]\d{4} .*',
    r'USDT:.*',  # torch.profiler's own
    r'.*New registration is overriding existing custom operator .*',  # in the second run of a process
]


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('name', choices=PROGRAMS)
    p.add_argument('--serve', action='store_true')
    p.add_argument('--shapes', action='store_true')
    return p.parse_args()


def own_output(path):
    """Redirects descriptors 1 and 2 of the program and its child processes to a file. Returns the real stdout, line-buffered."""
    real = os.fdopen(os.dup(1), 'w', buffering=1)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
    return real


def seed(runtime):
    """Imports the runtime here, before the gates."""
    import numpy
    random.seed(1)
    numpy.random.seed(1)
    if runtime == 'mxnet':
        import mxnet
        mxnet.random.seed(1)
        mxnet.nd.waitall()
    else:
        import torch
        torch.manual_seed(1)


def run(program):
    main = files.path(program, program.main)
    sys.argv = [main, *program.args]
    if not program.edits:
        runpy.run_path(main, run_name='__main__')
        return
    with open(main) as f:
        text = f.read()
    for old, new in program.edits:
        if text.count(old) != 1:
            sys.exit('%s: %r stands there %d times, not once' % (main, old, text.count(old)))
        text = text.replace(old, new)
    exec(compile(text, main, 'exec'), {'__name__': '__main__', '__file__': main})


def builtin_profiler(args, runtime, out):
    if runtime == 'mxnet':
        return gate.Builtin(out)
    sys.path.append(os.path.join(HERE, '..', 'judge_torch'))
    from builtin import Builtin
    return Builtin(args.shapes)


def saved(name):
    """Returns the numbers in a file of torch.save(). Its pickle also depends on which equal strings were one object."""
    with zipfile.ZipFile(name) as z:
        for member in sorted(z.namelist()):
            if '/data/' in member:
                yield z.read(member)


def digest(program):
    """Covers saved files bit by bit, and the printed text except VOLATILE."""
    sha = hashlib.sha256()
    with open('out', errors='replace') as f:
        text = f.read()
    for pattern in VOLATILE:
        text = re.sub(pattern, '', text)
    sha.update('\n'.join(sorted(filter(None, text.splitlines()))).encode())
    for name in program.saves:
        for numbers in saved(name):
            sha.update(numbers)
    return sha.hexdigest()


def write_builtin(args, builtin, runtime, out):
    if runtime == 'mxnet':
        builtin.write()
        return
    with open(out, 'w') as f:
        json.dump(dict(builtin.report(), program=args.name), f)


def prepare(program):
    os.truncate('out', 0)
    seed(program.runtime)
    gc.collect()


def once(program, before=None, after=None):
    if before:
        before()
    run(program)
    gc.collect()
    if after:
        after()
    sys.stdout.flush()
    sys.stderr.flush()
    return digest(program)


def serve(args, program, real):
    def hold():
        print('done', file=real)
        sys.stdin.readline()

    once(program)  # warm-up: things that the runtime makes once
    prepare(program)
    print('ready %d' % os.getpid(), file=real)
    for line in sys.stdin:
        how, _, out = line.strip().partition(' ')
        if how == 'plain':
            result = once(program, after=hold)
        else:
            builtin = builtin_profiler(args, program.runtime, out)
            result = once(program, builtin.start, builtin.stop)
            write_builtin(args, builtin, program.runtime, out)
        prepare(program)  # before a tracer of the next run attaches
        print('result', result, file=real)


def main():
    args = parse_args()
    program = PROGRAMS[args.name]
    why_not = files.missing(program)
    if why_not:
        sys.exit(why_not)
    inputs.make(program.data)
    real = own_output('out')
    sys.path.insert(0, os.path.dirname(files.path(program, program.main)))
    warnings.simplefilter('ignore')  # Python shows each of them once per process
    prepare(program)
    if args.serve:
        serve(args, program, real)
    else:
        print(once(program), file=real)


if __name__ == '__main__':
    main()
