# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four saves a checkpoint of 100 MB in every 20th step."""
import os
import tempfile

import torch

import ranks

FINDING = {'straggler', 'late_rank'}
TWIN = False


def step(late, n, loss):
    if late and n % 20 == 0:
        with tempfile.TemporaryFile() as f:
            torch.save(state, f)  # CAUSE
            f.flush()
            os.fsync(f.fileno())  # CAUSE


state = torch.zeros(25 << 20)
ranks.run(step)
