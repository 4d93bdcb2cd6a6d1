# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four catches an exception, and tries again later."""
import time

import ranks

FINDING = {'straggler', 'late_rank', 'exceptions'}
SAYS = 'sleeps'
TWIN = False


def fetch(n):
    for k in range(3):
        try:
            raise ConnectionError('no route')
        except ConnectionError:
            time.sleep(0.005 * 2 ** k)  # CAUSE


def step(late, n, loss):
    if late:
        fetch(n)


ranks.run(step)
