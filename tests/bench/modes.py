# SPDX-License-Identifier: Apache-2.0
"""The compared profilers. attach() returns when the tool is active, detach() when it has ended. Their measurements go into one
dictionary, the sample."""
import functools
import json
import os
import signal
import subprocess
import time

from proc import Tool, cpu_ns, memory


class Nothing:
    """Noise of the measurement: a section like those before and after it."""

    steps_max = None # per section

    def __init__(self, bench, job):
        self.sample = {}

    def attach(self):
        pass

    def before_section(self):
        pass

    def after_section(self):
        pass

    def detach(self):
        pass

    def kill(self):
        pass


class Builtin(Nothing):
    """The runtime's own profiler, which runs inside the job."""

    kind = None

    def __init__(self, bench, job):
        super().__init__(bench, job)
        self.job = job

    def attach(self):
        self.sample['attach_ns'] = self.job.tell('profile', self.kind)['ns']

    def detach(self):
        answer = self.job.tell('unprofile')
        self.sample.update(detach_ns=answer['ns'], done_ns=answer['ns'], end_cpu_ns=answer['cpu_ns'],
                           events=answer['events'])


class BuiltinTrace(Builtin):
    kind = 'trace'


class BuiltinAggregate(Builtin):
    kind = 'aggregate'


class BuiltinLate(Builtin):
    kind = 'late'


class TorchProfiler(Builtin):
    kind = 'cpu'
    steps_max = 100 # it keeps all events, and its end takes longer than the steps


class TorchProfilerMemory(TorchProfiler):
    kind = 'memory'


class TorchProfilerShapes(TorchProfiler):
    kind = 'shapes'


class TorchProfilerFull(TorchProfiler):
    kind = 'full'
    steps_max = 50


class External(Nothing):
    """A profiler in a process of its own."""

    def __init__(self, bench, job):
        super().__init__(bench, job)
        self.bench, self.job, self.tool = bench, job, None

    def before_section(self):
        self.cpu_before_ns = cpu_ns(self.tool.pid)

    def after_section(self):
        self.sample['tool_section_cpu_ns'] = cpu_ns(self.tool.pid) - self.cpu_before_ns
        self.sample.update(memory(self.tool.pid))
        self.tool.look_at_memory()

    def kill(self):
        if self.tool:
            self.tool.kill()


class Bpftrace(External):
    def attach(self):
        script = os.path.join(self.bench.work, 'probes.bt')
        with open(os.path.join(os.path.dirname(__file__), 'probes.bt')) as f:
            text = f.read().replace('@LIB@', self.job.lib).replace('@PID@', str(self.job.pid))
        with open(script, 'w') as f:
            f.write(text)
        self.log = open(os.path.join(self.bench.work, 'bpftrace.err'), 'wb')
        self.tool = Tool(['bpftrace', '-B', 'line', '-f', 'json', script], subprocess.PIPE, self.log)
        self.sample['attach_ns'] = self.tool.wait_line(self.tool.proc.stdout, 'active')[1] - self.tool.begin

    def detach(self):
        begin = time.monotonic_ns()
        self.tool.proc.send_signal(signal.SIGINT)
        lines = [json.loads(line) for line in self.tool.proc.stdout.read().splitlines() if line.strip()]
        # Without a mounted tracefs it reports an error at its end, after it has written everything.
        self.sample['tool_cpu_ns'] = self.tool.wait(any_code=True)
        self.sample['detach_ns'] = self.sample['done_ns'] = time.monotonic_ns() - begin
        self.log.close()
        self.tool.proc.stdout.close()
        tables = [table for line in lines if line['type'] == 'stats' for table in line['data'].values()]
        self.sample.update(events=sum(row['count'] for table in tables for row in table.values()),
                           hwm_bytes=self.tool.hwm_bytes,
                           lost=sum(line['data']['events'] for line in lines if line['type'] == 'lost_events'))


@functools.lru_cache
def exact_of(binary):
    """A build from before --exact records every call anyway."""
    return ['--exact'] if '--exact' in subprocess.check_output([binary, 'help', 'all'], text=True) else []


