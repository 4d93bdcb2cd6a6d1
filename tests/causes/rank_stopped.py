# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four is stopped by a signal."""
import os
import signal

import ranks

FINDING = 'hang'
TWIN = False  # that of rank_mismatch.py


def step(late, n, loss):
    if late and n == 20:
        os.kill(os.getpid(), signal.SIGSTOP)  # CAUSE


ranks.run(step)
