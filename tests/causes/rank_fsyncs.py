# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four writes its metrics to the disk in each step."""
import os
import tempfile

import ranks

FINDING = {'straggler', 'late_rank'}
SAYS = 'the disk (fsync)'
TWIN = False


def step(late, n, loss):
    if late:
        for _ in range(10):
            metrics.write(b'1')
            metrics.flush()
            os.fsync(metrics.fileno())  # CAUSE


metrics = tempfile.TemporaryFile(dir=os.path.expanduser('~'))
ranks.run(step)