class Mxbpf(External):
    options = ('--api', 'all')
    trace = False

    def binary(self):
        return self.bench.mxbpf

    def attach(self):
        argv = [self.binary(), *exact_of(self.binary()), '--pid', str(self.job.pid), '--format', 'json', '-v', *self.options]
        if self.trace:
            argv += ['--trace', os.path.join(self.bench.work, 'trace.json')]
        self.out = open(os.path.join(self.bench.work, 'mxbpf.out'), 'w+b')
        self.tool = Tool(argv, self.out, subprocess.PIPE)
        match, now = self.tool.wait_line(self.tool.proc.stderr, r'attached: (\d+) probes in (\d+) ms')
        self.sample.update(attach_ns=now - self.tool.begin, attach_said_ns=int(match[2]) * 10**6)

    def detach(self):
        begin = time.monotonic_ns()
        self.tool.proc.send_signal(signal.SIGINT)
        match, now = self.tool.wait_line(self.tool.proc.stderr, r'detached in (\d+) ms; BPF maps take (\d+) KiB')
        self.sample.update(detach_ns=now - begin, detach_said_ns=int(match[1]) * 10**6, bpf_bytes=int(match[2]) << 10)
        self.sample['tool_cpu_ns'] = self.tool.wait()
        self.sample['done_ns'] = time.monotonic_ns() - begin
        self.sample['hwm_bytes'] = self.tool.hwm_bytes
        self.tool.proc.stderr.close()
        self.out.seek(0)
        result = json.load(self.out)
        self.out.close()
        loss = result['loss']
        self.sample.update(events=loss['attempted'], lost=loss['dropped'], unreadable=loss['unreadable'])
        self.probes = [p['name'] for p in result['probes'] if p['status'] == 'attached']


class MxbpfOp(Mxbpf):
    options = ('--probes', 'op')


class MxbpfMark(Mxbpf):
    options = ('--probes', 'op,mark') # the loops have no annotations, so it must cost what op alone does


class MxbpfNoAccount(Mxbpf):
    options = ('--api', 'all', '--no-account')


class MxbpfTrace(Mxbpf):
    trace = True


class MxbpfApiWork(Mxbpf):
    options = () # --api work is the default of tables


class MxbpfOps(Mxbpf):
    options = ('--ops', 'addmm,mm')


class MxbpfCounters(Mxbpf):
    options = ('--api', 'all', '--counters', 'task-clock,page-faults') # every machine has these


class MxbpfSample(Mxbpf):
    options = ('--api', 'all', '--sample', '99')


class MxbpfShapes(Mxbpf):
    options = ('--api', 'all', '--shapes')


class MxbpfMemory(Mxbpf):
    options = ('--api', 'all', '--memory')


class MxbpfLife(Mxbpf):
    options = ('--api', 'all', '--life')


class MxbpfAll(Mxbpf):
    """With all options, which cost more."""

    options = ('--api', 'all', '--life', '--layers', '--shapes', '--memory')


class MxbpfMem(Mxbpf):
    options = ('--probes', 'mem')


class MxbpfAgent(Mxbpf):
    """The agent is injected while the job works. The few steps from then until the section are among the events."""

    options = ('--agent', '--probes', 'op', '--no-account')

    def attach(self):
        self.job.send('spin')
        super().attach()
        self.job.send('run', 1) # ends the session
        self.job.answer()
        self.job.answer()


class MxbpfAgentAccount(MxbpfAgent):
    options = ('--agent', '--probes', 'op')


class MxbpfAgentMem(MxbpfAgent):
    options = ('--agent', '--probes', 'op,mem')


class MxbpfAgentShapes(MxbpfAgent):
    options = ('--agent', '--probes', 'op,mem', '--shapes')


class MxbpfAgentFull(MxbpfAgent):
    options = ('--agent', '--probes', 'op,mem', '--shapes', '--py-stacks')


def fits(mode, loop):
    """Returns whether a loop has such a profiler, or the object of an option."""
    mode = PAIRS.get(mode, mode)
    if loop in ONLY_SPEED:
        return False
    return mode not in (ONLY_MXNET if loop.startswith('torch') else ONLY_TORCH)


ONLY_SPEED = ('torch-lstm',) # loops of the block `speed` alone
ONLY_MXNET = ('builtin-trace', 'builtin-agg', 'builtin-late', 'bpftrace', 'mxbpf-api-work', 'mxbpf-mark', 'mxbpf-all',
              'mxbpf-life')
ONLY_TORCH = ('torch-profiler', 'torch-memory', 'torch-shapes', 'torch-full', 'mxbpf-ops', 'mxbpf-mem', 'mxbpf-agent', 'mxbpf-agent-account',
              'mxbpf-agent-mem', 'mxbpf-agent-shapes', 'mxbpf-agent-full')

