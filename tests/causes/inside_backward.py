# SPDX-License-Identifier: Apache-2.0
"""A hook of each gradient computes in Python, inside the backward pass. The hook of the twin clips with one operator."""
import torch

from common import HEALTHY, begin, going

FINDING = 'code_inside'
ALSO = {'page_faults'}


def clip(grad):
    if not HEALTHY:
        sum(k * k for k in range(100000))  # CAUSE
    return grad.clamp(-1, 1)


torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
for p in net.parameters():
    p.register_hook(clip)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(128, 512)
begin()
while going():
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
