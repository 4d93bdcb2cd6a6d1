# SPDX-License-Identifier: Apache-2.0
"""Processes of the bench: the job, and the tools with their data from /proc."""
import glob
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class BenchError(Exception):
    pass


class Job:
    """One process of loop.py or torch_loop.py. Use it with `with`: the process ends when its stdin does."""

    def __init__(self, bench, loop):
        self.trace = os.path.join(bench.work, 'builtin.json')
        env = dict(os.environ, OMP_NUM_THREADS='1')
        self.err = open(os.path.join(bench.work, 'job.err'), 'wb') # torch.profiler prints many lines
        torch = loop.startswith('torch')
        self.proc = subprocess.Popen([bench.python_torch if torch else sys.executable, '-B',
                                      os.path.join(HERE, 'torch_loop.py' if torch else 'loop.py'), loop, self.trace],
                                     env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err)
        start = self.answer()
        self.pid, self.lib, self.step_ns = start['pid'], start['lib'], start['step_ns']

    def answer(self):
        line = self.proc.stdout.readline()
        if not line:
            raise BenchError('the job ended; what it said is in %s' % self.err.name)
        return json.loads(line)

    def send(self, *words):
        self.proc.stdin.write((' '.join(map(str, words)) + '\n').encode())
        self.proc.stdin.flush()

    def tell(self, *words):
        self.send(*words)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        try:
            self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()
        self.err.close()
        if os.path.exists(self.trace):
            os.unlink(self.trace)


class Tool:
    """A process whose output is read with time stamps, with its CPU time and memory."""

    def __init__(self, argv, stdout, stderr):
        self.begin = time.monotonic_ns()
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        self.pid = self.proc.pid
        self.hwm_bytes = 0

    def wait_line(self, stream, pattern):
        """Returns the match and the time when it arrived."""
        other = []
        for line in stream:
            now = time.monotonic_ns()
            match = re.search(pattern, line.decode(errors='replace'))
            if match:
                return match, now
            other.append(line.decode(errors='replace'))
        raise BenchError('%s ended before it said %r: %s' % (self.proc.args[0], pattern, ''.join(other)))

    def look_at_memory(self):
        try:
            with open('/proc/%d/status' % self.pid) as f:
                match = re.search(r'^VmHWM:\s+(\d+)', f.read(), re.M)
        except OSError:
            return
        if match:
            self.hwm_bytes = max(self.hwm_bytes, int(match[1]) << 10)

    def wait(self, any_code=False):
        """Returns its CPU time. Peak memory is read from /proc before the end, because rusage would give the parent's."""
        while True:
            self.look_at_memory()
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.002)
        self.proc.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        if self.proc.returncode and not any_code:
            raise BenchError('%s: exit code %d' % (self.proc.args[0], self.proc.returncode))
        return round((usage.ru_utime + usage.ru_stime) * 1e9)

    def kill(self):
        if self.proc.returncode is None:
            self.proc.kill()
            self.proc.wait()


def cpu_ns(pid):
    """CPU time of the running threads."""
    total = 0
    for path in glob.glob('/proc/%d/task/*/schedstat' % pid):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total


def memory(pid):
    """Resident bytes: anonymous, of files, and of BPF maps that the process has mapped."""
    sums = {'anon_bytes': 0, 'file_bytes': 0, 'maps_bytes': 0}
    name, rss, anon = '', 0, 0

    def flush():
        if 'bpf-map' in name:
            sums['maps_bytes'] += rss
        else:
            sums['anon_bytes'] += anon
            sums['file_bytes'] += rss - anon

    with open('/proc/%d/smaps' % pid) as f:
        for line in f:
            words = line.split()
            if words[0] == 'Rss:':
                rss = int(words[1]) << 10
            elif words[0] == 'Anonymous:':
                anon = int(words[1]) << 10
            elif not words[0].endswith(':'):
                flush()
                name, rss, anon = ' '.join(words[5:]), 0, 0
    flush()
    return sums
