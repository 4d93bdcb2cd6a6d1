# SPDX-License-Identifier: Apache-2.0
"""Makes a process with a pid of one's choice. Unlike ns_last_pid this changes no pid of other processes on the machine."""
import ctypes
import os
import signal

SYS_clone3 = 435
libc = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock, which the child needs


class clone_args(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        'flags', 'pidfd', 'child_tid', 'parent_tid', 'exit_signal', 'stack', 'stack_size', 'tls', 'set_tid', 'set_tid_size')]


def fork(wanted):
    """Like os.fork(). wanted: the pid of the child, or 0 for any."""
    if not wanted:
        return os.fork()
    pid = (ctypes.c_int * 1)(wanted)
    args = clone_args(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(pid), set_tid_size=1)
    got = libc.syscall(SYS_clone3, ctypes.byref(args), ctypes.sizeof(args))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
