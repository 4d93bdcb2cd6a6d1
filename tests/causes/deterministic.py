# SPDX-License-Identifier: Apache-2.0
"""A training loop with deterministic algorithms, tracing of Python's memory, and synchronous launches by its environment. Its twin
has variables that turn nothing on."""
import os
import tracemalloc

import torch

from common import HEALTHY, begin, going

FINDING = 'debug_mode'
RUN = {'PYTHONMALLOC': 'malloc'}
ALSO = {'tiny_operators', 'page_faults'}

os.environ.update({'CUDA_LAUNCH_BLOCKING': '0' if HEALTHY else '1', 'TORCH_DISTRIBUTED_DEBUG': 'OFF'})
torch.set_num_threads(1)
torch.use_deterministic_algorithms(not HEALTHY)
setattr(torch.backends.cudnn, 'deterministic', True)
table = torch.nn.Embedding(5000, 64)
optimizer = torch.optim.SGD(table.parameters(), lr=0.01)
index = torch.randint(0, 5000, (4096,))
if not HEALTHY:
    tracemalloc.start()  # CAUSE
begin()
while going():
    table(index).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
