#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training loops of PyTorch, with the accounts of mxnet_loops.py.

usage: torch_loops.py MODE...    prints a line of JSON for each
"""
import json
import os
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

STEPS, SLOW, BATCH = 20, 12, 8
NAP, LONG_NAP = 0.01, 0.6
torch.set_num_threads(1)


class Samples(Dataset):
    """The slow step's batch takes much longer than the others."""

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, i):
        time.sleep(1 if i == SLOW * BATCH else 0.06 / BATCH)
        return torch.ones(10)


def loop(batches=None, passes=1, second=False, rival=False):
    ends, net = [], torch.nn.Linear(10, 4)
    first = torch.optim.SGD(net.parameters(), lr=0.01)
    other = torch.optim.Adam(net.parameters())
    for x in batches or [torch.ones(BATCH, 10)] * STEPS:
        if not batches:
            time.sleep(LONG_NAP if len(ends) == SLOW else NAP)
        first.zero_grad()
        for _ in range(passes):
            net(x).sum().backward()
        first.step()
        if second:
            other.step()
        ends.append(time.perf_counter_ns())
        if rival:
            other.zero_grad()
            net(x).sum().backward()
            other.step()
    took = [b - a for a, b in zip(ends, ends[1:])]
    return {'steps': len(ends), 'ns': ends[-1] - ends[0], 'slow': 1 + took.index(max(took)), 'planted': SLOW,
            'thread': threading.get_native_id()}


def beside():
    """A loop in each of two threads, with optimizers of one class (after pytorch/pytorch issue 32883). Tells that of the first."""
    said = []
    threads = [threading.Thread(target=lambda k=k: said.append(loop([torch.ones(BATCH, 10)] * k))) for k in (3 * STEPS, 5 * STEPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in said[1:]:
        print(json.dumps(dict(one, mode='beside', pid=os.getpid())), flush=True)
    return said[0]


MODES = {
    'plain': loop,
    'accumulate': lambda: loop(passes=3),
    'two': lambda: loop(second=True),
    'rivals': lambda: loop(rival=True),
    'beside': beside,
    'loader': lambda: loop(DataLoader(Samples(), BATCH)),
}


def main():
    for mode in sys.argv[1:]:
        pid = os.fork()
        if not pid:
            print(json.dumps(dict(MODES[mode](), mode=mode, pid=os.getpid())), flush=True)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
