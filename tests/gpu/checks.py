#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of tests/gpu/run.py. Each runs in a process of its own and prints its results as lines of JSON.

usage: checks.py CHECK OUT DOUBLE   DOUBLE: directory of the mock of a GPU; empty: use the GPU
"""
import ctypes
import gzip
import importlib.util
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import time

import features  # pylint: disable=unused-import # it adds its checks
from harness import (
    ALONE, CHECKS, HERE, MXBPF, PLAN, Attached, Entry, Failed, Job, Skip, Test, check, ratio)  # pylint: disable=unused-import

STEPS = 50
ROUNDS = 3  # of two jobs that take turns
WITHIN = 0.03  # medians of the times of the same kernels in two processes
WITHIN_ONE = 0.06  # those of one operator; aten::sum on an H200 differs by 5 %, by the same in each run


def judge_sums(test, report, route):
    """Judges what one recording says about itself."""
    gpu = report["gpu"]
    unlaunched = sum(row["unlaunched"] for row in gpu["kernels"])
    records = gpu["records"][0]
    became = sum(records[key] for key in ("activities", "calls", "nested", "overheads", "outside", "queries", "unmeasured", "unsent"))
    lost = records["dropped"] + records["scrapped"] + records["unreadable"] + records["unsent"] + records["unmeasured"]
    count = sum(row["count"] for row in gpu["kernels"])
    test.judge(f"{route}: every kernel is joined to its launch", not unlaunched, f"{unlaunched} of {count} have none")
    test.judge(f"{route}: the account of records balances", became == records["records"] and report["loss"]["attempted"] ==
               report["loss"]["stored"] + report["loss"]["dropped"], f"{records['records']} records, {became} accounted for")
    test.judge(f"{route}: no record is lost", not lost and not report["loss"]["dropped"], f"{lost} of {records['records']}")
    test.judge(f"{route}: no kernel begins before its launch", not records["early"], records["early"])
    test.judge(f"{route}: CUPTI's thread ids are threads of the process", not records["threadless"], f"{records['threadless']} are not")


def rounds(test, job):
    """The same steps under torch.profiler (or with the mock's account) in one process, and in a job that mxbpf records.

    They take turns, and each is warm, because the clock of an idle GPU is a fifth of that of a busy one.
    Returns the answers of both.
    """
    other = Job(test)
    for each in (job, other):
        each.ask("steps 3")
        each.ask("warm 2")
    truths, steps = [], []
    for _ in range(ROUNDS):
        truths.append(other.ask(f"profile {STEPS}"))
        steps.append(job.ask(f"steps {STEPS}"))
    other.end()
    return truths, steps


def judge_rounds(test, route, file, truths, steps):
    """Judges number and time of kernels of each round. Returns the number of kernels."""
    seen = [test.kernels(file, step["begin"], step["end"])[:2] for step in steps]
    counts, true = [count for count, _ in seen], [truth["kernels"] for truth in truths]
    test.judge(f"{route}: number of kernels is that of torch.profiler", counts == true, f"{counts} and {true}")
    ns, true_ns = statistics.median(ns for _, ns in seen), statistics.median(truth["kernel_ns"] for truth in truths)
    test.judge(f"{route}: time of kernels is that of torch.profiler, within {WITHIN:.0%}", abs(ratio(ns, true_ns) - 1) <= WITHIN,
               f"{ns / 1e6:.3f} ms, {ratio(ns, true_ns):.4f} of it (medians of {ROUNDS})")


def judge_copies(test, route, report, truths, part):
    """`part`: what the recording has, divided by the steps of all rounds."""
    seen = [round(sum(row[key] for row in report["gpu"]["copies"]) / part) for key in ("count", "bytes")]
    true = [sum(truth[key] for truth in truths) for key in ("copies", "bytes")]
    test.judge(f"{route}: copies and their bytes are those of torch.profiler", seen == true,
               f"{seen[0]} copies of {seen[1]} bytes; {true[0]} of {true[1]}")


def judge_operators(test, route, report, truths, part):
    """
    `part` as for judge_copies(). Small operators are left out: times of their kernels are a few steps of the GPU's clock.
    """
    ours = {row["name"]: row["gpu_self_ns"] / part for row in report["gpu"]["operators"]}
    true = {name: ROUNDS * statistics.median(truth["operators"].get(name, 0) for truth in truths)
            for name in set().union(*(truth["operators"] for truth in truths))}
    large = {name: ns for name, ns in sorted(true.items()) if ns >= 0.01 * sum(true.values())}
    wrong = [f"{name}: {ours.get(name, 0) / 1e6:.3f} ms, not {ns / 1e6:.3f} ms" for name, ns in large.items()
             if abs(ratio(ours.get(name, 0), ns) - 1) > WITHIN_ONE]
    test.judge(f"{route}: GPU time of each operator is torch.profiler's Self CUDA, within {WITHIN_ONE:.0%}", not wrong and large,
               "; ".join(wrong[:3]) or f"{len(large)} operators")


# ---- checks


@check
def machine(test):
    """The machine, and whether BPF can be used."""
    try:  # A second call may come with other rights.
        os.unlink(os.path.join(test.out, "about.json"))
    except OSError:
        pass
    about = test.about()
    test.measured("BPF", about["bpf"])
    test.measured("GPUs, CUDA of the driver, PyTorch", f"{about['devices']}, {about.get('driver_cuda')}, {about['torch'] or 'not installed'}")
    smi = shutil.which("nvidia-smi")
    if smi and not test.double:
        run = subprocess.run([smi, "-q"], capture_output=True, text=True, timeout=15, check=False)
        with open(os.path.join(test.out, "nvidia-smi.txt"), "w") as f:
            f.write(run.stdout + run.stderr)
        test.measured("nvidia-smi -q", f"status {run.returncode}, {len(run.stdout.splitlines())} lines in nvidia-smi.txt")
    elif not test.double:
        test.measured("nvidia-smi -q", "there is no nvidia-smi")


@check
def agent(test):
    """The agent starts in a process without BPF and has records; if not, the reason."""
    job, file = test.without_bpf()
    steps = job.ask("steps 3")
    job.end()
    report = test.report(file)
    notes = "; ".join(note["text"] for note in report["window"]["notes"])
    count = test.kernels(file, steps["begin"], steps["end"])[0]
    test.judge("the agent starts without BPF, and has kernels", count > 0, f"{count} kernels; {notes[:300]}")


@check
def launched(test):
    """Without BPF: the kernels of a launched command are those of torch.profiler."""
    job, file = test.without_bpf()
    truths, steps = rounds(test, job)
    status = job.end()
    test.judge("without BPF: the command's status passes through", status == 0, status)
    report = test.report(file)
    judge_rounds(test, "without BPF", file, truths, steps)
    judge_copies(test, "without BPF", report, truths, steps[-1]["done"] / (ROUNDS * STEPS))
    judge_sums(test, report, "without BPF")
    for note in report["window"]["notes"]:
        if "subscribing took" in note["text"]:
            test.measured("without BPF: CUPTI", note["text"])


@check
def attached(test):
    """Late attach to a running job: kernels, copies and operators are those of torch.profiler."""
    test.need_bpf()
    job = Job(test)
    mxbpf = Attached(test, job.ask("steps 3")["pid"], "--gpu")
    truths, steps = rounds(test, job)
    test.judge("attached: mxbpf ends well", mxbpf.stop() == 0, mxbpf.text.splitlines()[-1][:100])
    report = test.report(mxbpf.file)
    judge_rounds(test, "attached", mxbpf.file, truths, steps)
    recorded = steps[-1]["done"] - 3  # the steps before the attach
    judge_copies(test, "attached", report, truths, recorded / (ROUNDS * STEPS))
    judge_sums(test, report, "attached")
    judge_operators(test, "attached", report, truths, recorded / (ROUNDS * STEPS))
    for pattern, what in ((r"subscribing took ([^,\n]*)", "first subscribe, late"), (r"enabling ([^\n;]*)", "first enable, late"),
                          (r"one thread was stopped for ([^(\n]*)", "pause of the stopped thread")):
        match = re.search(pattern, mxbpf.text)
        test.measured(what, match[1].strip() if match else "not said")


def count_command(test, what, command, prepare=()):
    """Counts the kernels of one command of the job, attached if that is possible."""
    file = None
    with_bpf = test.with_bpf()
    if with_bpf:
        job = Job(test)
        pid = job.ask("steps 1")["pid"]
    else:
        job, file = test.without_bpf()
        job.ask("steps 1")
    for line in prepare:
        job.ask(line)
    mxbpf = Attached(test, pid, "--gpu") if with_bpf else None
    did = job.ask(command)
    if mxbpf:
        mxbpf.stop()
        file = mxbpf.file
        job.end()
    else:
        job.end()
    count, _, events = test.kernels(file, did["begin"], did["end"])
    test.judge(what, count == did["kernels"], f"{count} of {did['kernels']} kernels")
    return events, did


@check
def two_streams(test):
    """Kernels of two streams are on two lanes."""
    events, _ = count_command(test, "two streams: all kernels are recorded", "streams 20")
    streams = {e["args"].get("stream") for e in events}
    test.judge("two streams: kernels are on two streams", len(streams) == 2, f"streams {sorted(streams, key=str)}")


@check
def graph(test):
    """Each kernel of a CUDA graph is recorded."""
    # Without BPF the agent has subscribed when the process initialised CUDA, so nothing can be captured before.
    when = "captured before mxbpf" if test.with_bpf() else "captured while subscribed"
    count_command(test, f"CUDA graph, {when}: all kernels are recorded", "replay 10 20", ["capture 10"])


@check
def compiled(test):
    """Kernels of torch.compile, which Triton launches through the driver."""
    if not test.double:
        try:
            import triton  # noqa: F401 pylint: disable=unused-import,import-outside-toplevel
        except ImportError as e:
            raise Skip("there is no Triton") from e
        header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
        if not os.path.exists(header):
            raise Skip(f"Triton needs {header}")
        if not any(shutil.which(name) for name in (os.environ.get("CC", ""), "gcc", "clang")):
            raise Skip("Triton needs gcc or clang")
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # starting the workers of the default takes most of a minute
    count_command(test, "torch.compile: all kernels of Triton are recorded", "compiled 30")


@check
def devices(test):
    """Kernels of several devices."""
    if test.about().get("devices", 1) < 2:
        raise Skip("there is one device")
    events, did = count_command(test, "several devices: all kernels are recorded", "each_device 20")
    seen = {e["args"].get("device") for e in events}
    test.judge("several devices: each has its kernels", len(seen) == did["devices"], f"devices {sorted(seen, key=str)}")


def profiled_beside(test):
    """The job's own profiler: alone, before mxbpf comes, and while and after mxbpf holds CUPTI."""
    seen, mxbpf = {}, None
    alone = Job(test)
    pid = alone.ask("steps 3")["pid"]
    alone.ask("warm 2")
    truth = alone.ask("own 20")
    if test.with_bpf():
        mxbpf = Attached(test, pid, "--gpu")
        seen["before mxbpf and again"] = alone.ask("own 20")
        mxbpf.stop()
        job = Job(test)
        pid = job.ask("steps 3")["pid"]
        mxbpf = Attached(test, pid, "--gpu")
    else:
        job, _ = test.without_bpf()
        job.ask("steps 3")
    alone.end()
    job.ask("warm 2")
    seen["while mxbpf holds CUPTI"] = job.ask("own 20")
    if mxbpf:
        mxbpf.stop()
    seen["after that"] = job.ask("own 20")
    job.end()
    for when, trace in seen.items():
        test.judge(f"the job's own profiler {when}: its trace is complete", trace["kernels"] == truth["kernels"],
                   f"{trace['kernels']} of {truth['kernels']} kernels")
        if truth.get("kernel_ns"):  # the mock of Kineto counts only
            part = ratio(trace["kernel_ns"], truth["kernel_ns"])
            test.judge(f"the job's own profiler {when}: its times are right, within 10 %", abs(part - 1) <= 0.1, f"{part:.4f} of those alone")
    if mxbpf:
        said = [text for text in re.findall(r"warning: (.*)", mxbpf.text) if "own profiler uses CUPTI" in text or "another client" in text]
        test.judge("mxbpf says that it gave way", bool(said), (said or ["nothing"])[0][:150])


@check
def own_profiler(test):
    """The job's own profiler sees all kernels, before, while and after mxbpf holds CUPTI."""
    profiled_beside(test)


@check
def own_profiler_daemon(test):
    """The same with KINETO_USE_DAEMON=1, with which Kineto does not subscribe to CUPTI."""
    os.environ["KINETO_USE_DAEMON"] = "1"
    profiled_beside(test)


@check
def twice(test):
    """A second mxbpf on the same job does no harm, and neither does a later one."""
    test.need_bpf()
    job = Job(test)
    pid = job.ask("steps 3")["pid"]
    first = Attached(test, pid, "--gpu")
    try:
        second = Attached(test, pid, "--gpu")
        second.stop()
        said = second.text.strip().splitlines()[-1]
    except Failed as e:
        said = str(e)
    steps = job.ask(f"steps {STEPS}")
    first.stop()
    count = test.kernels(first.file, steps["begin"], steps["end"])[0]
    test.judge("attached twice: the first one goes on", count > 0, f"{count} kernels; the second said: {said[-200:]}")
    again = Attached(test, pid, "--gpu")
    steps = job.ask(f"steps {STEPS}")
    again.stop()
    later = test.kernels(again.file, steps["begin"], steps["end"])[0]
    test.judge("attached again after the end: the same kernels", later == count, f"{later} of {count}")


@check
def under_load(test):
    """Attaching and detaching while kernels are launched all the time."""
    test.need_bpf()
    job = Job(test)
    pid = job.ask("steps 3")["pid"]
    job.ask("spin 1")
    counts = []
    for _ in range(4):
        mxbpf = Attached(test, pid, "--gpu")
        time.sleep(0.5)
        mxbpf.stop()
        report = test.report(mxbpf.file)
        counts.append(sum(row["count"] for row in report["gpu"]["kernels"]))
    spun = job.ask("spin 0")["spun"]
    test.judge("attached and detached four times under load: the job goes on, and each time has kernels",
               all(counts) and job.ask("steps 3")["done"] == 6, f"{counts} of {spun} kernels")


@check
def killed(test):
    """kill -9 of mxbpf does the job no harm, and another mxbpf can attach."""
    test.need_bpf()
    job = Job(test)
    pid = job.ask("steps 3")["pid"]
    mxbpf = Attached(test, pid, "--gpu")
    job.ask("steps 10")
    mxbpf.process.kill()
    mxbpf.process.wait()
    job.ask("steps 10")
    again = Attached(test, pid, "--gpu")
    steps = job.ask("steps 10")
    again.stop()
    count = test.kernels(again.file, steps["begin"], steps["end"])[0]
    test.judge("kill -9 of mxbpf: the job goes on, and the next mxbpf has its kernels", count > 0, f"{count} kernels in 10 steps")


@check
def workers(test):
    """A data loader forks its workers while mxbpf holds CUPTI."""
    if test.with_bpf():
        job = Job(test)
        mxbpf = Attached(test, job.ask("steps 3")["pid"], "--gpu")
    else:
        mxbpf = None
        job, _ = test.without_bpf()
        job.ask("steps 3")
    batches = job.ask("loader 2")["batches"]
    if mxbpf:
        mxbpf.stop()
    test.judge("a data loader forks workers: the job goes on", batches == 16 and job.end() == 0, f"{batches} batches")


@check
def exits(test):
    """A process that ends while CUPTI is held: its status is its own, and the recording can be read."""
    job, file = test.without_bpf()
    did = job.ask("steps 23")
    job.end()
    other = Job(test)
    other.ask("steps 3")
    truth = other.ask("profile 20")["kernels"] / 20 * did["done"]
    count = test.kernels(file)[0]
    dropped = test.report(file)["loss"]["dropped"]
    test.judge("a process that exits after its last kernel: nothing is missing", count >= truth and not dropped,
               f"{count} kernels, at least {truth:.0f} expected")
    for what, how, status in (("returns", 0, 0), ("calls os._exit", 1, 7), ("gets SIGTERM", 2, 143)):
        job, file = test.without_bpf()
        job.ask("steps 3")
        time.sleep(0.5)  # the agent hands over what CUPTI has ten times a second
        job.send(f"leave 200 {how}")
        ended = job.process.wait(30)
        count = test.kernels(file)[0]
        test.judge(f"a process that {what} with 200 kernels under way: its status and a recording", ended == status and count > 0,
                   f"status {ended}; {count} kernels are recorded")


@check
def fixtures(test):
    """A tape of CUPTI's buffers, which the mock of a GPU replays in tests."""
    where = os.path.join(test.out, "fixtures")
    os.makedirs(where, exist_ok=True)
    for name in os.listdir(where):
        os.unlink(os.path.join(where, name))
    os.environ["MXBPF_AGENT_TAPE"] = os.path.join(test.work, "tape")
    job, file = test.without_bpf()
    pid = job.ask("steps 20")["pid"]
    job.ask("streams 5")
    job.ask("capture 10")
    job.ask("replay 10 3")
    job.end()
    if not os.path.exists(os.path.join(test.work, f"tape.{pid}")):
        raise Failed("the agent has written no tape; " + "; ".join(note["text"] for note in test.report(file)["window"]["notes"])[:300])
    report = test.report(file)
    records = report["gpu"]["records"][0]
    told = {"kernels": sorted((row["name"], row["count"], row["total_ns"]) for row in report["gpu"]["kernels"]),
            "copies": sum(row["count"] for row in report["gpu"]["copies"]), "activities": records["activities"], "calls": records["calls"]}
    name = "double" if test.double else re.sub(r"\W+", "-", test.about().get("device", "gpu")).lower()
    with open(os.path.join(test.work, f"tape.{pid}"), "rb") as tape, gzip.open(os.path.join(where, name + ".tape.gz"), "wb") as packed:
        packed.write(tape.read())
    with open(os.path.join(where, name + ".json"), "w") as f:
        json.dump(told, f, indent=1)
    size = os.path.getsize(os.path.join(where, name + ".tape.gz"))
    test.judge("fixtures: a tape of CUPTI's buffers", records["records"] > 100 and size < 1 << 20, f"{records['records']} records, {size >> 10} KiB")


@check
def cost(test):
    """CPU time of the agent for each record."""
    job, file = test.without_bpf()
    job.ask("steps 3")
    did = job.ask(f"burst {200000 if test.double else 50000}", 58)
    job.end()
    records = test.report(file)["gpu"]["records"][0]["records"]
    test.measured("CPU time of the agent's thread for each record", f"{did['agent_ns'] / max(records, 1):.0f} ns ({records} records)")
    test.measured("a launch with records, in a burst", f"{(did['end'] - did['begin']) / max(did['count'], 1):.0f} ns")


def interleaved(test, jobs, large):
    """Returns the median time of a step of each job. They take turns, so that all see the same machine."""
    times = {name: [] for name in jobs}
    for _ in range(7):
        for name, (job, command) in jobs.items():
            times[name].append(job.ask(f"{command} {10 if large else 10} {large}")["ns"])
    return {name: statistics.median(all_of) for name, all_of in times.items()}


@check
def overhead(test):
    """Added time of a step that is bound by launches, and of one that is bound by the GPU."""
    jobs = {"alone": (Job(test), "time")}
    jobs["without BPF"] = (test.without_bpf()[0], "time")
    if not test.double:
        jobs["torch.profiler"] = (Job(test), "profile_time")
    with_bpf = test.with_bpf()
    if with_bpf:
        jobs["probes"] = (Job(test), "time")
        jobs["attached"] = (Job(test), "time")
        jobs["agent"] = (Job(test), "time")
        jobs["agent, operators only"] = (Job(test), "time")
    pids = {name: job.ask("steps 3")["pid"] for name, (job, _) in jobs.items()}
    if with_bpf:
        Attached(test, pids["probes"])
        Attached(test, pids["attached"], "--gpu")
        Attached(test, pids["agent"], "--gpu", "--agent")
        Attached(test, pids["agent, operators only"], "--agent")
    for large, what in ((0, "launch-bound step of 200 kernels"), (1, "compute-bound step")):
        times = interleaved(test, jobs, large)
        alone = times.pop("alone")
        added = {name: ns - alone for name, ns in times.items()}
        for name, ns in added.items():
            test.measured(f"{what}, {name}: added time", f"{ns / 1000:+.1f} us to {alone / 1000:.1f} us ({100 * ns / alone:+.1f} %)")
        if "torch.profiler" in added:
            name = "agent" if with_bpf else "without BPF"
            good = added[name] <= added["torch.profiler"] / 2 if not large else added[name] <= max(0.02 * alone, 0)
            test.judge(f"{what}, {name}: goal ({'half of what torch.profiler adds' if not large else 'at most 2 %'})", good,
                       f"{ratio(added[name], added['torch.profiler']):.2f} of torch.profiler's, {100 * added[name] / alone:+.1f} %")


@check
def window_end(test):
    """The window of a job that is bound by the GPU ends while much is queued: what is queued has records, or is counted."""
    test.need_bpf()
    job = Job(test)
    mxbpf = Attached(test, job.ask("steps 3")["pid"], "--gpu")
    did = job.ask("queue 200")
    mxbpf.stop()
    gpu = test.report(mxbpf.file)["gpu"]
    test.measured("end of the window of a job that is bound by the GPU", f"{sum(row['count'] for row in gpu['kernels'])} of {did['kernels']} "
                  f"kernels; {({key: value for key, value in gpu['records'][0].items() if value and isinstance(value, int)})}"[:400])


# Programs whose profilers find CUPTI by dlsym(). Each runs kernels, and then again under its own profiler.
OTHERS = {
    "jax": ("jax", """
import jax, tempfile
f = jax.jit(lambda x: (x @ x).sum())
x = jax.numpy.ones((512, 512))
for _ in range(20): f(x).block_until_ready()
with jax.profiler.trace(tempfile.mkdtemp()):
    for _ in range(20): f(x).block_until_ready()
"""),
    "cupy": ("cupy", """
import cupy
x = cupy.ones(1000)
for _ in range(20): x += 1
cupy.cuda.Device().synchronize()
"""),
    "proton": ("triton.profiler", """
import os, tempfile, torch
import triton.profiler as proton
x = torch.ones(1000, device="cuda")
for _ in range(20): x.add_(1)
torch.cuda.synchronize()
proton.start(os.path.join(tempfile.mkdtemp(), "proton"))
for _ in range(20): x.add_(1)
torch.cuda.synchronize()
proton.finalize()
""")}


def add_other(name, module, script):
    """Makes a check of a program that is not PyTorch."""
    def other(test):
        test.need_cuda()
        test.need_mxbpf()
        if not importlib.util.find_spec(module.partition(".")[0]) or not importlib.util.find_spec(module):
            raise Skip(f"{module} is not installed")
        file = test.temporary("mxd")
        run = subprocess.run([MXBPF, "record", "--gpu", "--no-bpf", "-o", file, "--", sys.executable, "-c", script], capture_output=True,
                             text=True, timeout=PLAN[name].limit, check=False)
        count = test.kernels(file)[0]
        said = " ".join(re.findall(r"warning: (.*)", run.stderr))[:200] or run.stderr.strip()[-200:]
        least = 0 if name == "proton" else 20  # Proton has a libcupti of its own, so mxbpf leaves the GPU's records to it
        test.judge(f"{module}: it ends well{', and has kernels' if least else ''}", run.returncode == 0 and count >= least,
                   f"status {run.returncode}, {count} kernels; {said}")
    other.__doc__ = f"{module} beside mxbpf."
    CHECKS[name] = other


for other_name, (other_module, other_script) in OTHERS.items():
    add_other(other_name, other_module, other_script)


def facts_library(test):
    """Returns facts.so; makes it if there is a C compiler."""
    paths = [os.environ.get("FACTS", ""), os.path.join(HERE, "facts.so"), os.path.join(test.double or HERE, "facts.so"),
             os.path.join(HERE, "../../build/gpu/facts.so")]
    for path in paths:
        if os.path.exists(path):
            return path
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)
    if not compiler:
        raise Skip("there is no facts.so beside run.sh (make gpu-double) and no C compiler")
    made = test.temporary("so")
    run = subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-o", made, os.path.join(HERE, "facts.c"), "-ldl"],
                         capture_output=True, text=True, timeout=30, check=False)
    if run.returncode:
        raise Failed(f"{compiler}: {run.stderr.strip()[:300]}")
    return made


