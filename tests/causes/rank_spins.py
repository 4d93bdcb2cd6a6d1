# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four waits busily in a hook of its backward pass."""
import logging
import os
import time

import ranks
from common import HEALTHY

FINDING = {'straggler', 'late_rank'}
ALSO = {'exchange', 'own_threads'}


def spin(grad):
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:  # CAUSE
        pass


def step(late, n, loss):
    if late:
        loss.register_hook(spin)
    elif HEALTHY:  # rank 0 logs a little, and the ranks differ by a few percent
        if os.environ['RANK'] == '0' and n % 50 == 0:
            logging.warning('step %d', n)
        sum(range(100000 + 1000 * int(os.environ['RANK'])))


ranks.run(step)
