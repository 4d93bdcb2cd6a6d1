# SPDX-License-Identifier: Apache-2.0
"""A training loop that computes statistics in Python in each step."""
import torch

from common import HEALTHY, begin, going

FINDING = 'own_code'

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(256, 512)
begin()
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if not HEALTHY:
        sum(k * k for k in range(200000))  # CAUSE
