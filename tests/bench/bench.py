#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares all modes one after another, round after round, on the same loops. run.sh calls this and has the usage.

Each (round, loop, mode) has a job process of its own. Profiled sections of the loop alternate with bare sections, and a ratio
divides a profiled section by the mean of its two neighbours. So drift of the machine and differences between processes are
in both.
"""
import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

import always
import extra
import host
import report
import speed
from modes import MODES, PAIRS, fits
from proc import BenchError, Job

LOOPS = ('tiny', 'static', 'cnn', 'torch-tiny', 'torch-cnn', 'torch-layer', 'torch-lstm')
ONE_SECTION_S = 2 # for a mode with a single section; MXNet's profiler writes once a second
STUCK_S = 300 # longer than any part of the run
BLOCKS = {'busy': extra.busy, 'steady': extra.steady, 'export': extra.export, 'bpf': extra.bpf,
          'switch': extra.switch, 'account': extra.account, 'groups': extra.groups, 'cost': extra.cost,
          'selves': extra.selves, 'host': host.host, 'serve': always.serve, 'speed': speed.speed}


def names_of(text, known, what):
    names = text.split(',') if text else list(known)
    for name in names:
        if name not in known:
            sys.exit('bench: %s: %r is not one of %s' % (what, name, ', '.join(known)))
    return names


def offered_modes(mxbpf, base):
    """Leaves out modes with options that this binary does not have, and modes of another build if there is none."""
    known = subprocess.check_output([mxbpf, 'help', 'all']).decode()
    return [name for name, (cls, _, _) in MODES.items()
            if (base or name not in PAIRS) and all(word in known for word in getattr(cls, 'options', ()) if word.startswith('--'))]


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--mxbpf', required=True, help='the binary')
    p.add_argument('--base', default='', help='the binary of another build, to compare with')
    p.add_argument('--python-torch', required=True, help='a Python with PyTorch')
    p.add_argument('--py-spy', required=True, help='its program')
    p.add_argument('--work', required=True, help='folder for what is written on the way')
    p.add_argument('--json', required=True, help='the result')
    p.add_argument('--quick', action='store_true')
    p.add_argument('--rounds', type=int)
    p.add_argument('--loops', default='')
    p.add_argument('--modes', default='')
    p.add_argument('--blocks', default='')
    args = p.parse_args()
    args.loops = names_of(args.loops, LOOPS, 'LOOPS')
    args.modes = names_of(args.modes, offered_modes(args.mxbpf, args.base), 'MODES')
    args.blocks = [] if args.blocks == 'none' else names_of(args.blocks, BLOCKS, 'BLOCKS')
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.section_s = 0.4 if args.quick else 1.0
    args.attaches = 3 if args.quick else 7
    args.steady_s = 6 if args.quick else 30
    args.record_s = 2 if args.quick else 8
    sbin = '/usr/sbin/bpftool'
    args.bpftool = sbin if os.path.exists(sbin) else shutil.which('bpftool')
    return args


def say(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def watched(job, mode, steps, before):
    """Runs one profiled section and the bare one after it; returns the sample and that bare section."""
    mode.attach()
    mode.before_section()
    section = job.tell('run', steps)
    mode.after_section()
    mode.detach()
    after = job.tell('run', before['steps'])
    after['steps'] = before['steps']
    sample = dict(mode.sample, steps=steps, **section)
    for key in ('cpu_ns', 'wall_ns'):
        sample['bare_' + key] = (before[key] + after[key]) / (2 * before['steps']) * steps
    return sample, after


def stuck(*_):
    raise BenchError('no progress for %d s' % STUCK_S)


def together(modes):
    """Modes that share a process, in the order of its sections. Two builds take turns in one process, because two processes
    differ by more than two builds do."""
    paired = [name for base, mode in PAIRS.items() if base in modes and mode in modes for name in (base, mode)]
    return [[name] * MODES[name][2] for name in modes if name not in paired] + [
        [base, mode, mode, base] for base, mode in PAIRS.items() if base in paired]


def one_process(bench, loop, names, steps_of):
    samples = []
    with Job(bench, loop) as job:
        # The first process of a loop sets the number of steps for all others.
        steps = steps_of.setdefault(loop, max(4, round(bench.section_s * 1e9 / job.step_ns)))
        before = dict(job.tell('run', steps), steps=steps)
        for name in names:
            cls = MODES[name][0]
            mode = cls(bench, job)
            try:
                watched_steps = steps if len(names) > 1 else round(steps * ONE_SECTION_S / bench.section_s)
                watched_steps = min(watched_steps, cls.steps_max or watched_steps)
                sample, before = watched(job, mode, watched_steps, before)
            finally:
                mode.kill()
            samples.append(dict(sample, loop=loop, mode=name))
    return samples


def compare(bench):
    samples, steps_of = [], {}
    for number in range(1, bench.rounds + 1):
        for loop in bench.loops:
            for names in together([mode for mode in bench.modes if fits(mode, loop)]):
                signal.alarm(STUCK_S)
                say('round %d/%d  %-7s %-14s' % (number, bench.rounds, loop, names[-1]))
                for sample in one_process(bench, loop, names, steps_of):
                    samples.append(dict(sample, round=number))
                    say(' %.3f' % (sample['cpu_ns'] / sample['bare_cpu_ns']))
                say('\n')
    return samples


def machine():
    model = ''
    with open('/proc/cpuinfo') as f:
        for line in f:
            if line.startswith('model name'):
                model = line.split(':')[1].strip()
                break
    return {'kernel': platform.release(), 'cpu': model, 'cpus': os.cpu_count(), 'load_at_start': os.getloadavg()[0]}


def main():
    bench = parse_args()
    os.makedirs(bench.work, exist_ok=True)
    signal.signal(signal.SIGALRM, stuck)
    begin = time.monotonic()
    result = {'schema_version': 1, 'machine': machine(),
              'mxbpf': subprocess.check_output([bench.mxbpf, '--version']).decode().strip(),
              'config': {key: getattr(bench, key) for key in ('rounds', 'loops', 'modes', 'section_s', 'quick')}}
    try:
        result['samples'] = compare(bench)
        for name in bench.blocks:
            signal.alarm(STUCK_S)
            say('%s\n' % name)
            result[name] = BLOCKS[name](bench)
    except BenchError as e:
        sys.exit('bench: %s' % e)
    result['summary'] = report.summaries(result['samples'])
    result['goals'] = report.goals(result)
    result['machine'].update(load_at_end=os.getloadavg()[0], seconds=round(time.monotonic() - begin))
    with open(bench.json, 'w') as f:
        json.dump(result, f, indent=1)
        f.write('\n')
    report.show(result)


if __name__ == '__main__':
    main()
