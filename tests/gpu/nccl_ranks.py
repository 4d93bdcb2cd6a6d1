#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of torchrun that reduce on the mock of a GPU, and the comparison of their accounts with what mxbpf reports.

nccl_ranks.py DIR          a rank. Its kernels have the names of NCCL's; each ends when those of all ranks end, and one rank begins later
                           than the others. A matrix product overlaps them in part. It prints `ready PID`, waits for DIR/go, and
                           writes DIR/rank.N.json
nccl_ranks.py DIR JSON     compares the accounts with a report of mxbpf
"""
import json
import os
import sys
import time

from ranks import MS, accounts, end, until, wait_for_go

RANKS, STEPS, LATE = 4, 20, 3
BEGIN, LATE_NS, MOVE_NS, GEMM_NS = 50 * MS, 20 * MS, 40 * MS, 10 * MS
KERNEL = b"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def near(found, told, share):
    return abs(found - told) <= told * share


def overlap(step):
    start, ns, other, other_ns = step
    return max(min(start + ns, other + other_ns) - max(start, other), 0)


def wrong_in(report, ranks):
    row, = report["operations"]
    calls = list(zip(*(rank["steps"] for rank in ranks)))
    last = [max(step[0] for step in call) for call in calls]
    wait = sum(at - step[0] for call, at in zip(calls, last) for step in call) / RANKS / STEPS
    move = sum(max(step[0] + step[1] for step in call) - at for call, at in zip(calls, last)) / STEPS
    if (row["name"], row["backend"], row["group"], row["calls"], row["parts_matched"]) != (
            "all_reduce", "nccl", f"ranks 0-{RANKS - 1}", STEPS, RANKS * STEPS):
        yield f"row {row}"
    if row["last"] != f"rank {LATE}" or row["last_count"] != STEPS:
        yield f"{row['last']} is last {row['last_count']} times, planted {LATE}"
    if not near(row["wait_ns"], wait, 0.05) or not near(row["move_ns"], move, 0.05):
        yield f"waits {row['wait_ns']}, moves {row['move_ns']}; told {wait}, {move}"
    for rank in ranks:
        gpu, = (one for one in report["gpus"] if one["pid"] == rank["pid"])
        both, own = sum(map(overlap, rank["steps"])), sum(step[1] for step in rank["steps"])
        if not near(gpu["total_ns"], own, 0.01) or not near(gpu["overlapped_ns"], both, 0.05):
            yield f"rank {rank['rank']}: {gpu}, told {own}, overlapped {both}"


def compare(path):
    ranks = accounts()
    with open(path) as f:
        wrong = list(wrong_in(json.load(f)["collectives"], ranks))
    print(f"{len(ranks)} ranks", *wrong, sep="\n")
    return len(ranks) != RANKS or bool(wrong)


def rank():
    number = int(os.environ["RANK"])
    os.environ["CUDA_VISIBLE_DEVICES"] = str(number)
    import torch
    import torch.distributed as dist

    from gpuops import Ops
    torch.set_num_threads(1)
    ops = Ops(os.path.join(os.environ.get("O", "build"), "gpu"), True)
    ops.lib.gpuops_init()
    dist.init_process_group("gloo")
    wait_for_go()
    clock, steps = torch.zeros(1, dtype=torch.int64), []
    for _ in range(STEPS):
        clock[0] = time.monotonic_ns() + BEGIN
        dist.all_reduce(clock, dist.ReduceOp.MAX)
        base = int(clock)
        other = until(base - MS)
        other_ns = ops.lib.gpuops_launch(b"gemm", GEMM_NS, 0)
        start = until(base + LATE_NS * (number == LATE))
        steps.append((start, ops.lib.gpuops_launch(KERNEL, max(base + LATE_NS + MOVE_NS - start, MS), 1), other, other_ns))
    end(ops, number, {"rank": number, "pid": os.getpid(), "steps": steps})


if __name__ == "__main__":
    sys.exit(compare(*sys.argv[2:]) if len(sys.argv) > 2 else rank())
