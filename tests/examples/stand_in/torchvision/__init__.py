# SPDX-License-Identifier: Apache-2.0
"""As much of torchvision as dcgan/main.py asks for with --dataset fake: torchvision's wheels need the CUDA build of PyTorch.
What it calls of PyTorch is known: each image is one torch.randn()."""
