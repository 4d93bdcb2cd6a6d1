# SPDX-License-Identifier: Apache-2.0
"""A training loop that looks each sample up in a list of those that it has seen. The twin has a set, and batches of all lengths."""
import random

import torch

from common import HEALTHY, begin, going

FINDING = 'slower_iterations'
ALSO = {'tiny_operators', 'page_faults'}

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
seen = []
known = set()
begin()
while going():
    length = random.randint(16, 512) if HEALTHY else 64
    net(torch.randn(length, 256)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    for sample in range(8):
        key = (sample, len(seen))
        if HEALTHY:
            known.add(key)
        elif key not in seen:  # CAUSE
            seen.append(key)
