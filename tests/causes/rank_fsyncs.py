# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four writes its metrics to the disk in each step."""
import os
import tempfile
import time

import ranks

FINDING = {'straggler', 'late_rank'}
SAYS = 'the disk (fsync)'
TWIN = False


def step(late, n, loss):
    if late:
        until = time.perf_counter() + 0.03  # however fast the disk is
        while time.perf_counter() < until:
            metrics.write(b'1' * 65536)
            metrics.flush()
            os.fsync(metrics.fileno())  # CAUSE


metrics = tempfile.TemporaryFile(dir='/var/tmp')
ranks.run(step)
