# SPDX-License-Identifier: Apache-2.0
"""Checks of what mxbpf makes of a job on a GPU: ranges, graphs, idle time, memory. checks.py imports it."""
import json
import os
import shutil
import subprocess
import sys

from harness import HERE, MXBPF, Failed, check


def run_job(test):
    """Records features_job.py. Returns its account, and reports of the recording without and with ranges."""
    file = test.temporary("mxd")
    command = [MXBPF, "record", "--gpu", "--agent", "--memory", "--py-stacks", "-q", "-o", file, "--", sys.executable,
               os.path.join(HERE, "features_job.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode or not lines:
        raise Failed(f"the job ended with status {run.returncode}: {run.stderr.strip()[-300:]}")
    reports = []
    for options in ([], ["--by", "range"]):
        report = subprocess.run([MXBPF, "report", file, "--all", "-f", "json", *options], capture_output=True, text=True, timeout=50, check=True)
        reports.append(json.loads(report.stdout))
    return json.loads(lines[-1]), *reports


def judge_memory(test, job, report):
    device = next((d for d in report["memory"]["devices"] if d["device"] == "cuda/0"), {})
    allocator, failures = device.get("allocator", {}), report["memory"]["failures"]
    for ours, its in (("allocated_peak_bytes", "allocated_peak"), ("reserved_bytes", "reserved"), ("reserved_peak_bytes", "reserved_peak")):
        test.judge(f"memory: {its.replace('_', ', ')}, is PyTorch's to the byte", allocator.get(ours) == job[its],
                   f"{allocator.get(ours)} and {job[its]}")
    seen = [(f["wanted_bytes"], f["allocated_bytes"]) for f in failures]
    test.judge("memory: the allocation that failed, and what was allocated then", seen == [(job["wanted"], job["at_failure"])],
               f"{seen}, not {[(job['wanted'], job['at_failure'])]}")


def judge_idle(test, job, report):
    rows = [row for row in report["gpu"]["idle"] if row["gpu"] == 0]
    device = report["gpu"]["devices"][0]
    window, given = device["busy_ns"] + device["idle_ns"], sum(row["total_ns"] for row in rows)
    by = {row["cause"]: round(row["total_ns"] / 1e6, 1) for row in rows}
    test.judge("idle time: busy time and causes make up the window within 1 %", abs(given / window - 1) < 0.01, f"{given / window:.4f} of {window / 1e6:.0f} ms")
    # The job sleeps in its Python code, so the GPU has nothing to do for this long.
    own = sum(row["total_ns"] for row in rows if row["cause"] in ("program", "program_blocked"))
    test.judge("idle time: the program's sleep is its own", own >= 0.95 * job["slept_ns"], f"{own / 1e6:.1f} ms, it slept {job['slept_ns'] / 1e6:.0f} ms; {by}")


@check
def features(test):
    """Ranges, CUDA graphs, idle time and memory of a job, against the job's own account."""
    test.need_cuda()
    test.need_bpf()
    test.need_torch()
    job, report, ranges = run_job(test)
    seen = {}
    for row in ranges.get("kernels_by_range", []):
        seen[row["range"]] = seen.get(row["range"], 0) + row["count"]
    test.judge("NVTX: kernels are in their ranges", {name: seen.get(name) for name in job["by_range"]} == job["by_range"],
               f"{seen}, {job['by_range']} expected")
    captured = {by["name"]: by["kernels"] for graph in report["gpu"]["graphs"] for by in graph["by"]}
    test.judge("CUDA graphs: kernels are under the operators that were captured", captured == job["captured"], f"{captured}, {job['captured']} expected")
    judge_idle(test, job, report)
    judge_memory(test, job, report)
    smi = shutil.which("nvidia-smi")
    if smi:
        text = subprocess.run([smi, "-L"], capture_output=True, text=True, timeout=15, check=False).stdout
        uuid = report["gpu"]["devices"][0].get("uuid")
        test.judge("labels: the UUID is that of nvidia-smi -L", bool(uuid) and uuid in text, f"{uuid}")
