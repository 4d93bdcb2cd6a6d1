# SPDX-License-Identifier: Apache-2.0
"""Measurements besides the comparison, on the tiny loop: attaching to a busy job, memory over time, the speed of export, the BPF
programs, and the cost of accounts per call."""
import ctypes
import json
import os
import re
import subprocess
import time

from modes import GROUPS, Mxbpf, MxbpfNoAccount, MxbpfTrace
from proc import BenchError, Job, Tool, cpu_ns, memory

MEMORY_FIRST_S = 2
BPF_S = 2
EXPORTS = 3


class Spinning:
    """A job that works without pause, and a tool attached to it."""

    def __init__(self, bench, loop='tiny'):
        self.bench, self.job = bench, Job(bench, loop)

    def __enter__(self):
        self.job.__enter__()
        self.job.send('spin')
        return self

    def __exit__(self, *_):
        self.job.__exit__()

    def tool(self, cls):
        return cls(self.bench, self.job)


def busy(bench):
    """Measures attach and detach while the job works and wants every CPU."""
    samples = []
    with Spinning(bench) as spinning:
        for _ in range(bench.attaches):
            mode = spinning.tool(Mxbpf)
            try:
                mode.attach()
                time.sleep(0.1)
                mode.detach()
            finally:
                mode.kill()
            samples.append(mode.sample)
    return samples


def steady_of(bench, cls, seconds):
    with Spinning(bench) as spinning:
        mode = spinning.tool(cls)
        try:
            mode.attach()
            begin, course = time.monotonic(), []
            while time.monotonic() - begin < seconds:
                time.sleep(1)
                course.append(dict(memory(mode.tool.pid), at_s=round(time.monotonic() - begin, 2)))
            mode.tool.look_at_memory()
            before = mode.tool.hwm_bytes
            own_cpu_ns = cpu_ns(mode.tool.pid)
            mode.detach()
        finally:
            mode.kill()
    return dict(mode.sample, course=course, hwm_before_end_bytes=before, tool_cpu_ns=own_cpu_ns,
                seconds=course[-1]['at_s'])


def steady(bench):
    return {'mxbpf': steady_of(bench, Mxbpf, bench.steady_s),
            'mxbpf-trace': steady_of(bench, MxbpfTrace, bench.steady_s / 2)}


def run_on_one_cpu(argv):
    """Returns wall time, CPU time and peak resident memory of a command pinned to one CPU."""
    one = min(os.sched_getaffinity(0))
    begin = time.monotonic_ns()
    tool = Tool(['taskset', '-c', str(one), *argv], None, None)
    cpu = tool.wait()
    return {'cpu_ns': cpu, 'wall_ns': time.monotonic_ns() - begin, 'hwm_bytes': tool.hwm_bytes}


def export(bench):
    recording, trace = os.path.join(bench.work, 'job.mxd'), os.path.join(bench.work, 'job.json')
    with Spinning(bench) as spinning:
        subprocess.run([bench.mxbpf, 'record', '-q', '--pid', str(spinning.job.pid), '-d', '%ds' % bench.record_s,
                        '-o', recording], check=True)
    report = json.loads(subprocess.check_output([bench.mxbpf, 'report', recording, '--format', 'json']))
    command = [bench.mxbpf, 'export', recording, '-q', '-f', 'chrome', '-o', trace]
    runs = [run_on_one_cpu(command) for _ in range(EXPORTS)]
    sizes = {'recording_bytes': os.path.getsize(recording), 'trace_bytes': os.path.getsize(trace)}
    command[command.index('chrome')] = 'pftrace'
    sizes['pftrace_runs'] = [run_on_one_cpu(command) for _ in range(EXPORTS)]
    sizes['pftrace_bytes'] = os.path.getsize(trace)
    os.unlink(recording)
    os.unlink(trace)
    return dict(sizes, events=report['loss']['stored'], runs=runs)


def added_ns(bench, job, cls, steps):
    """Returns the CPU time that a call costs beyond that of the bare sections before and after."""
    before = job.tell('run', steps)['cpu_ns']
    mode = cls(bench, job)
    try:
        mode.attach()
        watched = job.tell('run', steps)['cpu_ns']
        mode.detach()
    finally:
        mode.kill()
    after = job.tell('run', steps)['cpu_ns']
    return (watched - (before + after) / 2) / mode.sample['events']


