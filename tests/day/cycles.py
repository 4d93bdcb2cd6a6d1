#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of short sessions on jobs that live through all of them: probes, a recording, the agent, in turn. Memory of
mxbpf, of the jobs and of the kernel must stay flat, nothing may be left, and the measured duration of an operator that
sleeps must not drift. Needs root.

  cycles.py --mxbpf MXBPF --python PYTHON --toy FOLDER [--cycles N] [--lanes N] [--seconds N]
  --cycles N   sessions (default 10000)
  --lanes N    so many at the same time, each with jobs of its own (default 2)
  --seconds N  begin no session after so long; 0: no limit (default)

Prints a table of what was promised and what was seen, and exits with 1 if a promise is broken.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from serve import own_kib

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 60
SAMPLES = 40           # over the run
PART = 5               # the first and the last fifth are compared, of few sessions the halves
FEW = 50
LEAST = 3              # sessions of a kind
DRIFT = 0.1            # of the shortest call of an operator in a session, which does not depend on what else runs
MXBPF_KIB = 1024       # growth of the largest memory of sessions of one kind
JOB_KIB = 2048         # growth of a job
KERNEL_KIB = 16        # growth of the kernel for each session: other programs use it, too, so this needs many
MANY = 1000
TOLD_RARELY = 500
NOTHING_SEEN = 5       # exit code: the job did not run during the window
EMPTY = 0.2            # of the sessions, on a busy machine


class Broken(Exception):
    pass


class Job:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline().startswith('ready'):
            raise Broken('%s does not start' % command[0])
        self.pid, self.samples = self.process.pid, []

    def sample(self):
        with open('/proc/%d/status' % self.pid) as f:
            status = dict(line.split(':', 1) for line in f)
        with open('/proc/%d/maps' % self.pid) as f:
            maps = sum(1 for _ in f)
        self.samples.append({'memory': own_kib(self.pid), 'mappings': maps,
                             'threads': int(status['Threads']), 'descriptors': len(os.listdir('/proc/%d/fd' % self.pid))})

    def end(self):
        self.process.kill()
        self.process.wait()


def kernel_kib():
    """What leaked probes, programs and maps would take."""
    with open('/proc/meminfo') as f:
        info = dict(line.split(':', 1) for line in f)
    return sum(int(info[name].split()[0]) for name in ('SUnreclaim', 'Percpu', 'VmallocUsed', 'KernelStack'))


def held():
    """BPF links of which a process has a descriptor."""
    ids = set()
    for info in glob.glob('/proc/[0-9]*/fdinfo'):
        with contextlib.suppress(OSError):
            if not any('link' in os.readlink(fd) for fd in glob.glob(info[:-len('info')] + '/*')):
                continue
            for path in glob.glob(info + '/*'):
                with open(path) as f:
                    ids.update(int(line.split()[1]) for line in f if line.startswith('link_id:'))
    return ids


def orphans():
    """BPF links that no process holds."""
    links = json.loads(subprocess.run(['bpftool', '-j', 'link'], stdout=subprocess.PIPE, check=True).stdout or '[]')
    return {link['id'] for link in links} - held()


def leaked_by(lives):
    """Probes that the kernel said it could not remove when one of these processes closed them. lives: pid -> (from, to)
    in seconds since the machine started; other processes have had these numbers."""
    log = subprocess.run(['dmesg'], stdout=subprocess.PIPE, errors='replace').stdout
    told = re.findall(r'^\[ *([0-9.]+)\] uprobe: mxbpf:([0-9]+) .*leaking uprobe', log, re.M)
    return sum(begin <= float(at) <= end for at, pid in told for begin, end in lives.get(int(pid), ()))


