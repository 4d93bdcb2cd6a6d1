# SPDX-License-Identifier: Apache-2.0
"""All four ranks may run on one CPU alone, which they have inherited from the shell that started them."""
import os

import ranks
from common import HEALTHY

FINDING = 'pinned'
WHO = False
TWIN = False  # that of rank_mismatch.py

if not HEALTHY:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

ranks.run(lambda late, n, loss: None)
