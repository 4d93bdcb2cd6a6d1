# SPDX-License-Identifier: Apache-2.0
"""Sets a user counter, pushes an operator that never ends and one that depends on it, prints "pushed PID", and waits for
SIGKILL."""
import os
import threading

import mxnet as mx


class Stuck(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        threading.Event().wait()


@mx.operator.register('stuck')
class StuckProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Stuck()


domain = mx.profiler.Domain('load')
counter = mx.profiler.Counter(domain, 'items', 5)
mx.nd.ones((4, 4)).wait_to_read()
behind = mx.nd.exp(mx.nd.Custom(mx.nd.ones((4, 4)), op_type='stuck'))
print('pushed', os.getpid(), flush=True)
behind.wait_to_read()
