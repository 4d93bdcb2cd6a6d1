# SPDX-License-Identifier: Apache-2.0
"""Ranges with the names of PyTorch's emit_nvtx(), which needs a GPU itself: forward operators and their backward nodes.

usage: emitted.py ROUNDS LIBNVTOOLSEXT     After "ready PID" it waits for SIGUSR1.
"""
import ctypes
import os
import signal
import sys
import time

import nvtx  # whose own functions are those of the headers
import torch

rounds, lib = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
push, pop = lib.nvtxRangePushA, lib.nvtxRangePop
x = torch.ones(8, 8)
going = []
signal.signal(signal.SIGUSR1, lambda *_: going.append(1))
print("ready", os.getpid(), flush=True)
while not going:
    time.sleep(0.005)
for i in range(rounds):
    push(b"aten::mm, seq = %d, op_id = %d, sizes = [[8, 8], [8, 8]]" % (i, 3 * i))
    pop()
for i in reversed(range(rounds)):
    push(b"autograd::engine::evaluate_function: MmBackward0, seq = %d, op_id = %d" % (i, 3 * i + 1))
    push(b"MmBackward0, seq = %d, op_id = %d" % (i, 3 * i + 2))
    push(b"aten::t, op_id = %d" % i)
    pop()
    pop()
    pop()
torch.mm(x, x)
