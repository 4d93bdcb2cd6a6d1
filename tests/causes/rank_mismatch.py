# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four calls broadcast after 20 steps, while the others average their gradients."""
import torch
import torch.distributed as dist

import ranks

FINDING = 'hang'
ALSO = {'exchange', 'own_threads'}


def step(late, n, loss):
    if late and n == 20:
        dist.broadcast(torch.zeros(4), 0)  # CAUSE


ranks.run(step)
