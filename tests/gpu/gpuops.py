# SPDX-License-Identifier: Apache-2.0
"""Runs work on the mock of a GPU on behalf of operators, and counts it. torch_job.py and mxnet_job.py share it.

The counts are the truth against which tests compare what mxbpf reports.
"""
import collections
import ctypes
import glob
import json
import os
import signal
import threading
import time

STREAMS = {"compute": 0, "side": 1, "copy": 2}
ELEMENTWISE = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_12_GLOBAL__N_1%sIfEESt5arrayIPcLm3EEEEviT0_T1_"
GEMM = ("_ZN7cutlass6KernelINS_4GemmINS_4gemm3MmaINS2_9GemmShapeILi256ELi128ELi32EEENS4_ILi64ELi64ELi32EEENS4_ILi16ELi8ELi16EEELi3EEE"
        "NS_8epilogue8EpilogueIS5_NS9_6thread21LinearCombinationReluIfLi8EdEELi4EEE"
        "NS_70GemmIdentityThreadblockSwizzleOfANameThatIsLongerThanThreeHundredBytesILi8EEENS2_%sEEEEEvNS_6ParamsIT_EE")
NAMES = {
    "gemm": GEMM % "3fwd", "gemm_dx": GEMM % "5dgrad", "gemm_dw": GEMM % "5wgrad",
    "relu": ELEMENTWISE % "12relu_functor", "relu_dx": ELEMENTWISE % "17threshold_functor", "add": ELEMENTWISE % "15CUDAFunctor_add",
    "reduce": "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfLj4ENS0_14func_wrapper_tIfEEEEEEvT1_",
    "stub": "_ZN6gpuops6gemm_kILi128ELi64EEEvPKfS2_Pf",  # a host function of libgpuops.so
    "triton": "triton_poi_fused_add_mul_0",
}
TRACE_STEPS = 20


def find(directory, pattern):
    """Returns the library in this directory or the one above."""
    return next(path for d in (directory, os.path.dirname(directory)) for path in glob.glob(os.path.join(d, pattern)))


class Ops:
    """libgpuops.so with an account of each operator: kernels and their ns, copies and their bytes, sets, waits, graphs."""

    def __init__(self, directory, cupti):
        self.lib = ctypes.CDLL(find(directory, "libgpuops.so"))
        self.cupti = ctypes.CDLL(find(directory, "libcupti.so.*")) if cupti else None
        for name in ("gpuops_launch", "gpuops_launch_ex", "gpuops_launch_driver"):
            getattr(self.lib, name).restype = ctypes.c_uint64
            getattr(self.lib, name).argtypes = ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint
        self.lib.gpuops_copy.argtypes = ctypes.c_bool, ctypes.c_bool, ctypes.c_size_t, ctypes.c_int
        for name in ("gpuops_copy_inside", "gpuops_set"):
            getattr(self.lib, name).argtypes = ctypes.c_size_t, ctypes.c_uint
        self.operators = collections.defaultdict(collections.Counter)
        self.kernels = collections.defaultdict(collections.Counter)
        self.graphs = {}
        self.lock = threading.Lock()

    def add(self, operator, **counts):
        with self.lock:
            self.operators[operator].update(counts)

    def kernel(self, operator, kernel, us, stream="compute", how="gpuops_launch"):
        """Launches a kernel that lasts `us` microseconds."""
        name = NAMES[kernel]
        ns = getattr(self.lib, how)(name.encode(), us * 1000, STREAMS[stream])
        self.count(operator, name, ns)

    def others(self, operator, devices):
        """Launches a kernel of 100 us on each device but the first."""
        for device in range(1, devices):
            self.lib.gpuops_device(device)
            self.kernel(operator, "reduce", 100)
        self.lib.gpuops_device(0)

    def burst(self, operator, kernels):
        """Launches kernels of 100 ns back to back, without Python between them."""
        self.lib.gpu_burst(ctypes.c_long(kernels))
        self.add(operator, kernels=kernels, ns=100 * kernels)
        with self.lock:
            for i in range(4):
                n = (kernels + 3 - i) // 4
                self.kernels["burst_" + "abcd"[i]].update(kernels=n, ns=100 * n)

    def count(self, operator, name, ns):
        self.add(operator, kernels=1, ns=ns)
        with self.lock:
            self.kernels[name].update(kernels=1, ns=ns)

    def copy(self, operator, size, to_device=True, pinned=False, wait=False):
        self.lib.gpuops_copy(to_device, pinned, size, -1 if wait else STREAMS["copy"])
        kind = ("pinned" if pinned else "pageable") + ("_to_device" if to_device else "_to_host")
        self.add(operator, copies=1, bytes=size, **{kind: 1})

    def set(self, operator, size):
        self.lib.gpuops_set(size, STREAMS["compute"])
        self.add(operator, sets=1)

    def wait(self, operator, stream=None):
        """Waits for a stream, or for the whole device."""
        if stream is None:
            self.lib.gpuops_sync()
        else:
            self.lib.gpuops_sync_stream(STREAMS[stream])
        self.add(operator, waits=1)

    def capture(self, operator, kernels):
        """Captures a graph of (kernel, us). The launches of a capture run nothing."""
        self.lib.gpuops_capture_begin(STREAMS["side"])
        for kernel, us in kernels:
            self.lib.gpuops_launch(NAMES[kernel].encode(), us * 1000, STREAMS["side"])
        self.graphs[operator] = self.lib.gpuops_capture_end(STREAMS["side"]), kernels

    def graph(self, operator):
        """Launches the graph that the operator has captured."""
        graph, kernels = self.graphs[operator]
        self.lib.gpuops_graph_launch(graph, STREAMS["side"])
        self.add(operator, graphs=1)
        for kernel, us in kernels:
            self.count(operator, NAMES[kernel], us * 1000)

    def account(self, **more):
        with self.lock:
            sums = sum(self.operators.values(), collections.Counter())
            return dict(more, total=sums, operators=self.operators, kernels=self.kernels)


