# SPDX-License-Identifier: Apache-2.0
# Loads the agent, or starts the one that is mapped. The interpreter of a target executes this file; script.c defines the names
# that it uses. An exception leads to failed.py. This file defines no function, because that would keep the namespace alive.
import ctypes
import posix

if posix.getpid() == pid:  # a child that was just forked has the request too
    if start:
        function = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_ulong)(start)
    else:
        libc = ctypes.CDLL(None, use_errno=True)
        for flags in 0x11, 1:  # MFD_CLOEXEC | MFD_EXEC; before Linux 6.3 only MFD_CLOEXEC
            fd = libc.syscall(ctypes.c_long(319), b'mxbpf-agent', ctypes.c_uint(flags))  # memfd_create
            if fd >= 0:
                break
        else:
            raise OSError(ctypes.get_errno(), 'memfd_create() failed')
        try:
            posix.write(fd, bytes.fromhex(image))
            function = ctypes.CDLL('/proc/self/fd/%d' % fd).mxbpf_agent_start
        finally:
            posix.close(fd)
    function(ctypes.c_ulong(modules))
    ctypes.memmove(box, b'1', 1)
