#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job under torch.profiler: writes its trace to the first argument, and prints the profiler's own table. A second one: with
Python stacks."""
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()


step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
             with_stack=len(sys.argv) > 2) as profiler:
    for _ in range(5):
        with record_function("planted step"):
            step()
profiler.export_chrome_trace(sys.argv[1])
print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1))
