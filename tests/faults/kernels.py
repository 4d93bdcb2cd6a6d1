# SPDX-License-Identifier: Apache-2.0
"""A command for faults.py: runs 200 kernels on the mock of a GPU, prints their number as one line of JSON, and exits.

  kernels.py LIBGPUOPS
"""
import ctypes
import json
import sys

print('begins', flush=True)
ops = ctypes.CDLL(sys.argv[1])
for _ in range(200):
    ops.gpuops_launch(b'a_kernel', ctypes.c_uint64(10000), 0)
ops.gpuops_sync()
print(json.dumps({'a_kernel': 200}), flush=True)
