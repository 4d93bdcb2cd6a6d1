#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that torch.compile makes kernels of. A line on standard input requests calls of one.

Prints "ready PID"; for each line "FUNCTION TIMES" calls FUNCTION that often and prints "done FUNCTION". Ends at "end 0" and at
the end of its input.
"""
import os
import sys

import torch

torch.set_num_threads(1)


@torch.compile
def first(x, y):
    return (torch.sin(x) * y).relu().sum(dim=0)


@torch.compile
def second(x, y):
    return (torch.cos(x) + y * 2).sigmoid().sum(dim=1)


def main():
    x, y = torch.ones(64, 64), torch.full((64, 64), 2.0)
    functions = {'first': first, 'second': second}
    print('ready', os.getpid(), flush=True)
    for line in sys.stdin:
        name, times = line.split()
        if name == 'end':
            break
        for _ in range(int(times)):
            functions[name](x, y)
        print('done', name, flush=True)


if __name__ == '__main__':
    main()
