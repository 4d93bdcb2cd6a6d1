# SPDX-License-Identifier: Apache-2.0
import functools
import os
import sys


def stack_of(frame):
    """Returns file, line and function of each frame, innermost first."""
    frames = []
    while frame:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    return frames


def torch_operator(ctypes, torch):
    """Returns an object that calls aten::neg_ without a Python frame of its own. at::ones({3}): a 0 is an empty std::optional."""
    ones = torch._ZN2at4_ops4ones4callEN3c108ArrayRefINS2_6SymIntEEESt8optionalINS2_10ScalarTypeEES6_INS2_6LayoutEES6_INS2_6DeviceEES6_IbE
    tensor, size = ctypes.c_void_p(), ctypes.c_int64(3)
    ones(ctypes.byref(tensor), ctypes.byref(size), ctypes.c_size_t(1), *[ctypes.c_size_t(0)] * 4)
    return functools.partial(torch._ZN2at4_ops4neg_4callERNS_6TensorE, ctypes.byref(tensor))


def work_of(library):
    """Returns what calls a function of the toy libmxnet of ../toy or of musl.c, or an operator of PyTorch's libtorch_cpu.so."""
    if 'musl' in library:
        sys.path.append(os.path.dirname(library))
        import libmxnet
        return libmxnet.MXNDArrayWaitAll
    import ctypes
    lib = ctypes.CDLL(library)
    return torch_operator(ctypes, lib) if 'libtorch' in library else lib.MXNDArrayWaitAll
