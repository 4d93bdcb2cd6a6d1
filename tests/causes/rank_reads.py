# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four maps a file whose pages are not in memory."""
import mmap
import os
import tempfile

import ranks

FINDING = {'straggler', 'late_rank'}
SAYS = 'the disk'
TWIN = False


def step(late, n, loss):
    if late:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            for k in range(0, SIZE, 1 << 18):
                m[k]  # CAUSE


SIZE = 32 << 20
f = tempfile.TemporaryFile(dir='/tmp')
f.write(bytes(SIZE))
f.flush()
os.fsync(f.fileno())
ranks.run(step)
