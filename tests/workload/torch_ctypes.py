#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls operators of PyTorch's library through ctypes, for a Python without PyTorch.

usage: torch_ctypes.py LIBTORCH_CPU [calls | EVENT ACTION]

Prints "ready PID", then executes Python code until it is ended; with `calls` it also calls aten::abs_. On SIGUSR1 it calls
aten::neg_ 1000 times and prints "worked". On SIGUSR2 it prints "state" with everything that an injected script could leave
behind. On SIGHUP it prints "waits", and its main thread waits in C until the next signal.

At the audit event EVENT of the first such script it does ACTION: kill (the process whose pid is in the file `victim`), refuse
(the event), alarm (a signal whose handler raises an exception; the program prints "alarm").
"""
import ctypes
import json
import os
import signal
import sys
import threading

torch = ctypes.CDLL(sys.argv[1])
at, action = (sys.argv[2:] + [None, None])[:2]
scripts = []


class Alarm(Exception):
    pass


def say(*words):
    os.write(1, (' '.join(map(str, words)) + '\n').encode())


def on_event(event, args):
    global at
    if event == 'cpython.remote_debugger_script':
        scripts.append(args[0])
    if not scripts or event != at or (event == 'ctypes.dlopen' and not args[0]):
        return
    at = None
    if action == 'kill':
        while not os.path.exists('victim'):
            pass
        with open('victim') as f:
            os.kill(int(f.read()), signal.SIGKILL)
    elif action == 'refuse':
        raise RuntimeError('the program forbids it')
    elif action == 'alarm':
        signal.raise_signal(signal.SIGALRM)


def make_tensor():
    """at::ones({3}); a 0 is an empty std::optional."""
    ones = torch._ZN2at4_ops4ones4callEN3c108ArrayRefINS2_6SymIntEEESt8optionalINS2_10ScalarTypeEES6_INS2_6LayoutEES6_INS2_6DeviceEES6_IbE
    tensor, size = ctypes.c_void_p(), ctypes.c_int64(3)
    ones(ctypes.byref(tensor), ctypes.byref(size), ctypes.c_size_t(1), *[ctypes.c_size_t(0)] * 4)
    return tensor


def call(operator, n):
    """In place: at::Tensor &at::_ops::NAME::call(at::Tensor &)."""
    tensor = make_tensor()
    for _ in range(n):
        operator(ctypes.byref(tensor))


def idle():
    """Calls no operator, and no system call in which mxbpf considers a thread waiting."""
    if at == 'calls':
        call(torch._ZN2at4_ops4abs_4callERNS_6TensorE, 10)
    os.sched_yield()


def on_work(*_):
    call(torch._ZN2at4_ops4neg_4callERNS_6TensorE, 1000)
    say('worked')


def on_state(*_):
    with open('/proc/self/maps') as f:
        maps = f.read()
    say('state', json.dumps({
        'main': sorted(vars(sys.modules['__main__'])),
        'modules': sorted(sys.modules),
        'threads': [threading.active_count(), len(os.listdir('/proc/self/task'))],
        'files': sorted('%s %s' % (fd, os.readlink('/proc/self/fd/' + fd)) for fd in os.listdir('/proc/self/fd')
                        if os.path.exists('/proc/self/fd/' + fd)),
        'agent': 'mxbpf-agent' in maps,
    }), 'scripts', len(scripts))


def on_wait(*_):
    say('waits')
    ctypes.CDLL(None).sigsuspend(bytes(128))


def on_alarm(*_):
    raise Alarm('of the program')


sys.addaudithook(on_event)
for number, handler in ((signal.SIGUSR1, on_work), (signal.SIGUSR2, on_state), (signal.SIGHUP, on_wait),
                        (signal.SIGALRM, on_alarm)):
    signal.signal(number, handler)
say('ready', os.getpid())
while True:
    try:
        while True:
            idle()
    except Alarm as e:
        say('alarm', e)
