# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program for faults.py. Prints "ready PID", waits for SIGUSR1, calls an operator N times, prints the number of its calls
and the result as one line of JSON, waits for another SIGUSR1, and exits. With a library of tests/nvtx/ranges.c it has N of each of its
ranges, too.

  job.py N [LIBRARY]
"""
import ctypes
import hashlib
import json
import os
import signal
import sys
import time

import torch

told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))


def wait(times):
    """Calls another operator meanwhile, at whose start the agent can be loaded."""
    while len(told) < times:
        torch.cos(x)
        time.sleep(0.005)


torch.set_num_threads(1)
n, x, ranges = int(sys.argv[1]), torch.full((4,), 0.5), {}
library = ctypes.CDLL(sys.argv[2]) if sys.argv[2:] else None
print('ready', os.getpid(), flush=True)
wait(1)
for _ in range(n):
    x = torch.sinh(x) / 2
if library:
    threads = library.ranges_run(n, 0, b'/dev/null')
    ranges = {'outer': threads * n, 'inner': threads * n}
print(json.dumps({'aten::sinh': n, **ranges, 'bits': hashlib.md5(x.numpy().tobytes()).hexdigest()}), flush=True)
wait(2)
