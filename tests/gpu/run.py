#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of tests/gpu/checks.py, each in a process of its own with a limit; run.sh has the usage.

After each check the table gpu.md and the archive gpu.tar.gz are replaced as a whole, so both can be read at any moment.
Everything else is written to a temporary directory.
"""
import argparse
import datetime
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import checks

BEGIN = time.monotonic()
HERE = os.path.dirname(os.path.abspath(__file__))
ARCHIVE = "gpu.tar.gz"
WORK = "mxbpf-gpu-run-"  # what directories with intermediate results are called
RESUME = "; run.sh --resume runs it"
LEAST = 5  # seconds: no check is begun with less time than this
WIDTH = 4  # counting checks at a time
WORDS = {"passed": "yes", "failed": "**no**", "skipped": "skipped", "measured": "", "unrun": "not run"}
GPU_THERE = """
import ctypes
cuda, n = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(n))
raise SystemExit(f"cuInit: error {error}" if error else None if n.value else "the driver has no device")
"""


def has_gpu():
    """Returns None, or the reason why no GPU can be used."""
    limit = float(os.environ.get("LIMIT", 60))
    try:
        run = subprocess.run([sys.executable, "-c", GPU_THERE], capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"cuInit did not return within {limit:.0f} s"
    return None if run.returncode == 0 else (run.stderr.strip() or f"status {run.returncode}").splitlines()[-1]


def replace(path, write):
    """Writes a file under another name and renames it, so that a reader always finds a whole file."""
    new = path + ".new"
    with open(new, "wb") as f:
        write(f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(new, path)


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def hold(path):
    """Opens a directory and locks it. Returns the file descriptor, or None if somebody else holds it or it is not our own."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_uid == os.geteuid() and os.path.samestat(os.fstat(fd), os.lstat(path)):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def make_work():
    """Makes a directory that is held as long as this process or a check lives, and removes those that killed calls have left."""
    for path in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), WORK + "*")):
        fd = hold(path)
        if fd is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(fd)
    while True:
        path = tempfile.mkdtemp(prefix=WORK)
        fd = hold(path)
        if fd is not None:  # else another call took it for one that was left
            return path, fd


