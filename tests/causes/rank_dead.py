# SPDX-License-Identifier: Apache-2.0
"""Rank 2 of four ends before it joins the others, which wait for it. In the twin all of them sleep in a step for as long."""
import os
import socket
import subprocess
import sys
import time

from common import HEALTHY, begin

FINDING = 'hang'
SIZE = 4


def rank():
    import torch
    import torch.distributed as dist
    print(os.environ['RANK'], flush=True)
    if os.environ['RANK'] == '2' and not HEALTHY:
        sys.exit(1)
    dist.init_process_group('gloo')  # CAUSE
    while True:
        dist.all_reduce(torch.ones(1))
        print('step', flush=True)
        time.sleep(30)


def start_all():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, '-u', *sys.argv], stdout=subprocess.PIPE, text=True,
                              env=os.environ | {'RANK': str(n), 'LOCAL_RANK': str(n), 'WORLD_SIZE': str(SIZE),
                                                'LOCAL_WORLD_SIZE': str(SIZE), 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)})
             for n in range(SIZE)]
    for _ in range(1 + HEALTHY):
        for one in ranks:
            one.stdout.readline()
    begin(ranks[0].pid)
    sys.stdin.readline()
    for one in ranks:
        one.kill()
        one.wait()


if 'RANK' in os.environ:
    rank()
else:
    start_all()
