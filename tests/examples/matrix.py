#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of programs.py under mxbpf with every option. The reference is the program itself, the runtime's own profiler,
or the program's tables without the option.

  matrix.py [--out DIR] [--cells REGEX] [--markdown FILE] PROGRAM...

Each program runs in one process (run.py --serve), to which mxbpf attaches once per cell. Prints a line per cell with the
difference, if there is any. Exit 1 if a cell differs.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time

import cells
from programs import PROGRAMS
from target import Target

Line = collections.namedtuple('Line', 'program option reference difference seconds')


def applies(cell, program):
    return cell.runtime in ('', program.runtime)


def run_program(name, args):
    target = Target(name, os.path.join(args.out, name))
    try:
        context = cells.Context(name, target)
        for cell in cells.CELLS:
            if not applies(cell, PROGRAMS[name]) or not (cell.needed or re.search(args.cells, cell.option)):
                continue
            begin = time.monotonic()
            try:
                difference = cell.check(context, *cell.args)
            except (cells.Wrong, OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
                difference = e if isinstance(e, cells.Wrong) else cells.Wrong('%s: %s' % (type(e).__name__, e))
            yield Line(name, cell.option, cell.reference, difference, time.monotonic() - begin)
            if not target.alive():
                yield Line(name, 'the program', 'itself', cells.Wrong('ended with %s' % target.process.poll()), 0)
                return
            if not context.base:
                return
    finally:
        target.close()


def markdown(lines, file):
    """A row per option and reference, a column per program."""
    names = list(dict.fromkeys(line.program for line in lines))
    rows = collections.defaultdict(dict)
    for line in lines:
        rows[line.option, line.reference][line.program] = str(line.difference or 'none')
    with open(file, 'w') as f:
        print('| option | reference | ' + ' | '.join(names) + ' |', file=f)
        print('|---' * (len(names) + 2) + '|', file=f)
        for (option, reference), values in rows.items():
            print('| %s | %s | %s |' % (option, reference, ' | '.join(
                values.get(name, '').replace('|', '\\|').replace('\n', '; ') for name in names)), file=f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('programs', nargs='*', metavar='PROGRAM')
    p.add_argument('--out', default='matrix.out')
    p.add_argument('--cells', default='', metavar='REGEX')
    p.add_argument('--markdown', metavar='FILE')
    args = p.parse_args()
    args.out = os.path.abspath(args.out)
    lines = []
    for name in args.programs or PROGRAMS:
        for line in run_program(name, args):
            wrong = isinstance(line.difference, cells.Wrong)
            print('%-5s %-20s %-44s %5.1f s  %s' % ('WRONG' if wrong else 'ok', line.program, line.option, line.seconds,
                                                   line.difference or ''), flush=True)
            lines.append(line)
    if args.markdown:
        markdown(lines, args.markdown)
    wrong = sum(isinstance(line.difference, cells.Wrong) for line in lines)
    print('%d cells, %d wrong' % (len(lines), wrong))
    return wrong > 0 or not lines


if __name__ == '__main__':
    sys.exit(main())
