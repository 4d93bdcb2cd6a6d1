# SPDX-License-Identifier: Apache-2.0
import torch

IMAGES = 24


class FakeData(torch.utils.data.Dataset):
    def __init__(self, image_size, transform):
        self.image_size, self.transform = image_size, transform

    def __len__(self):
        return IMAGES

    def __getitem__(self, index):
        return self.transform(torch.randn(self.image_size)), index % 10
