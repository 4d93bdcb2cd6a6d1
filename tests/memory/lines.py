#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps arrays that it allocates on different lines, and writes how many bytes each line keeps.

usage: lines.py mxnet|torch BOOKS.json
Each line that calls keep() both allocates and keeps, so its number is that of the allocation.
"""
import json
import os
import sys
import threading

KEPT = []
BOOKS = {}
LOCK = threading.Lock()


def keep(*arrays):
    line = sys._getframe(1).f_lineno
    with LOCK:
        KEPT.extend(arrays)
        BOOKS[line] = BOOKS.get(line, 0) + sum(bytes_of(a) for a in arrays)


def bytes_of(a):
    return a.nbytes if hasattr(a, 'nbytes') else a.size * a.dtype().itemsize


def doubled(x):  # is called on two lines
    keep(x * 2)


def in_threads(work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def of_mxnet():
    import mxnet as mx
    from mxnet import autograd, gluon, nd

    def elsewhere(n):
        for _ in range(5):
            keep(nd.ones((100 + n, 7)) * 3)
        nd.waitall()  # a thread that ends does not push what its bulk still has

    x = nd.ones((64, 32))
    nd.waitall()
    for _ in range(40):  # in bulks, without waiting: their operators are of many lines
        doubled(x)
        y = x + 1
        keep(y - 1)
        keep(nd.concat(x, y, dim=0))
        z = nd.exp(x); keep(z)  # noqa: E702
        z += 1  # is pushed before its array has memory
        z *= 2
        nd.sqrt(y)
        doubled(y)
        keep(nd.softmax(x)[0:64])
    keep(nd.zeros((3, 50)))
    nd.waitall()
    keep(x.copyto(mx.cpu()))
    keep(nd.array([[1.0, 2.0]] * 30))
    keep(nd.arange(300))
    in_threads(elsewhere)
    if mx.__version__ >= '2':  # Gluon takes another kind of arrays
        return
    for kinds in ({}, {'static_alloc': True, 'static_shape': True}):
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(11, activation='relu', in_units=32), gluon.nn.Dense(13, in_units=11))
        net.initialize()
        net.hybridize(**kinds)
        nd.waitall()
        if not kinds:
            for _ in range(3):
                keep(net(x))
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        loss.wait_to_read()
    nd.waitall()


def of_torch():
    import torch
    from torch import nn

    def elsewhere(n):
        for _ in range(5):
            keep(torch.ones(100 + n, 7) * 3)

    x = torch.ones(64, 32)
    for _ in range(40):
        doubled(x)
        keep(torch.cat([x, x]))
        doubled(x + 1)
        keep(x.clone())
    keep(torch.tensor([[1.0, 2.0]] * 30))
    keep(torch.empty(77))
    keep(torch.zeros(3, 50), torch.arange(90))
    keep(torch.softmax(x, 1)[0:64])
    in_threads(elsewhere)
    net = nn.Sequential(nn.Linear(32, 11), nn.ReLU(), nn.Linear(11, 13))
    with torch.no_grad():
        keep(net(x))
    loss = net(x).sum()
    loss.backward(); keep(*(p.grad for p in net.parameters()))  # noqa: E702
    del loss
    for _ in range(5000):  # a job goes on; code that is gone before mxbpf has read it has no lines
        x + 1


def main():
    (of_mxnet if sys.argv[1] == 'mxnet' else of_torch)()
    with open(sys.argv[2], 'w', encoding='utf-8') as f:
        json.dump(BOOKS, f)
    os._exit(0)  # without freeing anything


main()
