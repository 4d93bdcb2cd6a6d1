# SPDX-License-Identifier: Apache-2.0
"""A thread looks for a file without a pause, beside a loop that trains."""
import os
import threading

import torch

from common import begin, going

FINDING = 'polling'
TWIN = False  # that of polling.py


def watch():
    while not os.path.exists('/nonexistent/stop'):  # CAUSE
        pass


torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(256, 512)
threading.Thread(target=watch, daemon=True).start()
begin()
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
