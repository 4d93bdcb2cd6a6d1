# SPDX-License-Identifier: Apache-2.0
"""A worker reads files that the page cache has lost, because it drops each one. The twin leaves them there."""
import os
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset

from common import HEALTHY, begin, going

FINDING = 'disk_reads'
ALSO = {'data_wait'}
FILES = 40


class Files(Dataset):
    def __init__(self, folder):
        self.paths = [f'{folder}/{i}' for i in range(FILES)]
        for path in self.paths:
            with open(path, 'wb') as f:
                f.write(os.urandom(1 << 20))
                os.fsync(f.fileno())

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        with open(self.paths[i % FILES], 'rb') as f:
            data = f.read()  # CAUSE
            if not HEALTHY:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(bytearray(data[:4096]), dtype=torch.uint8).float()


torch.set_num_threads(1)
net = torch.nn.Linear(4096, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
with tempfile.TemporaryDirectory(dir='/var/tmp') as where:
    batches = iter(DataLoader(Files(where), batch_size=16, num_workers=1))
    begin()
    while going():
        net(next(batches)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
