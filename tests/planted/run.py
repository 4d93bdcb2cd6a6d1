#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs jobs with planted faults under mxbpf and compares its findings with the fault.

usage: run.py [--runs N] [--recorded] [--beside COMMAND] RUNTIME/FAULT...     or "all"
A planted fault must be the first or second finding; a healthy job must have none but those that the load of the machine
explains. Prints a line for each run and, at the end, how many were right. Exit code 1 if any was wrong, 77 if this machine
cannot have the fault.
environment: MXBPF, PYTHON (of MXNet), PYTHON_TORCH
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# What the load of the machine explains, whatever the job does.
LOAD = {'neighbours', 'stolen', 'throttled'}
# fault -> findings, any of which names it
FAULTS = {
    'torch/loader-sleeps': {'data_wait'}, 'torch/loader-reads': {'data_wait'}, 'torch/loader-decodes': {'data_wait'},
    'torch/loader-main': {'data_wait'}, 'torch/tiny': {'tiny_operators'}, 'torch/leak': {'memory_growth'},
    'torch/evaluation': {'slow_iterations'}, 'torch/checkpoint': {'slow_iterations'}, 'torch/own': {'own_code'},
    'torch/queued': {'data_wait'}, 'torch/lock': {'interpreter_lock'}, 'torch/threads': {'own_threads'},
    'torch/faults': {'page_faults'}, 'torch/throttled': {'throttled'}, 'mxnet/throttled': {'throttled'}, 'torch/straggler': {'straggler', 'own_code'},
    'mxnet/loader-sleeps': {'data_wait'}, 'mxnet/loader-decodes': {'data_wait'}, 'mxnet/tiny': {'tiny_operators'},
    'mxnet/loader-main': {'data_wait'}, 'mxnet/own': {'own_code'}, 'mxnet/lock': {'interpreter_lock'},
    'mxnet/sync': {'sync_wait'}, 'mxnet/straggler': {'straggler', 'own_code'},
    'mxnet/leak': {'memory_growth'}, 'mxnet/evaluation': {'slow_iterations'}, 'mxnet/checkpoint': {'slow_iterations'},
    'torch/recompiles': {'compiling'}, 'server/lock': {'code_lock'}, 'server/keep': {'memory_growth'},
    'torch/healthy': set(), 'torch/healthy-wide': set(), 'torch/healthy-deep': set(), 'torch/healthy-loader': set(),
    'torch/healthy-compiled': set(), 'server/healthy': set(),
    'mxnet/healthy': set(), 'mxnet/healthy-wide': set(), 'mxnet/healthy-deep': set(), 'mxnet/healthy-async': set(),
}
SECONDS = 4
READY_SECONDS = 60
EXIT_SKIP = 77


# glibc gives large blocks back to the system, and each new one costs page faults: a fault of its own, which mxbpf finds.
KEEP_MEMORY = {'MALLOC_MMAP_THRESHOLD_': '33554432', 'MALLOC_TRIM_THRESHOLD_': '1073741824'}


class Limited:
    """A control group whose processes get a part of one CPU."""
    PERIOD_US, QUOTA_US = 100000, 30000

    def __init__(self, pid):
        for line in open('/proc/mounts', encoding='utf-8'):
            _, where, kind, options = line.split()[:4]
            if kind == 'cgroup' and 'cpu' in options.split(','):
                self.begin(where, pid, {'cpu.cfs_period_us': self.PERIOD_US, 'cpu.cfs_quota_us': self.QUOTA_US})
                return
        self.begin('/sys/fs/cgroup', pid, {'cpu.max': f'{self.QUOTA_US} {self.PERIOD_US}'})

    def begin(self, where, pid, limits):
        self.root, self.path = where, f'{where}/mxbpf-planted-{os.getpid()}'
        os.mkdir(self.path)
        try:
            for name, value in limits.items():
                self.write(f'{self.path}/{name}', value)
            self.write(f'{self.path}/cgroup.procs', pid)
        except OSError:
            self.end()
            raise

    @staticmethod
    def write(path, value):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(str(value))

    def end(self):
        os.rmdir(self.path)


SCRIPTS = {'torch': 'torch_job.py', 'mxnet': 'mxnet_job.py', 'server': 'torch_server.py'}


def start(runtime, fault, made):
    """made: a directory for what torch.compile makes."""
    python = os.environ['PYTHON' if runtime == 'mxnet' else 'PYTHON_TORCH']
    job = subprocess.Popen([python, '-u', f'{HERE}/{SCRIPTS[runtime]}', fault, '--seconds', str(READY_SECONDS + 10 * SECONDS)],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           env=os.environ | {'TORCHINDUCTOR_CACHE_DIR': made, 'TORCHINDUCTOR_COMPILE_THREADS': '1'} | ({} if fault == 'faults' else KEEP_MEMORY))
    line = job.stdout.readline()
    if not line.startswith('ready '):
        job.kill()
        sys.exit(f'{runtime}/{fault} did not start: {line!r}')
    return job, line.split()[1]


def mxbpf(*args):
    subprocess.run([os.environ['MXBPF'], *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)


def measure(pid, tables, recorded):
    if recorded:
        mxbpf('record', '--pid', pid, '-d', f'{SECONDS}s', '-o', f'{tables}.mxd')
        mxbpf('report', f'{tables}.mxd', '-o', tables)
    else:
        mxbpf('--exact', '--pid', pid, '-d', f'{SECONDS}s', '-o', tables)


def findings(name, recorded):
    runtime, fault = name.split('/')
    limited = fault == 'throttled'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as d:
        return findings_in(d, runtime, fault, limited, recorded)


def findings_in(d, runtime, fault, limited, recorded):
    job, pid = start(runtime, 'healthy' if limited else fault, d)
    try:
        group = Limited(pid) if limited else None
    except OSError as e:
        job.kill()
        print(f'this machine has no control group for CPU time: {e}')
        sys.exit(EXIT_SKIP)
    try:
        measure(pid, f'{d}/tables.json', recorded)
        with open(f'{d}/tables.json', encoding='utf-8') as f:
            return json.load(f)['findings']
    finally:
        job.kill()
        job.wait()
        if group:
            group.end()


def right(name, keys):
    wanted = FAULTS[name]
    if wanted:
        return bool(wanted & set(keys[:2]))
    return set(keys) <= LOAD | {'watching'}  # that is the cost of mxbpf, not a fault of the job


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='+', metavar='RUNTIME/FAULT')
    p.add_argument('--runs', type=int, default=1)
    p.add_argument('--beside', help='a command that runs meanwhile: "stress-ng --cpu 2"')
    p.add_argument('--recorded', action='store_true', help='report a recording instead of live tables')
    args = p.parse_args()
    names = list(FAULTS) if args.names == ['all'] else args.names
    beside = subprocess.Popen(args.beside.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if args.beside else None
    try:
        return judge(names, args)
    finally:
        if beside:
            beside.terminate()
            beside.wait()


def judge(names, args):
    good = total = 0
    for name in names:
        for _ in range(args.runs):
            found = findings(name, args.recorded)
            keys = [f['finding'] for f in found]
            ok = right(name, keys)
            good += ok
            total += 1
            print('right' if ok else 'WRONG', name, *keys, flush=True)
            for f in found:
                print('     ', f['text'], '|', f['evidence'] or '')
    print(f'{good} of {total} are right')
    return good != total


sys.exit(main())
