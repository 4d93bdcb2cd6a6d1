#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: again.py PROGRAM ARGUMENT...
Runs a program. At a line of input, kills it and runs it again under the same pid. Ends at the next line."""
import os
import sys

sys.dont_write_bytecode = True  # the tests leave nothing in the tree
from pids import fork


def start(wanted):
    pid = fork(wanted)
    if not pid:
        os.execv(sys.argv[1], sys.argv[1:])
    return pid


pid = start(0)
sys.stdin.readline()
os.kill(pid, 9)
os.waitpid(pid, 0)
start(pid)
sys.stdin.readline()
os.kill(pid, 9)
