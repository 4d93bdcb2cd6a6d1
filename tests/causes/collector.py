# SPDX-License-Identifier: Apache-2.0
"""The program holds an index of many objects, and each step makes more objects, so Python collects garbage again and again. The twin
has no reference cycles and runs without the collector."""
import gc

import torch

from common import HEALTHY, begin, going

FINDING = 'collector'

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(256, 512)
index = [{'path': [i], 'box': [i, [i]]} for i in range(300000)]
gc.collect()
if HEALTHY:
    gc.disable()
seen = []
begin()
n = 0
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    n += 1
    if n % 100 == 0:
        seen.clear()
    seen.extend([{'state': [k], 'action': [n, [k]]} for k in range(600)])  # CAUSE
