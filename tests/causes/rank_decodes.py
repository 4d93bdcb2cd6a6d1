# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four computes in Python in each step, what the others do not do."""
import ranks

FINDING = {'straggler', 'late_rank'}
ALSO = {'exchange', 'own_threads'}


def step(late, n, loss):
    if late:
        sum(k * k for k in range(300000))  # CAUSE


ranks.run(step)
