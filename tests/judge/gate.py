# SPDX-License-Identifier: Apache-2.0
"""Holds a program before and after its measured section, and runs MXNet's own profiler around that section. The section is the
same in both cases. A tracer attaches and detaches at the two gates, so its window has neither start-up nor interpreter
shutdown."""
import os
import select
import sys


def _hold(*words):
    print(*words, flush=True)
    if not sys.stdin.buffer.raw.read(1):
        sys.exit('stdin ended where a byte was to let the program go on')


def busy(work):
    """Calls operators until it may go on."""
    print('busy', os.getpid(), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        work()
    if not sys.stdin.buffer.raw.read(1):
        sys.exit('stdin ended where a byte was to let the program go on')


def begin():
    _hold('ready', os.getpid())


def end():
    _hold('done')


def run(section, builtin, gates):
    """Runs the section under a profiler, between the gates, or both."""
    if gates:
        begin()
    if builtin:
        builtin.start()
    section()
    if builtin:
        builtin.stop()
    if gates:
        end()


class Builtin:
    """MXNet's profiler, with results in PREFIX.table.txt, PREFIX.json and PREFIX.trace.json."""

    def __init__(self, prefix, aggregate=True):
        from mxnet import profiler
        self.profiler, self.prefix, self.aggregate = profiler, prefix, aggregate
        profiler.set_config(profile_all=True, aggregate_stats=aggregate, filename=prefix + '.trace.json')

    def start(self):
        self.profiler.set_state('run')

    def stop(self):
        self.profiler.set_state('stop')

    def write(self):
        if self.aggregate:
            for suffix, form in (('.table.txt', 'table'), ('.json', 'json')):
                with open(self.prefix + suffix, 'w') as f:
                    f.write(self.profiler.dumps(reset=False, format=form))
        self.profiler.dump(finished=True)
