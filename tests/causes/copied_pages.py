# SPDX-License-Identifier: Apache-2.0
"""Workers look at the objects of a large list, whose pages are copied for that. The twin has the same numbers in one array."""
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from common import HEALTHY, begin, going

FINDING = 'copied_pages'
ALSO = {'data_wait'}
ROWS = 1_500_000


class Samples(Dataset):
    def __init__(self):
        self.rows = numpy.arange(2 * ROWS).reshape(ROWS, 2) if HEALTHY else [(i, str(i)) for i in range(ROWS)]

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        time.sleep(0.002)
        rows = [self.rows[(i * 100 + k) % ROWS] for k in range(100)]  # CAUSE
        return torch.tensor([float(row[0]) for row in rows])


torch.set_num_threads(1)
net = torch.nn.Linear(100, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
batches = iter(DataLoader(Samples(), batch_size=8, num_workers=1))
next(batches)
begin()
while going():
    net(next(batches)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
