#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of operators that Python catches. Each of them unwinds frames in which a tracer has probes.

Prints "ready PID", waits for SIGUSR1, fails --times times in each way (default 50), half as often in a second thread at the same
time, prints "caught N of N", then makes a training step and prints "result HASH". After each round of failures the first thread
makes that step, too, and exits with an error if its result differs. With --repeat it repeats the failures until SIGTERM.
"""
import argparse
import hashlib
import os
import signal
import sys
import threading

import torch
import torch.nn.functional as F

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


class Fails(torch.autograd.Function):
    """Raises in the given pass, with operators around it."""

    @staticmethod
    def forward(ctx, x, where):
        ctx.where = where
        y = x * 2
        if where == 'forward':
            raise ValueError('forward')
        return y

    @staticmethod
    def backward(ctx, grad):
        grad = grad + 1
        if ctx.where == 'operator':
            torch.mm(grad, grad)
        raise ValueError('backward')


@torch.jit.script
def scripted(x):
    return torch.mm(torch.relu(x), x)


def leaf():
    return torch.ones(3, 4, requires_grad=True)


def changed_in_place():
    x = leaf()
    y = x.exp()
    z = (y * y).sum()
    y.add_(1)
    z.backward()


def backward_twice():
    z = (leaf() ** 2).sum()
    z.backward()
    z.backward()


def through_hook():
    x = leaf()
    y = x * 2
    y.register_hook(lambda grad: torch.mm(grad, grad))
    y.sum().backward()


# Thrown by the shape check of an operator, its kernel, the dispatcher, the interpreter of TorchScript, the autograd engine, and
# Python code that the engine calls.
WAYS = {
    'shapes of mm': lambda: torch.mm(torch.ones(3, 4), torch.ones(3, 4)),
    'shapes of addmm under autograd': lambda: F.linear(leaf(), torch.ones(5, 3)),
    'shapes of conv2d': lambda: F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 2, 3, 3)),
    'broadcast in place': lambda: torch.ones(3).add_(torch.ones(2, 4)),
    'index': lambda: torch.ones(3, 4)[torch.tensor([7])],
    'index_select': lambda: torch.index_select(torch.ones(3, 4), 0, torch.tensor([9])),
    'embedding': lambda: F.embedding(torch.tensor([11]), torch.ones(10, 4)),
    'no kernel': lambda: torch.linalg.qr(torch.ones(3, 4).to_sparse()),
    'singular': lambda: torch.linalg.inv(torch.zeros(3, 3)),
    'dtype': lambda: torch.ones(3, 4) @ torch.ones(4, 3, dtype=torch.int64),
    'TorchScript': lambda: scripted(torch.ones(3, 4)),
    'changed in place before backward': changed_in_place,
    'backward twice': backward_twice,
    'custom forward': lambda: Fails.apply(leaf(), 'forward'),
    'custom backward': lambda: Fails.apply(leaf(), 'backward').sum().backward(),
    'operator in custom backward': lambda: Fails.apply(leaf(), 'operator').sum().backward(),
    'operator in hook': through_hook,
}


def fail(times, caught, result=None):
    for _ in range(times):
        for name, way in WAYS.items():
            try:
                way()
            except (RuntimeError, IndexError, ValueError, torch.jit.Error):
                caught[name] = caught.get(name, 0) + 1
        if result and step() != result:
            sys.exit('a step among failures has another result')


def fail_in_two_threads(times, result):
    here, there = {}, {}
    other = threading.Thread(target=fail, args=(times // 2, there))
    other.start()
    fail(times, here, result)
    other.join()
    for name in WAYS:
        if (here.get(name), there.get(name)) != (times, times // 2):
            sys.exit('%s: caught %s here, %s there' % (name, here.get(name), there.get(name)))
    return sum(here.values()) + sum(there.values())


def step():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 5))
    F.cross_entropy(net(torch.randn(4, 3, 8, 8)), torch.arange(4)).backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    digest = hashlib.sha256()
    for parameter in net.parameters():
        digest.update(parameter.grad.numpy().tobytes())
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--times', type=int, default=50)
    p.add_argument('--repeat', action='store_true')
    args = p.parse_args()
    stopped = []
    if args.repeat:
        signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    torch.set_num_threads(1)
    result = step()
    fail(2, {}, result)  # warm-up
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])

    caught = fail_in_two_threads(args.times, result)
    rounds = 1
    while args.repeat and not stopped:
        caught += fail_in_two_threads(args.times, result)
        rounds += 1
    print('caught %d of %d' % (caught, rounds * (args.times + args.times // 2) * len(WAYS)), flush=True)
    print('result', step(), flush=True)


main()