# name: class, description, sections of one job. MXNet's profiler writes once a second, and cannot start a second file.
MODES = {
    'none': (Nothing, 'nothing attached', 2),
    'builtin-trace': (BuiltinTrace, "MXNet's profiler, trace", 1),
    'builtin-agg': (BuiltinAggregate, "MXNet's profiler, aggregate", 1),
    'builtin-late': (BuiltinLate, "MXNet's profiler, trace at end", 1),
    'torch-profiler': (TorchProfiler, 'torch.profiler', 2),
    'torch-memory': (TorchProfilerMemory, 'torch.profiler, memory', 2),
    'torch-shapes': (TorchProfilerShapes, 'torch.profiler, memory, shapes', 2),
    'torch-full': (TorchProfilerFull, 'torch.profiler, shapes, memory, stacks', 1),
    'bpftrace': (Bpftrace, 'bpftrace, operators + C API', 2),
    'mxbpf-op': (MxbpfOp, 'mxbpf, operators only', 2),
    'mxbpf-mark': (MxbpfMark, "mxbpf, operators + the program's marks", 2),
    'mxbpf': (Mxbpf, 'mxbpf, everything', 2),
    'mxbpf-all': (MxbpfAll, 'mxbpf, everything, --life --layers --shapes --memory', 2),
    'mxbpf-trace': (MxbpfTrace, 'mxbpf, everything + trace', 2),
    'mxbpf-counters': (MxbpfCounters, 'mxbpf, everything, two --counters', 2),
    'mxbpf-sample': (MxbpfSample, 'mxbpf, everything, --sample 99', 2),
    'mxbpf-shapes': (MxbpfShapes, 'mxbpf, everything, --shapes', 2),
    'mxbpf-memory': (MxbpfMemory, 'mxbpf, everything, --memory', 2),
    'mxbpf-life': (MxbpfLife, 'mxbpf, everything, --life', 2),
    'mxbpf-api-work': (MxbpfApiWork, 'mxbpf, --api work', 2),
    'mxbpf-ops': (MxbpfOps, 'mxbpf, everything, --ops addmm,mm', 2),
    'mxbpf-mem': (MxbpfMem, 'mxbpf, memory only', 2),
    'mxbpf-agent': (MxbpfAgent, 'mxbpf, operators only, --agent --no-account', 2),
    'mxbpf-agent-account': (MxbpfAgentAccount, 'mxbpf, operators only, --agent', 2),
    'mxbpf-agent-mem': (MxbpfAgentMem, 'mxbpf, operators and memory, --agent', 2),
    'mxbpf-agent-shapes': (MxbpfAgentShapes, 'mxbpf, operators and memory, --agent --shapes', 2),
    'mxbpf-agent-full': (MxbpfAgentFull, 'mxbpf, operators and memory, --agent --shapes --py-stacks', 2),
}

# With BASE=PATH: the same modes of another build, for example of an earlier commit, in the same rounds.
PAIRS = {'base-op': 'mxbpf-op', 'base': 'mxbpf', 'base-all': 'mxbpf-all'}


def of_base(cls):
    return type('Base' + cls.__name__, (cls,), {'binary': lambda self: self.bench.base})


MODES.update({name: (of_base(MODES[of][0]), 'the other build' + MODES[of][1][len('mxbpf'):], 2)
              for name, of in PAIRS.items()})

# For the cost of each group of probes (plan_groups[] in user/plan/plan.c): the loop with most hits, and options with only its
# requirements. A group without a row here stops the block `groups` and fails tests/bench.bats.
GROUPS = {
    'op': ('tiny', ('--probes', 'op')),
    'api': ('tiny', ('--probes', 'api', '--api', 'all')),
    'mem': ('tiny', ('--probes', 'mem')),
    'wait': ('tiny', ('--probes', 'api,wait', '--api', 'all')),
    'inside': ('static', ('--probes', 'op,inside')),
    'custom': ('tiny', ('--probes', 'op,custom')),
    'mark': ('tiny', ('--probes', 'mark')),
    'data': ('tiny', ('--probes', 'data')),
    'kv': ('kv', ('--probes', 'kv')),
    'cuda': ('launch', ('--probes', 'cuda')),
    'launch': ('launch', ('--probes', 'op,cuda', '--gpu')),
    'link': ('tiny', ('--probes', 'op,api', '--trace', '@WORK@/group.json')),
    'work': ('tiny', ('--probes', 'api', '--api', 'work')),
    'iter': ('tiny', ('--probes', 'op', '--iterations', '50/100')),
    'team': ('tiny', ('--probes', 'op', '--omp')),
    'step': ('tiny', ('--probes', 'api', '--api', 'all')), # comes with that group
    'life': ('tiny', ('--probes', 'op', '--life')),
    'held': ('tiny', ('--probes', 'op,mem', '--memory')),
    'output': ('tiny', ('--probes', 'op,mem', '--memory', '--py-stacks')),
}
