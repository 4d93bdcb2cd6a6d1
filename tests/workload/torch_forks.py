#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forks child processes that use PyTorch, as lines of its standard input request:
    children N      N successive children; each runs aten::cosh OPERATORS times and ends
    exec            a child runs aten::cosh OPERATORS times and then execs a program that runs aten::sinh as often
    loader N        N epochs, for each of which a DataLoader starts new workers
    run N           runs aten::tan N times in this process
Prints "done" after each line."""
import os
import sys

import torch

OPERATORS = 7

torch.set_num_threads(1)
ones = torch.ones(2, 2)


def run(operator, times):
    for _ in range(times):
        operator(ones)


class Products(torch.utils.data.Dataset):
    """Workers of a real loader, with some operators per item, some of them nested."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        x = torch.ones(8, 8)
        for _ in range(20):
            x = torch.matmul(x, x) * 0.1
        return x


def child(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def become_another():
    run(torch.cosh, OPERATORS)
    os.execv(sys.executable, [sys.executable, __file__, 'sinh'])


def main():
    print('ready', os.getpid(), flush=True)
    for line in sys.stdin:
        what, *count = line.split()
        count = int(count[0]) if count else 1
        if what == 'children':
            for _ in range(count):
                child(lambda: run(torch.cosh, OPERATORS))
        elif what == 'exec':
            child(become_another)
        elif what == 'loader':
            for _ in range(count):
                for batch in torch.utils.data.DataLoader(Products(), batch_size=2, num_workers=2):
                    torch.matmul(batch, batch)
        elif what == 'run':
            run(torch.tan, count)
        print('done', flush=True)


if __name__ == '__main__':
    run(torch.sinh, OPERATORS) if sys.argv[1:] == ['sinh'] else main()
