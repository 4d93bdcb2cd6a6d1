#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with the gates of gate.py, with a tracer attached for exactly its measured section.

  drive.py --tool 'mxbpf --pid {pid} --format json' --stdout FILE -- python prog.py --bare

The tracer starts when the program is "ready". The section runs when the tracer prints on stderr that it is attached. After the
section the tracer gets SIGINT and must end, and only then the program goes on to its exit. Exit 0 if both ended with 0.
"""
import argparse
import re
import shlex
import signal
import subprocess
import sys


NOTHING_SEEN = 5  # mxbpf's exit code if the section was short


def wait_for(stream, pattern, who, echo=False):
    for line in stream:
        text = line.decode(errors='replace')
        if echo:
            sys.stderr.write(text)
        match = re.search(pattern, text)
        if match:
            return match
    raise RuntimeError('%s ended before it said %r' % (who, pattern))


def drive(args, children):
    program = subprocess.Popen(args.program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    children.append(program)

    def go_on():
        program.stdin.write(b'\n')
        program.stdin.flush()

    def start(command, pid, out):
        tool = subprocess.Popen([word.replace('{pid}', pid) for word in shlex.split(command)], stdout=out,
                                stderr=subprocess.PIPE)
        children.append(tool)
        wait_for(tool.stderr, args.attached, 'the tracer', echo=True)
        return tool

    if args.before:
        pid = wait_for(program.stdout, r'^busy (\d+)$', 'the program')[1]
        before = start(args.before, pid, subprocess.DEVNULL)
        go_on()
    pid = wait_for(program.stdout, r'^ready (\d+)$', 'the program')[1]
    if args.before:
        before.send_signal(signal.SIGINT)
        sys.stderr.write(before.stderr.read().decode(errors='replace'))
        if before.wait() not in (0, NOTHING_SEEN):
            raise RuntimeError('exit code of the tracer before: %d' % before.returncode)
    with open(args.stdout, 'wb') as out:
        tool = start(args.tool, pid, out)
    go_on()
    wait_for(program.stdout, r'^done$', 'the program')
    tool.send_signal(signal.SIGINT)
    sys.stderr.write(tool.stderr.read().decode(errors='replace'))
    codes = {'tracer': tool.wait()}
    go_on()
    program.stdout.read()
    codes['program'] = program.wait()
    bad = {who: code for who, code in codes.items() if code}
    if bad:
        raise RuntimeError('exit codes: %s' % bad)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', required=True, help='command line of the tracer; {pid} is the program')
    p.add_argument('--before', metavar='TOOL', help='command line of a tracer that is attached while the program, which says that it '
                   'is "busy", has something to do, and that ends when the program is ready')
    p.add_argument('--stdout', required=True, metavar='FILE', help="the tracer's stdout")
    p.add_argument('--attached', default=r'attached: \d+ probes', metavar='REGEX', help='line on its stderr')
    p.add_argument('--seconds', type=int, default=100, help='limit of the whole run')
    p.add_argument('program', nargs='+')
    args = p.parse_args()

    def too_long(*_):
        raise RuntimeError('still running after %d s' % args.seconds)

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(args.seconds)
    children = []
    try:
        drive(args, children)
    except (RuntimeError, OSError) as e:
        sys.exit('drive: %s' % e)
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()


if __name__ == '__main__':
    main()
