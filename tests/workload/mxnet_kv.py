# SPDX-License-Identifier: Apache-2.0
"""A program that pushes and pulls, and counts what it does: mxnet_kv.py TYPE ROUNDS [START_FILE]. At its end it prints one line:
"kv", its place in the job, and JSON with the number of calls and bytes each way for each operation and key."""
import json
import os
import sys
import time

import numpy

numpy.bool = bool  # MXNet's imports still use the name

import mxnet as mx  # noqa: E402

kind, rounds = sys.argv[1], int(sys.argv[2])
start = sys.argv[3] if len(sys.argv) > 3 else None
store = mx.kv.create(kind)
seen = {}
# A shape with more than four dimensions is stored elsewhere.
arrays = {0: mx.nd.ones((7, 11)), 3: mx.nd.ones((2, 3, 1, 2, 5), dtype="float64"), 9: mx.nd.ones((5,), dtype="float16")}
texts = {"fc1_weight": mx.nd.ones((4, 6)), "a": mx.nd.ones((3,), dtype="float16")}


def count(what, key, sent=0, received=0):
    row = seen.setdefault(f"{what} {key}", {"calls": 0, "sent_bytes": 0, "received_bytes": 0})
    row["calls"] += 1
    row["sent_bytes"] += sent
    row["received_bytes"] += received


def size(a):
    return a.size * numpy.dtype(a.dtype).itemsize


def once(store, arrays):
    for key, a in arrays.items():
        store.push(key, a)
        count("push", key, sent=size(a))
        store.pull(key, out=a)
        count("pull", key, received=size(a))
    first, second = list(arrays)[:2]
    two = [arrays[first], arrays[second]]
    store.push([first, second], two)
    store.pull([first, second], out=two)  # a server mistakes two pushes of one worker for pushes of two workers
    for key in (first, second):
        count("push", key, sent=size(arrays[key]))
        count("pull", key, received=size(arrays[key]))
    if not kind.startswith("dist"):
        store.pushpull(first, two[0], out=two[0])
        count("pushpull", first, sent=size(two[0]), received=size(two[0]))


for values in (arrays, texts):
    store = store if values is arrays else mx.kv.create("local")  # keys of one store have one type
    if values is arrays and start and store.rank == 0:
        print("ready", flush=True)
    while values is arrays and start and not os.path.exists(start):
        time.sleep(0.01)
    for key, a in values.items():
        store.init(key, a)
        count("init", key, sent=size(a))
    for _ in range(rounds):
        once(store, values)
    mx.nd.waitall()
    if store.type.startswith("dist"):
        store._barrier()
        dist = store
rank = dist.rank if kind.startswith("dist") else 0
os.write(1, f"kv {os.environ.get('DMLC_ROLE', 'alone')} {rank} {json.dumps(seen)}\n".encode())  # one write: others write there, too
