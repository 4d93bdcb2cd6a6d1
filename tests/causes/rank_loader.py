# SPDX-License-Identifier: Apache-2.0
"""The worker of the data loader of rank 2 of four decodes slowly."""
import torch

import ranks

FINDING = {'straggler', 'late_rank'}
SAYS = 'data loader'
TWIN = False


class Images(torch.utils.data.Dataset):
    def __init__(self, late):
        self.late = late

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        if self.late:
            sum(k * k for k in range(30000))  # CAUSE
        return torch.zeros(256)


def ready(late):
    global images
    images = iter(torch.utils.data.DataLoader(Images(late), batch_size=32, num_workers=1))


ranks.run(batch=lambda late, n: next(images), ready=ready)