class Lane:
    """Runs sessions of every kind in turn on jobs of its own."""

    def __init__(self, args, number):
        self.args, self.folder = args, tempfile.mkdtemp(prefix='cycles%d.' % number)
        self.toy = Job(os.path.join(args.toy, 'libtorch_cpu.so'))
        self.torch = Job(args.python, os.path.join(HERE, 'rest.py'))
        self.jobs = [self.toy, self.torch]
        self.did, self.lives, self.empty = {kind: [] for kind in KINDS}, {}, 0

    def mxbpf(self, *words):
        """Returns standard output and the largest memory. A session that fails ends the run."""
        out, err = (open(os.path.join(self.folder, name), 'w+') for name in ('out', 'err'))
        with out, err:
            process = subprocess.Popen([self.args.mxbpf, *words], stdout=out, stderr=err)
            began = time.monotonic()
            _, status, usage = os.wait4(process.pid, 0)
            self.lives.setdefault(process.pid, []).append((began - 1, time.monotonic() + 1))
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            if process.returncode not in (0, NOTHING_SEEN):
                raise Broken('mxbpf %s ended with %d: %s' % (' '.join(words), process.returncode, err.read()[-500:]))
            return out.read(), usage.ru_maxrss

    def once(self, kind):
        name, words = KINDS[kind][1:]
        job = getattr(self, KINDS[kind][0])
        words = [*words, '--pid', str(job.pid), '-d', '80ms', '--quiet']
        if kind == 'record':
            path = os.path.join(self.folder, 'r.mxd')
            _, kib = self.mxbpf('record', *words, '-o', path, '--force')
            text, _ = self.mxbpf('report', path, '--format', 'json')
        else:
            text, kib = self.mxbpf(*words, '--format', 'json')
        rows = [row for table in json.loads(text)['tables'].values() for row in table if row.get('name') == name]
        if rows and rows[0]['count']:
            self.did[kind].append((rows[0]['min_ns'], kib, rows[0]['avg_ns']))
        else:
            self.empty += 1

    def end(self):
        for job in self.jobs:
            job.end()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)


# kind: (the job, the operator that sleeps, options)
KINDS = {
    'probes': ('toy', 'aten::honest', ['--exact', '--probes', 'op']),
    'record': ('toy', 'aten::honest', ['--probes', 'op']),
    'agent': ('torch', 'soak::rest', ['--agent']),
}


