#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fork server for PyTorch programs. Importing torch and the modules of its optimizers takes seconds, which it spends once.

  fork_server.py serve SOCKET              prints "serving PID" and runs each request in a child process, until SOCKET is
                                           removed or no request has come for 90 minutes
  fork_server.py run SOCKET SCRIPT ARGS    runs `python SCRIPT ARGS` in such a child, with this process's standard input,
                                           output and error, directory and environment. Exits with the child's status; if
                                           this process is killed, the server kills the child.

mxbpf sees an ordinary process. A child inherits three things from the server: /proc/PID/environ, effects of environment
variables on libraries at load time (OMP_NUM_THREADS is 1), and the outermost Python frames.
"""
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
import traceback

PATH_SECONDS = 1  # interval of the check that the socket still exists
IDLE_SECONDS = 5400  # longer than a run of all tests; a run that ends takes the socket away


def run_child(request, fds):
    for to, fd in enumerate(fds):
        os.dup2(fd, to)
    os.closerange(3, 256)
    os.chdir(request['cwd'])
    os.environ.clear()
    os.environ.update(request['environ'])
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    sys.argv = request['argv']
    script = sys.argv[0]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name='__main__')


def start_child(request, fds):
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return pid
    status = 1
    try:
        run_child(request, fds)
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # The interpreter's cleanup belongs to the server, so the child skips it.
    os._exit(status)


class Server:
    def __init__(self, path):
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(16)
        self.clients = {}  # connection's fd -> (connection, pid, pidfd)
        self.poll = select.poll()
        self.poll.register(self.listener, select.POLLIN)

    def accept(self):
        connection, _ = self.listener.accept()
        data, fds, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        while not data.endswith(b'\n'):
            more = connection.recv(1 << 20)
            if not more:
                break
            data += more
        pid = start_child(json.loads(data), fds)
        pidfd = os.pidfd_open(pid)
        self.clients[connection.fileno()] = self.clients[pidfd] = connection, pid, pidfd
        self.poll.register(connection, select.POLLIN)
        self.poll.register(pidfd, select.POLLIN)

    def end(self, fd):
        """The child has ended, or its client has."""
        if fd not in self.clients:
            return
        connection, pid, pidfd = self.clients[fd]
        if fd != pidfd:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0:  # a shell's exit status for a signal
            status = 128 - status
        for other in connection.fileno(), pidfd:
            self.poll.unregister(other)
            del self.clients[other]
        try:
            connection.sendall(b'%d' % status)
        except OSError:
            pass
        connection.close()
        os.close(pidfd)

    def serve(self):
        last = time.monotonic()
        while os.path.exists(self.path) and (self.clients or time.monotonic() < last + IDLE_SECONDS):
            for fd, _ in self.poll.poll(1000 * PATH_SECONDS):
                last = time.monotonic()
                if fd == self.listener.fileno():
                    self.accept()
                else:
                    self.end(fd)
        for _, pid, _ in self.clients.values():
            os.kill(pid, signal.SIGKILL)


def serve(path):
    os.environ['OMP_NUM_THREADS'] = '1'
    import torch
    # Every optimizer imports torch._dynamo, which PyTorch 1.13 does not have.
    for module in 'torch.profiler', 'torch._dynamo':
        try:
            importlib.import_module(module)
        except ImportError:
            pass
    assert torch.get_num_threads() == 1
    gc.collect()
    gc.freeze()
    server = Server(path)
    print('serving', os.getpid(), flush=True)
    server.serve()


def run(path, argv):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.connect(path)
    request = {'argv': argv, 'cwd': os.getcwd(), 'environ': dict(os.environ)}
    socket.send_fds(server, [json.dumps(request).encode() + b'\n'], [0, 1, 2])
    status = server.recv(64)
    sys.exit(int(status) if status else 1)


if __name__ == '__main__':
    if sys.argv[1] == 'serve':
        serve(sys.argv[2])
    else:
        run(sys.argv[2], sys.argv[3:])
