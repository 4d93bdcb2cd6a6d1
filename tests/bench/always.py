# SPDX-License-Identifier: Apache-2.0
"""What `mxbpf serve` costs jobs, in pairs with the same job alone, and what it takes itself for ten targets."""
import os
import re
import statistics
import subprocess
import tempfile
import time

from host import RATE, paced, processes
from proc import Job, Tool, cpu_ns, memory

LOOPS = ('tiny', 'cnn', 'torch-tiny', 'torch-cnn')
LIMITS = ('1%', '0.3%')
SETTLE_S = 6 # names are learned, and it is found out what can be recorded all the time
INTERVAL_S = 2


def command(bench, pids, limit, interval_s=INTERVAL_S):
    return [bench.mxbpf, 'serve', '--pid', ','.join(map(str, pids)), '--max-overhead', limit, '--interval', f'{interval_s}s',
            '--listen', 'none', '--textfile', os.path.join(bench.work, 'serve.prom')]


def metric(bench, name):
    with open(os.path.join(bench.work, 'serve.prom'), encoding='utf-8') as f:
        return sum(float(value) for value in re.findall(rf'^{name}(?:{{.*}})? (\S+)$', f.read(), re.M))


def served(bench, job, limit, steps):
    """One section of the job while it is watched, after what happens at the start."""
    with open(os.path.join(bench.work, 'serve.err'), 'wb') as err:
        tool = Tool(command(bench, [job.pid], limit), err, subprocess.PIPE)
        try:
            tool.wait_line(tool.proc.stderr, 'attached: ')
            job.send('spin')
            time.sleep(SETTLE_S)
            job.send('run', steps)
            job.answer()
            section = job.answer()
            tool.proc.terminate()
            tool.proc.stderr.read()
            tool.wait()
        finally:
            tool.kill()
            tool.proc.stderr.close()
    return section


def pairs(bench, loop):
    """For each limit the ratios of CPU time, of a watched section to the mean of its neighbours alone."""
    seconds = 5 if bench.quick else 12
    of = {limit: {'ratios': []} for limit in LIMITS}
    with Job(bench, loop) as job:
        steps = max(4, round(seconds * 1e9 / job.step_ns))
        before = job.tell('run', steps)
        for _ in range(bench.rounds):
            for limit, result in of.items():
                section = served(bench, job, limit, steps)
                after = job.tell('run', steps)
                result['ratios'].append(2 * section['cpu_ns'] / (before['cpu_ns'] + after['cpu_ns']))
                result.update(estimated=metric(bench, 'mxbpf_partial') + metric(bench, 'mxbpf_iterations_unseen'),
                              slices=metric(bench, 'mxbpf_slices_total'))
                before = after
        return {limit: dict(result, ratio=statistics.median(result['ratios'])) for limit, result in of.items()}


def ten(bench):
    """What mxbpf itself takes for ten targets of PyTorch."""
    seconds = 10 if bench.quick else 30
    with processes(paced(bench, RATE)) as pids, tempfile.TemporaryFile() as err:
        tool = subprocess.Popen(command(bench, pids, '1%', 10), stdout=subprocess.DEVNULL, stderr=err)
        try:
            time.sleep(SETTLE_S)
            before, begin = cpu_ns(tool.pid), time.monotonic_ns()
            time.sleep(seconds)
            share = (cpu_ns(tool.pid) - before) / (time.monotonic_ns() - begin)
            own = memory(tool.pid)
        finally:
            tool.terminate()
            tool.wait()
    return {'cpu_share': share, 'own_bytes': own['anon_bytes'] + own['file_bytes'], 'maps_bytes': own['maps_bytes'],
            'slices': metric(bench, 'mxbpf_slices_total')}


def serve(bench):
    return {'loops': {loop: pairs(bench, loop) for loop in LOOPS if loop in bench.loops}, 'ten': ten(bench)}
