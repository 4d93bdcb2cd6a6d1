#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults within sessions of mxbpf. Each run is a session on a process of its own, in which one system call of mxbpf fails, or at
which mxbpf is killed. Then the process must have worked as without mxbpf, with its own code; mxbpf must end in time, by no
signal, with a status of 0 to 5, and with the right numbers or a message; old outputs stay or new ones are complete; no other
file and no process is left.

  faults.py call --mxbpf MXBPF --toy DIR --nth PROGRAM [--python PYTHON] [--modes all | NAME,...] [--calls NAME:ERROR,...] [--points N]
  faults.py kill --mxbpf MXBPF --toy DIR --nth PROGRAM [--python PYTHON] [--modes all | NAME,...] [--points N]
  faults.py alloc --library FAIL_NTH.so ...    one allocation fails instead; mxbpf must be a dynamic program
  faults.py nofile ..., faults.py as ...       mxbpf may have only so many descriptors, or so much memory
  faults.py stop --hold SECONDS ...            mxbpf is stopped while the process works, and so long at least
  faults.py clock --library CLOCK.so ...       the wall clock of mxbpf jumps by a day, forth and back (tests/day/clock.c)
  faults.py oom ...                            a control group of mxbpf alone has so little memory; the kernel may kill mxbpf
  --points   runs for each mode (kill, alloc), or for each mode, call and error (call), spread evenly; 0: one for each call
  --random   spread at random, with this seed
  --sample   of these runs only so many for each mode, chosen at random
  --seconds  stop early after this time
  --lanes    sessions at a time (default 2)

