#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training job with a fault that was planted on purpose, or with none. It knows nothing of mxbpf.

usage: torch_job.py FAULT [--seconds N]     prints "ready PID" after five steps; ends at SIGTERM or after N seconds
"""
import argparse
import os
import queue
import signal
import sys
import tempfile
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from common import compute_beside, own

KEPT = []


def net(width=256, depth=3):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


class Samples(Dataset):
    """256 features and a label; subclasses make it slow."""
    def __init__(self, count=100000, width=256):
        self.count = count
        self.row = torch.randn(width)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.row, i % 10


class Sleeping(Samples):
    def __getitem__(self, i):
        time.sleep(0.002)  # a slow remote store
        return super().__getitem__(i)


class Reading(Samples):
    """Each sample is read from a pipe that is slow, as a network file system is."""
    def __getitem__(self, i):
        if not hasattr(self, 'pipe'):
            r, w = os.pipe()
            if not os.fork():
                os.close(r)  # so that it ends with its reader
                while True:
                    time.sleep(0.002)
                    os.write(w, b'x' * 16)
            os.close(w)
            self.pipe = open(r, 'rb', buffering=0)
        self.pipe.read(16)
        return super().__getitem__(i)


class Decoding(Samples):
    def __getitem__(self, i):
        total = 0
        for k in range(6000):  # a decoder in Python
            total += k * i
        return super().__getitem__(i)[0] + total % 2, i % 10


def loop(args, data, workers=0, width=256, depth=3, batch=64, step=None):
    model = net(width, depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    loader = DataLoader(data, batch, num_workers=workers)
    n = 0
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            if step:
                step(n, model, x, loss)
            n += 1
            if n == 5:
                print('ready', os.getpid(), flush=True)


class Ready(Samples):
    """Batches that are made already."""
    def __getitems__(self, indices):
        return [(self.row, i % 10) for i in indices]


def batches(args, width=256, batch=64, depth=3, step=None, inner=None, lr=0.01, source=None):
    """Without a loader: the data is there, or the source yields it."""
    model = net(width, depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loss_of = nn.CrossEntropyLoss()
    x, y = torch.randn(batch, width), torch.randint(0, 10, (batch,))
    n = 0
    while True:
        if source:
            x, y = next(source)
        optimizer.zero_grad()
        out = model(x)
        if inner:
            out = inner(out)
        loss = loss_of(out, y)
        loss.backward()
        optimizer.step()
        if step:
            step(n, model, x, loss)
        n += 1
        if n == 5:
            print('ready', os.getpid(), flush=True)


def tiny(out):
    for i in range(400):
        out = out + 0.001
    return out


def leak(n, model, x, loss):
    KEPT.append(model[0](x).detach().clone())


def evaluate(n, model, x, loss):
    if n % 10 == 9:
        with torch.no_grad():
            for _ in range(30):
                torch.softmax(model(x), 1)


def checkpoint(n, model, x, loss):
    if n % 12 == 11:
        with tempfile.NamedTemporaryFile() as f:
            for _ in range(6):
                torch.save(model.state_dict(), f.name)


def compiled(length_of):
    """Training with torch.compile, which compiles anew for each length that it has not seen."""
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 100000
    model, n = net(64, 1), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.compile(lambda x: torch.softmax(model(x), 1).square().sum(), dynamic=False)
    while True:
        x = torch.randn(length_of(n), 64)
        optimizer.zero_grad()
        loss = loss_of(x)  # the compiler runs in this call
        loss.backward()
        optimizer.step()
        n += 1
        if n == 8:
            print('ready', os.getpid(), flush=True)


def faulting(n, model, x, loss):
    """glibc gives back what is free at the end of its heap, from its largest threshold on, and gets new pages each time."""
    blocks = [torch.empty(16 << 20, dtype=torch.uint8) for _ in range(6)]
    for block in blocks:
        block.fill_(1)


def queued():
    """A loader that the program has written itself: a thread that fills a queue from a slow store."""
    batches_of = queue.Queue(2)

    def fill():
        while True:
            time.sleep(0.03)  # a slow remote store
            batches_of.put((torch.randn(64, 256), torch.randint(0, 10, (64,))))
    threading.Thread(target=fill, daemon=True).start()
    while True:
        yield batches_of.get()


def straggler(args):
    """Two ranks of DistributedDataParallel, of which one has more to do. The other prints "ready"."""
    with tempfile.NamedTemporaryFile(delete=False) as f:
        torch.multiprocessing.start_processes(rank, (f.name,), 2, start_method='fork')


def rank(number, store):
    torch.distributed.init_process_group('gloo', f'file://{store}', rank=number, world_size=2)
    model = nn.parallel.DistributedDataParallel(net(128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 128), torch.randint(0, 10, (64,))
    n, parent = 0, os.getppid()
    while os.getppid() == parent:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if number:
            time.sleep(0.06)  # its samples are longer
        loss.backward()
        optimizer.step()
        n += 1
        if n == 5 and not number:
            print('ready', parent, flush=True)


def ranks(late):
    """Four ranks of torchrun, of which rank 2 may have more to do. Rank 0 prints the number of the launcher."""
    if 'RANK' not in os.environ:
        os.execv(sys.executable, [sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', '4', '--rdzv-backend',
                                  'c10d', '--rdzv-endpoint', 'localhost:0', os.path.abspath(__file__), *sys.argv[1:]])
    torch.distributed.init_process_group('gloo')
    number, n, parent = torch.distributed.get_rank(), 0, os.getppid()
    model = nn.parallel.DistributedDataParallel(net(64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y, large = torch.randn(16, 64), torch.randint(0, 10, (16,)), torch.randn(256, 256)
    while os.getppid() == parent:  # the launcher may be killed
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if late and number == 2:
            for _ in range(60):
                large.mm(large)  # its samples are longer
        loss.backward()
        optimizer.step()
        n += 1
        if n == 5 and not number:
            print('ready', parent, flush=True)


FAULTS = {
    'ranks-late': lambda a: ranks(True),
    'ranks-even': lambda a: ranks(False),
    'recompiles': lambda a: compiled(lambda n: 32 + n // 6),
    'healthy-compiled': lambda a: compiled(lambda n: 2048),
    'healthy': lambda a: batches(a, 512, 256),
    'healthy-loader': lambda a: loop(a, Ready(width=1024), 1, 1024, 3, 512),
    'healthy-wide': lambda a: batches(a, 1024, 256, 2),
    'healthy-deep': lambda a: batches(a, 384, 512, 8),
    'loader-sleeps': lambda a: loop(a, Sleeping(), 1),
    'loader-reads': lambda a: loop(a, Reading(), 1),
    'loader-decodes': lambda a: loop(a, Decoding(), 1),
    'loader-main': lambda a: loop(a, Decoding(), 0),
    'tiny': lambda a: batches(a, 32, 8, 2, inner=tiny),
    'threads': lambda a: (torch.set_num_threads(16), batches(a, 512, 256))[1],
    'leak': lambda a: batches(a, 512, 256, step=leak),
    'evaluation': lambda a: batches(a, 512, 128, step=evaluate),
    'checkpoint': lambda a: batches(a, 512, 128, step=checkpoint),
    'own': lambda a: batches(a, 512, 64, step=own),
    'queued': lambda a: batches(a, source=queued()),
    'lock': lambda a: (compute_beside(), batches(a, 512, 64))[1],
    'straggler': straggler,
    'faults': lambda a: batches(a, 256, 64, step=faulting),
}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('fault', choices=FAULTS)
    p.add_argument('--seconds', type=int, default=0)
    p.add_argument('--threads', type=int, default=1)
    args = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if args.seconds:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.alarm(args.seconds)
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    FAULTS[args.fault](args)


sys.exit(main())
