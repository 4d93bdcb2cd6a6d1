#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks send each other a tensor of 4,000 bytes twenty times, by gloo."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x, other = torch.ones(1000), 1 - dist.get_rank()
for _ in range(20):
    torch.ones(2).add_(1)
    work = dist.irecv(x, other)
    dist.send(x, other)
    work.wait()
dist.destroy_process_group()
