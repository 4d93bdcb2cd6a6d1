# SPDX-License-Identifier: Apache-2.0
"""A training loop with anomaly detection, as somebody has left it on who looked for a NaN."""
import torch

from common import HEALTHY, begin, going

FINDING = 'debug_mode'
ALSO = {'tiny_operators', 'own_code'}

torch.set_num_threads(1)
if not HEALTHY:
    torch.autograd.set_detect_anomaly(True)  # CAUSE
layers = [torch.nn.Linear(64, 64) for _ in range(12)]
optimizer = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.01)
x = torch.randn(32, 64)


def forward(h):
    for layer in layers:
        h = torch.relu(layer(h))
    return h


begin()
while going():
    forward(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
