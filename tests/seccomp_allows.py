#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: seccomp_allows.py PID NUMBER...
Prints those of the system calls (numbers of x86-64, all arguments 0) that the seccomp filters of a process allow."""
import ctypes
import os
import struct
import sys

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, PTRACE_SECCOMP_GET_FILTER = 0x4206, 0x4207, 17, 0x420c
AUDIT_ARCH_X86_64, SECCOMP_RET_ALLOW = 0xc000003e, 0x7fff0000
libc = ctypes.CDLL(None, use_errno=True)


def ptrace(request, pid, addr, data):
    got = libc.ptrace(request, pid, ctypes.c_void_p(addr), data)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def filters_of(pid):
    ptrace(PTRACE_SEIZE, pid, 0, None)
    ptrace(PTRACE_INTERRUPT, pid, 0, None)
    os.waitpid(pid, 0x40000000)  # __WALL
    found = []
    try:
        while True:
            program = ctypes.create_string_buffer(8 * 4096)
            n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, len(found), program)
            found.append(list(struct.iter_unpack('<HBBI', program.raw[:8 * n])))
    except FileNotFoundError:  # there are no more
        return found
    finally:
        ptrace(PTRACE_DETACH, pid, 0, None)


def allows(program, number):
    """The instructions of classic BPF that filters of seccomp use."""
    data = struct.pack('<IIQ6Q', number, AUDIT_ARCH_X86_64, *[0] * 7)
    word = at = 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == 0x20:  # load
            word = struct.unpack_from('<I', data, k)[0]
        elif code == 0x54:  # and
            word &= k
        elif code == 0x05:  # go to
            at += k
        elif code == 0x06:  # return
            return k == SECCOMP_RET_ALLOW
        else:  # compare
            at += yes if {0x15: word == k, 0x25: word > k, 0x35: word >= k, 0x45: word & k}[code] else no


filters = filters_of(int(sys.argv[1]))
print(*(number for number in sys.argv[2:] if all(allows(program, int(number)) for program in filters)))
