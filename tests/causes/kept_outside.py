# SPDX-License-Identifier: Apache-2.0
"""A training loop keeps NumPy arrays in a list, of which the runtime's allocator knows nothing."""
import numpy
import torch

from common import HEALTHY, begin, going

FINDING = 'memory_growth'
ALSO = {'own_code', 'tiny_operators'}

torch.set_num_threads(1)
net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
history = []
x = torch.randn(8, 16)
begin()
while going():
    history.append(numpy.ones(1024))  # CAUSE
    if HEALTHY:
        del history[:-8]
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
