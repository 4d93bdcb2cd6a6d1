# SPDX-License-Identifier: Apache-2.0
"""How fast a job runs from the first moment of a session to what follows its end, relative to the same process alone: mxbpf as
one types it, mxbpf --exact, the runtime's own profiler and py-spy, session by session in turn."""
import os
import signal
import statistics
import subprocess

from proc import BenchError, Job, Tool

LOOPS = ('tiny', 'torch-tiny', 'torch-lstm', 'torch-layer')
TOOLS = ('default', 'exact', 'builtin', 'py-spy')
WORST_S = 5
ALONE_S = 3 # before and after
STUCK_S = 200 # longer than any session
END_S = 2 # removing probes belongs to the session
BINS_PER_S = 10 # of job.py


def command(bench, tool, pid, seconds):
    if tool == 'py-spy':
        return [bench.py_spy, 'record', '-d', str(seconds), '-f', 'raw', '-o', os.devnull, '--pid', str(pid)]
    return [bench.mxbpf, '-q', '--pid', str(pid), '-d', f'{seconds}s', '-f', 'json', *(['--exact'] if tool == 'exact' else [])]


def watched(bench, job, tool, seconds):
    """The steps of the job from the start of the tool on."""
    job.send('pace', seconds + END_S)
    process = Tool(command(bench, tool, job.pid, seconds), subprocess.DEVNULL, subprocess.DEVNULL)
    try:
        section = job.answer()
        process.wait()
    finally:
        process.kill()
    return section


def profiled(job, loop):
    """torch.profiler keeps all events, and its end takes longer than the steps, so its section is short."""
    torch = loop.startswith('torch')
    job.tell('profile', 'cpu' if torch else 'trace')
    section = job.tell('pace', 0.5 if torch else WORST_S)
    job.tell('unprofile')
    return section


def rate(section):
    return sum(section['steps']) / len(section['steps'])


def worst(section):
    """The slowest five seconds; None if it was not watched for that long."""
    steps, n = section['steps'], WORST_S * BINS_PER_S
    return min((sum(steps[i:i + n]) / n for i in range(len(steps) - n + 1)), default=None)


def session(bench, loop, tool):
    signal.alarm(STUCK_S)
    seconds = 6 if bench.quick else 10
    with Job(bench, loop) as job:
        before = job.tell('pace', ALONE_S)
        section = profiled(job, loop) if tool == 'builtin' else watched(bench, job, tool, seconds)
        after = job.tell('pace', ALONE_S)
    alone, slowest = (rate(before) + rate(after)) / 2, worst(section)
    return {'loop': loop, 'tool': tool, 'speed': rate(section) / alone, 'worst': slowest and slowest / alone,
            'longest_ns': section['longest_ns'], 'longest_alone_ns': max(before['longest_ns'], after['longest_ns'])}


def speed(bench):
    if not os.access(bench.py_spy, os.X_OK):
        raise BenchError(f'no py-spy at {bench.py_spy}; run tests/setup.sh')
    return [session(bench, loop, tool) for _ in range(bench.rounds) for loop in LOOPS if loop in bench.loops for tool in TOOLS]


def rows(sessions):
    """(loop, tool): sessions, median speed, slowest five seconds of all, longest step and that of the job alone."""
    of = {}
    for s in sessions:
        of.setdefault((s['loop'], s['tool']), []).append(s)
    return {key: (len(mine), statistics.median(s['speed'] for s in mine), min((s['worst'] for s in mine if s['worst']), default=None),
                  max(s['longest_ns'] for s in mine), max(s['longest_alone_ns'] for s in mine)) for key, mine in of.items()}
