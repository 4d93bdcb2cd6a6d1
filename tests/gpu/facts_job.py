# SPDX-License-Identifier: Apache-2.0
"""What the checks of facts.py are made of: a process with a client of CUPTI (facts.c), which uses the GPU."""
import ctypes
import glob
import importlib.util
import os
import re
import sys
import threading
import time

DOUBLE = os.environ.get("MXBPF_GPU_DOUBLE")
THREADS = 16
KIND = {"memcpy": 1, "memset": 2, "driver": 4, "runtime": 5, "device": 8, "context": 9, "kernel": 10, "overhead": 17,
        "stream": 37, "sync": 38, "graph": 51}
CBIDS = 1024
RESULT = {-1: "not in this libcupti", 0: "success", 1: "invalid parameter", 7: "invalid operation", 14: "not compatible", 15: "not initialized",
          39: "multiple subscribers not supported", 999: "unknown error"}
CHECKS = {}


class Seen(ctypes.Structure):
    """Mirrors struct facts_seen of facts.c."""
    _fields_ = [(n, ctypes.c_uint64 * 64) for n in ("records", "bytes")]
    _fields_ += [(n, ctypes.c_uint64) for n in (
        "requested", "completed", "valid_bytes", "dropped", "zero_times", "early_kernels", "unjoined_kernels",
        "absurd_kernels", "graph_kernels", "timestamp_calls", "first_kernel_start", "last_kernel_end", "first_api_start",
        "last_api_end")]
    _fields_ += [(n, ctypes.c_uint32 * THREADS) for n in ("api_thread", "request_tid", "complete_tid")]
    _fields_ += [("api_pid", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("cbid_calls", ctypes.c_uint64 * CBIDS * 2)]
    _fields_ += [(n, ctypes.c_uint64) for n in ("cbids_beyond", "unreadable", "unreadable_bytes")]


def check(function):
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


def say(what, value):
    print(f"- {what}: {value}", flush=True)


def result(code):
    return f"{code} ({RESULT.get(code, 'see cupti_result.h')})"


def ms(seconds):
    return f"{seconds * 1e3:.3f} ms"


def timed(function, *args):
    """Returns the result of the function and its duration in seconds."""
    begin = time.perf_counter()
    value = function(*args)
    return value, time.perf_counter() - begin


def skip(reason):
    """Ends the check, which cannot run here."""
    sys.exit(f"skip {reason}")


def find_library(name):
    """Returns the path of the newest library of CUDA with this name that the driver can run."""
    if DOUBLE:
        return os.path.join(os.path.dirname(DOUBLE), name + ".so.12")
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    places = [f"{path}/nvidia/*/lib" for path in sys.path if path] + [f"{path}/torch/lib" for path in sys.path if path]
    places += [sys.prefix + "/lib", "/usr/local/cuda*/lib64", "/usr/local/cuda*/extras/CUPTI/lib64", "/usr/lib/x86_64-linux-gnu",
               "/opt/conda/lib", "/usr/local/cuda*/targets/x86_64-linux/lib"]
    for place in places:
        found = {int(re.search(r"[.]so[.](\d+)", path)[1]): path for path in glob.glob(f"{place}/{name}*.so.[0-9]*")}
        fits = [major for major in found if major <= max(version.value // 1000, 11) or major > 1000]  # libcupti.so.2022: CUDA 11
        if fits:
            return found[max(fits)]
    return skip(f"there is no {name} beside PyTorch, in CUDA's directories or in the system")


class Job:
    """A process that uses the GPU and has a CUPTI client."""

    def __init__(self, library, warm=True, torch=False):
        self.lib = ctypes.CDLL(library)
        self.lib.facts_open.restype = self.lib.facts_api_name.restype = self.lib.facts_cuda.restype = ctypes.c_char_p
        self.lib.facts_memory.restype = ctypes.c_size_t
        self.lib.facts_seen.restype = ctypes.POINTER(Seen)
        self.lib.facts_register.argtypes = [ctypes.c_size_t]
        self.lib.facts_launch.argtypes = [ctypes.c_long, ctypes.c_uint64, ctypes.c_void_p]
        self.lib.facts_replay.argtypes = self.lib.facts_capture.argtypes = [ctypes.c_long]
        self.lib.facts_set_attribute.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
        assert self.lib.facts_seen_bytes() == ctypes.sizeof(Seen)
        self.torch = None
        if torch and not DOUBLE:
            if not importlib.util.find_spec("torch"):
                skip("PyTorch is not installed for " + sys.executable)
            import torch as module
            if not module.cuda.is_available():
                skip("PyTorch cannot use the GPU")
            self.torch, self.x = module, module.ones(1, device="cuda")
        else:
            driver = os.path.join(os.path.dirname(DOUBLE or ""), "libcuda.so.1")
            failed = self.lib.facts_cuda(driver.encode(), find_library("libcudart").encode())
            if failed:
                sys.exit(f"CUDA: {failed.decode()}")
        self.path = (self.lib.facts_open((DOUBLE or ("" if self.torch else find_library("libcupti"))).encode()) or b"").decode()
        if not self.path:
            skip("no libcupti can be loaded")
        if warm:
            self.launch(100)
            self.sync()

    def launch(self, n, ns=0):
        """Launches n tiny kernels, or kernels that last so long."""
        if self.torch:
            for _ in range(n):
                self.x.add_(1)
        elif self.lib.facts_launch(n, ns, None):
            sys.exit("a launch failed")

    def sync(self):
        if self.torch:
            self.torch.cuda.synchronize()
        else:
            self.lib.facts_sync()

    def kinds(self, kinds):
        """Before CUDA 12.8, kernels can be launched through the driver only, so its calls are the launches."""
        runtime = self.torch or self.lib.facts_by_runtime()
        return list(dict.fromkeys("driver" if kind == "runtime" and not runtime else kind for kind in kinds))

    def api(self):
        """The number of records of calls that launch."""
        seen = self.seen()
        return seen.records[KIND["runtime"]] + (0 if self.torch or self.lib.facts_by_runtime() else seen.records[KIND["driver"]])

    def switch(self, on, functions):
        """Enables or disables single functions of the driver and of the runtime. Returns for how many that was possible."""
        return sum(self.lib.facts_enable_api(which, cbid, on) == 0 for which, cbids in zip((1, 0), functions) for cbid in cbids)

    def functions(self, used):
        """The cbids of the functions that the agent uses, or of the others, of the driver and of the runtime."""
        begin = ("Launch", "GraphLaunch", "Memcpy", "Memset", "MemPrefetch", "Malloc", "HostAlloc", "Free", "StreamWaitEvent")
        names = [[(i, (self.lib.facts_api_name(which, i) or b"").decode()) for i in range(1, CBIDS)] for which in (1, 0)]
        return [[i for i, name in of if name and (name[prefix:].startswith(begin) or "Synchronize" in name) == used]
                for prefix, of in zip((2, 4), names)]

    def seen(self):
        return self.lib.facts_seen().contents

    def begin(self, *kinds, register=True):
        """Subscribes and enables kinds of records; exits if the subscription fails."""
        err = self.lib.facts_subscribe()
        if err:
            sys.exit(f"cuptiSubscribe: {result(err)}")
        if register:
            self.lib.facts_register(0)
        for kind in self.kinds(kinds):
            err = self.lib.facts_enable(KIND[kind])
            if err:
                say(f"cuptiActivityEnable({kind})", result(err))

    def end(self, *kinds):
        for kind in self.kinds(kinds):
            self.lib.facts_disable(KIND[kind])
        self.lib.facts_flush(1)
        self.lib.facts_unsubscribe()

    def launch_ns(self, n=5000):
        """Returns the CPU time of one launch in ns, from the clock of the calling thread."""
        self.sync()
        begin = time.thread_time_ns()
        self.launch(n)
        spent = (time.thread_time_ns() - begin) / n
        self.sync()
        return spent


class Busy:
    """Launches kernels from another thread, and measures the longest launch."""

    def __init__(self, job):
        self.job, self.stop, self.count, self.longest = job, False, 0, 0.0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop:
            begin = time.perf_counter()
            self.job.launch(1)
            self.longest = max(self.longest, time.perf_counter() - begin)
            self.count += 1
            if self.count % 1000 == 0:
                self.job.sync()

    def during(self, what, function, *args):
        """Calls the function during launches, and prints its duration and that of the longest launch."""
        count = self.count
        while self.count < count + 100:
            time.sleep(0.001)
        self.longest = 0.0
        value, took = timed(function, *args)
        count = self.count
        while self.count < count + 2:
            time.sleep(0.001)
        say(what, f"{result(value)}, {ms(took)}; the longest launch meanwhile {ms(self.longest)}")
        return value

    def end(self):
        self.stop = True
        self.thread.join()
