# SPDX-License-Identifier: Apache-2.0
"""Programs with known dependencies, between the gates of tests/judge/gate.py: prog.py chain|fan|front|custom|bulk|segment ROUNDS.
No array that an operator reads or writes is freed in the section."""
import os
import sys
import time

os.environ.setdefault('OMP_NUM_THREADS', '1')
sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'judge'))

import gate  # noqa: E402
import mxnet as mx  # noqa: E402

SIDE = 900
SLEEP_S = 0.1
KEPT = []


class Slow(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        time.sleep(SLEEP_S)
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register('slow')
class SlowProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Slow()


def keep(*arrays):
    KEPT.extend(arrays)


def chain(a, small):
    b = mx.nd.dot(a, a)
    c = mx.nd.exp(b)
    d = mx.nd.sqrt(c)
    e = d.sum()
    e.asnumpy()
    keep(b, c, d, e)


def fan(a, small):
    b = mx.nd.dot(a, a)
    keep(b, *(mx.nd.exp(b) for _ in range(4)))
    mx.nd.waitall()


def front(a, small):
    b = mx.nd.dot(a, a)
    c = mx.nd.sqrt(small)
    c.wait_to_read()
    keep(b, c)


def custom(a, small):
    b = mx.nd.Custom(small, op_type='slow')
    b.asnumpy()
    keep(b)


def bulk(a, small):
    with mx.engine.bulk(10):
        b = mx.nd.dot(a, a)
        c = mx.nd.sqrt(b)
        d = mx.nd.exp(small)
        c.wait_to_read()
    keep(b, c, d)


class Segment:
    """An executor, which runs all its operators as one operation of the engine."""

    def __init__(self):
        self.executor = None

    def __call__(self, a, small):
        if not self.executor:
            x = mx.sym.var('x')
            self.executor = mx.sym.sqrt(mx.sym.exp(mx.sym.dot(x, x))).bind(mx.cpu(), {'x': a})
        self.executor.forward()
        self.executor.outputs[0].wait_to_read()


WHAT = {'chain': chain, 'fan': fan, 'front': front, 'custom': custom, 'bulk': bulk, 'segment': Segment()}


def main():
    run, rounds = WHAT[sys.argv[1]], int(sys.argv[2])
    a, small = mx.nd.full((SIDE, SIDE), 1e-6), mx.nd.ones((4, 4))
    run(a, small)
    mx.nd.waitall()
    gate.begin()
    for _ in range(rounds):
        run(a, small)
    mx.nd.waitall() # otherwise the awaited operator may end after the window
    gate.end()


main()
