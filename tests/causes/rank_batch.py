# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four has batches four times as large."""
import torch

import ranks

FINDING = {'straggler', 'late_rank'}
TWIN = False


def batch(late, n):
    return torch.randn(2048 if late else 256, 512)


ranks.run(batch=batch, width=512)
