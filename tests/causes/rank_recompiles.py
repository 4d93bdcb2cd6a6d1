# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four compiles its loss anew for each length."""
import torch

import ranks

FINDING = {'straggler', 'late_rank'}
ALSO = {'exchange', 'own_threads'}


@torch.compile(backend='eager', dynamic=False)
def penalty(x):
    return (x * x).sum() + x.mean()


def step(late, n, loss):
    if late:
        torch._dynamo.config.cache_size_limit = 1 << 20
        penalty(torch.zeros(10 + n % 3000))  # CAUSE


ranks.run(step)
