#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that takes memory of a GPU from the allocator of allocator.cpp, in operators and modules, between the gates of
tests/judge/gate.py. It leaks in one operator, and runs out of memory. Writes its own account to FILE as JSON.

  memory_job.py ALLOCATOR FILE [--steps N] [--cupti LIBRARY] [--pause-ms N] [--pieces] [--nvml DRIVER] [--fresh]
  --cupti   maps it, as PyTorch does, gives CUDA's own pool work in each step, and allocates 5 MiB without the allocator
  --fresh   takes nothing before the window
  --pieces  asks for less than is reserved and not allocated; with 32 MiB on the GPU no piece of it is large enough
  --nvml    writes to DRIVER what the mock of NVML says of the GPU: of 96 MiB, the driver keeps 4, contexts and libraries have 9,
            other processes 20, and 2 are of nobody who is listed
"""
import argparse
import collections
import ctypes
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402

import torch  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
NUMBERS = 'allocated reserved largest_unused retries failures mallocs malloc_bytes frees free_bytes largest_free'.split()
LIBRARY = torch.library.Library('gpumem', 'DEF')


class Memory:
    """Blocks of the GPU, each with the operator that took it."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.caching_take.restype = ctypes.c_void_p
        self.lib.caching_take.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.lib.caching_give.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self.lib.outside_take.restype = ctypes.c_void_p
        self.lib.outside_take.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.lib.pool_take.restype = ctypes.c_void_p
        self.lib.pool_take.argtypes = [ctypes.c_size_t]
        self.lib.pool_give.argtypes = [ctypes.c_void_p]
        self.live, self.peak, self.held_at_peak, self.most = {}, 0, {}, 0
        self.failed, self.outside = [], 0

    def take(self, op, size):
        block = self.lib.caching_take(0, size)
        if not block:
            self.failed.append(dict(self.numbers(), wanted=self.rounded(size), op=op, held=self.held()))
            raise torch.cuda.OutOfMemoryError(f'{op} needs {size} bytes')
        self.live[block] = op, self.rounded(size)
        total = sum(size for op, size in self.live.values() if op != 'before')
        if total > self.peak:
            self.peak, self.held_at_peak = total, self.held()
        return block

    def give(self, block):
        self.lib.caching_give(0, block)
        del self.live[block]

    @staticmethod
    def rounded(size):
        return (size + 511) // 512 * 512

    def held(self):
        """Bytes and blocks of each operator."""
        of = collections.defaultdict(lambda: [0, 0])
        for op, size in self.live.values():
            of[op][0] += size
            of[op][1] += 1
        return dict(of)

    def numbers(self):
        words = (ctypes.c_size_t * len(NUMBERS))()
        self.lib.caching_account(0, words)
        return dict(zip(NUMBERS, words))


def map_memory(size):
    """Gives memory to a range of addresses and takes it away, as segments do that can grow."""
    cuda, handle, at = ctypes.CDLL('libcuda.so.1'), ctypes.c_uint64(), ctypes.c_uint64(1 << 40)
    size, none = ctypes.c_size_t(size), ctypes.c_uint64(0)
    results = [cuda.cuMemCreate(ctypes.byref(handle), size, None, none), cuda.cuMemMap(at, size, ctypes.c_size_t(0), handle, none),
               cuda.cuMemUnmap(at, size), cuda.cuMemRelease(handle), cuda.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(1 << 40), None, none)]
    if results != [0, 0, 0, 0, 2]:
        sys.exit(f'cuMemCreate and others returned {results}')


def define(memory):
    """Operators that take memory, and keep it in the list that they are given."""
    def add(name, size):
        def run(x, kept):
            kept.append(memory.take('gpumem::' + name, size))
            return x.clone()
        LIBRARY.define(name + '(Tensor x) -> Tensor')
        LIBRARY.impl(name, lambda x: run(x, KEPT[-1]), 'CPU')
    add('linear', 3 * MIB + 100)
    add('relu', 700 * KIB)
    add('log', 64 * KIB)
    add('attention', 40 * MIB)
    add('softmax', 14 * MIB)

    def workspace(x):
        if not memory.outside:
            memory.outside = 5 * MIB
            memory.lib.outside_take(0, memory.outside)
            map_memory(2 * MIB)
        memory.lib.pool_give(memory.lib.pool_take(MIB))
        return x.clone()
    LIBRARY.define('workspace(Tensor x) -> Tensor')
    LIBRARY.impl('workspace', workspace, 'CPU')


KEPT = []  # the innermost list gets what an operator takes


class Linear(torch.nn.Module):
    def forward(self, x):
        return torch.ops.gpumem.linear(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Linear(), Linear()

    def forward(self, x):
        return torch.ops.gpumem.relu(self.second(self.first(x)))


def log(x, history):
    KEPT.append(history)
    torch.ops.gpumem.log(x)  # the leak
    KEPT.pop()


def step(memory, model, x, history, pool):
    activations = []
    KEPT.append(activations)
    model(x)
    if pool:
        torch.ops.gpumem.workspace(x)
    log(x, history)
    KEPT.pop()
    for block in activations:
        memory.give(block)


def run_out(memory, model, x, pieces):
    """Holds activations, and needs more than there is."""
    activations = []
    KEPT.append(activations)
    model(x)
    try:
        (torch.ops.gpumem.softmax if pieces else torch.ops.gpumem.attention)(x)
        sys.exit('there was memory')
    except torch.cuda.OutOfMemoryError:
        pass
    KEPT.pop()
    for block in activations:
        memory.give(block)


def tell_driver(memory, path):
    """Returns what mxbpf should find. The file is replaced at once, because the mock reads it all the time."""
    reserved = memory.numbers()['reserved']
    process = (reserved + memory.outside) // MIB + 9
    words = dict(total=96, reserved=4, used=process + 22, others=20, pid=os.getpid(), memory=process)
    with open(path + '.new', 'w') as f:
        f.write(' '.join(f'{word}={value}' for word, value in words.items()))
    os.rename(path + '.new', path)
    return dict(total=96 * MIB, driver=4 * MIB, used=process * MIB + 22 * MIB, free=70 * MIB - process * MIB, process=process * MIB,
                allocator=reserved, calls=memory.outside, libraries=9 * MIB, others=20 * MIB, unlisted=2 * MIB)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('allocator')
    parser.add_argument('file')
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--cupti', type=ctypes.CDLL)
    parser.add_argument('--pieces', action='store_true')
    parser.add_argument('--nvml')
    parser.add_argument('--fresh', action='store_true')
    parser.add_argument('--pause-ms', type=float, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    memory = Memory(args.allocator)
    define(memory)
    model, x, history = Model(), torch.ones(4), []
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=0.1)  # its steps are the ends of iterations
    weights = [memory.take('before', 1000 * 1000 + i) for i in range(0 if args.fresh else 5)]
    memory.lib.pool_give(memory.lib.pool_take(MIB))  # CUDA is initialised
    if args.nvml:
        tell_driver(memory, args.nvml)
    gate.begin()
    memory.lib.caching_reset(0)
    for i in range(args.steps):
        step(memory, model, x, history, args.cupti)
        parameter.sum().backward()
        optimizer.step()
        time.sleep(args.pause_ms / 1000)
    if weights:
        memory.give(weights.pop())
    run_out(memory, model, x, args.pieces)
    gpu = tell_driver(memory, args.nvml) if args.nvml else None
    gate.end()
    with open(args.file, 'w') as f:
        json.dump(dict(memory.numbers(), gpu=gpu, held=memory.held(), peak=memory.peak, held_at_peak=memory.held_at_peak, failed=memory.failed), f)


main()
