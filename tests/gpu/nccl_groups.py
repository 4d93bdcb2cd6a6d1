#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks with two process groups for NCCL, one of nccl2 and one of the older class, on the mocks of NCCL and of a GPU, and the
comparison of their accounts with what mxbpf reports.

nccl_groups.py DIR LIBRARY   a rank: RANK is in the environment, LIBRARY has the ranges of NCCL. It prints `ready PID`, waits for DIR/go,
                             and then calls a collective in each group in turn. The second rank is late. It writes DIR/rank.N.json
nccl_groups.py DIR           compares the accounts with a report of mxbpf on standard input
"""
import ctypes
import json
import os
import sys
import time

from ranks import HERE, MS, accounts, end, until, wait_for_go

RANKS, STEPS, LATE = 2, 8, 1
BEGIN, LATE_NS, MOVE_NS = 60 * MS, 60 * MS, 60 * MS
OPERATIONS = {"all_reduce": 4000, "all_gather": RANKS * 4000}


def compare():
    ranks = accounts()
    rows = [row for row in json.load(sys.stdin)["collectives"]["operations"] if row["backend"] == "nccl"]
    wrong = [] if len({row["communicator"] for row in rows}) == 2 else ["the groups have one communicator"]
    for row in rows:
        told = [rank[row["name"]] for rank in ranks]
        wait = sum(max(step) - min(step) for step in zip(*told)) / RANKS / STEPS
        if (row["bytes"], row["calls"], row["parts_matched"], row["communicator_size"], row["source"], row["last"], row["last_count"]) != (
                OPERATIONS[row["name"]], STEPS, RANKS * STEPS, RANKS, "nvtx", f"rank {LATE}", STEPS):
            wrong.append(f"row {row}")
        if abs(row["wait_ns"] - wait) > wait * 0.2:
            wrong.append(f"{row['name']} waits {row['wait_ns']}, told {wait}")
    print(f"{len(ranks)} ranks, {[row['name'] for row in rows]}", *wrong, sep="\n")
    return bool(wrong) or sorted(row["name"] for row in rows) != sorted(OPERATIONS) or len(ranks) != RANKS


def rank():
    number = int(os.environ["RANK"])
    import torch
    import torch.distributed as dist

    from gpuops import Ops
    ops = Ops(os.path.join(os.environ.get("O", "build"), "gpu", "static"), False)  # the mock of NCCL has functions of the runtime, too
    ops.lib.gpuops_init()
    tensor, gathered = torch.empty(1000, device="cuda"), torch.empty(RANKS * 1000, device="cuda")
    wait_for_go()
    double, said = ctypes.CDLL("libnccl_double.so"), ctypes.CDLL(sys.argv[2])
    double.nccl_double_use((ctypes.c_void_p * 5)(*(ctypes.cast(f, ctypes.c_void_p) for f in (
        said.nccl_start, said.nccl_init, said.nccl_push, said.nccl_pop, ops.lib.gpuops_launch))))
    until_ns = ctypes.c_uint64.in_dll(double, "nccl_double_end_ns")
    dist.init_process_group("nccl2", init_method=f"file://{HERE}/store", rank=number, world_size=RANKS)
    older, gloo = dist.new_group(backend="nccl-legacy"), dist.new_group(backend="gloo")
    calls = {"all_reduce": lambda: dist.all_reduce(tensor),
             "all_gather": lambda: dist.all_gather_into_tensor(gathered, tensor, group=older)}
    clock, account = torch.zeros(1, dtype=torch.int64), {name: [] for name in calls}
    for _ in range(STEPS):
        for name, call in calls.items():
            clock[0] = time.monotonic_ns() + BEGIN
            dist.all_reduce(clock, dist.ReduceOp.MAX, group=gloo)
            base = int(clock)
            account[name].append(until(base + LATE_NS * (number == LATE)))
            until_ns.value = base + LATE_NS + MOVE_NS
            call()
            until(until_ns.value)
    end(ops, number, account)


if __name__ == "__main__":
    sys.exit(rank() if len(sys.argv) > 2 else compare())
