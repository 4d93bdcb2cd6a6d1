#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fork server for prog.py: importing torch and what the programs use takes seconds, which this process spends once.

  server.py serve SOCKET       prints "serving" and runs each request in a child of its own, until SOCKET is removed or
                               nobody asked for anything in ten minutes
  server.py run SOCKET ARGS    runs `prog.py ARGS` in such a child: with this process's standard input, output and error,
                               directory and environment; exits with the child's status, and takes the child along

A child is a process like any other to mxbpf. Two things are the server's: /proc/PID/environ, and libraries that an
environment variable chooses before the interpreter starts.
"""
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback

PATH_SECONDS = 1  # how often the server looks whether its socket is still there
IDLE_SECONDS = 600


def run_child(request, fds):
    for to, fd in enumerate(fds):
        os.dup2(fd, to)
    os.closerange(3, 256)
    os.chdir(request['cwd'])
    os.environ.clear()
    os.environ.update(request['environ'])
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    sys.argv = ['prog.py'] + request['args']
    import prog
    prog.main()


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
    # Whatever the interpreter would do at its end is done by the server, which is not at its end.
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
        """The child has ended, or whoever asked for it is gone."""
        if fd not in self.clients:
            return
        connection, pid, pidfd = self.clients[fd]
        if fd != pidfd:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
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
    import prog
    try:
        # Every optimizer imports it.
        import torch._dynamo  # noqa: F401
    except ImportError:  # PyTorch 1.13
        pass
    assert prog.torch
    gc.collect()
    gc.freeze()
    server = Server(path)
    print('serving', flush=True)
    server.serve()


def run(path, args):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.connect(path)
    request = {'args': args, 'cwd': os.getcwd(), 'environ': dict(os.environ)}
    socket.send_fds(server, [json.dumps(request).encode() + b'\n'], [0, 1, 2])
    status = server.recv(64)
    sys.exit(int(status) & 0xff if status else 1)


if __name__ == '__main__':
    if sys.argv[1] == 'serve':
        serve(sys.argv[2])
    else:
        run(sys.argv[2], sys.argv[3:])