def add_fact(name):
    """Makes a check of one of facts.py, which asks CUPTI itself. Its findings go to facts.md."""
    def fact(test):
        library = facts_library(test)
        environment = dict(os.environ, FACTS_TAPE=os.path.join(test.out, "fixtures", "facts.tape"))
        if test.double:
            environment["MXBPF_GPU_DOUBLE"] = os.path.join(test.double, "libcupti.so.12")
        os.makedirs(os.path.join(test.out, "fixtures"), exist_ok=True)
        run = subprocess.run([sys.executable, os.path.join(HERE, "facts.py"), library, name], env=environment, capture_output=True,
                             text=True, timeout=PLAN["facts-" + name].limit, check=False)
        found = [line[2:] for line in run.stdout.splitlines() if line.startswith("- ")]
        skipped = [line[5:] for line in run.stderr.splitlines() if line.startswith("skip ")]
        if run.returncode < 0:  # a fact about CUPTI, too
            found.append(f"decides: {name.replace('-', ' ')}: it ends the process with signal {-run.returncode}")
        verdict = "measured" if run.returncode <= 0 else "skipped" if skipped else "failed"
        short = [line for line in found if not line.startswith("decides: ")]
        said = {"measured": "; ".join(short) or "see the next rows", "skipped": "".join(skipped), "failed": run.stderr.strip()[-300:]}[verdict]
        row = {"what": f"CUPTI itself: {name}", "verdict": verdict, "value": said[:400], "text": run.stdout}
        print(json.dumps(row), flush=True)
        for line in found:  # what a fact decides has a row of its own
            if line.startswith("decides: "):
                what, _, value = line.partition(": ")[2].partition(": ")
                test.measured(what, value)
    fact.__doc__ = f"CUPTI itself: {name}."
    CHECKS["facts-" + name] = fact


for fact_name in PLAN:
    if fact_name.startswith("facts-"):
        add_fact(fact_name[6:])


def main():
    name, out, double = sys.argv[1:]
    # This check ends with run.py, also if that is killed.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(os.environ.get("MXBPF_CHECKED_BY", os.getppid())):
        return 1
    test = Test(name, out, double or None)
    what = CHECKS[name].__doc__.strip().rstrip(".")
    try:
        CHECKS[name](test)
    except Skip as e:
        test.tell("skipped", what, str(e))
    except (Failed, subprocess.TimeoutExpired, OSError, KeyError, IndexError) as e:
        test.tell("failed", what, f"{type(e).__name__}: {str(e)[-500:]}")
    finally:
        test.end()
    took = [text for texts in test.stops.values() for text in texts]
    if took:
        test.measured(f"{name}: letting go of CUPTI took", ", ".join(took))
    return 0


if __name__ == "__main__":
    sys.exit(main())
