# SPDX-License-Identifier: Apache-2.0


def save_image(tensor, path, normalize=False):
    """The bytes of its values; the program's result is compared by what it saves as networks."""
    with open(path, 'wb') as f:
        f.write(tensor.numpy().tobytes())
