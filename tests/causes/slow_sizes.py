# SPDX-License-Identifier: Apache-2.0
"""Spectra of clips, of which one in five has a length that is a large prime number. In the twin it is a product of small ones."""
import torch

from common import HEALTHY, begin, going

FINDING = 'slow_sizes'
SAYS = 'aten::_fft_r2c'

torch.set_num_threads(1)
net = torch.nn.Linear(4, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
usual = torch.randn(4, 16384)
rare = torch.randn(4, 24000 if HEALTHY else 49999)
begin()
n = 0
while going():
    n += 1
    spectrum = torch.fft.rfft(rare if n % 5 == 0 else usual)  # CAUSE
    loss = net(spectrum.real[:, :4]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