class Cycles:
    def __init__(self, args):
        self.args, self.lock, self.failed = args, threading.Lock(), None
        self.begun, self.began = 0, time.monotonic()
        self.lanes = [Lane(args, n) for n in range(args.lanes)]
        self.kernel, self.orphans, self.promises = [], orphans(), []

    def sample(self):
        self.kernel.append(kernel_kib())
        for lane in self.lanes:
            for job in lane.jobs:
                job.sample()

    def next(self):
        """The number of the next session, or None. Samples are spread over all sessions."""
        with self.lock:
            late = self.args.seconds and time.monotonic() - self.began > self.args.seconds
            if self.failed or late or self.begun >= self.args.cycles:
                return None
            if self.begun % max(1, self.args.cycles // SAMPLES) == 0:
                self.sample()
            if self.begun % TOLD_RARELY == 0 and self.begun:
                print('%d sessions in %d s' % (self.begun, time.monotonic() - self.began), file=sys.stderr)
            self.begun += 1
            return self.begun - 1

    def work(self, lane):
        kinds, n = list(KINDS), 0
        try:
            while self.next() is not None:
                lane.once(kinds[n % len(kinds)])
                n += 1
        except Exception as e: # the main thread reports it
            self.failed = self.failed or e

    def run(self):
        threads = [threading.Thread(target=self.work, args=(lane,)) for lane in self.lanes]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if self.failed:
            raise self.failed
        self.sample()

    # ---- what is promised

    def promise(self, what, seen, holds):
        self.promises.append((what, seen, holds))

    @staticmethod
    def ends(values):
        """The first part and the last one. The very first session of a kind loads what the others find loaded."""
        n = max(1, len(values) // (PART if len(values) > FEW else 2))
        return values[1:n + 1] or values, values[-n:]

    def judge_mxbpf(self):
        empty = sum(lane.empty for lane in self.lanes)
        self.promise('sessions record the operator', '%d of %d did' % (self.begun - empty, self.begun),
                     self.begun < MANY or empty <= EMPTY * self.begun)
        for kind in KINDS:
            did = [d for lane in self.lanes for d in lane.did[kind]]
            if len(did) < LEAST:
                raise Broken('only %d sessions of %s recorded anything' % (len(did), kind))
            pairs = [self.ends(lane.did[kind]) for lane in self.lanes]
            first, last = ([d for pair in pairs for d in pair[i]] for i in (0, 1))
            ns = [min(d[0] for d in part) for part in (first, last)] # one session may have had no CPU
            _, kib, mean = ([statistics.median(d[i] for d in part) for part in (first, last)] for i in range(3))
            self.promise('%s: memory of %d sessions is at the end what it was before' % (kind, len(did)),
                         '%d KiB, %d KiB; at most %d KiB' % (*kib, max(d[1] for d in did)), kib[1] - kib[0] <= MXBPF_KIB)
            self.promise('%s: the duration of %s does not drift' % (kind, KINDS[kind][1]),
                         'shortest call %.3f ms, %.3f ms; mean %.3f ms, %.3f ms' % tuple(n / 1e6 for n in ns + mean),
                         abs(ns[1] - ns[0]) <= DRIFT * ns[0])

    def judge_jobs(self):
        for name in ('toy', 'torch'):
            jobs = [getattr(lane, name) for lane in self.lanes]
            early = max(1, len(jobs[0].samples) // 2) # the agent has come by then, and what the job needs once is there
            for what, limit in (('memory', JOB_KIB), ('mappings', 2), ('threads', 0), ('descriptors', 0)):
                pairs = [(j.samples[min(early, len(j.samples) - 1)][what], j.samples[-1][what]) for j in jobs]
                self.promise('job %s: %s %s not grow' % (name, what, 'does' if what == 'memory' else 'do'),
                             ', '.join('%d -> %d' % p for p in pairs), all(b - a <= limit for a, b in pairs))

    def judge_kernel(self):
        n = max(1, len(self.kernel) // PART)
        first, last = statistics.median(self.kernel[:n]), statistics.median(self.kernel[-n:])
        self.promise('kernel: slabs, per-CPU and vmalloc memory, stacks', '%d KiB, %d KiB' % (first, last),
                     self.begun < MANY or last - first <= KERNEL_KIB * self.begun)
        until = time.monotonic() + WAIT_S # the kernel closes links of a process that has ended in a thread of its own
        left = orphans() - self.orphans
        while left and time.monotonic() < until:
            time.sleep(0.2)
            left &= orphans() # links of other programs come and go
        self.promise('kernel: no BPF link that nobody holds is left', str(len(left)), not left)
        leaked = sum(leaked_by(lane.lives) for lane in self.lanes)
        self.promise('kernel: it could remove each probe', '%d leaked' % leaked, not leaked)

    def report(self):
        self.judge_mxbpf()
        self.judge_jobs()
        self.judge_kernel()
        print('%d sessions in %d s' % (self.begun, time.monotonic() - self.began))
        for what, seen, holds in self.promises:
            print('%-6s %s: %s' % ('ok' if holds else 'BROKEN', what, seen))
        return all(holds for _, _, holds in self.promises)

    def end(self):
        for lane in self.lanes:
            lane.end()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--mxbpf', required=True)
    p.add_argument('--python', required=True)
    p.add_argument('--toy', required=True)
    p.add_argument('--cycles', type=int, default=10000)
    p.add_argument('--lanes', type=int, default=2)
    p.add_argument('--seconds', type=float, default=0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)) # jobs end with it
    cycles = Cycles(p.parse_args())
    try:
        cycles.run()
        return 0 if cycles.report() else 1
    except Broken as e:
        print('BROKEN %s' % e)
        return 1
    finally:
        cycles.end()


if __name__ == '__main__':
    sys.exit(main())
