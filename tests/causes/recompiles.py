# SPDX-License-Identifier: Apache-2.0
"""A compiled function that gets a batch of another length every few steps. Its twin gets the same lengths in turn."""
import torch

from common import HEALTHY, begin, going

FINDING = 'compiling'
ALSO = {'tiny_operators', 'memory_growth'}

torch.set_num_threads(1)
for limit in ('recompile_limit', 'accumulated_recompile_limit'):
    setattr(torch._dynamo.config, limit, 10 ** 6)
net = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
compiled = torch.compile(net, backend='aot_eager', dynamic=False)


def step(length):
    compiled(torch.randn(length, 128)).pow(2).mean().backward()  # CAUSE


for warm in range(2):
    step(16)
begin()
n = 0
while going():
    step(16 if HEALTHY else 16 + n // 10)
    n += 1
