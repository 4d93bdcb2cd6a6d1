#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real job that hangs until it is told to go on, and knows nothing of mxbpf.

usage: hang.py torch-operator | torch-collective | mxnet-operator | frames LIBMXNET
Prints "ready PID", waits for SIGUSR1, hangs, and prints "hung" when it does. SIGUSR2 lets it go on. Then it prints its result
and ends. A SIGUSR1 while it hangs makes faulthandler write the Python stacks of its threads to stderr."""
import ctypes
import faulthandler
import os
import signal
import socket
import sys
import threading

GO_ON = threading.Event()


def hung():
    # Handled in C from now on, even if Python is blocked.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    print('hung', flush=True)


def torch_operator():
    import torch

    @torch.library.custom_op('toy::wait', mutates_args=())
    def wait(x: torch.Tensor) -> torch.Tensor:
        hung()
        GO_ON.wait()
        return x + 1

    yield
    print('result', wait(torch.ones(3)).tolist(), flush=True)


def torch_collective():
    import torch
    import torch.distributed as dist

    # The peer, which comes only after the signal.
    listening = socket.create_server(('127.0.0.1', 0))
    port = listening.getsockname()[1]
    pid = os.fork()
    rank = int(not pid)
    if rank:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
        listening.close()
        store = dist.TCPStore('127.0.0.1', port, 2, False)
    else:
        store = dist.TCPStore('127.0.0.1', port, 2, True, master_listen_fd=listening.detach())
    dist.init_process_group('gloo', rank=rank, world_size=2, store=store)
    if rank:
        signal.sigwait([signal.SIGUSR2])
    else:
        OTHERS.append(pid)
        yield
        hung()
    x = torch.full((4,), rank + 1.0)
    dist.all_reduce(x)
    if rank:
        os._exit(0)
    print('result', x.tolist(), flush=True)
    os.waitpid(pid, 0)


def mxnet_operator():
    import mxnet as mx

    class Wait(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            hung()
            GO_ON.wait()
            self.assign(out_data[0], req[0], in_data[0] + 1)

    @mx.operator.register('toy_wait')
    class WaitProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Wait()

    mx.nd.ones(3).asnumpy()
    yield
    print('result', mx.nd.Custom(mx.nd.ones(3), op_type='toy_wait').asnumpy().tolist(), flush=True)


def frames():
    """Hangs below frames of several kinds. The library is the toy of ../toy, which makes this process a job."""
    lib = ctypes.CDLL(sys.argv[2])

    class Waits:
        def __index__(self):
            hung()
            GO_ON.wait()
            return 1

    def generator():
        yield [0, 7][Waits()]

    yield
    lib.MXNDArrayWaitAll()
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: max(map(abs, generator())))
    print('result', callback(), flush=True)


OTHERS = []
BODIES = {'torch-operator': torch_operator, 'torch-collective': torch_collective, 'mxnet-operator': mxnet_operator,
          'frames': frames}


def wait_for_go_on():
    signal.sigwait([signal.SIGUSR2])
    for pid in OTHERS:
        os.kill(pid, signal.SIGUSR2)
    GO_ON.set()


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
    body = BODIES[sys.argv[1]]()
    next(body)
    print('ready', os.getpid(), flush=True)
    signal.sigwait([signal.SIGUSR1])
    threading.Thread(target=wait_for_go_on, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    next(body, None)


main()
