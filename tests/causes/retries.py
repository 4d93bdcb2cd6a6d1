# SPDX-License-Identifier: Apache-2.0
"""A request fails three times of four, and the program catches the exception, waits and tries again. The twin works inside an
"except" block from its start on."""
import time

import torch

from common import HEALTHY, begin, going

FINDING = 'exceptions'
ALSO = {'page_faults'}


def request(attempt):
    if attempt < 3 and not HEALTHY:
        raise ConnectionResetError
    return torch.randn(64, 512)


def fetch():
    for attempt in range(4):
        try:
            return request(attempt)
        except OSError:
            time.sleep(0.02)  # CAUSE


def main():
    begin()
    while going():
        net(fetch()).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
try:
    import a_module_that_nobody_has
except ImportError:
    main()
