#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated day of `mxbpf serve`: processes start, fork, reload libraries and are killed, options are read again,
the wall clock jumps, the disk fills, a ring overflows, clients hang. Counters must be what the processes say that they
did, none may fall, memory must stay flat, and no probe may be left. Needs root.

  day.py --mxbpf MXBPF --python PYTHON --toy FOLDER --loads PROGRAM [--seconds N] [--cycles N] [--short] [--verbose]
  --seconds N  how long it runs (default 600), two rounds of events at least
  --cycles N   go on until so many processes were attached to (default 0)
  --short      for --seconds 0: long events happen once
  --verbose    say what happens

Prints a table of what was promised and what was seen, and exits with 1 if a promise is broken.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True # the tests leave nothing in the tree
from serve import Broken, Clock, Commanded, Serve, own_kib, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, '..', 'faults'))
from pids import fork

DISK_KIB = 8192
KEEP = 3
CLIENTS = 1000
RARELY = 4                 # rounds
FDS_MAX, THREADS_MAX = 1000, 100
FDS_SPARE = 2          # files of the process that came last, which are open for a while
MOMENT = 10                # samples
PAUSE_S = 0.08             # between two toys of a worker
RSS_GROWTH_KIB = 6144   # in the second half of a run, by the slope; a process leaves 2.5 KiB until a session begins anew
TARGET_GROWTH_KIB = 8192


# MXNet 1.8.0, 1.7.0, 1.6.0 and 1.5.1
OTHER_BUILDS = ('5bc47870a585123f6a8ebc2f323c4150a4bb77d5', '21523d12a76c87a198d01d373f23cc58c7c019b2',
                'f5da45d4788cfbdf064c54587579cac3bfa471ce', '2cc62005295a1a63e0a6f4eed7be633abfb634bf')


def start_as(pid, command):
    """Starts a program with this pid, or any (0), and waits for its first line. Returns its pid."""
    here, there = os.pipe()
    child = fork(pid)
    if not child:
        os.dup2(there, 1)
        os.execv(command[0], command)
    os.close(there)
    os.read(here, 1)
    os.close(here)
    return child


class Gate:
    """Many workers pass at once; who closes it waits until none is inside."""

    def __init__(self):
        self.changed, self.inside, self.closed = threading.Condition(), 0, 0

    @contextlib.contextmanager
    def passing(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.closed)
            self.inside += 1
        try:
            yield
        finally:
            with self.changed:
                self.inside -= 1
                self.changed.notify_all()

    @contextlib.contextmanager
    def closing(self):
        with self.changed:
            self.closed += 1
            self.changed.wait_for(lambda: not self.inside)
        try:
            yield
        finally:
            with self.changed:
                self.closed -= 1
                self.changed.notify_all()


def growth_of(samples):
    """Growth over the samples' time by least squares. To attach to a new build takes memory for a moment, which does
    not count."""
    samples = [min(samples[i:i + MOMENT], key=lambda s: s[1]) for i in range(0, len(samples), MOMENT)]
    n = len(samples)
    if n < 3:
        return 0
    mean_t, mean_v = sum(t for t, _ in samples) / n, sum(v for _, v in samples) / n
    var = sum((t - mean_t) ** 2 for t, _ in samples)
    return sum((t - mean_t) * (v - mean_v) for t, v in samples) / var * (samples[-1][0] - samples[0][0])


