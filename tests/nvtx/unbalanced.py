# SPDX-License-Identifier: Apache-2.0
"""Pushes and pops of NVTX that do not fit the operators around them: some inside an operator, some without the other.

usage: unbalanced.py ROUNDS LIBNVTOOLSEXT
"""
import ctypes
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

rounds, nvtx = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
push, pop = nvtx.nvtxRangePushA, nvtx.nvtxRangePop


class Inside(TorchDispatchMode):
    """Calls a function in the middle of each operator."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.call()
        return func(*args, **(kwargs or {}))


x = torch.ones(64, 64)
for _ in range(rounds):
    with Inside(pop):  # without its push
        torch.mm(x, x)
    with Inside(lambda: push(b"inside")):
        torch.add(x, x)
    torch.neg(x)
    pop()
    push(b"early")
    with Inside(pop):
        torch.sub(x, x)
    torch.abs(x)
for _ in range(rounds):
    push(b"never popped")
    torch.exp(x)
