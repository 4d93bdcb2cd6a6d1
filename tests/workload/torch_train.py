#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ordinary PyTorch training job: a CNN with data loading on the CPU. It knows nothing of mxbpf.

Prints "ready PID" after the first step and then a line per second; ends cleanly on SIGTERM and SIGINT.
The same --seed, --steps, --optimizer and --threads give bit-identical parameters.
"""
import argparse
import hashlib
import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 10
OPTIMIZERS = {
    'sgd': lambda parameters: torch.optim.SGD(parameters, lr=0.02, momentum=0.9),
    'adam': lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    'adam-foreach': lambda parameters: torch.optim.Adam(parameters, lr=1e-3, foreach=True),
    'adam-fused': lambda parameters: torch.optim.Adam(parameters, lr=1e-3, fused=True),
}


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--steps', type=int, default=0, help='training steps; 0: until a signal comes')
    p.add_argument('--seconds', type=float, default=0, help='end after so long; 0: no limit')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--batch', type=int, default=32)
    p.add_argument('--optimizer', choices=OPTIMIZERS, default='sgd')
    p.add_argument('--threads', type=int, default=1, help='threads within an operator')
    p.add_argument('--tiny', action='store_true', help='a small net on small images: many short operators')
    p.add_argument('--print-result', action='store_true', help='print a hash of the final parameters')
    p.add_argument('--repeat', action='store_true',
                   help='train --steps again and again from the same seed; fail when a result is not the first one')
    args = p.parse_args()
    if args.repeat and not args.steps:
        p.error('--repeat needs --steps')
    return args


def make_dataset(args):
    """Images of ten distinguishable classes: each has a bright square at a place of its own, in noise."""
    count, channels, size = (64, 1, 12) if args.tiny else (512, 3, 28)
    labels = torch.randint(0, CLASSES, (count,))
    images = 0.3 * torch.randn(count, channels, size, size)
    for image, label in zip(images, labels.tolist()):
        row, column = divmod(label, 4)
        image[:, 3 * row:3 * row + 3, 3 * column:3 * column + 3] += 1
    return TensorDataset(images, labels)


def make_net(tiny):
    colours, channels, units, size = (1, 4, 16, 12) if tiny else (3, 32, 128, 28)
    return nn.Sequential(
        nn.Conv2d(colours, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.BatchNorm2d(2 * channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * channels * (size // 4) ** 2, units), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(units, CLASSES))


def batches(loader):
    while True:
        yield from loader


def result(net):
    digest = hashlib.sha256()
    for _, value in sorted(net.state_dict().items()):
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def train(args, stopped, say_ready):
    """Returns the number of steps done and the trained net."""
    torch.manual_seed(args.seed)
    batch = min(args.batch, 16) if args.tiny else args.batch
    loader = DataLoader(make_dataset(args), batch, shuffle=True, drop_last=True)
    net = make_net(args.tiny)
    loss_of = nn.CrossEntropyLoss()
    optimizer = OPTIMIZERS[args.optimizer](net.parameters())

    begin = reported = time.monotonic()
    reported_step = 0
    for step, (data, label) in enumerate(batches(loader), 1):
        began = time.monotonic()
        optimizer.zero_grad()
        loss = loss_of(net(data), label)
        loss.backward()
        optimizer.step()
        now = time.monotonic()
        if step == 1 and say_ready:
            print('ready', os.getpid(), flush=True)
        if now - reported >= 1:
            print('step %d  %.1f steps/s  loss %.4f' % (step, (step - reported_step) / (now - reported), loss.item()),
                  flush=True)
            reported, reported_step = now, step
        if stopped or step == args.steps or (args.seconds and now - begin >= args.seconds):
            return step, net
        if args.tiny and not args.steps:
            time.sleep(min(3 * (now - began), 0.02))  # leaves CPU time for tests that run in parallel


def train_again(args, stopped, first):
    """Prints after each training how many of them have had the first one's result."""
    times = 1
    while not stopped:
        steps, net = train(args, stopped, False)
        if steps < args.steps:
            break
        if result(net) != first:
            sys.exit('result %d differs from the first' % (times + 1))
        times += 1
        print('equal', times, flush=True)


def main():
    args = parse_args()
    stopped = []
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda number, frame: stopped.append(number))
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # an ordinary job does not do that work
    steps, net = train(args, stopped, True)
    if args.print_result:
        print('result', steps, result(net), flush=True)
    if args.repeat and steps == args.steps:
        train_again(args, stopped, result(net))
    return 0


if __name__ == '__main__':
    sys.exit(main())
