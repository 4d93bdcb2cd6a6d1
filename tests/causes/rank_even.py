# SPDX-License-Identifier: Apache-2.0
"""Four even ranks, whose rank 0 logs a little, and which are uneven by 3 percent."""
import logging
import os

import ranks

FINDING = {'straggler', 'late_rank'}
ALSO = {'exchange', 'own_threads'}


def step(late, n, loss):
    if os.environ['RANK'] == '0' and n % 50 == 0:
        logging.warning('step %d', n)
    sum(k for k in range(50000 + 500 * int(os.environ['RANK'])))


ranks.run(step)