class Day:
    def __init__(self, args):
        self.args, self.folder = args, os.getcwd()
        self.gate, self.ends, self.failed = Gate(), threading.Event(), None
        self.promises, self.happened, self.samples = [], {}, {}
        self.operators = self.calls = self.iterations = self.toys_ran = self.joins = 0
        self.lock = threading.Lock()
        number = os.getpid() % 100000
        self.toy_name, self.job_name = 't%05d' % number, 'j%05d' % number

    # ---- what is promised

    def promise(self, what, seen, holds):
        self.promises.append((what, str(seen), holds))

    def equal(self, what, seen, expected):
        self.promise(what, '%s of %s' % (seen, expected), seen == expected)

    # ---- the stage

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def copy_toy(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        shutil.copy(os.path.join(self.args.toy, 'libmxnet.so'), os.path.join(folder, 'libmxnet.so'))
        shutil.copy(os.path.join(self.args.toy, 'toy'), os.path.join(folder, name))
        return os.path.join(folder, name)

    def read_builds(self):
        """The library, and the same with build-ids of other versions of MXNet."""
        with open(os.path.join(self.args.toy, 'libmxnet.so'), 'rb') as f:
            library = f.read()
        note = library.index(b'\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0') + 16
        return [library, *(library[:note] + bytes.fromhex(other) + library[note + 20:] for other in OTHER_BUILDS)]

    def python(self, name):
        """PyTorch's interpreter under another name, by which it is chosen."""
        link = self.path(name)
        if not os.path.islink(link):
            os.symlink(os.path.realpath(self.args.python), link)
        lib = os.path.join(os.path.dirname(os.path.dirname(self.args.python)), 'lib')
        version = next(v for v in os.listdir(lib) if v.startswith('python3'))
        return link, dict(os.environ, PYTHONPATH=os.path.join(lib, version, 'site-packages'))

    def open_stage(self):
        os.makedirs(self.path('disk'))
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%dk' % DISK_KIB, 'day', self.path('disk')], check=True)
        os.makedirs(self.path('disk', 'traces'))
        self.toy = self.copy_toy(self.path('toy'), self.toy_name)
        self.builds = self.read_builds()
        self.clock = Clock(self.folder)
        self.config = self.path('toys.conf')
        self.write_config()
        self.toys = self.serve('toys', '--comm', self.toy_name + '*', '--config', self.config,
                               '--textfile', self.path('disk', 'toys.prom'), '--trace-dir', self.path('disk', 'traces'),
                               clock=self.clock)
        self.jobs = self.serve('jobs', '--comm', self.job_name + '*', '--follow', 'shared')
        self.serves = [self.toys, self.jobs]
        for s in self.serves:
            s.heard('waiting until')
        self.job = self.start_job()

    def write_config(self, more=''):
        with open(self.config, 'w') as f:
            f.write('flight-record = 5s\nflight-size = 1M\nkeep = %d\non = iteration > 1h\n%s' % (KEEP, more))

    def serve(self, name, *args, clock=None):
        return Serve(name, self.args.mxbpf, ['--interval', '500ms', '--exact', *args], clock)

    # ---- targets

    def start_job(self):
        link, env = self.python(self.job_name)
        followed = dict(self.jobs.followed)
        job = Commanded([link, os.path.join(HERE, 'job.py')], env)
        self.jobs.follows(job.pid, followed)
        self.joins += 1
        job.did = (0, 0)
        return job

    def ask(self, job, command):
        calls, iterations = map(int, job.ask(command).split()[1:])
        self.calls += calls - job.did[0]
        self.iterations += iterations - job.did[1]
        job.did = (calls, iterations)

    def run_toy(self):
        """A process that loads the runtime, is attached to, works and ends."""
        followed = dict(self.toys.followed)
        toy = subprocess.Popen([self.toy, '3', '1'], stdout=subprocess.PIPE, text=True)
        toy.stdout.readline()
        self.toys.follows(toy.pid, followed)
        toy.send_signal(signal.SIGUSR1)
        said = toy.stdout.read().splitlines()
        if toy.wait(60):
            raise Broken('a toy ended with %s' % toy.returncode)
        with self.lock:
            self.operators += sum(json.loads(said[-1])['operator'].values())
            self.toys_ran += 1

    def work(self):
        try:
            while not self.ends.is_set():
                with self.gate.passing():
                    self.run_toy()
                self.ends.wait(PAUSE_S)
        except Exception as e: # the main thread reports it
            self.failed = self.failed or e

    # ---- events

    def restart_job(self):
        job = self.start_job()
        self.ask(job, 'step 50')
        self.ask(job, 'fork 5 10')
        self.ask(job, 'exec 3')
        if random.random() < 0.5:
            job.process.kill()
            job.process.wait()
        elif job.end():
            raise Broken('a job ended with %s' % job.process.returncode)

    def fork(self):
        self.ask(self.job, 'fork 100 5')
        self.ask(self.job, 'exec 20')
        self.ask(self.job, 'step 20')

    def upgrade(self):
        """More builds of the library than a session has room for: its processes get the place of those of the first build,
        which have ended."""
        with self.gate.closing():
            self.run_toy()
            before = self.toys.said['begins anew']
            for library in (*self.builds[1:], self.builds[0]):
                self.install_bytes(library)
                self.run_toy()
        self.toys.heard('begins anew', before)

    def unfit(self):
        """A process that cannot be watched, and one that ends at once, keep nobody from watching those that come after them, not
        even one with the same pid."""
        name = 'u' + self.job_name[1:]
        fit = self.copy_toy(self.path('fit'), name)
        broken = self.path('broken')
        os.makedirs(broken, exist_ok=True)
        shutil.copy(self.args.loads, os.path.join(broken, name))
        code = '__asm__(".text; .fill 0x400000, 1, 0x90");' # as large as a runtime, or its loader tells nothing
        subprocess.run(['cc', '-shared', '-o', os.path.join(broken, 'libmxnet.so'), '-x', 'c', '-'], input=code, text=True,
                       check=True)
        s = self.serve('unfit', '--comm', name)
        s.heard('waiting until')
        other = subprocess.Popen([os.path.join(broken, name), os.path.join(broken, 'libmxnet.so')], stdout=subprocess.DEVNULL)
        try:
            s.heard('cannot be watched')
            toy = start_as(0, [fit, '1', '1'])
            for _ in range(5):
                os.kill(toy, signal.SIGKILL)
                os.waitpid(toy, 0)
                followed = dict(s.followed)
                start_as(toy, [fit, '1', '1'])
            s.follows(toy, followed)
            os.kill(toy, signal.SIGKILL)
            os.waitpid(toy, 0)
        finally:
            other.kill()
            other.wait()
        if s.stop():
            raise Broken(s.last_words('to end without an error'))

    def kill_at_work(self):
        """Its calls are of another name, because nobody knows how many they were."""
        other = self.path('toy', self.toy_name + 'k')
        if not os.path.exists(other):
            shutil.copy(self.toy, other)
        toy = subprocess.Popen([other, '1000000', '1'], stdout=subprocess.PIPE, text=True)
        toy.stdout.readline()
        toy.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        toy.kill()
        toy.wait()

    def reload_library(self):
        """Loads and unloads a library with a runtime, again and again, in one process. The threads of the toy would not
        survive that."""
        code = '''if 1:
            import ctypes, _ctypes, sys, time
            for _ in range(20):
                lib = ctypes.CDLL(sys.argv[1])
                time.sleep(0.01)
                _ctypes.dlclose(lib._handle)
        '''
        link, env = self.python(self.toy_name + 'l')
        subprocess.run([link, '-c', code, self.path('toy', 'libmxnet.so')], check=True, env=env)

    def install(self):
        """The library is replaced by a new file, as an upgrade does it."""
        with self.gate.closing(): # a process that has the old one says what it did
            self.install_bytes(self.builds[0])

    def install_bytes(self, library):
        with open(self.path('toy', 'new'), 'wb') as f:
            f.write(library)
        os.rename(self.path('toy', 'new'), self.path('toy', 'libmxnet.so'))

    def read_again(self):
        """SIGHUP, while no process works: what happens then is not counted."""
        with self.gate.closing():
            for s in self.serves:
                word = 'attached:' if s is self.jobs else 'waiting until'
                before = s.said[word]
                s.signal(signal.SIGHUP)
                s.heard(word, before)
        self.joins += 1
        self.ask(self.job, 'step 10')

    def read_wrong_file(self):
        self.write_config('speed = fast\n')
        refused = self.toys.said['stay as they were']
        with self.gate.closing():
            waits = self.toys.said['waiting until']
            self.toys.signal(signal.SIGHUP)
            self.toys.heard('stay as they were', refused)
            self.toys.heard('waiting until', waits)
        self.write_config()

    def recordings(self):
        return sorted(f for f in os.listdir(self.path('disk', 'traces')) if f.endswith('.mxd'))

    def record(self, works=True):
        """SIGUSR1 writes the last seconds, or says why it cannot."""
        word = 'wrote ' if works else 'were not written'
        self.run_toy() # a session has begun
        before = self.toys.said[word]
        self.toys.signal(signal.SIGUSR1)
        self.toys.heard(word, before)

    def jump(self):
        """The newest recording stays, whatever the clock says."""
        for seconds in (86400, -86400, 0, 3600):
            self.clock.set(seconds)
            before = set(self.recordings())
            self.record()
            wait_until(lambda: len(self.recordings()) <= KEEP, 'old recordings to be deleted')
            new = set(self.recordings()) - before
            if len(new) != 1:
                raise Broken('after the clock jumped by %d s there are %s, before %s' % (seconds, self.recordings(), before))
            report = subprocess.run([self.args.mxbpf, 'report', self.path('disk', 'traces', new.pop())],
                                    capture_output=True, text=True)
            if report.returncode:
                raise Broken('a recording cannot be read: ' + report.stderr)
        self.clock.set(0)

    def fill_disk(self):
        text, filler = self.path('disk', 'toys.prom'), self.path('disk', 'filler')
        tries = self.toys.said['tries again']
        with open(filler, 'wb', 0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))
        self.toys.heard('tries again', tries)
        self.record(works=False)
        whole = open(text).read()
        if not whole.endswith('\n') or 'process_start_time_seconds' not in whole:
            raise Broken('the text file was cut')
        os.unlink(filler)
        before = os.stat(text).st_mtime_ns
        wait_until(lambda: os.stat(text).st_mtime_ns > before, 'a text file after the disk has room')
        self.record()

    def lose_folder(self):
        os.rename(self.path('disk', 'traces'), self.path('disk', 'away'))
        self.record(works=False)
        os.rename(self.path('disk', 'away'), self.path('disk', 'traces'))
        self.record()

    def hang_clients(self):
        host, port = self.toys.address.rsplit(':', 1)
        clients = []
        for i in range(CLIENTS // 10 if self.args.short else CLIENTS):
            try:
                client = socket.create_connection((host, int(port)), 5)
            except OSError:
                break
            clients.append(client)
            if i % 2:
                with contextlib.suppress(OSError):
                    client.send(b'GET /metrics HTTP/1.1\r\nHost: ')
            if not i % 100:
                time.sleep(0.05)
        for _ in range(3):
            for client in clients[:20]:
                with contextlib.suppress(OSError):
                    client.send(b'x')
            time.sleep(0.2)
        for client in clients:
            client.close()
        self.toys.get('/healthz')

    def overflow(self):
        """What a stopped mxbpf does not take from its ring is counted as lost."""
        name = 'o' + self.job_name[1:]
        s = self.serve('overflow', '--comm', name, '--probes', 'op')
        link, env = self.python(name)
        job = Commanded([link, os.path.join(HERE, 'job.py')], env)
        s.heard('attached:')
        s.signal(signal.SIGSTOP)
        calls = int(job.ask('burst 300000').split()[1])
        s.signal(signal.SIGCONT)
        wait_until(lambda: self.account(s)[2] >= calls, '%d calls that are seen or lost: %s' % (calls, self.account(s)), 20)
        seen, lost, both = self.account(s)
        if both != calls or not lost:
            raise Broken('%d calls are seen and %d lost, of %d' % (seen, lost, calls))
        job.end()
        if s.stop():
            raise Broken('serve ended with an error: ' + '\n'.join(s.tail))

    @staticmethod
    def account(s):
        seen = int(s.sum('mxbpf_operator_duration_seconds_count', 'operator="aten::sinh"'))
        lost = int(s.sum('mxbpf_events_lost_total'))
        return seen, lost, seen + lost

    EVENTS = ('restart_job', 'fork', 'kill_at_work', 'reload_library', 'install', 'upgrade', 'unfit', 'read_again',
              'read_wrong_file', 'record', 'jump', 'fill_disk', 'lose_folder', 'hang_clients', 'overflow')

    ANEW = ('upgrade', 'read_again', 'read_wrong_file') # a session begins anew, which would hide that one grows
    LONG = ('restart_job', 'hang_clients', 'overflow')

    # ---- the day

    def sample(self):
        while not self.ends.wait(1):
            try:
                for s in self.serves:
                    self.samples.setdefault(s.name, []).append((time.monotonic(), s.held(), s.sum('mxbpf_targets')))
            except OSError as e:
                self.failed = self.failed or Broken('a scrape failed: %s' % e)

    def run_events(self):
        end, rounds = time.monotonic() + self.args.seconds, 0
        least = 1 if self.args.short else 2
        while rounds < least or time.monotonic() < end or self.cycles() < self.args.cycles:
            order = [e for e in self.EVENTS if not rounds % RARELY or e not in self.ANEW]
            order += [e for e in order if self.args.short and e not in self.LONG]
            random.shuffle(order)
            for event in order:
                began = time.monotonic()
                getattr(self, event)()
                n, seconds = self.happened.get(event, (0, 0))
                self.happened[event] = (n + 1, seconds + time.monotonic() - began)
                if self.args.verbose:
                    print('%-20s %5.1f s, %d attach cycles' % (event, time.monotonic() - began, self.cycles()), file=sys.stderr)
                if self.failed:
                    raise self.failed
                if rounds >= least and time.monotonic() > end and self.cycles() >= self.args.cycles:
                    break
            rounds += 1

    def cycles(self):
        return sum(s.said['following'] for s in self.serves)

    def run(self):
        self.open_stage()
        self.run_toy()
        began = self.target()
        self.settle()
        self.before = [s.held() for s in self.serves]
        threads = [threading.Thread(target=self.sample), *(threading.Thread(target=self.work) for _ in range(2))]
        for t in threads:
            t.start()
        try:
            self.run_events()
        except (Broken, OSError, subprocess.SubprocessError) as e:
            self.promise('each event', e, False)
        finally:
            self.ends.set()
            for t in threads:
                t.join()
        if self.failed:
            self.promise('processes and scrapes', self.failed, False)
        else: # as in the beginning: a session with one process, and nothing more
            self.read_again()
            self.run_toy()
            self.settle()
        self.judge(began)

    def settle(self):
        """Until what belonged to processes that have ended is closed."""
        held, before = [s.held()['fds'] for s in self.serves], []
        while held != before:
            time.sleep(2.5)
            held, before = [s.held()['fds'] for s in self.serves], held

    def target(self):
        return own_kib(self.job.pid), len(os.listdir('/proc/%d/fd' % self.job.pid))

    def judge(self, began):
        name = 'mxbpf_operator_duration_seconds_count'
        seen = self.toys.wait_sum(self.operators, name, 'job_name="%s"' % self.toy_name)
        self.equal('operators of toys', int(seen), self.operators)
        seen = self.jobs.wait_sum(self.calls, name, 'operator="aten::sinh"')
        self.equal('operators of PyTorch', int(seen), self.calls)
        iterations = int(self.jobs.sum('mxbpf_iteration_duration_seconds_count'))
        # The first ones after mxbpf has come to a process have no known start, and the last one may have no end.
        self.promise('iterations of PyTorch', '%d of %d, %d beginnings' % (iterations, self.iterations, self.joins),
                     self.iterations - 3 * self.joins <= iterations <= self.iterations)
        rss, fds = self.target()
        self.promise('memory of a target', '%+d KiB' % (rss - began[0]), rss - began[0] < TARGET_GROWTH_KIB)
        self.equal('descriptors of a target', fds, began[1])
        for s in self.serves:
            self.judge_serve(s)
        self.job.end()
        for s in self.serves:
            code = s.stop()
            self.promise('%s: exit code' % s.name, code, code == 0)
            left = s.left_links()
            self.promise('%s: links left of %d' % (s.name, len(s.links)), len(left), not left and s.links)
        self.promise('attach cycles', self.cycles(), self.cycles() >= self.args.cycles)

    def judge_serve(self, s):
        samples = self.samples.get(s.name, [])
        rss = [(t, held['rss_kib']) for t, held, _ in samples]
        half = rss[len(rss) // 2:]
        growth = growth_of(half)
        self.promise('%s: memory, growth in the second half' % s.name,
                     '%+d KiB, at the end %d' % (growth, rss[-1][1] if rss else 0),
                     growth < RSS_GROWTH_KIB or self.args.seconds < 120)
        lost = int(s.sum('mxbpf_events_lost_total'))
        self.promise('%s: lost events' % s.name, lost, lost == 0)
        self.promise('%s: counters that fell in %d scrapes' % (s.name, s.scrapes), len(s.fallen), not s.fallen)
        for series, how in list(s.fallen.items())[:5]:
            print('fell: %s: %s' % (series, how), file=sys.stderr)
        looks = [s.held()] # one look may meet a file that is written just now
        while len(looks) < 20:
            time.sleep(0.05)
            looks.append(s.held())
        now = {what: min(held[what] for held in looks) for what in ('fds', 'threads')}
        for what, spare in (('fds', FDS_SPARE), ('threads', 0)):
            was = self.before[self.serves.index(s)][what]
            self.promise('%s: %s in the beginning and at the end' % (s.name, what), '%d, %d' % (was, now[what]),
                         now[what] <= was + spare)
        fds = [held['fds'] for _, held, _ in samples]
        threads = [held['threads'] for _, held, _ in samples]
        most = max(fds, default=0), max(threads, default=0)
        self.promise('%s: most descriptors, threads' % s.name, '%d, %d' % most, most[0] < FDS_MAX and most[1] < THREADS_MAX)

    def report(self):
        print('\n%-20s %6s %9s' % ('event', 'times', 'seconds'))
        for event, (n, seconds) in self.happened.items():
            print('%-20s %6d %9.1f' % (event, n, seconds))
        print('%-20s %6d' % ('toys', self.toys_ran))
        width = max(len(what) for what, _, _ in self.promises)
        print()
        for what, seen, holds in self.promises:
            print('%-6s %-*s %s' % ('ok' if holds else 'BROKEN', width, what, seen))
        return all(holds for _, _, holds in self.promises)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('mxbpf', 'python', 'toy', 'loads'):
        p.add_argument('--' + name, required=True, type=os.path.abspath)
    p.add_argument('--seconds', type=float, default=600)
    p.add_argument('--cycles', type=int, default=0)
    p.add_argument('--short', action='store_true')
    p.add_argument('--verbose', action='store_true')
    p.add_argument('--private', action='store_true', help=argparse.SUPPRESS)
    args = p.parse_args()
    if not args.private: # in a mount namespace of its own, so that no mount is left
        os.execvp('unshare', ['unshare', '-m', sys.executable, *sys.argv, '--private'])
    folder = tempfile.mkdtemp(prefix='mxbpf-day-')
    os.chdir(folder)
    day = Day(args)
    try:
        day.run()
    finally:
        for s in getattr(day, 'serves', []):
            if s.alive():
                s.process.kill()
        subprocess.run(['umount', '-l', day.path('disk')], stderr=subprocess.DEVNULL)
        os.chdir('/')
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if day.report() else 1)


if __name__ == '__main__':
    main()
