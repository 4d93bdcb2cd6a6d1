# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job that attacks the mxbpf that is attached to it. The attacks are in evil_*.c.

usage: job.py ATTACK EVIL.so AGENT.so FILE OFFSETS [--gpu DIRECTORY] [--child] [--namespace]

Prints "ready PID" and calls operators until it is killed. OFFSETS are those of the agent's configuration, bell and switch.
  --gpu        launch kernels of the mock of a GPU in DIRECTORY
  --child      fork an honest child first, which prints "child PID". At SIGUSR1 it calls aten::sin 1000 times, prints "did"
  --namespace  run in a pid namespace of its own
"""
import ctypes
import os
import signal
import sys
import time

import torch

CLONE_NEWPID = 0x20000000
PR_SET_PDEATHSIG = 1


def honest(ready):
    def work(*_):
        for _ in range(1000):
            torch.sin(a)
        print("did", flush=True)

    a = torch.ones(8)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGUSR1, work)
    os.write(ready, b"x")
    while True:
        signal.pause()


def fork_honest():
    """Starts the honest child. Prints its number when it is ready, because lines of two processes could mix."""
    ready = os.pipe()
    pid = os.fork()
    if not pid:
        honest(ready[1])
    os.read(ready[0], 1)
    print("child", pid, flush=True)


def enter_namespace():
    """Returns in a child process, which is process 1 of a namespace and ends with this one. Prints "ready PID" for it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWPID):
        sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
    ready = os.pipe()
    pid = os.fork()
    if not pid:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return ready[1]
    os.read(ready[0], 1)
    print("ready", pid, flush=True)
    os.waitpid(pid, 0)
    os._exit(0)


def main():
    attack, library, agent, file, offsets = sys.argv[1:6]
    torch.set_num_threads(1)
    a = torch.ones(8, 8)
    ops = None
    ready = enter_namespace() if "--namespace" in sys.argv else None
    if "--child" in sys.argv:
        fork_honest()
    if "--gpu" in sys.argv:
        directory = sys.argv[sys.argv.index("--gpu") + 1]
        ctypes.CDLL(os.path.join(directory, "libcupti.so.12"))
        ops = ctypes.CDLL(os.path.join(directory, "libgpuops.so"))
        ops.gpuops_launch.argtypes = ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint
        ops.gpuops_launch(b"kernel", 1000, 0)
    offs = (ctypes.c_ulong * 3)(*[int(off, 16) for off in offsets.split()])
    evil = ctypes.CDLL(library)
    if evil.evil(attack.encode(), agent.encode(), file.encode(), offs):
        sys.exit("no such attack: " + attack)
    if ready is None:
        print("ready", os.getpid(), flush=True)
    else:
        os.write(ready, b"x")
    while True:
        for _ in range(20):
            a * 2 + 1
        if ops:
            ops.gpuops_launch(b"kernel", 1000, 0)
        time.sleep(0.001)


main()
