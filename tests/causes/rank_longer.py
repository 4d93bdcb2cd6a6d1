# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four has longer sequences."""
import torch

import ranks

FINDING = {'straggler', 'late_rank'}
TWIN = False


def batch(late, n):
    return torch.randn(8, (200 if late else 30) + n % 7, 512)


ranks.run(batch=batch, width=512)
