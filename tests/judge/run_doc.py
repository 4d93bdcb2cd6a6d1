#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the MXNet documentation verbatim (doc1.py, doc2.py: they call mxnet.profiler themselves).

  run_doc.py FILE --builtin PREFIX   unchanged; its output and its trace become PREFIX.table.txt, PREFIX.trace.json
  run_doc.py FILE --bare             the same text; the module that it imports as mxnet.profiler only holds it at the gates
  run_doc.py FILE --builtin PREFIX --gates   under MXNet's profiler, and held at the gates
"""
import argparse
import contextlib
import os
import runpy
import sys
import types

import gate


def bare_profiler():
    stub = types.ModuleType('mxnet.profiler')
    gates = {'run': gate.begin, 'stop': gate.end}
    stub.set_config = lambda **config: None
    stub.set_state = lambda state='stop': gates[state]()
    stub.dumps = lambda: ''
    stub.dump = lambda: None
    return stub


def gated_profiler(real):
    set_state = real.set_state

    def gated(state='stop'):
        if state == 'run':
            gate.begin()
        set_state(state)
        if state == 'stop':
            gate.end()

    real.set_state = gated


def run_builtin(file, prefix):
    """The program writes to the working directory and to stdout. Both become files with PREFIX."""
    program = os.path.abspath(file)
    directory = os.path.dirname(os.path.abspath(prefix))
    prefix = os.path.abspath(prefix)
    os.chdir(directory)
    out = sys.stdout
    with open(prefix + '.table.txt', 'w') as table:
        # The gates use the real stdout, and the program's own output goes to the file.
        gate.print = lambda *words, flush: print(*words, flush=flush, file=out)
        with contextlib.redirect_stdout(table):
            runpy.run_path(program, run_name='__main__')
    os.rename('trace_profile.json', prefix + '.trace.json')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('file')
    p.add_argument('--bare', action='store_true')
    p.add_argument('--builtin', metavar='PREFIX')
    p.add_argument('--gates', action='store_true')
    args = p.parse_args()
    if args.bare == bool(args.builtin):
        p.error('either --bare or --builtin PREFIX')
    import mxnet
    import mxnet.profiler
    if args.bare:
        mxnet.profiler = sys.modules['mxnet.profiler'] = bare_profiler()
        runpy.run_path(args.file, run_name='__main__')
        return
    if args.gates:
        gated_profiler(mxnet.profiler)
    run_builtin(args.file, args.builtin)


main()
