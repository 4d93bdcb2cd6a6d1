#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: again.py PROGRAM ARGUMENT...
Runs a program. At a line of input, kills it and runs it again under the same pid. Ends at the next line."""
import os
import sys

PIDS = '/proc/sys/kernel/ns_last_pid'


def start(wanted):
    while True:
        if wanted:
            with open(PIDS, 'w', encoding='ascii') as f:
                f.write(str(wanted - 1))
        pid = os.fork()
        if not pid:
            if wanted in (0, os.getpid()):
                os.execv(sys.argv[1], sys.argv[1:])
            os._exit(0)
        if wanted in (0, pid):
            return pid
        os.waitpid(pid, 0)  # another process was faster


pid = start(0)
sys.stdin.readline()
os.kill(pid, 9)
os.waitpid(pid, 0)
start(pid)
sys.stdin.readline()
os.kill(pid, 9)
