# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four collects garbage in each 7th step, and has many objects."""
import gc

import ranks

FINDING = {'straggler', 'late_rank', 'collector'}
ALSO = {'exchange', 'own_threads'}

index = [{'path': [i], 'box': [i, [i]]} for i in range(150000)]


def step(late, n, loss):
    if late and n % 7 == 0:
        gc.collect()  # CAUSE


ranks.run(step)
