# SPDX-License-Identifier: Apache-2.0
"""Of the packets between four ranks, one in fifty is lost, and no rank is late."""
import ctypes
import os
import subprocess

import ranks
from common import HEALTHY

FINDING = 'network'
SAYS = 'are lost and sent again'
WHO = False
TWIN = False  # that of rank_mismatch.py

# Classic BPF: a random number that is in the largest fiftieth drops the packet (2), and others let it pass (0).
DROPS = '4,32 0 0 4294963256,53 0 1 4209067950,6 0 0 2,6 0 0 0'

if 'RANK' not in os.environ:
    ctypes.CDLL(None).unshare(0x40000000)  # CLONE_NEWNET: the ranks have a network of their own
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    if not HEALTHY:
        subprocess.run('tc qdisc add dev lo clsact'.split(), check=True)
        subprocess.run(['tc', 'filter', 'add', 'dev', 'lo', 'ingress', 'bpf', 'da', 'bytecode', DROPS], check=True)

ranks.run(lambda late, n, loss: None)