class Running:
    """A check under way."""

    def __init__(self, name, limit, left, run):
        self.name, self.limit, self.cut, self.begin = name, min(limit, left), left < limit, time.monotonic()
        self.scratch = os.path.join(run.work, "scratch." + name)
        os.makedirs(self.scratch, exist_ok=True)
        os.makedirs(os.path.join(run.work, "log"), exist_ok=True)
        command = [sys.executable, os.path.join(HERE, "checks.py"), name, run.work, run.double or ""]
        # pylint: disable=consider-using-with # it is open as long as the check runs
        self.answers = open(os.path.join(self.scratch, "answers"), "w+")
        with open(os.path.join(run.work, "log", name), "w") as log:
            self.process = subprocess.Popen(command, stdout=self.answers, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=[run.held],
                                            env=dict(os.environ, TMPDIR=self.scratch, MXBPF_CHECKED_BY=str(os.getpid())))

    def late(self):
        return time.monotonic() - self.begin > self.limit

    def kill(self):
        """Ends the check, and the jobs and mxbpf that it has left behind."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def end(self):
        """Returns the rows of the check, which has ended or is late."""
        code = self.process.poll()
        self.kill()
        rows = []
        self.answers.seek(0)
        for line in self.answers:
            try:
                rows.append(json.loads(line))
            except ValueError:
                pass  # the check was killed in the middle of a line
        self.answers.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
        if code is None:
            rows.append({"what": self.name, "verdict": "skipped" if self.cut else "failed",
                         "value": f"the time was over after {self.limit:.0f} s of it" + RESUME if self.cut else
                         f"it did not end within {self.limit:.0f} s"})
        elif code or not rows:
            rows.append({"what": self.name, "verdict": "failed", "value": f"the check ended with status {code}; see log/{self.name}"})
        took = round(time.monotonic() - self.begin, 1)
        return [dict(row, check=self.name, seconds=took, date=today()) for row in rows]


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


class Run:
    """The results of this call and of the calls before it with the same directory."""

    def __init__(self, out, double):
        self.out, self.double = out, double
        self.work, self.held = make_work()
        self.rows, self.earlier, self.before = {}, [], 0
        self.running = []
        archive = os.path.join(out, ARCHIVE)
        if os.path.exists(archive):
            with tarfile.open(archive) as tar:
                tar.extractall(self.work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(self.work)
            old = read_json(os.path.join(self.work, "results.json"))
            if bool(old.get("about", {}).get("double")) != bool(double):
                sys.exit(f"run.sh: {archive} has results {'of' if double else 'of the mock of'} a GPU; use another --out")
            self.earlier, self.before = old.get("earlier", []), old.get("seconds", 0)
            for row in old.get("results", []):
                self.rows.setdefault(row["check"], []).append(row)

    def wanted(self, name):
        """True if a check has not been run yet, or has failed, or was skipped."""
        rows = self.rows.get(name)
        return not rows or any(row["verdict"] in ("failed", "skipped") for row in rows)

    def take(self, name, rows):
        self.earlier += self.rows.get(name, [])
        self.rows[name] = rows
        self.save()

    def all_rows(self):
        names = list(checks.PLAN) + [name for name in self.rows if name not in checks.PLAN]
        return [row for name in names for row in
                self.rows.get(name) or [{"check": name, "what": name, "verdict": "unrun", "value": "", "seconds": 0}]]

    def save(self):
        about = dict(read_json(os.path.join(self.work, "about.json")), date=today(), kernel=os.uname().release, double=bool(self.double))
        rows, took = self.all_rows(), self.before + time.monotonic() - BEGIN
        kept = [row for row in rows if row["verdict"] != "unrun"]
        self.write("results.json", json.dumps({"about": about, "seconds": round(took, 1), "results": kept, "earlier": self.earlier}, indent=1))
        self.write("facts.md", "\n".join(row["text"] for row in rows if "text" in row))
        table = markdown(rows, about, took)
        self.write("gpu.md", table)
        replace(os.path.join(self.out, "gpu.md"), lambda f: f.write(table.encode()))
        replace(os.path.join(self.out, ARCHIVE), self.pack)
        return table

    def write(self, name, text):
        with open(os.path.join(self.work, name), "w") as f:
            f.write(text)

    def pack(self, f):
        with tarfile.open(fileobj=f, mode="w:gz") as tar:
            for name in sorted(os.listdir(self.work)):
                if not name.startswith("scratch."):
                    tar.add(os.path.join(self.work, name), name)

    def go(self, names, total):
        """Runs checks in this order: counting checks side by side, timing checks alone."""
        queue = list(names)
        one = os.environ.get("LIMIT")
        width = min(WIDTH, len(os.sched_getaffinity(0)))
        while queue or self.running:
            while queue and self.room(queue[0], width):
                name = queue.pop(0)
                left = total - (time.monotonic() - BEGIN)
                limit = float(one) if one else checks.PLAN[name].limit
                if left > min(limit, LEAST):
                    print(f"run.sh: {name}", file=sys.stderr, flush=True)
                    self.running.append(Running(name, limit, left, self))
                elif self.wanted(name):
                    self.take(name, [{"check": name, "what": name, "verdict": "skipped", "seconds": 0, "date": today(),
                                      "value": f"{total:.0f} s had passed" + RESUME}])
            for check in [check for check in self.running if check.process.poll() is not None or check.late()]:
                self.running.remove(check)
                self.take(check.name, check.end())
            time.sleep(0.02)

    def room(self, name, width):
        """Returns true if a check can begin now."""
        if not self.running:
            return True
        return len(self.running) < width and not checks.PLAN[name].alone and not checks.PLAN[self.running[0].name].alone

    def stop(self):
        for check in self.running:
            check.kill()
        shutil.rmtree(self.work, ignore_errors=True)


def markdown(rows, about, took):
    lines = ["| check | result | value |", "|---|---|---|"]
    lines += [f"| {cell(r['what'])} | {WORDS[r['verdict']]} | {cell(r['value'])} |" for r in rows]
    head = (f"Run on {about.get('date')} on {about.get('device', 'an unknown device')}: driver {about.get('driver', 'unknown')}, "
            f"CUDA {about.get('cuda', 'unknown')}, PyTorch {about.get('torch', 'unknown') or 'not installed'}, Linux {about.get('kernel')}, "
            f"{about.get('bpf', 'BPF unknown')}. It took {took:.0f} s.")
    if about.get("double"):
        head = "**These are results of the mock of a GPU, and say nothing about a GPU.** " + head
    return head + "\n\n" + "\n".join(lines) + "\n"


def arguments():
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--double", nargs="?", const="", metavar="DIR")
    parser.add_argument("checks", nargs="*")
    args = parser.parse_args()
    if args.double == "":
        args.double = os.path.join(HERE, "../../build/gpu")
    if args.double:
        args.double = os.path.abspath(args.double)
        if not os.path.exists(os.path.join(args.double, "libcuda.so.1")):  # --double CHECK
            parser.error(f"there is no mock of a GPU in {args.double}: make gpu-double")
    unknown = set(args.checks) - set(checks.PLAN)
    if unknown:
        parser.error("unknown check: " + ", ".join(sorted(unknown)))
    return args


def interrupted(number, _frame):
    raise SystemExit(128 + number)


def main():
    args = arguments()
    if args.list:
        print("\n".join(checks.PLAN))
        return 0
    reason = None if args.double else has_gpu()
    if reason:
        print("run.sh: there is no GPU that can be used: " + reason, file=sys.stderr)
        return 3
    total = float(os.environ.get("TOTAL", 520))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupted)
    os.makedirs(args.out, exist_ok=True)
    run = Run(os.path.abspath(args.out), args.double)
    try:
        run.save()
        names = args.checks or list(checks.PLAN)
        run.go([name for name in names if not args.resume or run.wanted(name)], total)
        print(run.save())
    finally:
        run.stop()
    rows = run.all_rows()
    if any(row["verdict"] == "failed" for row in rows):
        return 1
    return 4 if any(row["verdict"] == "unrun" or str(row["value"]).endswith(RESUME) for row in rows if row["check"] in names) else 0


if __name__ == "__main__":
    sys.exit(main())
