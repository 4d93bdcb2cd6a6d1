#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of tests/gpu/run.py. Each runs in a process of its own and prints its results as lines of JSON.

usage: checks.py CHECK OUT DOUBLE   DOUBLE: directory of the double of a GPU; empty: use the GPU
"""
import gzip
import json
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MXBPF = os.environ.get("MXBPF", "mxbpf")
STEPS = 50
SLACK_NS = 20000  # of the conversion of CUPTI's times
CHECKS = {}


def check(function):
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


class Skip(Exception):
    """The check cannot run here, for the reason that is the text."""


class Failed(Exception):
    """The check cannot go on, for the reason that is the text."""


def read_line(pipe, pending, seconds, what):
    """Returns the next line of a pipe. `pending` has bytes that were read already."""
    until = time.monotonic() + seconds
    while b"\n" not in pending:
        if not select.select([pipe], [], [], max(0, until - time.monotonic()))[0]:
            raise Failed(f"{what}: no answer within {seconds:.0f} s")
        new = os.read(pipe.fileno(), 1 << 16)
        if not new:
            raise Failed(f"{what}: it has ended")
        pending += new
    line, _, rest = bytes(pending).partition(b"\n")
    pending[:] = rest
    return line.decode(errors="replace")


class Job:
    """job.py, which does what it is asked. `around`: a command that launches it."""

    def __init__(self, test, around=()):
        command = [sys.executable, os.path.join(HERE, "job.py")] + (["--double", test.double] if test.double else [])
        self.process = subprocess.Popen([*around, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=False)
        self.pending = bytearray()
        test.started.append(self.process)

    def send(self, what):
        self.process.stdin.write(what.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, what, seconds=55):
        while True:
            line = read_line(self.process.stdout, self.pending, seconds, f"the job ({what})")
            if line.startswith("{"):
                break
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(f"the job ({what}): {answer['failed']}")
        return answer

    def ask(self, what, seconds=55):
        self.send(what)
        return self.answer(what, seconds)

    def end(self):
        """Lets the job exit as a program does. Returns its status."""
        self.process.stdin.close()
        return self.process.wait(30)


class Attached:
    """mxbpf, attached to a job until stop() is called."""

    def __init__(self, test, job_pid, *options, wait="attached:"):
        self.file = test.temporary("mxd")
        self.text = ""
        self.pending = bytearray()
        self.process = subprocess.Popen([MXBPF, "record", "--pid", str(job_pid), "-v", "-o", self.file, *options],
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        test.started.append(self.process)
        while wait not in self.text:
            try:
                self.text += read_line(self.process.stderr, self.pending, 30, "mxbpf") + "\n"
            except Failed as e:
                raise Failed(f"{e}: {self.text[-400:]}") from e

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        rest = self.process.stderr.read()
        self.text += (bytes(self.pending) + rest).decode(errors="replace")
        return self.process.wait(30)


class Test:
    def __init__(self, name, out, double):
        self.name, self.out, self.double = name, out, double
        self.started = []
        self.work = tempfile.mkdtemp(prefix="mxbpf-gpu-")
        self.files = 0

    def temporary(self, suffix):
        self.files += 1
        return os.path.join(self.work, f"{self.files}.{suffix}")

    def tell(self, verdict, what, value):
        print(json.dumps({"what": what, "verdict": verdict, "value": value}), flush=True)

    def judge(self, what, good, value):
        self.tell("passed" if good else "failed", what, value)

    def measured(self, what, value):
        self.tell("measured", what, value)

    def need_bpf(self):
        about = self.about()
        if about.get("bpf") != "with BPF":
            raise Skip(about.get("bpf") or "the check `machine` has not run")

    def need_cuda(self):
        if self.double:
            raise Skip("the double has nothing like it")

    def about(self):
        try:
            with open(os.path.join(self.out, "about.json")) as f:
                return json.load(f)
        except OSError:
            return {}

    def without_bpf(self):
        """A job that mxbpf has launched without BPF. Returns it and the name of its recording."""
        file = self.temporary("mxd")
        return Job(self, [MXBPF, "record", "--gpu", "--no-bpf", "-o", file, "--"]), file

    def report(self, file):
        run = subprocess.run([MXBPF, "report", file, "--all", "-f", "json"], capture_output=True, text=True, timeout=50, check=False)
        if run.returncode:
            raise Failed(f"mxbpf report: {run.stderr.strip()}")
        return json.loads(run.stdout)

    def kernels(self, file, begin=0, end=1 << 63):
        """Returns the number of kernels of a recording that began between two times, and their ns. By device, too."""
        trace = self.temporary("json")
        run = subprocess.run([MXBPF, "export", file, "-f", "chrome", "-o", trace], capture_output=True, text=True, timeout=50, check=False)
        if run.returncode:
            raise Failed(f"mxbpf export: {run.stderr.strip()}")
        with open(trace) as f:
            data = json.load(f)
        start = data["otherData"]["window"]["start_mono_ns"]
        found = [e for e in data["traceEvents"]
                 if e.get("cat") == "kernel" and begin - SLACK_NS <= start + e["ts"] * 1000 <= end + SLACK_NS]
        return len(found), sum(e["dur"] * 1000 for e in found), found

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()


def ratio(a, b):
    return a / b if b else float("inf") if a else 1.0


def judge_sums(test, report, route):
    """Judges what one recording says about itself."""
    gpu = report["gpu"]
    unlaunched = sum(row["unlaunched"] for row in gpu["kernels"])
    records = gpu["records"][0]
    became = sum(records[key] for key in ("activities", "calls", "nested", "overheads", "outside", "unmeasured", "unsent"))
    lost = records["dropped"] + records["scrapped"] + records["unsent"] + records["unmeasured"]
    count = sum(row["count"] for row in gpu["kernels"])
    test.judge(f"{route}: every kernel is joined to its launch", not unlaunched, f"{unlaunched} of {count} have none")
    test.judge(f"{route}: the account of records balances", became == records["records"] and report["loss"]["attempted"] ==
               report["loss"]["stored"] + report["loss"]["dropped"], f"{records['records']} records, {became} accounted for")
    test.judge(f"{route}: no record is lost", not lost and not report["loss"]["dropped"], f"{lost} of {records['records']}")
    test.judge(f"{route}: no kernel begins before its launch", not records["early"], records["early"])
    test.judge(f"{route}: CUPTI's thread ids are threads of the process", not records["threadless"], f"{records['threadless']} are not")


def judge_kernels(test, route, seen, truth, of="torch.profiler"):
    count, ns = seen
    test.judge(f"{route}: number of kernels is that of {of}", count == truth["kernels"], f"{count} and {truth['kernels']}")
    part = ratio(ns, truth["kernel_ns"])
    test.judge(f"{route}: time of kernels is that of {of}, within 1 %", abs(part - 1) <= 0.01, f"{ns / 1e6:.3f} ms, {part:.4f} of it")


def truth_of(test):
    """What torch.profiler, or the double's account, says about STEPS steps, in a process of its own."""
    job = Job(test)
    job.ask("steps 3")
    truth = job.ask(f"profile {STEPS}")
    job.end()
    return truth


