#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker of torchrun: trains under DistributedDataParallel on gloo, with a collective of each kind, all of it under
torch.profiler, and writes the counts to RANK.json as {pid, rows: {name: count}}.
"""
import json
import os

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile


def train(model, optimizer, rank):
    model(torch.full((2, 8), float(rank + 1))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def collect(rank):
    t, parts = torch.ones(4), [torch.zeros(4) for _ in range(2)]
    dist.all_reduce(t)
    dist.all_reduce(t, async_op=True).wait()
    dist.broadcast(t, 0)
    dist.reduce(t, 0)
    dist.barrier()
    dist.all_gather(parts, t)
    dist.all_gather_into_tensor(torch.zeros(8), t)
    dist.all_gather_object([None, None], rank)
    dist.scatter(t, parts if rank == 0 else None, 0)
    dist.gather(t, parts if rank == 0 else None, 0)
    dist.send(t, 1) if rank == 0 else dist.recv(t, 0)


def main():
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    with profile(activities=[ProfilerActivity.CPU]) as p:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            train(model, optimizer, rank)
            collect(rank)
    with open(f'{rank}.json', 'w', encoding='utf-8') as f:
        json.dump({'pid': os.getpid(), 'rows': {e.key: e.count for e in p.key_averages()}}, f)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
