#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a training job on the mock of a GPU (tests/gpu/double), from whose recording the ten questions of docs/gpu.md are
answered, and the comparison of their accounts with what mxbpf reports.

questions_job.py DIR          a rank: prints `ready PID` when CUDA is initialised, waits for DIR/go, trains, writes DIR/rank.N.json.
                              The last rank lags: it spends 10 ms in the operator gpuops::slow in each step
questions_job.py DIR JSON     compares the accounts with a report of mxbpf
"""
import json
import os
import sys
import time

from ranks import accounts, end, wait_for_go

STEPS = 20
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SLOW_NS = 10000000


def wrong_in_rank(rank, last, gpu):
    """Yields what differs between a rank's account and the rows of its process."""
    def rows(table):
        return [row for row in gpu[table] if row["pid"] == rank["pid"]]
    types = {row["type"]: row for row in rows("types")}
    kernels, total = rank["kernels"], rank["total"]
    told = {"computation": total["kernels"] - STEPS, "communication": STEPS, "memory": total["copies"] + total["sets"]}
    if {name: types[name]["count"] for name in told} != told:
        yield f"types {types}, told {told}"
    if abs(types["communication"]["total_ns"] - kernels[NCCL]["ns"]) > STEPS:
        yield f"communication {types['communication']}, told {kernels[NCCL]}"
    # The conversion of the GPU's times can round each end.
    if abs(sum(types[name]["total_ns"] for name in ("computation", "communication")) - total["ns"]) > total["kernels"]:
        yield f"kernels {types}, told {total['ns']}"
    for name in told:
        if types[name]["alone_ns"] + types[name]["beside_ns"] != types[name]["busy_ns"] or types[name]["busy_ns"] > types[name]["total_ns"]:
            yield f"times of {types[name]}"
    # A kernel of 3 ms, which was launched into another stream before, runs beside that of NCCL.
    if types["communication"]["beside_ns"] < 0.5 * kernels[NCCL]["ns"]:
        yield f"overlap {types['communication']}"
    for table in ("launches", "queues"):
        if sum(row["count"] for row in rows(table)) != sum(told.values()):
            yield f"{table} {rows(table)}, told {told}"
    if max(row["queue_max"] for row in rows("queues")) < 2:
        yield f"queues {rows('queues')}"
    yield from wrong_sequences(rank, rows("sequences"))
    yield from wrong_path(rank, last, rows("critical_path"))


def wrong_sequences(rank, rows):
    found = {row["name"]: [row["count"], row["length"], round(row["gpu_total_ns"], -3)] for row in rows}
    told = {name: [STEPS, 2, rank["operators"][name]["ns"]] for name in ("gpuops::gemm", "gpuops::gemm_backward", "gpuops::reduce")}
    if {name: found.get(name) for name in told} != told:
        yield f"sequences {found}, told {told}"
    if not any(row["name"] == "gpuops::reduce" and row["kernels"][1] == NCCL for row in rows):
        yield f"kernels of sequences {rows}"


def wrong_path(rank, last, rows):
    """The rank that lags is held up by its operator, and the other one by its exchange."""
    if not rows or sum(row["total_ns"] for row in rows) != rows[0]["path_ns"]:
        yield f"critical path {rows}"
        return
    if last:
        ns = sum(row["total_ns"] for row in rows if row["name"] == "gpuops::slow")
    else:
        ns = sum(row["total_ns"] for row in rows if row["kind"] == "others")
    if not SLOW_NS / 2 < ns < rows[0]["path_ns"]:
        yield f"critical path of rank {rank['rank']} {rows}"


def compare(path):
    with open(path) as f:
        gpu = json.load(f)["gpu"]
    ranks = accounts()
    wrong = [f"rank {rank['rank']}: {what}" for rank in ranks for what in wrong_in_rank(rank, rank is ranks[-1], gpu)]
    print(f"{len(ranks)} ranks", *wrong, sep="\n")
    return len(ranks) < 2 or bool(wrong)


def define_more(torch_job, loop):
    """gpuops::reduce has a kernel of NCCL beside another one; gpuops::slow takes its time without a CPU,
    which the other rank may need."""
    def reduce(x):
        name = "gpuops::reduce"
        loop.ops.kernel(name, "add", 3000)
        loop.ops.count(name, NCCL, loop.ops.lib.gpuops_launch(NCCL.encode(), 200000, 1))
        return x.clone()

    def slow(x):
        time.sleep(SLOW_NS / 1e9)
        return x.clone()

    for name, run in (("reduce", reduce), ("slow", slow)):
        torch_job.LIBRARY.define(name + "(Tensor x) -> Tensor")
        torch_job.LIBRARY.impl(name, run, "CPU")


def train(torch, dist, torch_job, last):
    ops, weight = torch.ops.gpuops, torch.ones(32, 32, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.001)
    for _ in range(STEPS):
        x = torch.mm(ops.load(torch.ones(32, 32)), weight)
        torch_job.Relu.apply(torch_job.Gemm.apply(x)).sum().backward()
        if last:
            ops.slow(x)
        ops.reduce(x)
        dist.all_reduce(weight.grad)
        ops.item(x)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            ops.step(x)


def rank():
    number, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ["CUDA_VISIBLE_DEVICES"] = str(number)
    import argparse

    import torch
    import torch.distributed as dist

    import gpuops
    import torch_job
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    gpuops.add_arguments(parser, "mapped", "gpu")
    loop = gpuops.Loop(parser.parse_args([]))
    torch_job.define(loop)
    define_more(torch_job, loop)
    loop.ops.lib.gpuops_init()
    dist.init_process_group("gloo")
    wait_for_go()
    train(torch, dist, torch_job, number == ranks - 1)
    end(loop.ops, number, loop.ops.account(rank=number, pid=os.getpid()))


if __name__ == "__main__":
    sys.exit(compare(sys.argv[2]) if len(sys.argv) > 2 else rank())