# ---- checks


@check
def machine(test):
    """The machine, and whether BPF can be used."""
    job = Job(test)
    about = job.ask("about")
    pid = job.ask("steps 1")["pid"]
    about["driver"] = "unknown"
    try:
        with open("/proc/driver/nvidia/version") as f:
            match = re.search(r"(\d+\.\d+(\.\d+)?)", f.readline())
            about["driver"] = match[1] if match else "unknown"
    except OSError:
        pass
    try:
        Attached(test, pid).stop()
        about["bpf"] = "with BPF"
    except Failed as e:
        lines = [line for line in str(e).splitlines() if "error" in line] or [str(e)]
        about["bpf"] = "without BPF (" + lines[-1].split("error: ")[-1].strip()[:200] + ")"
    with open(os.path.join(test.out, "about.json"), "w") as f:
        json.dump(about, f)
    test.measured("BPF", about["bpf"])


@check
def launched(test):
    """Without BPF: the kernels of a launched command are those of torch.profiler."""
    truth = truth_of(test)
    job, file = test.without_bpf()
    job.ask("steps 3")
    steps = job.ask(f"steps {STEPS}")
    status = job.end()
    test.judge("without BPF: the command's status passes through", status == 0, status)
    report = test.report(file)
    judge_kernels(test, "without BPF", test.kernels(file, steps["begin"], steps["end"])[:2], truth)
    copies = sum(row["count"] for row in report["gpu"]["copies"]) / steps["done"] * STEPS
    moved = sum(row["bytes"] for row in report["gpu"]["copies"]) / steps["done"] * STEPS
    test.judge("without BPF: copies and their bytes are those of torch.profiler",
               (copies, moved) == (truth["copies"], truth["bytes"]),
               f"{copies:.0f} copies of {moved:.0f} bytes; {truth['copies']} of {truth['bytes']}")
    judge_sums(test, report, "without BPF")
    for note in report["window"]["notes"]:
        if "subscribing took" in note["text"]:
            test.measured("without BPF: CUPTI", note["text"])


