#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of tests/gpu/checks.py, each in a process of its own with a limit; run.sh has the usage.

Each result is appended at once to results.jsonl. At the end, gpu.md has one table and results.json has all results.
"""
import argparse
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import checks

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = {"passed": "yes", "failed": "**no**", "skipped": "skipped", "measured": ""}


def has_gpu():
    """Returns None, or the reason why PyTorch cannot use a GPU."""
    run = subprocess.run([sys.executable, "-c", "import torch; torch.cuda.init()"], capture_output=True, text=True, timeout=120)
    return None if run.returncode == 0 else (run.stderr.strip() or "?").splitlines()[-1]


def run_check(name, out, double, limit, log):
    """Runs one check. Returns its results."""
    command = [sys.executable, os.path.join(HERE, "checks.py"), name, out, double or ""]
    begin = time.monotonic()
    results = []
    scratch = os.path.join(out, "scratch")
    os.makedirs(scratch, exist_ok=True)
    with open(os.path.join(out, "current"), "w+") as answers:
        process = subprocess.Popen(command, stdout=answers, stderr=log, start_new_session=True, env=dict(os.environ, TMPDIR=scratch))
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # jobs and mxbpf that the check has left behind
        except ProcessLookupError:
            pass
        process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
        answers.seek(0)
        for line in answers:
            try:
                results.append(json.loads(line))
            except ValueError:
                pass  # the check was killed in the middle of a line
    if code is None:
        results.append({"what": name, "verdict": "failed", "value": f"it did not end within {limit:.0f} s"})
    elif code or not results:
        results.append({"what": name, "verdict": "failed", "value": f"the check ended with status {code}; see log"})
    took = round(time.monotonic() - begin, 1)
    return [dict(result, check=name, seconds=took) for result in results]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def markdown(results, about, took):
    lines = ["| check | result | value |", "|---|---|---|"]
    lines += [f"| {cell(r['what'])} | {WORDS[r['verdict']]} | {cell(r['value'])} |" for r in results]
    head = (f"Run on {about.get('date')} on {about.get('device', 'an unknown device')}: driver {about.get('driver', 'unknown')}, "
            f"CUDA {about.get('cuda', 'unknown')}, PyTorch {about.get('torch', 'unknown')}, Linux {about.get('kernel')}, "
            f"{about.get('bpf', 'BPF unknown')}. It took {took:.0f} s.")
    if about.get("double"):
        head = "**These are results of the double of a GPU, and say nothing about a GPU.** " + head
    return head + "\n\n" + "\n".join(lines) + "\n"


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--double")
    parser.add_argument("checks", nargs="*")
    args = parser.parse_args()
    if args.list:
        print("\n".join(checks.CHECKS))
        return 0
    unknown = set(args.checks) - set(checks.CHECKS)
    if unknown:
        print("run.sh: unknown check: " + ", ".join(sorted(unknown)), file=sys.stderr)
        return 2
    reason = None if args.double else has_gpu()
    if reason:
        print("run.sh: there is no GPU that PyTorch can use: " + reason, file=sys.stderr)
        return 3
    out = os.path.abspath(args.out)
    os.makedirs(out, exist_ok=True)
    for name in ("about.json", "results.jsonl", "facts.md"):
        if os.path.exists(os.path.join(out, name)):
            os.unlink(os.path.join(out, name))
    begin = time.monotonic()
    limit, total = float(os.environ.get("LIMIT", 60)), float(os.environ.get("TOTAL", 540))
    results = []
    with open(os.path.join(out, "log"), "w") as log, open(os.path.join(out, "results.jsonl"), "a") as appended:
        for name in args.checks or checks.CHECKS:
            print(f"run.sh: {name}", file=sys.stderr, flush=True)
            print(f"\n==== {name}", file=log, flush=True)
            left = total - (time.monotonic() - begin)
            if left > 0:
                new = run_check(name, out, args.double, limit, log)
            else:
                new = [{"check": name, "what": name, "verdict": "skipped", "value": f"{total:.0f} s had passed", "seconds": 0}]
            results += new
            for result in new:
                print(json.dumps(result), file=appended, flush=True)
    about = dict(read_json(os.path.join(out, "about.json")), date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                 kernel=os.uname().release, double=bool(args.double))
    took = time.monotonic() - begin
    with open(os.path.join(out, "results.json"), "w") as f:
        json.dump({"about": about, "seconds": round(took, 1), "results": results}, f, indent=1)
    table = markdown(results, about, took)
    with open(os.path.join(out, "gpu.md"), "w") as f:
        f.write(table)
    print(table)
    return 1 if any(r["verdict"] == "failed" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
