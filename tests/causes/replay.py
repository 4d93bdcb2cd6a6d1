# SPDX-License-Identifier: Apache-2.0
"""A buffer of all samples so far, which each step concatenates."""
import torch

from common import begin, going

FINDING = 'slower_iterations'
TWIN = False

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters())
samples = []
begin()
while going():
    samples.append(torch.randn(16, 64))
    data = torch.cat(samples)  # CAUSE
    net(data[torch.randint(0, len(data), (32,))]).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