@check
def attached(test):
    """Late attach to a running job: kernels, copies and operators are those of torch.profiler."""
    test.need_bpf()
    truth = truth_of(test)
    job = Job(test)
    pid = job.ask("steps 3")["pid"]
    mxbpf = Attached(test, pid, "--gpu")
    steps = job.ask(f"steps {STEPS}")
    test.judge("attached: mxbpf ends well", mxbpf.stop() == 0, mxbpf.text.splitlines()[-1][:100])
    report = test.report(mxbpf.file)
    judge_kernels(test, "attached", test.kernels(mxbpf.file, steps["begin"], steps["end"])[:2], truth)
    copies, moved = (sum(row[key] for row in report["gpu"]["copies"]) for key in ("count", "bytes"))
    test.judge("attached: copies and their bytes are those of torch.profiler", (copies, moved) == (truth["copies"], truth["bytes"]),
               f"{copies} copies of {moved} bytes; {truth['copies']} of {truth['bytes']}")
    judge_sums(test, report, "attached")
    ours = {row["name"]: row["gpu_self_ns"] for row in report["gpu"]["operators"]}
    wrong = [f"{name}: {ours.get(name, 0) / 1e6:.3f} ms, not {ns / 1e6:.3f} ms" for name, ns in sorted(truth["operators"].items())
             if abs(ratio(ours.get(name, 0), ns) - 1) > 0.05]
    test.judge("attached: GPU time of each operator is torch.profiler's Self CUDA, within 5 %", not wrong and truth["operators"],
               "; ".join(wrong[:3]) or f"{len(truth['operators'])} operators")
    for pattern, what in ((r"subscribing took ([^,\n]*)", "first subscribe, late"), (r"enabling ([^\n;]*)", "first enable, late"),
                          (r"one thread was stopped for ([^(\n]*)", "pause of the stopped thread")):
        match = re.search(pattern, mxbpf.text)
        test.measured(what, match[1].strip() if match else "not said")


def count_command(test, what, command, prepare=()):
    """Counts the kernels of one command of the job, attached if that is possible."""
    file = None
    with_bpf = test.about().get("bpf") == "with BPF"
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
    """Each kernel of a CUDA graph is recorded, although the graph was captured before."""
    count_command(test, "CUDA graph, captured before: all kernels are recorded", "replay 10 20", ["capture 10"])


@check
def compiled(test):
    """Kernels of torch.compile, which Triton launches through the driver."""
    if not test.double:
        try:
            import triton  # noqa: F401 pylint: disable=unused-import,import-outside-toplevel
        except ImportError as e:
            raise Skip("there is no Triton") from e
    count_command(test, "torch.compile: all kernels of Triton are recorded", "compiled 30")


@check
def devices(test):
    """Kernels of several devices."""
    if test.about().get("devices", 1) < 2:
        raise Skip("there is one device")
    events, did = count_command(test, "several devices: all kernels are recorded", "each_device 20")
    seen = {e["args"].get("device") for e in events}
    test.judge("several devices: each has its kernels", len(seen) == did["devices"], f"devices {sorted(seen, key=str)}")


