# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four has fewer batches, and uploads its results at its exit while the others wait for it in the next step."""
import atexit
import sys
import time

import ranks

FINDING = 'hang'
TWIN = False  # that of rank_mismatch.py


def upload():
    time.sleep(1000)  # CAUSE


def step(late, n, loss):
    if late and n == 20:
        atexit.register(upload)
        sys.exit()


ranks.run(step)
