# SPDX-License-Identifier: Apache-2.0
"""A recurrent net whose state is carried from step to step, and never detached: each backward pass goes through all steps before."""
import torch

from common import HEALTHY, begin, going

FINDING = 'slower_iterations'
ALSO = {'tiny_operators'}

torch.set_num_threads(1)
net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
state = torch.zeros(32, 64)
begin()
while going():
    state = 0.9 * state + net(torch.randn(32, 64))
    state.pow(2).mean().backward(retain_graph=not HEALTHY)  # CAUSE
    if HEALTHY:
        state = state.detach()
    optimizer.step()
    optimizer.zero_grad()
