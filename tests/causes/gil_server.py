# SPDX-License-Identifier: Apache-2.0
"""Threads of a server compute in Python, so one runs at a time. Those of the twin have nothing to do."""
import queue
import threading

import torch

from common import HEALTHY, begin, going

FINDING = 'interpreter_lock'

requests = queue.Queue()


def serve():
    while True:
        if HEALTHY:
            requests.get()
        sum(k * k for k in range(50000))  # CAUSE


for _ in range(4):
    threading.Thread(target=serve, daemon=True).start()
begin()
waits = threading.Event()
while going():
    torch.ones(1)
    waits.wait(0.1)
