# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four compiles a function anew in each step, because it gets another length each time."""
import torch

import ranks

FINDING = {'straggler', 'late_rank', 'compiling'}
SAYS = 'compiles'
TWIN = False

for limit in ('recompile_limit', 'accumulated_recompile_limit'):
    setattr(torch._dynamo.config, limit, 10 ** 6)


@torch.compile(backend='aot_eager', dynamic=False)
def scale(x):
    return torch.relu(x * 2).sum()


def step(late, n, loss):
    if late:
        scale(torch.zeros(16 + n))  # CAUSE


ranks.run(step)
