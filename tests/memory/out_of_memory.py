#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs out of memory with MXNet, between the gates of tests/judge/gate.py, and writes to FILE who held what.

  out_of_memory.py FILE         on the CPU, with a limit of the address space
  out_of_memory.py FILE LIBRARY on a GPU of the toy MXNet LIBRARY, whose pool has 64 MiB
"""
import ctypes
import json
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402

MIB = 1 << 20


def write(path, **books):
    with open(path, 'w') as f:
        json.dump(books, f)


def on_cpu(path):
    from mxnet import base, nd
    x = nd.ones((64, 64))
    x.wait_to_read()
    gate.begin()
    kept = [nd.zeros((256, 256)) for _ in range(8)]
    y = nd.FullyConnected(x, x, no_bias=True, num_hidden=64)
    nd.waitall()
    try:
        nd.dot(x, y[:3]).wait_to_read()  # an exception that has nothing to do with memory
        sys.exit('shapes fit')
    except base.MXNetError:
        pass
    with open('/proc/self/statm') as f:
        size = int(f.read().split()[0]) * os.sysconf('SC_PAGESIZE')
    resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), resource.RLIM_INFINITY))
    try:
        nd.zeros((1 << 15, 1 << 15)).wait_to_read()
        sys.exit('there was memory')
    except base.MXNetError:
        pass
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    gate.end()
    write(path, device='cpu/0', name='_zeros', wanted=4 << 30, reserved=None, holders={'_zeros': [len(kept) * 256 * 1024, len(kept)],
                                                                                      'FullyConnected': [64 * 64 * 4, 1]})


def on_gpu(path, library):
    lib = ctypes.CDLL(library)
    arrays = [ctypes.c_void_p() for _ in range(4)]

    def create(i, size):
        return lib.MXNDArrayCreateOnGPU(ctypes.c_size_t(size), ctypes.byref(arrays[i]))

    gate.begin()
    if any(create(i, 16 * MIB) for i in range(3)) or not create(3, 24 * MIB):
        sys.exit('the pool is not what it should be')
    gate.end()
    write(path, device='gpu/0', name='MXNDArrayCreateOnGPU', wanted=24 * MIB, reserved=48 * MIB,
          holders={'MXNDArrayCreateOnGPU': [48 * MIB, 3]})


if len(sys.argv) > 2:
    on_gpu(*sys.argv[1:])
else:
    on_cpu(sys.argv[1])
