# SPDX-License-Identifier: Apache-2.0


class ToTensor:
    def __call__(self, image):
        return image
