#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch loop with planted changes: one operator, the memory of an iteration or the loading of data takes PERCENT more.

usage: job.py SECONDS [op|memory|data PERCENT]...    prints "ready PID" after some steps, and the number of steps at the end
environment: STOP_READY=1: it stops itself when it is ready
"""
import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SECONDS = float(sys.argv[1])
PLANTED = {what: 1 + float(percent) / 100 for what, percent in zip(sys.argv[2::2], sys.argv[3::2])}
DEPTH, LOAD_S, SCRATCH_BYTES, BATCH = 1000, 0.002, 32 << 20, 8
torch.set_num_threads(1)
torch.manual_seed(1)


class Samples(Dataset):
    """Loading a batch takes LOAD_S in the program's own process, without work for the CPU."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        if not i % BATCH:
            time.sleep(LOAD_S * PLANTED.get('data', 1))
        return torch.ones(3, 16, 16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 16 * 16, 10)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).flatten(1))


def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    # The time of this product is proportional to the depth, and it fits the caches: 5 % more work take 5 % more time.
    depth = round(DEPTH * PLANTED.get('op', 1))
    left, right, product = torch.rand(1, 128, depth), torch.rand(1, depth, 400), torch.empty(1, 128, 400)
    small, soft = torch.ones(500, 64), torch.empty(500, 64)
    scratch = torch.empty(int(SCRATCH_BYTES * PLANTED.get('memory', 1)), dtype=torch.uint8)
    steps, begin = 0, time.monotonic()
    for x in DataLoader(Samples(), BATCH):
        optimizer.zero_grad()
        with torch.no_grad():
            torch.bmm(left, right, out=product)
            for _ in range(4):
                torch.softmax(small, 1, out=soft)
                torch.tanh(small, out=soft)
        held = torch.empty_like(scratch)
        net(x).sum().backward()
        del held
        optimizer.step()
        steps += 1
        if steps == 5:
            print('ready', os.getpid(), flush=True)
            if 'STOP_READY' in os.environ:
                os.kill(os.getpid(), signal.SIGSTOP)
                begin = time.monotonic()
        if time.monotonic() - begin > SECONDS:
            break
    print('steps', steps, flush=True)


if __name__ == '__main__':
    main()