def account(bench):
    """Pairs of sessions with and without accounts, in alternating order."""
    pairs = []
    with Job(bench, 'calls') as job:
        steps = round(bench.section_s * 1e9 / 10 / job.step_ns)
        for i in range(bench.attaches):
            ways = [('with_ns', Mxbpf), ('without_ns', MxbpfNoAccount)]
            pairs.append({key: added_ns(bench, job, cls, steps) for key, cls in (ways if i % 2 else ways[::-1])})
    return pairs


PLAN = os.path.join(os.path.dirname(__file__), '../../user/plan/plan.c')


def plan_groups():
    """Returns the groups of probes: their names, and whether --probes accepts them."""
    with open(PLAN) as f:
        table = re.search(r'plan_groups\[\] = \{(.*?)\n\};', f.read(), re.S)[1]
    return {name: what != 'NULL' for name, what in re.findall(r'\{"(\w+)", PROBE_\w+, (NULL|"[^"]*")\}', table)}


def group_mode(bench, name):
    """Returns the options of a session with only that group and its requirements."""
    words = [word.replace('@WORK@', bench.work) for word in GROUPS[name][1]]
    return type('Group', (Mxbpf,), {'options': tuple(words)})


def groups(bench):
    """Measures the job's CPU time with each group of probes, relative to no probes."""
    lacking = set(plan_groups()) ^ set(GROUPS)
    if lacking:
        raise BenchError('no row, or no group, of that name: %s' % ', '.join(sorted(lacking)))
    found = {}
    for name, (loop, words) in GROUPS.items():
        with Job(bench, loop) as job:
            steps = max(4, round(bench.section_s * 5e8 / job.step_ns))
            before, ratios, events = job.tell('run', steps)['cpu_ns'], [], []
            for _ in range(bench.attaches):
                mode = group_mode(bench, name)(bench, job)
                try:
                    mode.attach()
                    watched = job.tell('run', steps)['cpu_ns']
                    mode.detach()
                finally:
                    mode.kill()
                after = job.tell('run', steps)['cpu_ns']
                ratios.append(2 * watched / (before + after))
                events.append(mode.sample['events'] / steps)
                before = after
        found[name] = {'loop': loop, 'options': ' '.join(words[:-1] if '--trace' in words else words),
                       'cpu_ratio': ratios, 'events_per_step': events}
    return found


class RunTimeStats:
    """The kernel measures the time of BPF programs while this is open. Unlike the sysctl, it ends with the process."""

    NR_BPF, BPF_ENABLE_STATS, BPF_STATS_RUN_TIME = 321, 32, 0

    def __enter__(self):
        attr = ctypes.create_string_buffer(128)
        ctypes.c_uint32.from_buffer(attr).value = self.BPF_STATS_RUN_TIME
        self.fd = ctypes.CDLL(None, use_errno=True).syscall(self.NR_BPF, self.BPF_ENABLE_STATS, attr, len(attr))
        if self.fd < 0:
            raise BenchError('BPF_ENABLE_STATS: %s' % os.strerror(ctypes.get_errno()))

    def __exit__(self, *_):
        os.close(self.fd)


def programs_of(pid):
    """Returns, by id, what /proc says about the BPF programs that a process holds open."""
    found = {}
    for name in os.listdir('/proc/%d/fdinfo' % pid):
        with open('/proc/%d/fdinfo/%s' % (pid, name)) as f:
            info = dict(re.findall(r'^(\w+):\s+(\S+)$', f.read(), re.M))
        if 'prog_type' in info:
            found[int(info['prog_id'])] = info
    return found


def bpf(bench):
    """Measures instructions and time of each program. One program stands for all probes with the same row."""
    programs = []
    with RunTimeStats(), Spinning(bench) as spinning:
        mode = spinning.tool(MxbpfTrace)
        try:
            mode.attach()
            time.sleep(BPF_S)
            for prog_id, info in programs_of(mode.tool.pid).items():
                shown = json.loads(subprocess.check_output([bench.bpftool, '-j', 'prog', 'show', 'id', str(prog_id)]))
                programs.append({
                    'program': shown['name'], 'runs': int(info['run_cnt']), 'run_ns': int(info['run_time_ns']),
                    'verified_insns': int(info['verified_insns']), 'xlated_insns': shown['bytes_xlated'] // 8,
                    'jited_bytes': shown.get('bytes_jited', 0)})
            mode.detach()
        finally:
            mode.kill()
    name_rows(programs, mode.probes)
    return programs


COST_S = 3
COST_OF = {'probes': [], 'probes, --memory --py-stacks --shapes': ['--memory', '--py-stacks', '--shapes'], 'agent': ['--agent']}


