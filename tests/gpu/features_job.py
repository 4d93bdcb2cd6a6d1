#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job on a GPU for the check `features` of run.sh. It prints what it did, by its own account, as a line of JSON."""
import json
import time

import torch

ROUNDS, REPLAYS, SLEEPS = 20, 50, 5


def ranges(x):
    for _ in range(ROUNDS):
        with torch.cuda.nvtx.range("outer"):
            x.mul_(1.0)
            with torch.cuda.nvtx.range("inner"):
                x.add_(1)
                x.add_(1)


def graphs():
    graph, y = torch.cuda.CUDAGraph(), torch.ones(16, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(4):
            y.mul_(1.5)
        for _ in range(6):
            y.add_(1)
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()


def idle(x):
    for _ in range(SLEEPS):
        time.sleep(0.05)
        x.add_(1)
        x[0].item()


def memory():
    held = [torch.empty(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
    wanted = 2 * torch.cuda.get_device_properties(0).total_memory
    try:
        torch.empty(wanted, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    at_failure = torch.cuda.memory_allocated()
    del held[1:]
    return {"wanted": wanted, "at_failure": at_failure, "held": held}


def main():
    x = torch.ones(1000, device="cuda")
    ranges(x)
    graphs()
    idle(x)
    about = memory()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    print(json.dumps({
        "by_range": {"outer": ROUNDS, "inner": 2 * ROUNDS}, "captured": {"aten::mul_": 4 * REPLAYS, "aten::add_": 6 * REPLAYS},
        "slept_ns": SLEEPS * 50_000_000, "wanted": about["wanted"], "at_failure": about["at_failure"],
        "allocated_peak": stats["allocated_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.current"], "reserved_peak": stats["reserved_bytes.all.peak"],
        "free": torch.cuda.mem_get_info()[0]}), flush=True)


main()
