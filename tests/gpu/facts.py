#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one check of CUPTI, PyTorch's profiler and the kernel on a machine with a GPU; prints its findings as a list.

Only the checks of PyTorch's profiler need PyTorch: the others use libcudart, and a kernel in PTX that the driver compiles.
A finding that begins with "decides:" is what mxbpf's choices depend on. With "skip REASON" on stderr nothing could be checked.

usage: facts.py LIBRARY CHECK   LIBRARY is facts.c, compiled. facts.py --list prints the names of the checks.
run.py runs each check in its own process, because CUPTI's state outlives a subscription.
With MXBPF_GPU_DOUBLE=PATH a mock of libcupti replaces the GPU; this tests the checks and not CUPTI. The mocks of the driver
and of the runtime lie in the same directory (tests/gpu/double/README.md).
"""
import ctypes
import glob
import os
import platform
import statistics
import struct
import sys
import threading
import time

from facts_job import CHECKS, DOUBLE, KIND, Busy, Job, check, ms, result, say, skip, timed


def profiled(job):
    """Returns how many events torch.profiler has for 50 launches, and how many of them are on the GPU."""
    if DOUBLE:
        return "not with the mock"
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        job.launch(50)
        job.sync()
    events = p.events()
    return f"{sum('CUDA' in str(e.device_type) for e in events)} events on the GPU of {len(events)} (50 launches)"


@check
def machine(_):
    """Describes the machine and the driver, and the settings that BPF and uprobes depend on."""
    say("kernel", f"{platform.release()} {platform.version()}")
    say("Python", platform.python_version())
    for name in ("/proc/driver/nvidia/version", "/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/yama/ptrace_scope",
                 "/proc/sys/kernel/unprivileged_bpf_disabled"):
        try:
            with open(name) as f:
                say(name, f.readline().strip())
        except OSError as e:
            say(name, e.strerror)
    say("user id", os.geteuid())
    say("BTF of the kernel", os.path.exists("/sys/kernel/btf/vmlinux"))


@check
def bpf(library):
    """Checks if this process may load a BPF program and count hits of a uprobe."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = struct.pack("<BBhi", 0xb7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)  # return 0
    buffer, licence = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("<IIQQ", 1, 2, ctypes.addressof(buffer), ctypes.addressof(licence)).ljust(128, b"\0")
    fd = libc.syscall(321, 5, attr, 128)
    say("BPF_PROG_LOAD of a socket filter", "works" if fd >= 0 else os.strerror(ctypes.get_errno()))
    try:
        with open("/sys/bus/event_source/devices/uprobe/type") as f:
            pmu = int(f.read())
    except OSError as e:
        return say("uprobes", f"none: /sys/bus/event_source/devices/uprobe/type: {e.strerror}")
    lib = ctypes.CDLL(library)
    address = ctypes.cast(lib.facts_probed, ctypes.c_void_p).value
    path = ctypes.create_string_buffer(os.path.realpath(library).encode())
    offset = None
    with open("/proc/self/maps") as maps:
        for line in maps:
            place, _, start, _, _, *name = line.split(maxsplit=5)
            a, b = (int(n, 16) for n in place.split("-"))
            if name and os.path.realpath(name[0].rstrip("\n")) == path.value.decode() and a <= address < b:
                offset = address - a + int(start, 16)
    attr = struct.pack("<IIQQQQQIIQQ", pmu, 128, 0, 0, 0, 0, 0, 0, 0, ctypes.addressof(path), offset).ljust(128, b"\0")
    fd = libc.syscall(298, attr, 0, -1, -1, 8)
    if fd < 0:
        return say("uprobes", f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    for i in range(100):
        lib.facts_probed(i)
    say("uprobes", f"{struct.unpack('<Q', os.read(fd, 8))[0]} hits counted of 100 calls")


@check
def versions(library):
    """Reports the versions of PyTorch, CUDA and CUPTI, and the functions of this libcupti."""
    job = Job(library)
    say("launches are calls of", "the runtime" if job.lib.facts_by_runtime() else "the driver")
    say("libcupti", f"{job.path}, cuptiGetVersion {job.lib.facts_version()}")
    for name in ("cuptiSubscribe_v2", "cuptiActivityEnable_v2", "cuptiActivityEnableAndDump", "cuptiActivityRegisterTimestampCallback",
                 "cuptiActivityEnableDriverApi", "cuptiActivityGetStructSize"):
        say(name, "present" if job.lib.facts_has(name.encode()) else "absent")
    say("attribute 9, a buffer for each thread, by default", job.lib.facts_attribute(9))
    if DOUBLE:
        return
    cuda = ctypes.CDLL("libcuda.so.1")
    for name in (b"cuLaunchKernel", b"cuLaunchKernelEx", b"cuMemcpyAsync", b"cuStreamSynchronize"):
        address, status = ctypes.c_void_p(), ctypes.c_int()
        cuda.cuGetProcAddress_v2(name, ctypes.byref(address), 12000, ctypes.c_uint64(0), ctypes.byref(status))
        exported = ctypes.cast(getattr(cuda, name.decode(), None) or 0, ctypes.c_void_p).value
        say(f"cuGetProcAddress({name.decode()}) is the exported function", address.value is not None and address.value == exported)


@check
def subscribe_idle(library):
    """Measures subscriptions in a process that launches nothing meanwhile."""
    job = Job(library)
    for what in ("first", "second", "third"):
        err, took = timed(job.lib.facts_subscribe)
        say(f"{what} cuptiSubscribe", f"{result(err)}, {ms(took)}")
        err2, took = timed(job.lib.facts_subscribe)
        say("another one while it stands", f"{result(err2)}, {ms(took)}")
        err, took = timed(job.lib.facts_unsubscribe)
        say("cuptiUnsubscribe", f"{result(err)}, {ms(took)}")


@check
def enable_busy(library):
    """Measures how long a subscription and the first enabling of each kind delay launches of another thread."""
    job = Job(library)
    busy = Busy(job)
    try:
        for turn in ("first", "second"):
            busy.during(f"{turn} cuptiSubscribe", job.lib.facts_subscribe)
            job.lib.facts_register(0)
            for kind in ("kernel", "runtime", "memcpy", "memset", "sync", "driver"):
                busy.during(f"{turn} cuptiActivityEnable({kind})", job.lib.facts_enable, KIND[kind])
            busy.during("cuptiActivityFlushAll(0)", job.lib.facts_flush, 0)
            for kind in ("kernel", "runtime", "memcpy", "memset", "sync", "driver"):
                job.lib.facts_disable(KIND[kind])
            busy.during("cuptiActivityFlushAll(1) after all were disabled", job.lib.facts_flush, 1)
            busy.during("cuptiUnsubscribe", job.lib.facts_unsubscribe)
    finally:
        busy.end()


@check
def launch_cost(library):
    """Measures the CPU time of a launch: before CUPTI, with kinds enabled, and after each way of the agent to let go."""
    job = Job(library)
    others = job.functions(used=False)
    kinds = [("subscribed, no kind", ()), ("kernel", ("kernel",)), ("kernel, runtime", ("kernel", "runtime")),
             ("kernel, runtime, memcpy, memset, sync", ("kernel", "runtime", "memcpy", "memset", "sync")),
             ("kernel, driver", ("kernel", "driver"))]
    before = statistics.median(job.launch_ns() for _ in range(5))
    spent, off = {}, []
    for _ in range(5):
        for name, of in kinds:
            job.begin(*of)
            spent.setdefault(name, []).append(job.launch_ns())
            job.end(*of)
            off.append(job.launch_ns())
        job.begin("driver", "runtime")
        could = job.switch(0, others)
        job.lib.facts_enable(KIND["kernel"])
        spent.setdefault("the agent's selection", []).append(job.launch_ns())
        job.end("kernel", "driver", "runtime")
        spent.setdefault("after its release", []).append(job.launch_ns())
    job.lib.facts_subscribe()
    job.lib.facts_finalize()
    job.launch(1)
    spent[f"after cuptiFinalize ({job.lib.facts_finalized()})"] = [job.launch_ns() for _ in range(5)]
    base = statistics.median(off)
    say("decides: CPU time of a launch before CUPTI was ever used", f"{before:.0f} ns")
    say("decides: CPU time of a launch after a subscription", f"{base:.0f} ns ({base / before:.3f})")
    say("functions that the agent switches off", f"{could} of {sum(map(len, others))}")
    for name, all_of in spent.items():
        cost = statistics.median(all_of)
        say(f"decides: CPU time of a launch, {name}", f"{cost:.0f} ns, {cost - before:+.0f} ns to that before ({cost / before:.3f})")


@check
def after_finalize(library):
    """Checks if launches stay slower after a subscription has ended, and if cuptiFinalize() helps."""
    job = Job(library, torch=True)
    before = statistics.median(job.launch_ns() for _ in range(9))
    job.begin("kernel", "runtime")
    job.launch(1000)
    job.sync()
    job.end("kernel", "runtime")
    ended = statistics.median(job.launch_ns() for _ in range(9))
    job.begin("kernel", "runtime")
    job.end("kernel", "runtime")
    job.lib.facts_subscribe()
    say("asking for cuptiFinalize at the exit of a CUDA call", result(job.lib.facts_finalize()))
    _, took = timed(job.launch, 1)
    say("cuptiFinalize", f"{result(job.lib.facts_finalized())}; the launch that it ran in took {ms(took)}")
    final = statistics.median(job.launch_ns() for _ in range(9))
    say("a launch before, after a subscription, after cuptiFinalize", f"{before:.0f}, {ended:.0f}, {final:.0f} ns")
    say("cuptiSubscribe after cuptiFinalize", result(job.lib.facts_subscribe()))
    job.lib.facts_unsubscribe()
    say("torch.profiler after that", profiled(job))


@check
def profiler_while_held(library):
    """Checks what torch.profiler records while another client is subscribed to CUPTI, and afterwards."""
    job = Job(library, torch=True)
    job.begin("kernel", "runtime")
    say("while it is held", profiled(job))
    job.end("kernel", "runtime")
    say("after it was let go", profiled(job))
    say("once more", profiled(job))
    say("kernels that the other client saw", job.seen().records[KIND["kernel"]])


@check
def profiler_first(library):
    """Checks if torch.profiler stays subscribed after it has ended, and if it works again after another client."""
    job = Job(library, torch=True)
    say("torch.profiler", profiled(job))
    err, took = timed(job.lib.facts_subscribe)
    say("cuptiSubscribe after it", f"{result(err)}, {ms(took)}")
    if not err:
        job.lib.facts_unsubscribe()
    holder = ctypes.create_string_buffer(128)
    if job.lib.facts_has(b"cuptiSubscribe_v2"):
        err = job.lib.facts_subscribe_v2(0, holder)
        say("cuptiSubscribe_v2 after it", f"{result(err)}, held by '{holder.value.decode(errors='replace')}'")
        if not err:
            job.lib.facts_unsubscribe()
    say("torch.profiler again", profiled(job))


@check
def multiple_subscribers(library):
    """Checks cuptiSubscribe_v2 with several subscribers (CUDA 13.2 and later), together with torch.profiler."""
    job = Job(library, torch=True)
    holder = ctypes.create_string_buffer(128)
    err = job.lib.facts_subscribe_v2(1, holder)
    say("cuptiSubscribe_v2, several allowed", f"{result(err)}, first subscriber '{holder.value.decode(errors='replace')}'")
    if err:
        return
    say("cuptiSubscribe (v1) beside it", result(job.lib.facts_subscribe()))
    job.lib.facts_register(0)
    say("cuptiActivityEnable (v1) of a v2 subscriber", result(job.lib.facts_enable(KIND["kernel"])))
    job.lib.facts_disable(KIND["kernel"])
    say("torch.profiler beside it", profiled(job))
    job.lib.facts_unsubscribe()
    say("torch.profiler after it", profiled(job))


@check
def threads_and_clock(library):
    """Checks the thread ids and the clock of the records."""
    job = Job(library)
    offset, real, width = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_uint64()
    err = job.lib.facts_clock(ctypes.byref(offset), ctypes.byref(real), ctypes.byref(width))
    say("cuptiGetTimestamp", f"{result(err)}, less CLOCK_REALTIME {real.value} ns, less CLOCK_MONOTONIC {offset.value} ns, bracket {width.value} ns")
    for system in (0, 1):
        job.lib.facts_clear()
        if system:
            say("cuptiSetThreadIdType(SYSTEM)", result(job.lib.facts_thread_ids(1)))
        job.begin("kernel", "runtime")
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        helper = threading.Thread(target=job.launch, args=(10,))
        helper.start()
        job.launch(10)
        helper.join()
        job.sync()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        job.end("kernel", "runtime")
        seen = job.seen()
        say("thread ids in API records", f"{[t for t in seen.api_thread if t]}; gettid {threading.get_native_id()} and {helper.native_id}; "
            f"pid in records {seen.api_pid}, getpid {os.getpid()}")
    begin, end = seen.first_api_start - offset.value, seen.last_api_end - offset.value
    say("API records within the clock readings around them", f"{before <= begin and end <= after} ({begin - before} ns after the first, "
        f"{after - end} ns before the last)")
    say("last kernel's end before the reading after synchronize()", f"{after - (seen.last_kernel_end - offset.value)} ns")
    say("kernels that begin before their launch", f"{seen.early_kernels} of {seen.records[KIND['kernel']]}; without a launch "
        f"{seen.unjoined_kernels}; with a zero time {seen.zero_times}")
    first = offset.value
    seconds = 0.1 if DOUBLE else 5
    time.sleep(seconds)
    job.lib.facts_clock(ctypes.byref(offset), ctypes.byref(real), ctypes.byref(width))
    say(f"change of CUPTI's clock against CLOCK_MONOTONIC in {seconds} s", f"{offset.value - first} ns")


@check
def buffers(library):
    """Checks on which threads CUPTI requests and returns buffers, how full they are, and how late."""
    job = Job(library)
    job.begin("kernel", "runtime")
    helpers = [threading.Thread(target=job.launch, args=(500,)) for _ in range(3)]
    for t in helpers:
        t.start()
    job.launch(500)
    for t in helpers:
        t.join()
    job.sync()
    main = threading.get_native_id()
    err, took = timed(job.lib.facts_flush, 0)
    seen = job.seen()
    say("launching threads", [main] + [t.native_id for t in helpers])
    say("buffers requested on threads", [t for t in seen.request_tid if t])
    say("buffers completed on threads", f"{[t for t in seen.complete_tid if t]}; cuptiActivityFlushAll was called on {main}")
    say("buffers", f"{seen.requested} requested, {seen.completed} completed with {seen.valid_bytes} bytes; dropped {seen.dropped}")
    say("records", {name: seen.records[k] for name, k in KIND.items() if seen.records[k]})
    say("bytes of a record", {name: seen.bytes[k] for name, k in KIND.items() if seen.bytes[k]})
    for which, domain in enumerate(("runtime", "driver")):
        calls = {f"{i} {(job.lib.facts_api_name(which, i) or b'?').decode()}": n for i, n in enumerate(seen.cbid_calls[which]) if n}
        say(f"calls of the {domain}", f"{calls}; {seen.cbids_beyond} beyond the table")
    took = []
    for _ in range(20):
        job.launch(200)
        time.sleep(0.1)
        took.append(timed(job.lib.facts_flush, 0)[1])
    job.sync()
    job.lib.facts_flush(0)
    say("cuptiActivityFlushAll(0) every 100 ms", f"median {ms(statistics.median(took))}, longest {ms(max(took))}; "
        f"{job.seen().records[KIND['kernel']]} of 6000 kernels delivered")
    job.end("kernel", "runtime")
    say("kernels after the end", f"{job.seen().records[KIND['kernel']]} of 6000")


@check
def small_buffers(library):
    """Checks if records are dropped with buffers of 16 KB and no flush."""
    job = Job(library)
    job.lib.facts_register(16384)
    job.begin("kernel", "runtime", register=False)
    job.launch(5000)
    job.sync()
    job.end("kernel", "runtime")
    seen = job.seen()
    say("kernels", f"{seen.records[KIND['kernel']]} of 5000, dropped {seen.dropped}, {seen.completed} buffers")


@check
def late_objects(library):
    """Checks for records of devices, contexts and streams that existed before the subscription."""
    job = Job(library)
    for how, enable in (("cuptiActivityEnable", job.lib.facts_enable), ("cuptiActivityEnableAndDump", job.lib.facts_enable_and_dump)):
        job.lib.facts_clear()
        job.begin()
        codes = {name: enable(KIND[name]) for name in ("device", "context", "stream")}
        job.launch(10)
        job.sync()
        job.end("device", "context", "stream")
        seen = job.seen()
        say(how, {name: f"{result(code)}, {seen.records[KIND[name]]} records" for name, code in codes.items()})


@check
def timestamp_callback(library):
    """Counts the calls of a timestamp callback, and checks if registering it again damages records."""
    job = Job(library)
    job.lib.facts_subscribe()
    say("cuptiActivityRegisterTimestampCallback", result(job.lib.facts_timestamp_callback(1)))
    job.lib.facts_register(0)
    for turn in range(1, 4):
        job.lib.facts_clear()
        for kind in ("kernel", "runtime"):
            job.lib.facts_enable(KIND[kind])
        job.launch(1000)
        job.sync()
        for kind in ("kernel", "runtime"):
            job.lib.facts_disable(KIND[kind])
        job.lib.facts_flush(1)
        seen = job.seen()
        say(f"round {turn}", f"{seen.timestamp_calls} calls of it for 1000 launches; kernels more than a minute off: "
            f"{seen.absurd_kernels} of {seen.records[KIND['kernel']]}")
        say("registered again", result(job.lib.facts_timestamp_callback(1)))
    job.lib.facts_unsubscribe()


@check
def tape(library):
    """Records the buffers of a short run as they are, with names and clock readings, for the mock to replay."""
    path = os.environ.get("FACTS_TAPE", "cupti.tape")
    job = Job(library)
    job.lib.facts_tape_end.restype = ctypes.c_long
    kinds = ("kernel", "runtime", "driver", "memcpy", "memset", "sync", "overhead")
    job.lib.facts_capture(10)  # its stream is the second one
    job.lib.facts_thread_ids(1)
    job.begin(*kinds)
    say("tape", "begins" if job.lib.facts_tape(path.encode()) == 0 else f"cannot write {path}")
    for _ in range(5):
        job.launch(100)
        job.sync()
        job.lib.facts_copy(4096)
        job.lib.facts_replay(3)
        job.lib.facts_flush(0)
    job.end(*kinds)
    job.begin(*kinds)
    job.launch(100)
    job.launch(1, 100_000_000)  # still under way at the end
    job.end(*kinds)
    seen = job.seen()
    say("tape", f"{job.lib.facts_tape_end()} bytes, {seen.records[KIND['kernel']]} kernels, in {os.path.basename(path)}")


def replayed(job):
    job.lib.facts_clear()
    job.begin("kernel", "runtime")
    err = job.lib.facts_replay(20)
    job.sync()
    job.end("kernel", "runtime")
    seen = job.seen()
    return (f"{seen.records[KIND['kernel']]} kernels of 200, {seen.graph_kernels} with a node, {seen.unjoined_kernels} without a launch, "
            f"{job.api()} records of calls" + (f", error {err}" if err else ""))


@check
def graphs(library):
    """Counts kernels of CUDA graphs captured before the first, during and after a subscription, in three sessions."""
    job = Job(library)
    say("capture before the first subscription, error", job.lib.facts_capture(10))
    for session in ("first", "second", "third"):
        say(f"decides: CUDA graph, {session} session", replayed(job))
    job.begin("kernel", "runtime")
    job.lib.facts_capture(10)
    job.end("kernel", "runtime")
    say("captured while subscribed", replayed(job))
    job.lib.facts_capture(10)
    say("captured after a session", replayed(job))


@check
def whole_graphs(library):
    """Checks the records of whole graphs, which the agent never asks for, and what they change."""
    job = Job(library)
    job.lib.facts_capture(10)
    job.begin("graph")
    job.lib.facts_replay(1)
    job.sync()
    job.end("graph")
    say("records of whole graphs", job.seen().records[KIND["graph"]])
    say("after whole graphs were asked for and no longer are", replayed(job))


@check
def other_library(library):
    """Checks if a second libcupti, such as Triton's, can subscribe after another one was used in the process."""
    others = [path for place in sys.path if place for path in glob.glob(f"{place}/triton/backends/nvidia/lib/cupti/libcupti.so")]
    if not others:
        skip("there is no libcupti of Triton")
    job = Job(library)
    job.begin("kernel")
    job.end("kernel")
    theirs, handle = ctypes.CDLL(others[0]), ctypes.c_void_p()
    say("decides: the libcupti of Triton subscribes after that of PyTorch was let go", result(theirs.cuptiSubscribe(ctypes.byref(handle), None, None)))
    job.lib.facts_subscribe()
    job.lib.facts_finalize()
    job.launch(1)
    say("decides: it does after that of PyTorch was finalized", result(theirs.cuptiSubscribe(ctypes.byref(handle), None, None)))


@check
def functions(library):
    """Counts the records of 100 launches and a synchronisation: with functions enabled one by one, with their kind, and without others."""
    job = Job(library)

    def count(what):
        job.lib.facts_clear()
        job.launch(100)
        job.sync()
        job.lib.facts_flush(0)
        seen = job.seen()
        calls = {(job.lib.facts_api_name(which, i) or b"?").decode(): n for which in (0, 1) for i, n in enumerate(seen.cbid_calls[which]) if n}
        say(f"decides: records of calls, {what}", f"{seen.records[KIND['runtime']]} of the runtime, {seen.records[KIND['driver']]} of the driver: {calls}")
    used, others = job.functions(used=True), job.functions(used=False)
    job.begin()
    job.switch(1, used)
    job.lib.facts_enable(KIND["kernel"])
    count("functions enabled one by one")
    job.switch(0, used)
    for kind in ("driver", "runtime"):
        job.lib.facts_enable(KIND[kind])
    count("kinds enabled")
    job.switch(0, others)
    count("kinds enabled, then other functions disabled one by one")
    for kind in ("driver", "runtime"):
        job.lib.facts_disable(KIND[kind])
    count("kinds disabled")
    job.end("kernel")


def finalized_often(job, threads, replay):
    """Subscribes, records and finalizes 20 times while threads launch. Says what was wrong."""
    stop, bad, spent, kernels = threading.Event(), [], [], []

    def run(first):
        while not stop.is_set():
            failed = job.lib.facts_replay(3) if first and replay else job.lib.facts_launch(50, 0, None)
            if failed:
                bad.append(failed)
    busy = [threading.Thread(target=run, args=(i == 0,)) for i in range(threads)]
    for thread in busy:
        thread.start()
    for _ in range(20):
        job.lib.facts_clear()
        job.begin("kernel", "runtime")
        time.sleep(0.02)
        for kind in ("kernel", "runtime"):
            job.lib.facts_disable(KIND[kind])
        job.lib.facts_flush(1)
        kernels.append(job.seen().records[KIND["kernel"]])
        job.lib.facts_finalize()
        begun = time.perf_counter()
        while job.lib.facts_finalized() == -1 and time.perf_counter() < begun + 1:
            time.sleep(0.001)
        spent.append(time.perf_counter() - begun)
        if job.lib.facts_finalized():
            bad.append(f"cuptiFinalize: {result(job.lib.facts_finalized())}")
    stop.set()
    for thread in busy:
        thread.join()
    failed = job.lib.facts_launch(100, 0, None) or job.lib.facts_sync()
    say(f"decides: finalized 20 times, {threads} threads launch{', one of them graphs' if replay else ''}",
        f"{len(bad)} errors {sorted(set(map(str, bad)))[:3]}, a launch afterwards: error {failed}; longest {ms(max(spent))}; "
        f"{min(kernels)} to {max(kernels)} kernels each time")


@check
def finalize_with_threads(library):
    """Finalizes CUPTI at the exit of a call again and again while other threads launch."""
    job = Job(library)
    finalized_often(job, 1, False)
    finalized_often(job, 8, False)


@check
def finalize_with_graphs(library):
    """The same while graphs are launched. Before it, the same threads without CUPTI."""
    job = Job(library)
    say("capture, error", job.lib.facts_capture(10))
    say("launches after the capture, error", job.lib.facts_launch(100, 0, None) or job.lib.facts_sync())
    say("replays and launches after it, error", job.lib.facts_replay(3) or job.lib.facts_launch(100, 0, None) or job.lib.facts_sync())
    finalized_often(job, 1, True)
    finalized_often(job, 2, True)


@check
def empty_session_first(library):
    """Checks if an empty session before a capture disables the collection of kernels (reported for CUDA 13.0)."""
    job = Job(library, warm=False)
    job.begin("kernel", "runtime")
    job.end("kernel", "runtime")
    job.lib.facts_capture(1)
    job.lib.facts_clear()
    job.begin("kernel", "runtime")
    job.lib.facts_replay(100)
    job.launch(100)
    job.sync()
    job.end("kernel", "runtime")
    say("kernels after it", f"{job.seen().records[KIND['kernel']]} of 200, {job.seen().graph_kernels} of them of the graph")


@check
def incomplete(library):
    """Checks what a forced flush hands over while a kernel runs, and if the records behind it can be read."""
    job = Job(library)
    job.begin("kernel", "runtime")
    job.launch(100)
    job.launch(1, 300_000_000)
    job.launch(100)
    _, took = timed(job.lib.facts_flush, 0)
    say("after cuptiActivityFlushAll(0)", f"{job.seen().records[KIND['kernel']]} kernels, {ms(took)}")
    _, took = timed(job.lib.facts_flush, 1)
    seen = job.seen()
    say("decides: a forced flush with a kernel under way", f"{seen.records[KIND['kernel']]} of 201 kernels, {seen.zero_times} with a zero "
        f"time; {seen.unreadable} buffers end with {seen.unreadable_bytes} unreadable bytes; {ms(took)}")
    job.sync()
    job.end("kernel", "runtime")
    say("at the end", f"{job.seen().records[KIND['kernel']]} of 201 kernels")


@check
def callbacks_known(library):
    """Checks if cuptiActivityFlushAll(0) tells whether a client has registered callbacks."""
    job = Job(library)
    job.lib.facts_subscribe()
    say("decides: cuptiActivityFlushAll(0) before callbacks were registered", result(job.lib.facts_flush(0)))
    job.lib.facts_register(0)
    say("decides: cuptiActivityFlushAll(0) after that", result(job.lib.facts_flush(0)))
    job.lib.facts_unsubscribe()
    say("decides: cuptiActivityFlushAll(0) after the subscriber has left", result(job.lib.facts_flush(0)))


@check
def pool_limit(library):
    """Checks CUPTI's memory on the GPU and its times beyond DEVICE_BUFFER_POOL_LIMIT=8, without and with new subscriptions."""
    job = Job(library)
    say("DEVICE_BUFFER_POOL_LIMIT", result(job.lib.facts_set_attribute(2, 8, 8)))
    rounds, each = (12, 10_000) if DOUBLE else (12, 100_000)
    for anew in (False, True):
        job.lib.facts_clear()
        before = job.lib.facts_memory()
        wrong, most = None, before
        job.begin("kernel", "runtime")
        for i in range(rounds):
            for _ in range(10):
                job.launch(each // 10)
                job.sync()
            job.lib.facts_flush(0)
            most = max(most, job.lib.facts_memory())
            seen = job.seen()
            if wrong is None and seen.zero_times + seen.absurd_kernels:
                wrong = i * each
            if anew and i % 3 == 2:
                job.end("kernel", "runtime")
                job.begin("kernel", "runtime")
        job.end("kernel", "runtime")
        seen = job.seen()
        say(f"decides: pool limit 8, {'new subscriptions' if anew else 'one subscription'}",
            f"{seen.records[KIND['kernel']]} of {rounds * each} kernels, dropped {seen.dropped}; {seen.zero_times} with a zero time, "
            f"{seen.absurd_kernels} a minute off{'' if wrong is None else f', first after {wrong}'}; memory of the GPU: "
            f"+{most - before >> 20} MiB, and +{job.lib.facts_memory() - before >> 20} MiB after unsubscribing")


@check
def threads(library):
    """Counts the buffers that CUPTI has out for 80 launching threads, with a buffer for each thread and without."""
    job = Job(library)
    for each in (None, 0):
        if each is not None:
            say("a buffer for each thread: off", result(job.lib.facts_set_attribute(9, each, 1)))
        job.lib.facts_clear()
        job.begin("kernel", "runtime")
        ready, over = threading.Barrier(81), threading.Event()

        def run(ready=ready, over=over):
            job.launch(10)
            ready.wait()
            over.wait()
        all_of = [threading.Thread(target=run) for _ in range(80)]
        for thread in all_of:
            thread.start()
        ready.wait()
        job.sync()
        out = job.seen().requested - job.seen().completed
        over.set()
        for thread in all_of:
            thread.join()
        job.end("kernel", "runtime")
        say(f"decides: buffers out for 80 threads, a buffer for each thread {'by default' if each is None else 'switched off'}",
            f"{out}; {job.seen().records[KIND['kernel']]} of 800 kernels, dropped {job.seen().dropped}")


@check
def unsubscribe_with_work_under_way(library):
    """Checks if records arrive for kernels still running at the end, and measures how long the end takes."""
    job = Job(library)
    job.begin("kernel", "runtime")
    job.launch(1, 500_000_000)
    job.launch(99)
    for kind in ("kernel", "runtime"):
        job.lib.facts_disable(KIND[kind])
    err, took = timed(job.lib.facts_flush, 1)
    say("cuptiActivityFlushAll(1) with kernels under way", f"{result(err)}, {ms(took)}, {job.seen().records[KIND['kernel']]} kernels, "
        f"{job.seen().zero_times} of them with a zero time")
    err, took = timed(job.lib.facts_unsubscribe)
    say("cuptiUnsubscribe", f"{result(err)}, {ms(took)}")
    job.sync()
    say("kernels after synchronize()", job.seen().records[KIND["kernel"]])


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CHECKS))
        return
    if len(sys.argv) != 3 or sys.argv[2] not in CHECKS:
        sys.exit(__doc__)
    function = CHECKS[sys.argv[2]]
    print(f"\n## {sys.argv[2]}\n\n{function.__doc__}\n", flush=True)
    function(sys.argv[1])


main()
