# SPDX-License-Identifier: Apache-2.0
"""A hook of the optimizer's step writes a line to a pipe that is read slowly, and waits until it is there. The twin has an optimizer
of its own, whose step() computes with operators."""
import os
import threading
import time

import torch

from common import HEALTHY, begin, going

FINDING = 'code_inside'
ALSO = {'page_faults'}


class Momentum(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]['params']:
            state = self.state[p]
            if not state:
                state['m'] = torch.zeros_like(p)
            state['m'].mul_(0.9).add_(p.grad)
            p.add_(state['m'], alpha=-0.01)


def read_slowly(fd):
    while os.read(fd, 65536):
        time.sleep(0.04)


def report(optimizer, args, kwargs):
    os.write(log, b'x' * 65536)  # CAUSE


torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = Momentum(net.parameters(), {}) if HEALTHY else torch.optim.SGD(net.parameters(), lr=0.01)
if not HEALTHY:
    end, log = os.pipe()
    threading.Thread(target=read_slowly, args=(end,), daemon=True).start()
    optimizer.register_step_post_hook(report)
x = torch.randn(64, 512)
begin()
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
