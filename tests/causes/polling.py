# SPDX-License-Identifier: Apache-2.0
"""A thread asks a queue ten thousand times a second whether there is something. The twin's waits for it."""
import queue
import threading
import time

import torch

from common import HEALTHY, begin, going

FINDING = 'polling'

results = queue.Queue()


def collect():
    while True:
        if not HEALTHY:
            while results.empty():
                time.sleep(0.0001)  # CAUSE
        results.get()


torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(256, 512)
threading.Thread(target=collect, daemon=True).start()
begin()
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