class Kineto:
    """The job's own profiler: a trace of TRACE_STEPS steps after each SIGUSR1, and a line with its counts."""

    def __init__(self, directory, mode):
        self.lib = ctypes.CDLL(find(directory, "libkineto_double.so"))
        for name in ("stop", "calls", "others", "foreign", "absurd"):
            getattr(self.lib, "kineto_" + name).restype = ctypes.c_long
        self.lib.kineto_mode({"once": 0, "each": 1, "clock": 2, "never": 3}[mode])
        self.wanted, self.left = 0, 0
        signal.signal(signal.SIGUSR1, self.want)

    def want(self, number, frame):
        self.wanted += 1

    def before_step(self, ops):
        if self.wanted and not self.left:
            self.wanted -= 1
            self.left = TRACE_STEPS
            ops.lib.gpuops_sync()  # no kernel from before is in the trace
            self.launched = launched(ops)
            self.error = self.lib.kineto_start()

    def after_step(self, ops):
        self.left -= self.left > 0
        if self.left or not hasattr(self, "launched"):
            return
        ops.lib.gpuops_sync()
        counts = {"error": self.error, "launched": launched(ops) - self.launched, "kernels": self.lib.kineto_stop()}
        counts.update((name, getattr(self.lib, "kineto_" + name)()) for name in ("calls", "others", "foreign", "absurd"))
        del self.launched
        print("kineto", json.dumps(counts), flush=True)


def launched(ops):
    return sum(counts["kernels"] for counts in ops.operators.values())


def add_arguments(parser, cupti, directory):
    parser.add_argument("--steps", type=int, default=0, help="training steps; 0: until a signal comes")
    parser.add_argument("--seconds", type=float, default=0, help="end after so long; 0: no limit")
    parser.add_argument("--gpu", default=os.path.join(os.environ.get("O", "build"), directory), help="directory of the mock")
    parser.add_argument("--cupti", choices=("mapped", "absent"), default=cupti, help="whether the job has libcupti mapped")
    parser.add_argument("--init-at", type=int, default=0, help="initialise CUDA before this step; 0: before the first")
    parser.add_argument("--kineto", choices=("once", "each", "clock", "never"),
                        help="profile after each SIGUSR1; subscribe once in the process, for each trace, or never; clock: once, but register "
                             "a clock for each trace")
    parser.add_argument("--devices", type=int, default=1, help="use so many devices, at most 8")
    parser.add_argument("--fork-every", type=int, default=0, help="fork a child after every N steps, wait for it, fail if it fails")
    parser.add_argument("--burst", type=int, default=1000000, help="at SIGUSR2 launch so many kernels of 100 ns")
    parser.add_argument("--account", help="write the account to this file, too")
    parser.add_argument("--pause-ms", type=float, default=5, help="sleep after each step")


class Loop:
    """The steps of a job: prints `ready PID` after the first one, ends on SIGTERM and SIGINT, prints the account."""

    def __init__(self, args):
        self.args = args
        self.stopped = []
        self.forks = self.failed = self.bursts = 0
        signal.signal(signal.SIGUSR2, self.want_burst)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: self.stopped.append(number))
        self.ops = Ops(args.gpu, args.cupti == "mapped")
        self.kineto = Kineto(args.gpu, args.kineto) if args.kineto else None

    def want_burst(self, number, frame):
        self.bursts += 1

    def burst(self, operator):
        """Launches a burst for each SIGUSR2 since the last call."""
        while self.bursts:
            self.bursts -= 1
            self.ops.burst(operator, self.args.burst)
            print("burst", self.args.burst, flush=True)

    def run(self, step, captures=None):
        """Calls step(gpu) for each step. gpu is False before CUDA is initialised."""
        begin = time.monotonic()
        steps, up = 0, False
        while True:
            if not up and steps + 1 >= self.args.init_at:
                self.ops.lib.gpuops_init()
                if captures:
                    captures()
                up = True
            if self.kineto:
                self.kineto.before_step(self.ops)
            step(up)
            if self.kineto:
                self.kineto.after_step(self.ops)
            steps += 1
            if self.args.fork_every and steps % self.args.fork_every == 0:
                self.fork(step)
            if steps == 1:
                print("ready", os.getpid(), flush=True)
            if self.stopped or steps == self.args.steps or (self.args.seconds and time.monotonic() - begin >= self.args.seconds):
                break
            time.sleep(self.args.pause_ms / 1000)
        return self.end(steps, up)

    def fork(self, step):
        """Runs a step without a GPU in a forked child, where CUDA cannot be used."""
        child = os.fork()
        if not child:
            try:
                step(False)
                os._exit(0 if self.ops.lib.gpuops_sync() else 1)
            finally:
                os._exit(2)
        self.forks += 1
        self.failed += os.waitpid(child, 0)[1] != 0

    def end(self, steps, up):
        if up:
            for device in range(self.args.devices):
                self.ops.lib.gpuops_device(device)
                self.ops.lib.gpuops_sync()
            ctypes.CDLL("libcuda.so.1").double_write_account()  # a child of the fork server runs no exit handlers
        account = json.dumps(self.ops.account(steps=steps, pid=os.getpid(), forks=self.forks, failed=self.failed))
        if self.args.account:
            with open(self.args.account, "w") as file:
                file.write(account + "\n")
        print(account, flush=True)
        return int(self.failed > 0)


