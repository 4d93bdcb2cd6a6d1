#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a guest of boot.sh up each time it asks for that on its console, twice, or until its parent has ended.

  hold.py CONSOLE MONITOR

"please stop": QEMU stops the virtual machine, and with it its clocks, for a second. "please freeze": QEMU gets SIGSTOP for a
second, after which the clocks of the guest jump. Prints a line for each.
"""
import json
import os
import signal
import socket
import struct
import sys
import time

HOLD_S = 1


def ask(monitor, command):
    """Returns when QEMU has done it. Events come in between."""
    monitor.write(json.dumps({'execute': command}) + '\n')
    monitor.flush()
    for line in monitor:
        if 'return' in json.loads(line):
            return
    sys.exit(f'QEMU does not {command}')


def hold(what, path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        pid = struct.unpack('3i', connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        if what == 'freeze':
            os.kill(pid, signal.SIGSTOP)
            time.sleep(HOLD_S)
            os.kill(pid, signal.SIGCONT)
            return
        monitor = connection.makefile('rw')
        ask(monitor, 'qmp_capabilities')
        ask(monitor, 'stop')
        time.sleep(HOLD_S)
        ask(monitor, 'cont')


def asked(path):
    """What the guest has asked for so far."""
    try:
        with open(path, errors='replace') as console:
            return [line.split()[1] for line in console if line.startswith('please ') and line.endswith('\n')]
    except FileNotFoundError:
        return []


def main():
    parent, done = os.getppid(), 0
    while os.getppid() == parent and done < 2:
        for what in asked(sys.argv[1])[done:]:
            hold(what, sys.argv[2])
            print(what, flush=True)
            done += 1
        time.sleep(0.02)


if __name__ == '__main__':
    main()
