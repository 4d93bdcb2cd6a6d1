#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interrupts a Jupyter kernel, as its button does, in the middle of mxbpf.watch() of a toy that waits for SIGUSR1.
usage: interrupt.py PID COUNTS REPORT.json     COUNTS: the file in which the toy prints the counts of its calls"""
import os
import signal
import subprocess
import sys
import time

from jupyter_client.manager import KernelManager

pid, counts, report = sys.argv[1:]
manager = KernelManager(kernel_name='python3', transport='ipc')
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=100)


def run(code, on_stream=lambda text: None):
    """Runs code, and returns what it prints on stdout. Exits if it fails."""
    request, printed = client.execute(code), ''
    while True:
        message = client.get_iopub_msg(timeout=100)
        content = message['content']
        if message['parent_header'].get('msg_id') != request:
            continue
        if message['msg_type'] == 'error':
            sys.exit('\n'.join(content['traceback']))
        if message['msg_type'] == 'stream':
            printed += content['text'] if content['name'] == 'stdout' else ''
            on_stream(content['text'])
        if message['msg_type'] == 'status' and content['execution_state'] == 'idle':
            return printed


def on_stream(text):
    if not text.startswith('attached: '):
        return
    # The interrupt goes to the group of the kernel, and the program must get it once.
    kernel = manager.provisioner.pid
    groups = subprocess.check_output(['ps', '-o', 'pgid=', '--ppid', str(kernel)], text=True).split()
    if not groups or str(os.getpgid(kernel)) in groups:
        sys.exit('groups: %s' % groups)
    os.kill(int(pid), signal.SIGUSR1)
    while '}' not in open(counts).read():
        time.sleep(0.01)
    manager.interrupt_kernel()


try:
    run('import mxbpf; job = mxbpf.watch(%s, 600, ["--exact"])' % pid, on_stream)
    with open(report, 'w') as f:
        f.write(run('import json; print(json.dumps(job.report))'))
finally:
    client.stop_channels()
    manager.shutdown_kernel()
