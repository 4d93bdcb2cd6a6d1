#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls from threads that go from one interpreter of their process to another and back, and records where it made each call with
sys._getframe(). With --hang the threads block in their interpreters instead.

usage: interpreters.py LIBRARY OUT [--shared] [--busy]     LIBRARY, gates and --busy as for prog.py
       interpreters.py LIBRARY OUT [--shared] --hang       prints "ready PID" when all threads block, until SIGTERM

Each interpreter has a lock of its own, or with --shared that of the main one. OUT gets what prog.py writes, with all calls among
"dying", because the scripts that enter an interpreter go away; with --hang [[tid, stack]...]. Runs on CPython 3.9 to 3.15.
"""
import glob
import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'judge')]
import gate  # noqa: E402
from work import stack_of, work_of  # noqa: E402

LIBRARY, OUT, OPTIONS = sys.argv[1], sys.argv[2], sys.argv[3:]
work = None
said = {}  # tid -> stacks of its calls in this interpreter


def note(frame):
    said.setdefault(threading.get_native_id(), []).append(stack_of(frame))


def call():
    note(sys._getframe()); work()  # noqa: E702


def deep(n):
    return call() if n == 0 else deep(n - 1)


def calls(n):
    """Runs in another interpreter, once without and once with a thread of its own."""
    global work
    work = work or work_of(LIBRARY)
    deep(n)
    thread = threading.Thread(target=deep, args=(n,))
    thread.start()
    thread.join()


def hangs(n):
    note(sys._getframe()); hand_over(n); os.read(n, 1)  # noqa: E702


def hand_over(n):
    """The main interpreter reads what the others said."""
    with open('%s.%d' % (OUT, n), 'w') as f:
        json.dump([[tid, frames] for tid, stacks in said.items() for frames in stacks], f)
    said.clear()


SCRIPT = '''
import sys
sys.path.insert(0, %r)
sys.argv = %r
import interpreters
interpreters.%s(%d)
interpreters.hand_over(%d)
'''


class Interpreter:
    def __init__(self):
        if sys.version_info >= (3, 13):
            import _interpreters as made
            self.id, self.enter = made.create('legacy' if '--shared' in OPTIONS else 'isolated'), made.exec
        else:
            import _xxsubinterpreters as made
            self.id, self.enter = made.create(isolated='--shared' not in OPTIONS), made.run_string

    def run(self, function, argument, number):
        failed = self.enter(self.id, SCRIPT % (HERE, sys.argv, function, argument, number))
        if failed:
            sys.exit(str(failed))


def goes_around(number, dying):
    """Alternates between the main interpreter and two others."""
    mine, tid, others = [], threading.get_native_id(), [Interpreter(), Interpreter()]
    for n in range(4):
        for other in others:
            deep(n)
            mine += [[tid, frames] for frames in said.pop(tid)]
            other.run('calls', n, number)
            with open('%s.%d' % (OUT, number)) as f:
                mine += json.load(f)
    dying += mine


def around():
    dying, by_tid = [], {}
    threads = [threading.Thread(target=goes_around, args=(i, dying)) for i in (1, 2)]
    for thread in threads:
        thread.start()
    goes_around(0, dying)
    for thread in threads:
        thread.join()
    for tid, frames in dying:
        by_tid.setdefault(tid, []).append(frames)
    return {'stable': {}, 'dying': by_tid}


def when_all_block(n):
    """Returns when n threads, which are all but this one, sleep in read()."""
    def block():
        paths = [p for p in glob.glob('/proc/self/task/*/syscall') if '/%d/' % threading.get_native_id() not in p]
        return len(paths) == n and all(open(p).read().startswith('0 ') for p in paths)
    while not block():
        pass
    all_said = []
    for path in glob.glob(OUT + '.*'):
        with open(path) as f:
            all_said += json.load(f)
    with open(OUT, 'w') as f:
        json.dump(all_said, f)
    print('ready', os.getpid(), flush=True)


def hang():
    """Two threads and the main thread block in other interpreters, and one thread in the main one."""
    pipes = [os.pipe() for _ in range(4)]
    for fd in (pipe[0] for pipe in pipes[1:3]):
        threading.Thread(target=Interpreter().run, args=('hangs', fd, fd)).start()
    threading.Thread(target=hangs, args=(pipes[3][0],)).start()
    threading.Thread(target=when_all_block, args=(4,)).start()
    mine, _ = Interpreter(), Interpreter()  # no thread enters the newest one
    mine.run('hangs', pipes[0][0], pipes[0][0])


def main():
    global work
    work = work_of(LIBRARY)
    if '--hang' in OPTIONS:
        return hang()
    if '--busy' in OPTIONS:
        gate.busy(work)
    gate.begin()
    result = around()
    gate.end()
    with open(OUT, 'w') as f:
        json.dump(result, f)


if __name__ == '__main__':
    main()
