# SPDX-License-Identifier: Apache-2.0
"""Workers of a data loader look for a file that is missing, wait and try again, before they do without it."""
import time

import torch

from common import begin, going

FINDING = 'exceptions'
TWIN = False


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, n):
        for attempt in range(2):
            try:
                with open('/nowhere/sample', 'rb') as f:
                    return f.read()
            except OSError:
                time.sleep(0.005)  # CAUSE
        return torch.zeros(512)


torch.set_num_threads(1)
net = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
started = False
for x in torch.utils.data.DataLoader(Samples(), 16, num_workers=2):
    net(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if not started:
        started = True
        begin()
    if not going():
        break
