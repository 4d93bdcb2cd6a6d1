#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank on the mock of NCCL (tests/gpu/double/nccl.c) with two process groups: one of nccl2 and one of the older class.

nccl.py STORE    RANK and WORLD_SIZE are in the environment. In each group in turn, all ranks do some collectives. Then all but the last
                 call another one, print `at GROUP RANK PID OPERATION NUMBER`, with the number that PyTorch says, and wait for the GPU.
                 The last one prints `late GROUP RANK PID`, and calls it after SIGUSR2.
"""
import os
import signal
import sys

import torch
import torch.distributed as dist


def hang(name, call, operation, before):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    for _ in range(before):
        call()
    torch.cuda.synchronize()
    if rank == last:
        os.write(1, b"late %s %d %d\n" % (name, rank, os.getpid()))
        signal.sigwait([signal.SIGUSR2])
    work = call()
    if rank != last:
        os.write(1, b"at %s %d %d %s %d\n" % (name, rank, os.getpid(), operation, work._get_sequence_number()))
    torch.cuda.synchronize()


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
dist.init_process_group("nccl2", init_method="file://" + sys.argv[1], rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]))
older = dist.new_group(backend="nccl-legacy")
tensor = torch.empty(1024, device="cuda")
hang(b"nccl2", lambda: dist.all_reduce(tensor, async_op=True), b"all_reduce", 3)
hang(b"older", lambda: dist.broadcast(tensor, 0, group=older, async_op=True), b"broadcast", 5)
dist.destroy_process_group()
os.write(1, b"result\n")
