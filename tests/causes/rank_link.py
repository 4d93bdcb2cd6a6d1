# SPDX-License-Identifier: Apache-2.0
"""The network between four ranks passes 25 MB a second, and no rank is late."""
import ctypes
import os
import subprocess

import ranks
from common import HEALTHY

FINDING = 'network'
WHO = False
TWIN = False  # that of rank_mismatch.py

if 'RANK' not in os.environ:
    ctypes.CDLL(None).unshare(0x40000000)  # CLONE_NEWNET: the ranks have a network of their own
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    if not HEALTHY:
        subprocess.run('tc qdisc add dev lo root tbf rate 200mbit burst 256kb latency 100ms'.split(), check=True)

ranks.run(lambda late, n, loss: None)
