#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls a C API or an operator from every kind of Python frame, and records where it made each call with sys._getframe().

usage: prog.py LIBRARY OUT [--busy]    has the gates of the programs of ../judge

LIBRARY is the toy libmxnet of ../toy, or PyTorch's libtorch_cpu.so, whose operators are called without PyTorch.

OUT gets a JSON object: "stable" and "dying" (code that is gone when its call has returned), each {tid: [stack...]}, a stack a
list of [file, line, function], innermost first. Runs on CPython 3.8 to 3.15.
"""
import asyncio
import functools
import importlib.machinery
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge'))
import gate  # noqa: E402
from work import stack_of, work_of  # noqa: E402

work = work_of(sys.argv[1])
said = {'stable': {}, 'dying': {}}
kind = threading.local()


def note(frame):
    said[getattr(kind, 'now', 'stable')].setdefault(threading.get_native_id(), []).append(stack_of(frame))


def call(_=None):
    note(sys._getframe()); work()  # noqa: E702
    return 1


def call_in_pieces(a,
                   b):
    return (call(a)
            + b

            + call(
                b))


def generator(n):
    for i in range(n):
        call()
        yield i


def delegating(n):
    yield from generator(n)
    yield call()


def deep(n):
    return call() if n == 0 else deep(n - 1)


async def coroutine(n):
    call()
    if n:
        await asyncio.sleep(0)
        await coroutine(n - 1)


class Descriptor:
    def __get__(self, obj, kind=None):
        return call()


class Things:
    attribute = Descriptor()

    def __init__(self):
        self.closed = lambda x: call(self)

    def __add__(self, other):
        return call() + super().__thisclass__.mro().index(Things)

    def __enter__(self):
        return call()

    def __exit__(self, *_):
        return bool(call())

    def __lt__(self, other):
        return call() < 0


def from_c():
    """C frames between Python frames."""
    sorted([Things(), Things()])
    sorted([3, 1, 2], key=lambda x: call() * x)
    functools.reduce(lambda a, b: a + call(), [1, 2, 3])
    re.sub('a', lambda m: str(call()), 'banana')
    list(map(call, [1, 2]))
    functools.partial(call_in_pieces, 1)(2)
    [call() for _ in range(2)]
    {k: call() for k in 'ab'}
    sum(call() for _ in range(2))
    type('Made', (), {'method': lambda self: call()})().method()


class Made:
    def __init__(self):
        call()


def made_often():
    """From 3.12 on, the interpreter puts a frame of its own between this function and an __init__ that is called often."""
    for _ in range(100):
        Made()


class Importer:
    """Calls while it imports a module, below the interpreter's frozen code."""
    @staticmethod
    def find_spec(name, path, target=None):
        return importlib.machinery.ModuleSpec(name, Importer) if name == 'made_by_importer' else None

    @staticmethod
    def create_module(spec):
        call()

    @staticmethod
    def exec_module(module):
        call()


def imported():
    sys.meta_path.append(Importer)
    import made_by_importer  # noqa: F401


def control():
    with Things():
        try:
            raise ValueError(call())
        except ValueError:
            call()
        finally:
            call()
    things = Things()
    things.attribute, things + 1, things.closed(2)
    while call() > 1:
        pass
    for _ in generator(3):
        call()


@functools.wraps(call)
def decorated(*args, **kwargs):
    @functools.lru_cache(None)
    def inner(x):
        class Body:
            value = call()
        return Body.value
    return inner(1)


def long_function():
    """Lines and instructions far apart: steps that need more than a byte in a line table."""
    lines = ['def far(call):'] + ['    a = %d' % i for i in range(400)] + ['    call()'] + ['    #'] * 700
    lines += ['    b = [' + ', '.join('a + %d' % i for i in range(300)) + ']; call()', '    for i in range(2):', '        call()', '']
    scope = {}
    exec(compile('\n'.join(lines), 'generated/far.py', 'exec'), scope)
    scope['far'](call)
    return scope


def hostile_names():
    kept = []
    for name in ('\u00fcber/\u8def\u5f84.py', '\U0001f600.py', 'latin-\u00e9' * 30, 'x' * 3000, 'new\nline"<b>\x1b[31m', '\udcff\udc80.py',
                 '', '[its code is gone]'):
        kept.append(compile('def \u00e9t\u00e9():\n\n    call()\n\u00e9t\u00e9()', name, 'exec'))
        exec(kept[-1], {'call': call})
    return kept


def thread():
    for i in range(30):
        deep(i % 7)
        list(delegating(2))
    from_c()


def dying():
    """Code objects that are made, called and freed: the next one often has the same address."""
    kind.now = 'dying'
    for i in range(120):
        exec(compile('\n' * (i % 5) + 'call()', 'cell-%03d' % i, 'exec'), {'call': call})
    for i in range(120):
        scope = {'call': call}
        exec(compile('def made():\n' + '    x = 0\n' * (i % 3) + '    call()', 'made-%03d' % i, 'exec'), scope)
        scope['made']()
    for i in range(60):
        eval(compile('(lambda: call())()', '<string>', 'eval'), {'call': call})
    kind.now = 'stable'


def main():
    call()
    if '--busy' in sys.argv:
        gate.busy(work)
    gate.begin()
    said['stable'].clear()
    kept = [long_function(), hostile_names()]
    call_in_pieces(1, 2)
    list(delegating(3))
    for depth in (0, 5, 25, 60, 200):
        deep(depth)
    asyncio.run(coroutine(3))
    from_c()
    control()
    decorated()
    made_often()
    imported()
    threads = [threading.Thread(target=thread) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    dying()
    gate.end()
    with open(sys.argv[2], 'w') as f:
        json.dump(said, f)
    return kept


main()
