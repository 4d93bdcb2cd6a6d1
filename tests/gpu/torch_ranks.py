#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of torchrun with a GPU each on the mock of a GPU, and the comparison of their accounts with what mxbpf reports.

torch_ranks.py DIR          a rank with two forked loader workers, and two more later. It sees one device, whose clock has a rate of its
                            own; $DOUBLE_OF_N has further words for the mock of rank N. It prints `ready PID` when CUDA is
                            initialised, waits for DIR/go, does more steps than the rank before, and writes DIR/rank.N.json: what
                            each of its operators launched since then
torch_ranks.py DIR JSON [TRACE]   compares the accounts, and those of the mock in DIR/double.PID.json, with a report of mxbpf, and
                            with a timeline
"""
import glob
import json
import os
import sys
import time

from ranks import HERE, end, wait_for_go

RANKS = 4


def load(pattern):
    return [json.load(open(path)) for path in sorted(glob.glob(os.path.join(HERE, pattern)))]


def wrong_in_rank(rank, gpu):
    """Yields what differs between a rank's account and the rows of its process."""
    def rows(table):
        return [row for row in gpu[table] if row["pid"] == rank["pid"]]
    found = {row["name"]: row["self_kernels"] for row in rows("operators") if row["self_kernels"]}
    told = {name: counts["kernels"] for name, counts in rank["operators"].items() if counts.get("kernels")}
    if found != told:
        yield f"kernels of operators: {found}, told {told}"
    found, told = sum(row["count"] for row in rows("kernels")), rank["total"]["kernels"]
    if found != told:
        yield f"{found} kernels, told {told}"
    found, told = sum(row["bytes"] for row in rows("copies")), rank["total"]["bytes"]
    if found != told:
        yield f"{found} bytes copied, told {told}"
    found, told = sum(row["total_ns"] for row in rows("kernels")), rank["total"]["ns"]
    if abs(found - told) > told / 100:  # the clocks have different rates
        yield f"kernels took {found} ns, told {told}"
    if any(row["unlaunched"] for row in rows("kernels") + rows("copies")):
        yield "activities without a launch"
    late = [row["name"] for row in rows("operators") if (row["latency_max_ns"] or 0) > 1e9]
    if late:
        yield f"launches that took more than a second: {late}"
    yield from wrong_records(rank, [row for row in gpu["records"] if row["pid"] == rank["pid"]])
    if [row["pci"] for row in rows("devices")] != [rank["pci"]]:
        yield f"devices {rows('devices')}"


def wrong_records(rank, records):
    double, = (one for one in load("double.*.json") if one["pid"] == rank["pid"])
    delivered = sum(count for kind, count in double["delivered"].items() if kind != "device")
    if len(records) != 1 or records[0]["records"] != delivered:
        yield f"records {records}, delivered {delivered}"
        return
    lost = [name for name in ("dropped", "scrapped", "unreadable", "unsent", "unmeasured", "early", "threadless", "unknown")
            if records[0][name]]
    if lost:
        yield f"lost: {lost} of {records}"


def wrong_in_trace(ranks, path):
    """In a timeline each rank has a process for its GPU, and an arrow from a call of its own to each activity."""
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    arrows = {}
    for e in events:
        if e.get("cat") == "ac2g":
            arrows.setdefault(e["id"], {})[e["ph"]] = e["pid"]
    for rank in ranks:
        mine = [pid for pid, name in names.items() if name.startswith("GPU ") and f"process {rank['pid']} " in name]
        if len(mine) != 1:
            yield f"GPUs of process {rank['pid']} in {names}"
            continue
        kernels = [e for e in events if e.get("cat") == "kernel" and e["pid"] == mine[0]]
        if len(kernels) != rank["total"]["kernels"]:
            yield f"{len(kernels)} kernels in the timeline, told {rank['total']['kernels']}"
        if len({e["tid"] for e in kernels}) != 2:
            yield f"streams {({e['tid'] for e in kernels})}"
        callers = {arrow.get("s") for arrow in arrows.values() if arrow.get("f") == mine[0]}
        if callers != {rank["pid"]}:
            yield f"calls of {callers} launch the kernels of process {rank['pid']}"


def compare(path, *traces):
    with open(path) as f:
        gpu = json.load(f)["gpu"]
    ranks = load("rank.*.json")
    wrong = [what for trace in traces for what in wrong_in_trace(ranks, trace)]
    wrong += [f"rank {rank['rank']}: {what}" for rank in ranks for what in wrong_in_rank(rank, gpu)]
    others = {row["pid"] for table in gpu.values() for row in table} - {rank["pid"] for rank in ranks}
    if others:
        wrong.append(f"processes without a GPU have rows: {others}")
    print(f"{len(ranks)} ranks", *wrong, sep="\n")
    return len(ranks) != RANKS or bool(wrong)


def rank():
    number = int(os.environ["RANK"])
    os.environ["CUDA_VISIBLE_DEVICES"] = str(number)
    # The rates differ by more than a kernel's duration in the time that the job takes.
    os.environ["MXBPF_DOUBLE"] = f"drift={number * 2000}," + os.environ.get(f"DOUBLE_OF_{number}", "")
    import argparse

    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    import gpuops
    import torch_job
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    gpuops.add_arguments(parser, "mapped", "gpu")
    loop = gpuops.Loop(parser.parse_args([]))
    torch_job.define(loop)
    loop.ops.lib.gpuops_init()
    dist.init_process_group("gloo")
    ops, weight = torch.ops.gpuops, torch.ones(32, 32, requires_grad=True)
    loader = iter(DataLoader([torch.ones(32)] * 32 * (20 + 10 * number), batch_size=32, num_workers=2, multiprocessing_context="fork"))
    wait_for_go()
    for data in loader:
        x = torch.mm(ops.load(data), weight)
        torch_job.Relu.apply(torch_job.Gemm.apply(x)).sum().backward()
        with torch.no_grad():
            ops.step(weight)
            ops.item(weight)
        time.sleep(0.005)
    for data in DataLoader([torch.ones(32)] * 8, num_workers=2, multiprocessing_context="fork"):
        weight.data.add_(data[0, 0])
    end(loop.ops, number, loop.ops.account(rank=number, pid=os.getpid(), pci=f"0000:{25 + number:02x}:00.0"))


if __name__ == "__main__":
    sys.exit(compare(*sys.argv[2:]) if len(sys.argv) > 2 else rank())
