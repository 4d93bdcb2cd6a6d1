# SPDX-License-Identifier: Apache-2.0
"""A hidden state that decays until its values are denormal, and stays so. Its twin lets the processor take these values as 0."""
import torch

from common import HEALTHY, begin, going

FINDING = 'denormal_values'
SAYS = 'aten::mul'
ALSO = {'page_faults', 'tiny_operators'}  # with the processor's help, the small operators take most of an iteration

torch.set_num_threads(1)
net = torch.nn.Linear(256, 32)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
state = torch.full((256, 2048), 3e-39)
torch.set_flush_denormal(HEALTHY)  # the values in memory stay denormal
begin()
while going():
    decayed = state * 0.5  # CAUSE
    loss = net(torch.randn(16, 256)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
