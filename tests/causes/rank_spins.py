# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four waits busily in a hook of its backward pass."""
import time

import ranks

FINDING = {'straggler', 'late_rank'}
ALSO = {'exchange', 'own_threads'}


def spin(grad):
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:  # CAUSE
        pass


def step(late, n, loss):
    if late:
        loss.register_hook(spin)


ranks.run(step)
