# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four collects the garbage of a large heap in every seventh step."""
import gc

import ranks

FINDING = {'straggler', 'late_rank'}
TWIN = False


def ready(late):
    global heap
    heap = [[k] for k in range(1000000)] if late else []


def step(late, n, loss):
    if late and n % 7 == 0:
        gc.collect()  # CAUSE


ranks.run(step, ready=ready)
