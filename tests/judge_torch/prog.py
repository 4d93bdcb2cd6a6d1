#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs NAME[,NAME...] of programs.py and measures their section in one of these ways.

  prog.py NAME --bare                    only the section, between the two gates of ../judge/gate.py
  prog.py NAME --builtin OUT             the section under torch.profiler, without gates, with its results in OUT
  prog.py NAME --builtin OUT --gates     both, for a run with two profilers
  --shapes        torch.profiler with record_shapes, which keeps tensors alive and so has other frees
  --all-threads   torch.profiler with the rows of all threads and without memory
  --keep TRACE    keeps torch.profiler's own trace
  --result OUT    writes a hash of the section's result
  --whole         the section is the whole program, with preparations and first-time work
  --busy          prints "busy PID" before it is ready, and calls operators until it may go on
"""
import argparse
import gc
import hashlib
import json
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
# Compiles in this process, because a pool of compilers may exist in one run and not in the next.
os.environ.setdefault('TORCHINDUCTOR_COMPILE_THREADS', '1')

import torch  # noqa: E402
from programs import PROGRAMS  # noqa: E402

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402

if torch.profiler.kineto_available():
    from builtin import Builtin  # noqa: E402
else:
    from legacy import Builtin  # noqa: E402

WARM_SECTIONS = 4


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', metavar='NAME', type=lambda text: text.split(','))
    p.add_argument('--bare', action='store_true')
    p.add_argument('--builtin', metavar='OUT')
    p.add_argument('--gates', action='store_true')
    p.add_argument('--shapes', action='store_true')
    p.add_argument('--all-threads', action='store_true')
    p.add_argument('--keep', metavar='TRACE')
    p.add_argument('--result', metavar='OUT')
    p.add_argument('--busy', action='store_true')
    p.add_argument('--whole', action='store_true')
    args = p.parse_args()
    unknown = set(args.names) - set(PROGRAMS)
    if unknown:
        p.error('no program %s; there are %s' % (', '.join(unknown), ', '.join(PROGRAMS)))
    if args.bare == bool(args.builtin):
        p.error('either --bare or --builtin OUT')
    return args


class Run:
    def __init__(self, names):
        self.names, self.programs, self.digest = names, [], None

    def begin(self):
        for name in self.names:
            self.programs.append(PROGRAMS[name]())
            # First-time work: compiling, TorchScript's profiling runs, optimizer state.
            for _ in range(WARM_SECTIONS):
                self.programs[-1].section()

    def section(self):
        for program in self.programs:
            program.section()

    def whole(self):
        self.begin()
        self.section()
        self.digest = self.result()

    def result(self):
        if self.digest:
            return self.digest
        digest = hashlib.sha256()
        for program in self.programs:
            for tensor in program.tensors():
                digest.update(tensor.detach().float().numpy().tobytes())
        return digest.hexdigest()


def measure(args, section):
    """Returns torch.profiler as the section has left it, or None."""
    builtin = args.builtin and Builtin(args.shapes, args.all_threads)
    if args.busy:
        gate.busy(lambda: torch.ones(1))
    gate.run(section, builtin, args.bare or args.gates)
    return builtin


def report(args, builtin, programs):
    """Does the work of a second thread again in this one, because torch.profiler does not see it there."""
    data = dict(builtin.report(args.keep), program=','.join(args.names), torch=torch.__version__)
    for program in programs:
        if not hasattr(program, 'other') or args.all_threads:
            continue
        sections = 1 + WARM_SECTIONS if args.whole else 1
        data['own_calls'] = {name: calls * sections for name, calls in program.calls.items()}
        other = Builtin(args.shapes)
        other.start()
        for _ in range(sections):
            program.other()
        other.stop()
        data['other_thread'] = other.report()
    return data


def main():
    args = parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    run = Run(args.names)
    if not args.whole:
        run.begin()
    # A garbage collection in the section would free tensors at random times.
    gc.collect()
    gc.disable()
    builtin = measure(args, run.whole if args.whole else run.section)
    if args.result:
        with open(args.result, 'w') as f:
            print(run.result(), file=f)
    if builtin:
        with open(args.builtin, 'w') as f:
            json.dump(report(args, builtin, run.programs), f)


if __name__ == '__main__':
    main()