Prints a line for each mode, and one for each run that went wrong; then the exit status is 1.
"""
import argparse
import collections
import concurrent.futures
import errno
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from code_bytes import changed, mappings  # noqa: E402

END_S = 60    # a session that takes longer hangs
READY_S = 60  # from its start to "attached", or a fault has kept it from saying so
OLD = 'old\n'
CHILDREN, ROUNDS = 20, 10

# name: (process, arguments, outputs). {pid} and outputs are of the run.
MODES = {
    'tables': ('toy', '--exact -f json --pid {pid}', ()),
    'perf': ('toy', '--exact --backend perf -f json --pid {pid}', ()),
    'timed': ('toy', '--exact -d 1s -f json --pid {pid}', ()),
    'omp': ('omp', '--exact --all --omp --probes op -f json --pid {pid}', ()),
    'nvtx': ('nvtx', '--exact -f json --pid {pid}', ()),
    'nvtx-agent': ('nvtx', '--agent -f json --pid {pid}', ()),
    'no-bpf': ('launched', 'record --gpu --no-bpf --force -o t.mxd --', ('t.mxd',)),
    'measure': ('toy', '--sample 99 --sched --memory --raised -f json --pid {pid}', ()),
    'counters': ('toy', '--exact --counters page-faults -f json --pid {pid}', ()),
    'files': ('toy', '--force -o t.json --trace t.trace.json --html t.html --pid {pid}', ('t.json', 't.trace.json', 't.html')),
    'pieces': ('toy', '--force --interval 200ms --reset -f json --trace t.pftrace --trace-every 1s --keep 3 --pid {pid}', ()),
    'record': ('toy', 'record --force -o t.mxd --trace t.trace.json --pid {pid}', ('t.mxd', 't.trace.json')),
    'serve': ('toy', 'serve --interval 100ms --listen 127.0.0.1:0 --textfile t.prom --stream t.jsonl --flight-record 5s --pid {pid}', ('t.prom',)),
    'now': ('toy', 'now -d 100ms -f json --pid {pid}', ()),
    'top': ('toy', 'top --exact --batch --pid {pid}', ()),
    'follow': ('toy', '--exact --follow shared -f json --pid {pid}', ()),
    'children': ('fork', '--exact --api all -f json --pid {pid}', ()),
    'children-shared': ('fork', '--exact --follow shared --api all -f json --pid {pid}', ()),
    'agent': ('torch', '--agent -f json --pid {pid}', ()),
    'gpu': ('gpu', '--gpu -f json --pid {pid}', ()),
    'gpu-record': ('gpu', 'record --gpu --agent --force -o t.mxd --pid {pid}', ('t.mxd',)),
    'agent-record': ('torch', 'record --agent --memory --sched --force -o t.mxd --pid {pid}', ('t.mxd',)),
}

# What a session may do wrong with each error is the kernel's to say: these are errors that its calls can give.
CALLS = ('bpf:EPERM bpf:ENOMEM perf_event_open:EMFILE ptrace:EPERM ptrace:ESRCH process_vm_readv:EPERM clone3:EAGAIN mmap:ENOMEM '
         'openat:EMFILE openat:EACCES read:EIO read:EINTR pread64:EIO write:EIO epoll_wait:EINTR epoll_create1:EMFILE epoll_ctl:ENOMEM '
         'poll:ENOMEM eventfd2:EMFILE memfd_create:ENOMEM ioctl:EINVAL fcntl:EMFILE newfstatat:EACCES pidfd_open:EMFILE '
         'signalfd4:EMFILE timerfd_create:EMFILE process_vm_writev:EPERM')
# All but those that only read: there are many, and a session with each of them held up takes long.
KILL_AT = ('bpf,clone,clone3,close,connect,dup3,epoll_create1,epoll_ctl,epoll_wait,eventfd2,execve,fallocate,fcntl,fsync,ftruncate,futex,'
           'ioctl,linkat,lseek,madvise,memfd_create,mmap,mprotect,munmap,openat,perf_event_open,pidfd_open,poll,process_vm_writev,ptrace,'
           'pwrite64,renameat,rt_sigaction,rt_sigprocmask,sendmsg,signalfd4,socket,timerfd_create,timerfd_settime,tgkill,unlinkat,wait4,write,'
           'writev')
DISK = ('write:ENOSPC write:EDQUOT pwrite64:ENOSPC writev:EIO fsync:EIO fdatasync:ENOSPC renameat:ENOSPC renameat:EIO linkat:ENOSPC '
        'close:EIO close:EDQUOT fallocate:ENOSPC ftruncate:EIO')


# The cause that a message must name.
NAMES = {'alloc': 'memory', 'oom': 'memory|cannot start (a|the) thread', 'as': 'memory|cannot start (a|the) thread',
         # libbpf tries to make some maps again without BTF, and tells that error.
         'nofile': 'files|BPF programs: Invalid argument'}
LIMITS = {'nofile': [*range(6, 64, 6), *range(64, 256, 24), 400], 'oom': [x << 20 for x in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)],
          'as': [x << 20 for x in (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)]}


def limited_group(folder, limit):
    """A control group with a limit of memory, by version 1 or 2."""
    for root, file in (('/sys/fs/cgroup/memory', 'memory.limit_in_bytes'), ('/sys/fs/cgroup', 'memory.max')):
        if os.path.exists(os.path.join(root, 'cgroup.procs')):
            group = os.path.join(root, os.path.basename(folder))
            os.mkdir(group)
            with open(os.path.join(group, file), 'w') as f:
                f.write(str(limit))
            return group
    raise Wrong('no control groups with a limit of memory')


class Wrong(Exception):
    pass


def lines_of(path):
    with open(path, errors='replace') as f:
        return f.read().splitlines()


class Process:
    """The process that is watched: started, told to work, then to end."""

    def __init__(self, folder, command, library='/libmxnet.so'):
        self.library = library
        self.out = os.path.join(folder, 'process.out')
        self.child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=open(self.out, 'w'), stderr=subprocess.STDOUT)
        self.pid = int(self.wait_line(r'ready (\d+)').group(1))

    def wait_line(self, regex):
        end = time.monotonic() + END_S
        while time.monotonic() < end and self.child.poll() is None:
            for line in lines_of(self.out):
                match = re.fullmatch(regex, line)
                if match:
                    return match
            time.sleep(0.005)
        raise Wrong(f'the process says no "{regex}": ' + ' '.join(lines_of(self.out)[-2:]))

    def work(self):
        os.kill(self.pid, signal.SIGUSR1)
        return self.wait_line(r'(\{.*\})').group(1)

    def code_is_its_own(self):
        """The kernel removes probes some time after the end of who had them."""
        end = time.monotonic() + END_S
        maps = mappings(self.pid, self.library)
        while True:
            with open(f'/proc/{self.pid}/mem', 'rb', buffering=0) as mem:
                if next(changed(mem, maps), None) is None:
                    return
            if time.monotonic() > end:
                raise Wrong('probes are left in its code')
            time.sleep(0.02)

    def end(self):
        os.kill(self.pid, signal.SIGUSR1)
        if self.child.wait(END_S):
            raise Wrong(f'the process ended with {self.child.returncode}')

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


class ForkProcess(Process):
    def work(self):
        os.kill(self.pid, signal.SIGUSR1)
        self.wait_line('done')
        return json.dumps({'MXNDArrayCreate': CHILDREN * ROUNDS, 'MXNDArrayFree': CHILDREN * ROUNDS})

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        if self.child.wait(END_S) not in (0, -signal.SIGTERM):
            raise Wrong(f'the process ended with {self.child.returncode}')


class OmpProcess(Process):
    def work(self):
        """Its times are its own."""
        return json.dumps({'aten::' + name: row['regions'] for name, row in json.loads(super().work()).items()})


class Launched:
    """A command that mxbpf runs, and whose output comes with that of mxbpf. It works and ends without being told."""
    pid = 0

    def code_is_its_own(self):
        pass

    end = kill = code_is_its_own


class GpuProcess(Process):
    """tests/gpu/torch_job.py works all the time, and more when it is told to."""

    def work(self):
        os.kill(self.pid, signal.SIGUSR2)
        kernels = int(self.wait_line(r'burst (\d+)').group(1))
        return json.dumps({'burst_' + x: kernels // 4 for x in 'abcd'})

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        if self.child.wait(END_S):
            raise Wrong(f'the process ended with {self.child.returncode}')


class Run:
    """One session. fault: (calls, error, n) for nth_call."""

    def __init__(self, args, mode, fault):
        self.args, self.mode, self.fault = args, mode, fault
        self.kind, self.command, self.outputs = MODES[mode]
        self.killed, self.group = fault[1] == 'KILL' or args.what == 'oom', None
        self.folder = tempfile.mkdtemp(prefix='fault.', dir=args.dir)
        self.place = os.path.join(self.folder, 'here')
        os.mkdir(self.place)
        for name in self.outputs:
            with open(os.path.join(self.place, name), 'w') as f:
                f.write(OLD)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start_process(self):
        if self.kind == 'toy':
            return Process(self.folder, [os.path.join(self.args.toy, 'toy'), self.args.rounds, '3', 'hold'])
        if self.kind == 'fork':
            return ForkProcess(self.folder, [os.path.join(self.args.toy, 'toy'), str(ROUNDS), str(CHILDREN), 'fork'])
        if self.kind == 'omp':
            return OmpProcess(self.folder, [os.path.join(self.args.toy, 'omp', 'libtorch_cpu.so'), '2', '2', 'hold'], '/libtorch_cpu.so')
        if self.kind == 'launched':
            return Launched()
        tests = os.path.dirname(HERE)
        served = [sys.executable, os.path.join(tests, 'fork_server.py'), 'run', self.args.socket]
        if self.kind == 'gpu':
            return GpuProcess(self.folder, [*served, os.path.join(tests, 'gpu', 'torch_job.py'), '--burst', str(100 * (int(self.args.rounds) // 60)),
                                             '--gpu', self.args.gpu])
        ranges = {'nvtx': ['exported.so'], 'nvtx-agent': ['header.so']}.get(self.mode, [])
        return Process(self.folder, [*served, os.path.join(HERE, 'job.py'), '300', *(os.path.join(self.args.ranges, x) for x in ranges)])

    def go(self):
        self.process = self.start_process()
        try:
            self.session()
            self.check_status()
            self.check_files()
            if self.args.what in ('stop', 'clock'):
                self.check_loss()
            self.process.code_is_its_own()
            if self.fault[1] == 'KILL' and self.fault[2]:
                self.next_works()
            self.process.end()
            return self
        finally:
            self.process.kill()
            if self.group:
                os.rmdir(self.group)

    def start(self, fault):
        what, n, env = self.args.what, fault[2], {}
        if what == 'alloc':
            env = {'FAIL_NTH': n, 'FAIL_COUNT': self.path('count'), 'LD_PRELOAD': self.args.library}
        if what == 'clock':
            self.set_clock(0)
            env = {'MXBPF_DAY_CLOCK': self.path('clock'), 'LD_PRELOAD': self.args.library}
        if what == 'oom':
            self.group = limited_group(self.folder, n)
        prefix = {'alloc': [], 'stop': [], 'clock': [], 'oom': ['sh', '-c', f'echo $$ >{self.group}/cgroup.procs; exec "$@"', '-'], 'nofile': ['prlimit', f'--nofile={n}:{n}'], 'as': ['prlimit', f'--as={n}:{n}']}.get(
            what, [self.args.nth, self.path('count'), *fault])
        words = self.command.format(pid=self.process.pid).split()
        launched = [sys.executable, os.path.join(HERE, 'kernels.py'), f'{self.args.gpu}/libgpuops.so'] if self.kind == 'launched' else []
        command = [*prefix, self.args.mxbpf, *words, *launched, *self.args.also.split()]
        with open(self.path('out'), 'w') as out, open(self.path('err'), 'w') as err:
            return subprocess.Popen(command, cwd=self.place, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(os.environ, **env))

    def set_clock(self, days):
        with open(self.path('clock'), 'r+b' if os.path.exists(self.path('clock')) else 'wb') as f:
            f.write(struct.pack('<q', int(days * 86400e9)))

    def read_count(self):
        self.count, self.counts, self.hit = 0, {}, self.fault[0]
        if self.args.what == 'alloc' and os.path.exists(self.path('count')):
            self.count = int(lines_of(self.path('count'))[0])
        elif self.args.what in ('call', 'kill'):
            (count, self.hit), *each = (line.split() for line in lines_of(self.path('count')))
            self.count, self.counts = int(count), {name: int(n) for name, n in each}

    def next_works(self):
        """The same session on the same process, which only waits now. No call is held up: a signal would interrupt it."""
        session = self.start(('uname', 'KILL', '0'))
        try:
            self.wait_attached(session)
            if 'now ' not in self.command and self.kind != 'launched':
                self.interrupt(session)
            if session.wait(END_S) not in (0, 5):
                raise Wrong(f'the next session ends with {session.returncode}')
        except subprocess.TimeoutExpired:
            raise Wrong('the next session hangs') from None
        finally:
            self.stop(session)
        self.check_files()

    def session(self):
        session = self.start([str(x) for x in self.fault])
        try:
            self.wait_attached(session)
            stopped = self.args.what == 'stop' and self.fault[2] and session.poll() is None
            if stopped:
                if self.mode == 'serve':  # there are metrics after the first interval
                    self.wait_said(session, 'mxbpf_events_total', os.path.join(self.place, 't.prom'))
                self.interrupt(session, signal.SIGSTOP)
            if self.args.what == 'clock':
                self.set_clock(self.fault[2])
            did = self.launched(session) if self.kind == 'launched' else json.loads(self.process.work())
            if self.args.what == 'clock':
                self.set_clock(-self.fault[2])
            if self.args.what == 'clock' and self.mode == 'top':
                self.wait_said(session, '.*% .* dot$', self.path('out'))  # in the frame of the second
            if stopped:
                clients = self.ask(30) if 'listen ' in self.command else []
                time.sleep(self.args.hold)
                self.interrupt(session, signal.SIGCONT)
                self.serves(clients)
            if session.poll() is None and 'now ' not in self.command and self.mode != 'timed':
                if any(x in self.command for x in ('serve', '--interval', 'top')):
                    time.sleep(0.3)
                self.interrupt(session)
            session.wait(END_S)
        except subprocess.TimeoutExpired:
            raise Wrong('mxbpf hangs') from None
        finally:
            self.stop(session)
        self.status = session.returncode if session.returncode >= 0 else 128 - session.returncode
        self.read_count()
        self.check_process(did)

    def ask(self, n):
        """Clients, also while nobody answers."""
        port = next(int(match[1]) for line in lines_of(self.path('err')) if (match := re.search(r'listening on http://127.0.0.1:(\d+)', line)))
        clients = [socket.create_connection(('127.0.0.1', port), END_S) for _ in range(n)]
        for client in clients:
            client.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return clients

    def answers(self, clients):
        """How many got all metrics. The others are turned away: they are too many, or mxbpf was silent for half a minute."""
        good = 0
        for client in clients:
            with client, client.makefile('rb') as answer:
                said = answer.read()
            whole = re.match(rb'HTTP/1.1 200 (?s:.*)\nmxbpf_events_total', said)
            good += bool(whole)
            if not whole and not said.startswith(b'HTTP/1.1 503 '):
                raise Wrong(f'a client got {said[:100]}')
        return good

    def serves(self, clients):
        end = time.monotonic() + END_S
        self.answers(clients)
        while clients and not self.answers(self.ask(1)):
            if time.monotonic() > end:
                raise Wrong('no client gets metrics any more')

    def launched(self, session):
        """What the command did, which ends before nth_call does. It may have not begun when mxbpf was killed."""
        session.wait(END_S)
        said = [line for line in lines_of(self.path('out')) if line.startswith(('begins', '{'))]
        if len(said) == 1 or (not said and session.returncode == 0):
            raise Wrong('the command did not end')
        return json.loads(said[1]) if said else None

    def wait_attached(self, session):
        self.wait_said(session, r'(\S+Z \w+: )?attached:|.*iterations/s now', self.path('out'), self.path('err'))

    def wait_said(self, session, regex, *paths):
        end = time.monotonic() + READY_S
        while session.poll() is None and time.monotonic() < end:
            if any(re.match(regex, line) for path in paths for line in lines_of(path)):
                return
            time.sleep(0.005)

    def stop(self, session):
        if session.poll() is None:
            self.interrupt(session, signal.SIGKILL)
            session.wait()

    def interrupt(self, session, number=signal.SIGINT):
        """Of nth_call, which waits, the only child is mxbpf."""
        if self.args.what not in ('call', 'kill'):
            session.send_signal(number)
            return
        try:
            with open(f'/proc/{session.pid}/task/{session.pid}/children') as f:
                for pid in f.read().split():
                    os.kill(int(pid), number)
        except OSError:
            pass  # it has ended

    def check_process(self, did):
        if did and did != self.args.did.setdefault(self.mode, did):
            raise Wrong(f'the process did {did}')
        self.did = did

    def err(self):
        return '\n'.join(lines_of(self.path('err')))

    def check_status(self):
        if self.killed and self.status == 137:
            return
        if self.status == 125:
            raise Wrong('a process is left')
        if self.status > 5:
            raise Wrong(f'status {self.status}')
        told = re.search(r'(error|warning): |interrupted before recording began', self.err())
        if self.status in (0, 5):
            if not told:
                self.check_numbers()
        elif not told:
            raise Wrong(f'status {self.status} without a message')
        elif self.fault[1] != 'ESRCH' and re.search('exited|ended meanwhile', self.err()):
            raise Wrong(f'status {self.status}, and the process has not ended')
        elif not re.search(NAMES.get(self.args.what, ''), self.err()):
            raise Wrong(f'status {self.status}, and another cause')

    def check_numbers(self):
        """Those of a session that knows of no fault."""
        path = self.path('out')
        if self.kind == 'launched':
            path = self.path('report')
            self.report('t.mxd', path)
        elif '-f json' not in self.command or self.mode in ('now', 'timed') or '--interval' in self.command:
            return
        with open(path) as f:
            self.check_rows(json.loads(f.read()))

    def check_rows(self, result):
        loss = result['loss']
        lost = sum(loss.get(x, 0) for x in ('dropped', 'unreadable')) + loss['attempted'] - loss['stored']
        window = result['window']
        lost += window.get('unfollowed', 0) + len(window.get('gaps', []))
        rows = collections.Counter()
        for row in (row for table in result['tables'].values() for row in table if 'count' in row):
            rows[row['name']] += row['count']
        # The program counts regions, of which a call may have several, and kernels.
        rows = dict(rows)
        rows.update({row['name']: row['regions'] for row in result.get('teams', {}).get('operators', [])})
        rows.update({row['name']: row['count'] for row in result.get('gpu', {}).get('kernels', [])})
        want = self.did.get('operator') or {k: v for k, v in self.did.items() if k != 'bits'}
        wrong = {k: (v, rows.get(k, 0)) for k, v in want.items() if rows.get(k, 0) != v}
        if wrong and not lost:
            raise Wrong(f'wrong numbers and no message: {wrong}')

    def report(self, name, to):
        subprocess.run([self.args.mxbpf, 'report', os.path.join(self.place, name), '--all', '-f', 'json', '-o', to, '--force'], check=True,
                       stderr=subprocess.DEVNULL)

    def check_loss(self):
        """All calls are stored or counted as lost, as many as without a stop."""
        path = self.path('out')
        if self.mode == 'top':
            if 'dot' not in ' '.join(lines_of(path)):
                raise Wrong('no operator is shown')
            return
        if self.mode == 'serve':
            self.check_metrics()
            return
        if 'record' in self.mode:
            self.report('t.mxd', path)
        results = [json.loads(line) for line in (lines_of(path) if '--interval' in self.command else [' '.join(lines_of(path))])]
        losses, windows = [x['loss'] for x in results], [x['window'] for x in results]
        if not all(0 < x['duration_ns'] < (END_S + self.args.hold) * 1e9 and abs(x['start_unix_ns'] / 1e9 - time.time()) < 2 * 86400 for x in windows):
            raise Wrong(f'the windows are {windows}')
        attempted = sum(x['attempted'] for x in losses)
        self.dropped = sum(x['dropped'] for x in losses)
        if attempted != sum(x['stored'] for x in losses) + self.dropped:
            raise Wrong(f'of {attempted} events some are neither stored nor dropped: {losses}')
        if self.kind == 'gpu' and not self.dropped:
            self.check_rows(results[0])
        self.check_attempted(attempted)

    def check_metrics(self):
        with open(os.path.join(self.place, 't.prom')) as f:
            text = f.read()
        stored, self.dropped = (sum(int(x) for x in re.findall(rf'^mxbpf_events_{name}\{{.* (\d+)$', text, re.M)) for name in ('total', 'lost_total'))
        self.check_attempted(stored + self.dropped)

    def check_attempted(self, attempted):
        if self.kind == 'toy' and attempted != self.args.attempted.setdefault(self.mode, attempted):
            raise Wrong(f'{attempted} events, and {self.args.attempted[self.mode]} without a stop')

    def check_files(self):
        allowed = set(self.outputs)
        for name in os.listdir(self.place):
            # A command that goes on without mxbpf writes there.
            if self.kind == 'launched' and self.killed and re.fullmatch(r'\.mxbpf-\w{6}', name):
                continue
            if name not in allowed and not re.fullmatch(r't\.jsonl|t-.*\.pftrace|.*\.mxd', name):
                raise Wrong(f'the file {name} is left')
        for name in self.outputs:
            path = os.path.join(self.place, name)
            if os.path.exists(path):
                self.check_file(name, path)
            elif name != 't.mxd':
                raise Wrong(f'the old {name} is gone')

    def check_file(self, name, path):
        with open(path, 'rb') as f:
            data = f.read()
        if data == OLD.encode():
            return
        if name.endswith('.json'):
            json.loads(data)
        elif name.endswith('.html'):
            if not data.rstrip().endswith(b'</main>'):
                raise Wrong(f'{name} is cut')
        elif name.endswith('.prom'):
            if not data.endswith(b'\n') or b'mxbpf_' not in data:
                raise Wrong(f'{name} is cut')
        elif name.endswith('.mxd') and data:
            report = subprocess.run([self.args.mxbpf, 'report', path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if report.returncode and not re.search('no complete|incomplete|no event|empty', report.stderr):
                raise Wrong(f'{name}: report ends with {report.returncode}: {report.stderr}')
            if not self.killed and self.status == 0 and 'incomplete' in report.stderr and not re.search('(error|warning): ', self.err()):
                raise Wrong(f'{name} is incomplete, and nobody said so')


class Mode:
    def __init__(self, args, name):
        self.args, self.name, self.wrong, self.runs, self.statuses = args, name, [], 0, {}

    def one(self, fault):
        if time.monotonic() > self.args.until:
            return None
        run = Run(self.args, self.name, fault)
        try:
            run.go()
        except (Wrong, OSError, ValueError, KeyError) as e:
            what = f'{self.name}, {fault[0][:20]}:{fault[1]} {fault[2]} ({getattr(run, "hit", "?")}): {type(e).__name__}: {e}; ' \
                   f'{run.err()[-300:] if os.path.exists(run.path("err")) else ""}'
            self.wrong.append(what)
            print(what, flush=True)
            if self.args.keep:
                print('kept:', run.folder)
                return run
        self.runs += 1
        if getattr(run, 'hit', '-') != '-':
            status = getattr(run, 'status', -1)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if self.args.verbose:
                print(getattr(run, 'dropped', ''), f'{self.name} {fault[0][:20]}:{fault[1]} {fault[2]}: {status} {run.hit}: {" | ".join(run.err().splitlines()[-2:])[-250:]}', flush=True)
        shutil.rmtree(run.folder)
        return run

    def points(self, name, error, count):
        """Which of the calls go wrong."""
        n = self.args.points
        if not n or n >= count:
            return range(1, count + 1)
        if self.args.random is not None:
            return sorted(random.Random(f'{self.args.random} {self.name} {name} {error}').sample(range(1, count + 1), n))
        return [1 + i * count // n for i in range(n)]


def faults_of(args, mode):
    """All that goes wrong in a mode. A run without a fault says how many calls there are."""
    if args.what in ('stop', 'clock'):
        mode.one((args.what, 'mxbpf', 0))
        return [(args.what, 'mxbpf', n) for n in ((1,) if args.what == 'stop' else (1, -1))]
    if args.what in LIMITS:
        n = LIMITS[args.what]
        chosen = n if not args.points else random.Random(f'{args.random} {mode.name}').sample(n, min(len(n), args.points))
        return [(args.what, 'limit', x) for x in chosen]
    names = [('malloc', 'ENOMEM')] if args.what == 'alloc' else [(KILL_AT, 'KILL')] if args.what == 'kill' else [tuple(x.split(':')) for x in re.split('[ ,]+', args.calls)]
    whole = mode.one((','.join(sorted({x[0] for x in names})), 'KILL', 0))
    counts = getattr(whole, 'counts', {})
    counts[KILL_AT] = counts['malloc'] = getattr(whole, 'count', 0)
    faults = [(name, error, n) for name, error in names for n in mode.points(name, error, counts.get(name, 0))]
    if args.sample:
        random.Random(f'{args.random} {mode.name}').shuffle(faults)
        faults = faults[:args.sample]
    return [(name, error, f'{n}+' if args.onward else n) for name, error, n in faults]


def serve_torch(args):
    args.socket = os.path.join(args.dir, f'socket.{os.getpid()}')
    said = args.socket + '.out'
    server = subprocess.Popen([args.python, os.path.join(os.path.dirname(HERE), 'fork_server.py'), 'serve', args.socket],
                              stdin=subprocess.DEVNULL, stdout=open(said, 'w'), stderr=subprocess.STDOUT)
    while server.poll() is None and not any(x.startswith('serving') for x in lines_of(said)):
        time.sleep(0.05)
    return server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=('call', 'kill', 'alloc', 'nofile', 'as', 'oom', 'stop', 'clock'))
    for name in ('--mxbpf', '--toy', '--dir'):
        parser.add_argument(name, required=True)
    parser.add_argument('--nth')
    parser.add_argument('--library')
    parser.add_argument('--ranges', default='.', help='folder of exported.so and header.so (tests/nvtx/ranges.c)')
    parser.add_argument('--hold', type=float, default=0)
    parser.add_argument('--also', default='', help='more options of mxbpf')
    parser.add_argument('--rounds', default='60', help='of the toy')
    parser.add_argument('--python')
    parser.add_argument('--socket', help='of a fork server that runs; else it is started with --python')
    parser.add_argument('--modes', default='tables')
    parser.add_argument('--calls', default=CALLS)
    parser.add_argument('--points', type=int, default=2)
    parser.add_argument('--sample', type=int, default=0)
    parser.add_argument('--random')
    parser.add_argument('--seconds', type=float, default=1e9)
    parser.add_argument('--lanes', type=int, default=2)
    for name in ('--onward', '--verbose', '--keep'):
        parser.add_argument(name, action='store_true')
    args = parser.parse_args()
    args.calls = {'disk': DISK}.get(args.calls, args.calls)
    for name in ('mxbpf', 'toy', 'dir', 'nth', 'library', 'ranges'):
        setattr(args, name, getattr(args, name) and os.path.abspath(getattr(args, name)))
    args.gpu = os.path.join(os.path.dirname(args.toy), 'gpu')
    args.did, args.attempted, args.until = {}, {}, time.monotonic() + args.seconds
    names, wrong = list(MODES) if args.modes == 'all' else args.modes.split(','), 0
    server, own = None, not args.socket
    with concurrent.futures.ThreadPoolExecutor(args.lanes) as pool:
        for name in names:
            # A server that nobody asks for ten minutes has ended.
            if own and MODES[name][0] in ('torch', 'nvtx', 'gpu') and (not server or server.poll() is not None):
                server = serve_torch(args)
            mode = Mode(args, name)
            begin = time.monotonic()
            list(pool.map(mode.one, faults_of(args, mode)))
            wrong += len(mode.wrong)
            print(f'{name}: {mode.runs} sessions in {time.monotonic() - begin:.0f} s, by status: {mode.statuses}; {len(mode.wrong)} wrong',
                  flush=True)
    if server:
        server.kill()
        server.wait()
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
