# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program for faults.py. Prints "ready PID", waits for SIGUSR1, calls an operator N times, prints the number of its calls
and the result as one line of JSON, waits for another SIGUSR1, and exits.

  job.py N
"""
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
n, x = int(sys.argv[1]), torch.full((4,), 0.5)
print('ready', os.getpid(), flush=True)
wait(1)
for _ in range(n):
    x = torch.sinh(x) / 2
print(json.dumps({'aten::sinh': n, 'bits': hashlib.md5(x.numpy().tobytes()).hexdigest()}), flush=True)
wait(2)
