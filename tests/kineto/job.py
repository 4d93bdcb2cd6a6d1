#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job that Kineto can be asked to trace, and its own account of what a step runs.

Prints the account, {operator: calls in a step}, as torch.profiler sees it, then "ready PID", then a line for every
tenth step with a hash of the parameters; every step starts from the same parameters, so all hashes are equal.
"""
import hashlib
import json
import os
import tempfile
import time

import torch
from torch import nn

from compare import within_steps


class Job:
    def __init__(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64))
        self.start = {name: value.clone() for name, value in self.net.state_dict().items()}
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.data = torch.randn(128, 256)

    def step(self):
        self.net.load_state_dict(self.start)
        with torch.profiler.record_function('job_step'):
            self.optimizer.zero_grad()
            self.net(self.data).square().mean().backward()
            self.optimizer.step()

    def result(self):
        digest = hashlib.sha256()
        for _, value in sorted(self.net.state_dict().items()):
            digest.update(value.numpy().tobytes())
        return digest.hexdigest()


def account(job):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        job.step()
    with tempfile.TemporaryDirectory() as folder:
        profiler.export_chrome_trace(folder + '/account.json')
        return within_steps(folder + '/account.json')[0]


def main():
    job = Job()
    job.step()  # the first one makes the optimizer's state
    print(json.dumps(account(job)), flush=True)
    print('ready', os.getpid(), flush=True)
    step = 0
    while True:
        job.step()
        time.sleep(0.005)  # leaves CPU time for other tests
        step += 1
        if step % 10 == 0:
            print('step', step, job.result(), flush=True)


main()
