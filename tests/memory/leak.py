#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps one of two arrays of each step forever, and ends without freeing anything.  leak.py STEPS"""
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
import mxnet as mx  # noqa: E402

base, kept = mx.nd.ones((1024,)), []
for _ in range(int(sys.argv[1])):
    passing = base + 1
    passing.wait_to_read()
    kept.append(base * 2)
    kept[-1].wait_to_read()
    del passing
mx.nd.waitall()
os._exit(0)
