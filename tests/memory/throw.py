#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests more memory than there is, catches the exception, and goes on. Prints how often it did each."""
import os
import resource

os.environ.setdefault('OMP_NUM_THREADS', '1')
import mxnet as mx  # noqa: E402

mx.nd.zeros((1024,)).wait_to_read() # threads have allocated their stacks
with open('/proc/self/statm') as f:
    room = int(f.read().split()[0]) * resource.getpagesize() + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
caught, kept = 0, []
for step in range(5):
    try:
        mx.nd.zeros((1 << 29,)).wait_to_read() # 2 GiB
    except mx.base.MXNetError:
        caught += 1
    kept.append(mx.nd.zeros((1024,)))
    kept[-1].wait_to_read()
mx.nd.waitall()
print('caught', caught, 'kept', len(kept), flush=True)
os._exit(0)
