#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills mxbpf while the kernel changes the code of a job, and tells how many changed bytes stay in the job.

usage: killed.py MXBPF PID TIMES attach|detach|group [OPTION...]

An undisturbed session first shows where the probes are. In each of TIMES sessions, one of these bytes is read without pause.
When it changes (attach) or changes back (detach), mxbpf gets SIGKILL, every other time with its process group. Prints a line
for each session, of which TIMES are killed before they have ended by themselves: how many of the bytes are still changed when
the kernel has had time to restore them.

With "group" instead, each process of mxbpf gets SIGKILL in an attach, as if its control group were killed. Then an undisturbed
session follows each, and the line tells how many of the bytes are still changed after that.
"""
import contextlib
import glob
import os
import random
import signal
import subprocess
import sys
import time

PIECE = 1 << 20
LIMIT_S = 30
GROUP_S = 0.5


def start(command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0)


def until_attached(p):
    for line in p.stderr:
        if "attached:" in line:
            return
    sys.exit(f"mxbpf ended with {p.wait()} before it was attached")


def code_of(pid):
    """Begin, end, offset and file of each mapping of code of a PyTorch library."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            f = line.rstrip("\n").split(maxsplit=5)
            if len(f) > 5 and "x" in f[1] and "/libtorch" in f[5]:
                begin, end = (int(x, 16) for x in f[0].split("-"))
                yield begin, end, int(f[2], 16), f[5]


def changed(mem, pid):
    """Address and original byte of each byte that differs from the file."""
    at = {}
    for begin, end, offset, path in code_of(pid):
        with open(path, "rb") as file:
            for a in range(begin, end, PIECE):
                n = min(PIECE, end - a)
                was = os.pread(file.fileno(), n, offset + a - begin)
                now = os.pread(mem, n, a)
                if was != now:
                    at.update((a + i, was[i:i + 1]) for i in range(n) if was[i] != now[i])
    return at


def whole_session(command, look=lambda: None):
    p = start(command)
    until_attached(p)
    seen = look()
    p.send_signal(signal.SIGINT)
    p.communicate()
    return seen


def children_of(pid):
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path) as children:
            yield from children.read().split()


def kill(p, phase, i):
    if phase == "group":
        for pid in [*children_of(p.pid), p.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    elif i % 2:
        os.killpg(p.pid, signal.SIGKILL)
    else:
        p.kill()


def left(mem, sites, seconds=LIMIT_S):
    limit = time.monotonic() + seconds
    while True:
        n = sum(os.pread(mem, 1, a) != was for a, was in sites.items())
        if not n or time.monotonic() > limit:
            return n


def main():
    pid, times, phase = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    command = [sys.argv[1], "--exact", "--pid", str(pid), "--force", "--output", os.devnull, *sys.argv[5:]]
    mem = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    sites = whole_session(command, lambda: changed(mem, pid))
    print("sites", len(sites), "left", left(mem, sites), flush=True)
    i = 0
    while i < times:
        at = random.choice(list(sites))
        p = start(command)
        if phase == "detach":
            until_attached(p)
            p.send_signal(signal.SIGINT)
        while (os.pread(mem, 1, at) == sites[at]) == (phase != "detach") and p.poll() is None:
            pass
        kill(p, phase, i)
        status = p.wait()
        if phase == "group":
            print("before the next session", left(mem, sites, GROUP_S), flush=True)
            whole_session(command)
        print("killed" if status == -signal.SIGKILL else f"ended first with {status}", "left", left(mem, sites), flush=True)
        i += status == -signal.SIGKILL


if __name__ == "__main__":
    main()
