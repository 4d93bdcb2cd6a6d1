# SPDX-License-Identifier: Apache-2.0
"""Launches a distributed job on this machine, like MXNet's tools/launch.py with its tracker, which the wheels do not include:
mxnet_job.py WORKERS PROGRAM [ARG...]. One scheduler, one server; the environment gives each process its role."""
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys



def free_port():
    """The scheduler binds it later, so it is below the range of ports that the kernel assigns."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("", port))
            except OSError:
                continue
        return port


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


workers, command = int(sys.argv[1]), sys.argv[2:]
env = dict(os.environ, DMLC_PS_ROOT_URI="127.0.0.1", DMLC_PS_ROOT_PORT=str(free_port()), DMLC_NUM_WORKER=str(workers),
           DMLC_NUM_SERVER="1", OMP_NUM_THREADS="1")
jobs = [("scheduler", None), ("server", 0)] + [("worker", i) for i in range(workers)]
children = []
for role, number in jobs:
    own = dict(env, DMLC_ROLE=role)
    if number is not None:
        own[f"DMLC_{role.upper()}_ID"] = str(number)
    children.append(subprocess.Popen([sys.executable, *command], env=own, preexec_fn=end_with_parent))
for child in children:
    child.wait()
sys.exit(max(child.returncode for child in children))
