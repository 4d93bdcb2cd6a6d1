# SPDX-License-Identifier: Apache-2.0
"""A server without iterations keeps what each request makes, as Python objects."""
import time

import torch

from common import HEALTHY, begin, going

FINDING = 'memory_growth'

torch.set_num_threads(1)
net = torch.nn.Linear(256, 512)
answers = []
begin()
while going():
    with torch.inference_mode():
        answer = net(torch.randn(1, 256)).tolist()[0]  # CAUSE
    answers.append(answer)
    if HEALTHY:
        del answers[:-8]
    time.sleep(0.003)
