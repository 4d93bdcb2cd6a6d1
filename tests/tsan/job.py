# SPDX-License-Identifier: Apache-2.0
"""Trains in threads that live for a moment, with backward passes and user annotations."""
import threading

import torch

torch.set_num_threads(2)


def train():
    x = torch.randn(48, 48, requires_grad=True)
    for _ in range(20):
        with torch.autograd.profiler.record_function("step"):
            torch.relu(x @ x).sum().backward()
        x.grad = None


for _ in range(12):
    threads = [threading.Thread(target=train) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
