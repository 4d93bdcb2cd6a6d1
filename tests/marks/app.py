#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that starts and stops MXNet's own profiler, with one step per byte of its stdin.

  app.py [--running] STEPS

STEPS are letters: r set_state('run'), s set_state('stop'), p pause, u resume, d dump, w work: one operator that only this step
runs, whose name it prints. Prints "ready PID", then a line for each step: its number, from 0, and its action.
"""
import argparse
import os
import sys

from mxnet import nd, profiler

# Operators that nothing else in the program runs, one per step of work.
OPERATORS = ['arccosh', 'arcsinh', 'arctanh', 'cbrt', 'erf', 'expm1', 'gamma', 'gammaln', 'log1p', 'log2', 'rsqrt', 'sinh']


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--running', action='store_true', help='its profiler runs before it is ready')
    p.add_argument('--free', action='store_true', help='does not wait for its stdin')
    p.add_argument('steps')
    args = p.parse_args()
    x = nd.ones((4, 4)) + 1
    x.wait_to_read()
    profiler.set_config(profile_all=True, aggregate_stats=True, filename='app.trace.json')
    if args.running:
        profiler.set_state('run')
    print('ready', os.getpid(), flush=True)
    worked = 0
    for number, step in enumerate(args.steps):
        if not args.free and not sys.stdin.buffer.raw.read(1):
            sys.exit('stdin ended')
        said = step
        if step == 'r':
            profiler.set_state('run')
        elif step == 's':
            profiler.set_state('stop')
        elif step == 'p':
            profiler.pause()
        elif step == 'u':
            profiler.resume()
        elif step == 'd':
            profiler.dump(finished=False)
        else:
            said = OPERATORS[worked]
            worked += 1
            getattr(nd, said)(x).wait_to_read()
        print(number, 'did', said, flush=True)
    if not args.free:
        sys.stdin.buffer.raw.read(1)


if __name__ == '__main__':
    main()