@check
def own_profiler(test):
    """The job's own profiler sees all kernels, although mxbpf held CUPTI when it began, and afterwards."""
    job = Job(test)
    job.ask("steps 3")
    truth = job.ask("own 20")["kernels"]
    job.end()
    if test.about().get("bpf") == "with BPF":
        job = Job(test)
        pid = job.ask("steps 3")["pid"]
        mxbpf = Attached(test, pid, "--gpu")
    else:
        mxbpf = None
        job, _ = test.without_bpf()
        job.ask("steps 3")
    during = job.ask("own 20")["kernels"]
    if mxbpf:
        mxbpf.stop()
    after = job.ask("own 20")["kernels"]
    test.judge("the job's own profiler while mxbpf holds CUPTI: its trace is complete", during == truth, f"{during} of {truth} kernels")
    test.judge("the job's own profiler after that: its trace is complete", after == truth, f"{after} of {truth} kernels")
    if mxbpf:
        test.judge("mxbpf says that it gave way", "own profiler uses CUPTI" in mxbpf.text or "another client" in mxbpf.text,
                   (re.findall(r"warning: (.*)", mxbpf.text) or ["nothing"])[0][:150])
    job.end()


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
    if test.about().get("bpf") == "with BPF":
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
    """A process that exits while CUPTI is held loses no record."""
    job, file = test.without_bpf()
    job.ask("steps 3")
    job.send("steps 20")
    job.end()
    report = test.report(file)
    per_step = Job(test)
    per_step.ask("steps 3")
    truth = per_step.ask("profile 20")["kernels"] / 20 * 23
    last = test.kernels(file)[2]
    count = len(last)
    test.judge("a process that exits at once after its last kernel: nothing is missing", count >= truth and not report["loss"]["dropped"],
               f"{count} kernels, at least {truth:.0f} expected")


@check
def fixtures(test):
    """A tape of CUPTI's buffers, which the double of a GPU replays in tests."""
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
    with_bpf = test.about().get("bpf") == "with BPF"
    if with_bpf:
        jobs["probes"] = (Job(test), "time")
        jobs["attached"] = (Job(test), "time")
    pids = {name: job.ask("steps 3")["pid"] for name, (job, _) in jobs.items()}
    if with_bpf:
        Attached(test, pids["probes"])
        Attached(test, pids["attached"], "--gpu")
    for large, what in ((0, "launch-bound step of 200 kernels"), (1, "compute-bound step")):
        times = interleaved(test, jobs, large)
        alone = times.pop("alone")
        added = {name: ns - alone for name, ns in times.items()}
        for name, ns in added.items():
            test.measured(f"{what}, {name}: added time", f"{ns / 1000:+.1f} us to {alone / 1000:.1f} us ({100 * ns / alone:+.1f} %)")
        if "torch.profiler" in added:
            name = "attached" if with_bpf else "without BPF"
            good = added[name] <= added["torch.profiler"] / 2 if not large else added[name] <= max(0.02 * alone, 0)
            test.judge(f"{what}: goal ({'half of what torch.profiler adds' if not large else 'at most 2 %'})", good,
                       f"{ratio(added[name], added['torch.profiler']):.2f} of torch.profiler's, {100 * added[name] / alone:+.1f} %")


def add_fact(name):
    """Makes a check of one of facts.py, which asks CUPTI itself. Its findings go to facts.md."""
    def fact(test):
        paths = [os.environ.get("FACTS", ""), os.path.join(HERE, "facts.so"), os.path.join(test.double or HERE, "facts.so"),
                 os.path.join(HERE, "../../build/gpu/facts.so")]
        library = next((path for path in paths if os.path.exists(path)), None)
        if not library:
            raise Skip("there is no facts.so beside run.sh: cc -O2 -fPIC -shared -o facts.so facts.c -ldl, on any machine")
        environment = dict(os.environ)
        if test.double:
            environment["MXBPF_GPU_DOUBLE"] = os.path.join(test.double, "libcupti.so.12")
        run = subprocess.run([sys.executable, os.path.join(HERE, "facts.py"), library, name], env=environment, capture_output=True,
                             text=True, timeout=50, check=False)
        with open(os.path.join(test.out, "facts.md"), "a") as f:
            f.write(run.stdout)
        found = [line[2:] for line in run.stdout.splitlines() if line.startswith("- ")]
        said = "; ".join(found) if run.returncode == 0 else run.stderr.strip()[-300:]
        test.tell("measured" if run.returncode == 0 else "failed", f"CUPTI itself: {name}", said[:400])
    fact.__doc__ = f"CUPTI itself: {name}."
    CHECKS["facts-" + name] = fact


for fact_name in ("versions", "subscribe-idle", "enable-busy", "launch-cost", "profiler-while-held", "profiler-first", "after-finalize",
                  "multiple-subscribers", "graphs", "empty-session-first", "timestamp-callback", "late-objects", "small-buffers",
                  "unsubscribe-with-work-under-way"):
    add_fact(fact_name)


def main():
    name, out, double = sys.argv[1:]
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
