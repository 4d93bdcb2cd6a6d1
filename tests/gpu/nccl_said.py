#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of torchrun on the mock of a GPU whose collectives have NCCL's ranges of NVTX (tests/nvtx/nccl.c), and the comparison of their
accounts with what mxbpf reports.

nccl_said.py DIR LIBRARY   a rank. It prints `ready PID`, waits for DIR/go, makes communicators and calls collectives in them: of all
                           ranks, of a second communicator of all ranks, and of two pairs side by side on the same stream as the others.
                           It writes DIR/rank.N.json
nccl_said.py DIR           compares the accounts with the operations of a report of mxbpf on standard input
"""
import collections
import ctypes
import json
import os
import sys
import time

from ranks import MS, accounts, end, until, wait_for_go

RANKS, STEPS = 4, 3
BEGIN, EACH_NS, LASTS_NS = 10 * MS, 130 * MS, 120 * MS  # a rank may be late by nearly as long as a kernel lasts
ALL, AGAIN, PAIRS = 0xabcdef0123456789, 0x1234, (0xfedcba9876543210, 0xfedcba9876543211)
SUM, MAX = 0, 2
KERNEL = "ncclDevKernel_%s_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def collectives(rank):
    """Yields kernel, calls, and what the row has: operation, communicator, its ranks, bytes, root, reduction."""
    pair, peer = PAIRS[rank // 2], 1 - rank % 2
    both = [2 * (rank // 2), 2 * (rank // 2) + 1]
    yield "AllReduce_Sum_f32", [("ncclAllReduce", ALL, 4000, SUM, 0)], ("all_reduce", ALL, RANKS, 4000, None, "sum")
    yield "AllReduce_Sum_f32", [("ncclAllReduce", pair, 4000, SUM, 0)], ("all_reduce", pair, len(both), 4000, None, "sum")
    yield "AllReduce_Max_f32", [("ncclAllReduce", AGAIN, 4000, MAX, 0)], ("all_reduce", AGAIN, RANKS, 4000, None, "max")
    yield "AllGather", [("ncclAllGather", ALL, 500, 0, 0)], ("all_gather", ALL, RANKS, 500 * RANKS, None, None)
    yield "ReduceScatter_Sum_f32", [("ncclReduceScatter", ALL, 600, SUM, 0)], ("reduce_scatter", ALL, RANKS, 600 * RANKS, None, "sum")
    yield "Broadcast", [("ncclBroadcast", ALL, 700, 1, 0)], ("broadcast", ALL, RANKS, 700, 1, None)
    yield "Reduce_Max_f32", [("ncclReduce", ALL, 800, 2, MAX)], ("reduce", ALL, RANKS, 800, 2, "max")
    # One kernel has all of a group.
    yield "AllReduce_Sum_f32", [("ncclAllReduce", pair, n, SUM, 0) for n in (10, 200, 3000)], \
        ("all_reduce", pair, len(both), 3210, None, "sum")
    yield "SendRecv", [("ncclSend", pair, 900, peer, 0), ("ncclRecv", pair, 900, peer, 0)], \
        ("send_recv", pair, len(both), 900, None, None)


def compare():
    ranks = accounts()
    told, wrong = collections.Counter(), []
    for rank in ranks:
        told.update(tuple(row) for row in rank["rows"])
    found = {}
    for row in json.load(sys.stdin)["collectives"]["operations"]:
        if row["backend"] != "nccl":
            continue
        key = tuple(row[name] for name in ("name", "communicator", "communicator_size", "bytes", "root", "reduction"))
        if key in found or row["source"] != "nvtx" or row["parts_matched"] != row["parts"]:
            wrong.append(f"row {row}")
        if row["world_size"] != row["communicator_size"] or row["calls"] * row["world_size"] != row["parts"]:
            wrong.append(f"group of row {row}")
        found[key] = row["parts"]
    wrong += [f"{key}: {found.get(key)} parts, told {told.get(key)}" for key in {*found, *told} if found.get(key) != told.get(key)]
    print(f"{len(ranks)} ranks, {sum(told.values())} parts", *wrong, sep="\n")
    return len(ranks) != RANKS or bool(wrong)


class Nccl:
    def __init__(self, path, ops, number):
        self.lib, self.ops, self.number = ctypes.CDLL(path), ops, number
        self.lib.nccl_push.argtypes = ctypes.c_char_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_int
        self.lib.nccl_init.argtypes = ctypes.c_uint64, ctypes.c_int, ctypes.c_int

    def start(self):
        self.lib.nccl_start()
        for comm, ranks, rank in ((ALL, RANKS, self.number), (AGAIN, RANKS, self.number),
                                  (PAIRS[self.number // 2], 2, self.number % 2)):
            self.lib.nccl_init(comm, ranks, rank)

    def push(self, call):
        assert not self.lib.nccl_push(call[0].encode(), *call[1:])

    def call(self, kernel, calls, end):
        """Runs a kernel that lasts until `end`."""
        group = len(calls) > 1
        if group:
            self.push(("ncclGroupStart", 0, 0, 0, 0))
            self.lib.nccl_pop()
            for call in calls:
                self.push(call)
                self.lib.nccl_pop()
        self.push(("ncclGroupEnd", 0, 0, 0, 0) if group else calls[0])
        self.ops.lib.gpuops_launch((KERNEL % kernel).encode(), max(end - time.monotonic_ns(), MS), 1)
        self.lib.nccl_pop()


def rank():
    number = int(os.environ["RANK"])
    os.environ["CUDA_VISIBLE_DEVICES"] = str(number)
    import torch
    import torch.distributed as dist

    from gpuops import Ops
    torch.set_num_threads(1)
    ops = Ops(os.path.join(os.environ.get("O", "build"), "gpu"), True)
    ops.lib.gpuops_init()
    nccl = Nccl(sys.argv[2], ops, number)
    dist.init_process_group("gloo")
    wait_for_go()
    nccl.start()
    clock, rows = torch.zeros(1, dtype=torch.int64), []
    for kernel, calls, row in STEPS * list(collectives(number)):
        clock[0] = max(time.monotonic_ns() + BEGIN, int(clock) + EACH_NS)
        dist.all_reduce(clock, dist.ReduceOp.MAX)
        until(int(clock) + number * MS)
        nccl.call(kernel, calls, int(clock) + LASTS_NS)
        rows.append((row[0], f"{row[1]:016x}", *row[2:]))
    end(ops, number, {"rank": number, "pid": os.getpid(), "rows": rows})


if __name__ == "__main__":
    sys.exit(rank() if len(sys.argv) > 2 else compare())
