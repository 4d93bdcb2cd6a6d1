#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four ranks of torchrun that hang, and know nothing of mxbpf.

usage: ranks.py missing | mismatch
Each rank writes "at RANK PID NUMBER", where NUMBER is that of the process group's next collective, and hangs in it. With
missing, rank 2 waits for SIGUSR2 before it; then all go on, and rank 0 writes "result SUM". With mismatch, rank 0 calls
all_reduce, rank 1 broadcast, and rank 2 sends something to rank 3 that does not expect it."""
import os
import signal
import sys

import torch
import torch.distributed as dist


def say(text):
    os.write(1, (text + '\n').encode())  # whole lines, although four processes write


def load():
    signal.sigwait({signal.SIGUSR2})


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
dist.init_process_group('gloo')
rank, x = dist.get_rank(), torch.ones(4)
for _ in range(7):
    dist.all_reduce(torch.ones(4))
say(f'at {rank} {os.getpid()} {dist.distributed_c10d._get_default_group()._get_sequence_number_for_group() + 1}')
if sys.argv[1] == 'mismatch' and rank == 1:
    dist.broadcast(x, 0)
if sys.argv[1] == 'mismatch' and rank == 2:
    dist.send(x, 3, tag=1)
if sys.argv[1] == 'mismatch' and rank == 3:
    dist.recv(x, 2, tag=2)
if sys.argv[1] == 'missing' and rank == 2:
    load()
dist.all_reduce(x)
if not rank:
    say(f'result {x.sum().item()}')
dist.destroy_process_group()
