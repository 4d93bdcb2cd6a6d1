# SPDX-License-Identifier: Apache-2.0
"""A job whose four threads share one CPU, because of its affinity."""
import os

import torch

from common import HEALTHY, begin, going

FINDING = 'pinned'
ALSO = {'own_threads'}

if not HEALTHY:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
torch.set_num_threads(1 if HEALTHY else 4)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(256, 512)
begin()
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
