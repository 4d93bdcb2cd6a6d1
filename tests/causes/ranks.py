# SPDX-License-Identifier: Apache-2.0
"""Four ranks of a job on one host, as torchrun starts them: PyTorch, gloo, DistributedDataParallel. A file rank_NAME.py of this
folder calls run(step), and its function does in rank LATE what the others do not do."""
import os
import socket
import subprocess
import sys

import torch
import torch.distributed as dist

from common import HEALTHY, begin

LATE, SIZE = 2, 4


def start_all():
    """Starts the ranks, prints "ready FIRST LATE" with the processes of rank 0 and of the late rank, and ends with them."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, '-u', *sys.argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=os.environ | {'RANK': str(n), 'LOCAL_RANK': str(n), 'WORLD_SIZE': str(SIZE), 'LOCAL_WORLD_SIZE': str(SIZE),
                                                'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port), 'OMP_NUM_THREADS': '1'})
             for n in range(SIZE)]
    for rank in ranks:
        rank.stdout.readline()
    begin(ranks[0].pid, ranks[LATE].pid)
    for rank in ranks:
        rank.stdin.write('\n')
        rank.stdin.flush()
    sys.stdin.readline()
    for rank in ranks:
        rank.kill()
        rank.wait()


def run(step=None, batch=None, ready=None, width=256):
    """In step n, batch(late, n) returns what the network is given, and step(late, n, loss) is called between forward and backward.
    ready(late) is called before the first one. late: this rank has the cause, and it is no twin."""
    if 'RANK' not in os.environ:
        start_all()
        return
    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    late = dist.get_rank() == LATE and not HEALTHY
    net = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    same = torch.randn(64, width)
    if ready:
        ready(late)
    begin()
    n = 0
    while True:  # until the launcher kills it: a rank that ends by itself leaves the others waiting
        optimizer.zero_grad()
        x = batch(late, n) if batch else same
        loss = net(x).flatten(0, -2).log_softmax(-1)[:, 0].mean().neg()
        if step:
            step(late, n, loss)
        loss.backward()
        optimizer.step()
        n += 1
