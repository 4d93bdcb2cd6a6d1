# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program with an operator of a known duration, `soak::rest`. Prints "ready PID"; ends at SIGTERM."""
import os
import signal
import sys
import time

import torch

REST_S = 0.002

library = torch.library.Library('soak', 'DEF')
library.define('rest(Tensor x) -> Tensor')


def rest(x):
    time.sleep(REST_S)
    return x + 1


library.impl('rest', rest, 'CompositeExplicitAutograd')
torch.set_num_threads(1)
x = torch.randn(32, 32)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('ready', os.getpid(), flush=True)
while True:
    torch.ops.soak.rest(x)
    x.mm(x)
