# SPDX-License-Identifier: Apache-2.0
"""What the checks of checks.py are made of: the plan, jobs, mxbpf attached to them, and what is known about the machine."""
import collections
import ctypes
import importlib.util
import json
import os
import re
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MXBPF = os.environ.get("MXBPF", "mxbpf")
SLACK_NS = 20000  # of the conversion of CUPTI's times
CHECKS = {}
Entry = collections.namedtuple("Entry", "limit alone")
ALONE = True

# The checks in the order of their worth, with the limit of each in seconds. Times are only judged in checks that run alone.
PLAN = {name: Entry(limit, bool(alone)) for name, limit, *alone in (
    ("machine", 40, ALONE), ("facts-machine", 10), ("facts-versions", 20), ("facts-bpf", 10), ("agent", 30),
    ("fixtures", 45), ("facts-tape", 20),
    ("facts-threads-and-clock", 30), ("facts-buffers", 30), ("facts-incomplete", 20), ("facts-callbacks-known", 20),
    ("launched", 60, ALONE), ("two-streams", 40), ("graph", 40), ("facts-graphs", 30), ("facts-empty-session-first", 20),
    ("features", 60), ("facts-functions", 20), ("facts-pool-limit", 60, ALONE), ("compiled", 100), ("devices", 40),
    ("facts-launch-cost", 50, ALONE), ("facts-after-finalize", 40, ALONE), ("facts-finalize-with-threads", 30), ("facts-finalize-with-graphs", 30), ("cost", 40, ALONE),
    ("own-profiler", 60, ALONE), ("own-profiler-daemon", 60, ALONE), ("facts-profiler-while-held", 40), ("facts-profiler-first", 40),
    ("facts-multiple-subscribers", 40),
    ("attached", 60, ALONE), ("under-load", 60), ("killed", 60), ("twice", 60), ("workers", 60), ("exits", 60),
    ("overhead", 75, ALONE), ("window-end", 40), ("jax", 60), ("cupy", 60), ("proton", 60),
    ("facts-threads", 20), ("facts-subscribe-idle", 20), ("facts-enable-busy", 30, ALONE), ("facts-timestamp-callback", 20),
    ("facts-late-objects", 20), ("facts-small-buffers", 20), ("facts-whole-graphs", 20), ("facts-other-library", 20), ("facts-unsubscribe-with-work-under-way", 20))}


def check(function):
    name = function.__name__.replace("_", "-")
    CHECKS[name] = function
    PLAN.setdefault(name, Entry(60, False))
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
        test.need_torch()
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
        test.need_mxbpf()
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
        self.files, self.stops = 0, {}

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
        if not self.with_bpf():
            raise Skip(self.about()["bpf"])

    def need_cuda(self):
        if self.double:
            raise Skip("the mock has nothing like it")

    def with_bpf(self):
        return self.about()["bpf"] == "with BPF"

    def about(self):
        """The machine. The first check that asks for it looks."""
        path = os.path.join(self.out, "about.json")
        if not os.path.exists(path):
            about = describe(self)
            about["bpf"] = bpf_works(self)
            with open(path + f".{os.getpid()}", "w") as f:
                json.dump(about, f)
            os.rename(f.name, path)
        with open(path) as f:
            return json.load(f)

    def need_mxbpf(self):
        if not MXBPF:
            raise Skip("there is no mxbpf beside run.sh: make static")

    def need_torch(self):
        """All jobs are programs of PyTorch."""
        if not importlib.util.find_spec("torch"):
            raise Skip("PyTorch is not installed for " + sys.executable)
        if not self.double and torch_version().get("cuda") is None:
            raise Skip("PyTorch is built without CUDA")

    def without_bpf(self):
        """A job that mxbpf has launched without BPF. Returns it and the name of its recording."""
        self.need_mxbpf()
        file = self.temporary("mxd")
        return Job(self, [MXBPF, "record", "--gpu", "--no-bpf", "-o", file, "--"]), file

    def report(self, file):
        run = subprocess.run([MXBPF, "report", file, "--all", "-f", "json"], capture_output=True, text=True, timeout=50, check=False)
        if run.returncode:
            raise Failed(f"mxbpf report: {run.stderr.strip()}")
        report = json.loads(run.stdout)
        self.stops[file] = [took for note in report["window"]["notes"] for took in re.findall(r"letting go took ([^,;]+?)(?:[.] |[,;]|$)", note["text"])]
        return report

    def kernels(self, file, begin=0, end=1 << 63):
        """Returns the number of kernels of a recording that began between two times, and their ns. By device, too."""
        if file not in self.stops:
            self.report(file)
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


def driver_version():
    try:
        with open("/proc/driver/nvidia/version") as f:
            match = re.search(r"(\d+\.\d+(\.\d+)?)", f.readline())
            return match[1] if match else "unknown"
    except OSError:
        return "unknown"


def torch_version():
    """What PyTorch says of itself, without its import, which takes seconds."""
    found = importlib.util.find_spec("torch")
    return runpy.run_path(os.path.join(os.path.dirname(found.origin), "version.py")) if found and found.origin else {}


def describe(test):
    """Describes the machine without PyTorch."""
    about = {"driver": driver_version(), "torch": None, "cuda": "unknown", "devices": 0}
    version = torch_version()
    if version:
        about["torch"], about["cuda"] = str(version["__version__"]), version.get("cuda") or "none"
    cuda = ctypes.CDLL(os.path.join(test.double or "", "libcuda.so.1"))
    number, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
        about["devices"] = number.value
        cuda.cuDeviceGetName(name, len(name), 0)
        about["device"] = "the mock of a GPU" if test.double else name.value.decode(errors="replace")
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        about["driver_cuda"] = f"{number.value // 1000}.{number.value % 1000 // 10}"
    return about


def bpf_works(test):
    """Returns "with BPF", or why it is without."""
    try:
        Attached(test, Job(test).ask("steps 1")["pid"]).stop()
        return "with BPF"
    except Failed as e:
        lines = [line for line in str(e).splitlines() if "error" in line] or [str(e)]
        return "without BPF (" + lines[-1].split("error: ")[-1].strip()[:200] + ")"
    except Skip as e:
        return f"without BPF (not tried: {e})"
