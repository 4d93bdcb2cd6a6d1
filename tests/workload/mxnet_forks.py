#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forks workers that use MXNet, like a data loader: each line of standard input has their number (0: it ends). They wait for the
next line before they make --calls calls. A worker that is stopped meanwhile is reported, because nobody may stop it."""
import argparse
import os
import subprocess
import sys

import mxnet as mx

p = argparse.ArgumentParser(description=__doc__)
p.add_argument('--calls', type=int, default=50)
p.add_argument('--spawn', action='store_true', help='workers are new interpreters')
p.add_argument('--launched', action='store_true', help='by mxbpf, which stops them: that is not reported')
p.add_argument('--worker', type=int, default=-1, help='internal: be one, with its gate at this descriptor')
ARGS = p.parse_args()


def work(gate):
    """Nothing else calls MXRandomSeed."""
    os.read(gate, 1)
    for i in range(ARGS.calls):
        mx.random.seed(i)
    mx.nd.waitall()
    os._exit(0)


def start(gate, spare):
    if ARGS.spawn:
        return subprocess.Popen([sys.executable, __file__, '--calls', str(ARGS.calls), '--worker', str(gate)],
                                pass_fds=[gate]).pid
    pid = os.fork()
    if not pid:
        os.close(spare)
        work(gate)
    return pid


def main():
    print('ready', os.getpid(), flush=True)
    while workers := int(sys.stdin.readline() or 0):
        gate, open_it = os.pipe()
        pids = [start(gate, open_it) for _ in range(workers)]
        print('workers', *pids, flush=True)
        sys.stdin.readline()
        os.close(gate)
        os.close(open_it)  # its end of file lets all workers go on
        for pid in pids:
            _, status = os.waitpid(pid, 0 if ARGS.launched else os.WUNTRACED)
            print('worker', pid, 'stopped' if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status), flush=True)


work(ARGS.worker) if ARGS.worker >= 0 else main()
