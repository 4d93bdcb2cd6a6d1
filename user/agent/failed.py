# SPDX-License-Identifier: Apache-2.0
# Runs when enter.py, or the handler of a signal during it, has raised an exception. An exception of a handler is passed to the
# program after the script.
#
# An exception that is set for a thread is raised when the next call returns. The script itself must not make the call that sets
# it. Instead, the callback of a weak reference to the object `script` makes it, and this object is deleted last.
import ctypes
import _functools
import _signal
import _thread
import _weakref

text = ('%s: %s' % (type(raised).__name__, raised)).encode(errors='replace')[:239] + b'\0'
ctypes.memmove(box + 8, text, len(text))
ctypes.memmove(box, b'2', 1)
codes = [getattr(_signal.getsignal(n), '__code__', None) for n in _signal.valid_signals()]
trace = raised.__traceback__
while trace and trace.tb_frame.f_code not in codes:
    trace = trace.tb_next
if trace or not isinstance(raised, Exception):
    raised.__traceback__ = trace
    again = type('again', (BaseException,), {'__new__': lambda *_, e=raised: e})
    set_exception = ctypes.PyDLL(None)['PyThreadState_SetAsyncExc']
    set_exception.argtypes = ctypes.c_ulong, ctypes.py_object, ctypes.py_object  # the third is the weak reference
    behind = _weakref.ref(script, _functools.partial(set_exception, _thread.get_ident(), again))
