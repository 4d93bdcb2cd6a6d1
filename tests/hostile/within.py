# SPDX-License-Identifier: Apache-2.0
"""Runs mxbpf and checks what no attack may do to it: a crash, a report of a sanitizer, a hang, much memory.

usage: within.py WINDOW STDOUT STDERR COMMAND...

WINDOW is the length of the window in seconds. Prints one line: exit status, MiB, seconds after the window and of CPU time.
Exits with 1 if a limit was broken. The environment may have HOSTILE_MIB and HOSTILE_SECONDS, other limits than 512 and 20. On a
quiet machine 2 s are enough for every attack. A busy one needs more, and a hang lasts for ever.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time

MIB = int(os.environ.get("HOSTILE_MIB", "512"))
SECONDS = float(os.environ.get("HOSTILE_SECONDS", "20"))
START_SECONDS = 60  # until mxbpf is attached, or says why it cannot be
HANG_SECONDS = SECONDS + 5  # after which mxbpf is killed
SANITIZERS = r"Sanitizer|runtime error:"


def main():
    window, stdout, stderr = float(sys.argv[1]), sys.argv[2], sys.argv[3]
    began = time.monotonic()
    attached = []
    with open(stdout, "wb") as out, open(stderr, "wb") as err:
        p = subprocess.Popen(["setpriv", "--pdeathsig", "KILL"] + sys.argv[4:], stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.PIPE)

        def read():
            for line in p.stderr:
                err.write(line)
                err.flush()
                if re.match(rb"(mxbpf: )?attached: ", line) and not attached:
                    attached.append(time.monotonic())

        reader = threading.Thread(target=read)
        reader.start()
        hung = False
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            until = attached[0] + window if attached else began + START_SECONDS
            if not hung and time.monotonic() > until + HANG_SECONDS:
                hung = True
                p.send_signal(signal.SIGKILL)
            time.sleep(0.01)
        ended = time.monotonic()
        p.returncode = 0  # it is waited for
        reader.join()
    code = os.waitstatus_to_exitcode(status)
    mib = usage.ru_maxrss / 1024
    late = ended - (attached[0] + window if attached else began + START_SECONDS)
    print("status %d, %d MiB, %.2f s after the window, %.2f s of CPU time"
          % (code, mib, late, usage.ru_utime + usage.ru_stime))
    broken = []
    if hung:
        broken.append("mxbpf hung and was killed")
    elif code < 0:
        broken.append("mxbpf was ended by signal %d" % -code)
    elif late > SECONDS:
        broken.append("mxbpf ended %.2f s after the window" % late)
    if mib > MIB:
        broken.append("mxbpf used %d MiB" % mib)
    with open(stderr, errors="replace") as f:
        text = f.read()
    if re.search(SANITIZERS, text):
        broken.append("a sanitizer reported:\n" + "\n".join(re.findall(".*(?:%s).*\n(?:.*\n){,6}" % SANITIZERS, text)[:2]))
    for line in broken:
        print(line, file=sys.stderr)
    sys.exit(1 if broken else 0)


main()
