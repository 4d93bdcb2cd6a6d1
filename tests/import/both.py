#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training loop that profiles forty of its steps when a file named "go" is there, writes both.json and ends."""
import os

import torch
from torch.profiler import ProfilerActivity, profile

torch.set_num_threads(1)
net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(128, 256)


def step():
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()


step()
print("ready", os.getpid(), flush=True)
while not os.path.exists("go"):
    step()
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    for _ in range(40):
        step()
profiler.export_chrome_trace("both.json")
