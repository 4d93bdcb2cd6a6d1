# SPDX-License-Identifier: Apache-2.0
"""A running `mxbpf serve`: its metrics, what it says, and what it holds."""
import collections
import ctypes
import json
import os
import queue
import re
import signal
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request

WAIT_S = 60  # for what must happen soon


def own_kib(pid):
    """KiB of memory of a process's own, without pages of code: probes of any session on the machine copy those."""
    kib, code = 0, False
    with open('/proc/%d/smaps' % pid) as f:
        for line in f:
            words = line.split()
            if '-' in words[0]:
                code = 'x' in words[1]
            elif words[0] == 'Anonymous:' and not code:
                kib += int(words[1])
    return kib


class Broken(Exception):
    pass


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL) # PR_SET_PDEATHSIG


def wait_until(true, what, seconds=WAIT_S):
    """what: a text, or a function that says it then."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise Broken('after %d s there is no: %s' % (seconds, what() if callable(what) else what))
        time.sleep(0.01)


def parse(text):
    """The samples of a text of metrics by family and labels, and the families that never fall."""
    rising, samples = set(), {}
    for line in text.splitlines():
        if line.startswith('# TYPE '):
            name, kind = line.split()[2:]
            if kind == 'counter':
                rising.add(name)
            elif kind == 'histogram':
                rising.update(name + end for end in ('_bucket', '_count', '_sum'))
        elif line and line[0] != '#':
            series, value = line.rsplit(' ', 1)
            samples[series] = float(value)
    return rising, samples


class Clock:
    """The wall clock of processes that are started with env."""

    def __init__(self, folder):
        self.path = os.path.join(folder, 'clock')
        self.shim = os.path.join(folder, 'clock.so')
        self.set(0)
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-o', self.shim, os.path.join(here, 'clock.c')], check=True)
        self.env = {'LD_PRELOAD': self.shim, 'MXBPF_DAY_CLOCK': self.path}

    def set(self, seconds):
        with open(self.path, 'r+b' if os.path.exists(self.path) else 'wb') as f:
            f.write(struct.pack('<q', int(seconds * 1e9)))


class Serve:
    def __init__(self, name, mxbpf, args, clock=None):
        self.name, self.fallen, self.links, self.scrapes, self.silent = name, {}, set(), 0, 0
        self.last, self.rising, self.address, self.counts = {}, set(), None, False
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [mxbpf, 'serve', '--verbose', '--listen', '127.0.0.1:0', *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors='replace',
            env=dict(os.environ, **(clock.env if clock else {})), preexec_fn=end_with_parent)
        self.pid = self.process.pid
        self.said, self.tail, self.followed = collections.Counter(), collections.deque(maxlen=40), {}
        threading.Thread(target=self.read, daemon=True).start()
        wait_until(lambda: self.address or not self.alive(), lambda: self.last_words('to listen'))
        if not self.alive():
            raise Broken('%s ended: %s' % (name, '\n'.join(self.tail)))

    # ---- what it says

    def read(self):
        for line in self.process.stderr:
            self.tail.append(line.rstrip())
            self.counts = 'attached:' in line or (self.counts and 'detached in' not in line)
            found = re.search(r'following process (\d+)', line)
            if found:
                self.followed[int(found[1])] = self.followed.get(int(found[1]), 0) + 1
                self.said['following'] += 1
                continue
            found = re.search(r' info: listening on http://(\S+)', line)
            if found:
                self.address = found[1]
            for word in ('attached:', 'stay as they were', 'were not written', 'tries again', 'wrote ', 'waiting until',
                         'is not followed', 'cannot be watched', 'begins anew'):
                self.said[word] += word in line

    def heard(self, word, more_than=0):
        wait_until(lambda: self.said[word] > more_than, lambda: self.last_words('to say "%s"' % word))

    def last_words(self, what):
        return '%s %s; it said last:\n%s' % (self.name, what, '\n'.join(self.tail))

    def follows(self, pid, before):
        """Waits until it counts what a process does; before: how often it had attached to those with this number."""
        wait_until(lambda: self.counts and self.followed.get(pid, 0) > before.get(pid, 0),
                   lambda: self.last_words('to follow %d' % pid))

    # ---- metrics

    def get(self, path, timeout=20):
        until = time.monotonic() + timeout
        while True:
            try:
                with urllib.request.urlopen('http://%s%s' % (self.address, path), timeout=timeout) as answer:
                    return answer.read().decode()
            except urllib.error.HTTPError as e:  # a busy machine has no numbers yet, and says when to come again
                if e.code != 503 or time.monotonic() > until:
                    raise
                time.sleep(min(1, float(e.headers['Retry-After'])))

    def scrape(self):
        """Takes the metrics, and notes each counter that has fallen or is gone."""
        with self.lock:
            rising, samples = parse(self.get('/metrics'))
            self.rising |= rising
            for series, before in self.last.items():
                if series.split('{')[0] in self.rising and samples.get(series, -1) < before:
                    self.fallen[series] = '%g -> %s' % (before, samples.get(series, 'gone'))
            self.last = samples
            self.scrapes += 1
            return samples

    def sum(self, name, *labels):
        return sum(v for k, v in self.scrape().items()
                   if k.split('{')[0] == name and all(label in k for label in labels))

    def wait_sum(self, n, name, *labels):
        try:
            wait_until(lambda: self.sum(name, *labels) >= n, '', 20)
        except Broken:
            pass
        return self.sum(name, *labels)

    # ---- what it holds

    def fds(self):
        """Its descriptors by what they are; ids of its links are noted."""
        kinds = collections.Counter()
        base = '/proc/%d/fd' % self.pid
        for fd in os.listdir(base):
            try:
                to = os.readlink(base + '/' + fd)
                if 'bpf' in to and 'link' in to:
                    with open('/proc/%d/fdinfo/%s' % (self.pid, fd)) as f:
                        self.links.update(int(v) for v in re.findall(r'^link_id:\s*(\d+)', f.read(), re.M))
            except OSError:
                continue
            kinds[to if to.startswith('anon_inode') else to.split(':')[0] if to.startswith(('socket', 'pipe')) else 'file'] += 1
        return kinds

    def held(self):
        status = open('/proc/%d/status' % self.pid).read()
        return {'rss_kib': int(re.search(r'RssAnon:\s+(\d+)', status)[1]),
                'threads': int(re.search(r'Threads:\s+(\d+)', status)[1]), 'fds': sum(self.fds().values())}

    # ---- its end

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return 'it did not end'

    def left_links(self):
        """Links that it held and that are still there."""
        left = json.loads(subprocess.run(['bpftool', '-j', 'link', 'show'], check=True, capture_output=True).stdout or '[]')
        return self.links & {link['id'] for link in left}


class Commanded:
    """A process that takes commands on its input and answers each with a line."""

    def __init__(self, args, env=None):
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        ready = self.line()
        if not ready.startswith('ready'):
            raise Broken('%s does not start' % args)
        self.pid = self.process.pid

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put('')

    def line(self):
        try:
            return self.lines.get(timeout=WAIT_S)
        except queue.Empty:
            raise Broken('a job does not answer') from None

    def tell(self, command):
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()

    def ask(self, command):
        self.tell(command)
        return self.line()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(WAIT_S)

    def kill(self):
        self.process.kill()
        self.process.wait()