def cost_of(bench, loop, options):
    """What mxbpf says of an iteration without it, and the bare one before and after."""
    with Job(bench, loop) as job:
        steps = max(4, round(1e9 / job.step_ns))
        bare = job.tell('run', steps)['wall_ns'] / steps
        job.send('spin')
        said = json.loads(subprocess.check_output([bench.mxbpf, '-q', '--exact', '--pid', str(job.pid), '-d', '%ds' % COST_S, '-f', 'json', *options],
                                                  stderr=subprocess.DEVNULL)).get('cost', {})
    return {'bare_ns': bare, 'said_ns': said.get('iteration_unwatched_ns'), 'watched_ns': said.get('iteration_watched_ns'),
            'uncertainty_permille': said.get('uncertainty_permille')}


def cost(bench):
    """Measures how near the iteration that mxbpf computes is to the one without it."""
    return [dict(cost_of(bench, loop, options), loop=loop, options=name) for _ in range(bench.attaches)
            for loop in ('tiny', 'static', 'cnn', 'torch-tiny', 'torch-cnn', 'torch-layer') if loop in bench.loops
            for name, options in COST_OF.items() if name != 'agent' or loop.startswith('torch')]


SELVES_STEPS = 60 # torch.profiler needs long for its own events


def selves(bench):
    """Measures how near self times without the cost are to torch.profiler's without its own, in the same process."""
    found = []
    for _ in range(bench.attaches):
        for loop in (name for name in ('torch-tiny', 'torch-layer') if name in bench.loops):
            with Job(bench, loop) as job:
                its = job.tell('selves', SELVES_STEPS)
                job.send('spin')
                said = json.loads(subprocess.check_output([bench.mxbpf, '-q', '--exact', '--pid', str(job.pid), '-d', '%ds' % COST_S, '-f', 'json'],
                                                          stderr=subprocess.DEVNULL))
            rows = [row for row in said['tables']['operator'] if row['count'] and row['name'] in its]
            rows.sort(key=lambda row: -its[row['name']][0] * its[row['name']][1])
            found += [{'loop': loop, 'name': row['name'], 'torch_ns': its[row['name']][1],
                       'raw_ns': row.get('raw_self_ns', row['self_ns']) / row['count'], 'ns': row['self_ns'] / row['count']}
                      for row in rows[:10]]
    return found


class Switching:
    """Runs tests/prog/switches, with or without the toy's library."""

    def __init__(self, bench, library=()):
        build = os.path.dirname(bench.mxbpf)
        self.proc = subprocess.Popen([build + '/prog/switches', str(os.cpu_count() - 1), *library],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.proc.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()

    def switch_ns(self):
        self.proc.stdin.write('\n')
        self.proc.stdin.flush()
        return float(self.proc.stdout.readline())


def switch(bench):
    """Measures a context switch with its wakeup, in the target and in another process: bare, under mxbpf, under mxbpf --sched."""
    build = os.path.dirname(bench.mxbpf)
    subprocess.check_call(['make', '-s', 'O=' + build, build + '/prog/switches', build + '/toy/libmxnet.so'])
    options = {'bare': None, 'mxbpf': [], 'mxbpf --sched': ['--sched']}
    found = {name: {'target': [], 'other': []} for name in options}
    with Switching(bench, [build + '/toy/libmxnet.so']) as target, Switching(bench) as other:
        for _ in range(bench.attaches):
            for name, words in options.items():
                tool = None
                if words is not None:
                    tool = Tool([bench.mxbpf, '--exact', '--pid', str(target.pid), '-f', 'json', *words], subprocess.DEVNULL,
                                subprocess.PIPE)
                    tool.wait_line(tool.proc.stderr, 'attached')
                found[name]['target'].append(target.switch_ns())
                found[name]['other'].append(other.switch_ns())
                if tool:
                    tool.proc.terminate()
                    tool.proc.communicate()
    return found


# Probes of the adapter with the row of an earlier one.
SAME_ROW = {'memory.direct_free': 'memory.free', 'wait.all': 'wait.var'}


def name_rows(programs, probes):
    rows = [probe for probe in probes if SAME_ROW.get(probe) not in probes]
    mine = sorted((p for p in programs if p['program'].startswith('on_probe_')), key=lambda p: int(p['program'][9:]))
    for program, row in zip(mine, rows if len(rows) == len(mine) else [p['program'] for p in mine]):
        others = [other for other, same in SAME_ROW.items() if same == row and other in probes]
        program['probe'] = ' '.join([row, *others])
    programs.sort(key=lambda p: p['program'])
