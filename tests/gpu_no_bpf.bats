#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf record --gpu --no-bpf: the GPU of a command is recorded without BPF and without privileges, on the mock of a GPU
# (tests/gpu/double), whose own account says what there is to record.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export MXBPF_DOUBLE_ACCOUNT=$PWD/account.%p
}

# Writes job.py: Python code that uses the mock. $1 is indented with tabs, which are removed.
job() { # CODE
	cat >job.py <<-EOF
		import ctypes, os, signal, sys, time
		ops = ctypes.CDLL("$O/gpu/libgpuops.so")
		cupti = ctypes.CDLL("$O/gpu/libcupti.so.12")
		ops.gpuops_launch.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint)
		ops.gpuops_copy.argtypes = (ctypes.c_bool, ctypes.c_bool, ctypes.c_size_t, ctypes.c_int)
		def launch(count, name=b"my_kernel", ns=10000):
		    for _ in range(count):
		        ops.gpuops_launch(name, ns, 0)
	EOF
	sed 's/^\t*//' <<<"$1" >>job.py
}

# Runs job.py without any privilege. The first argument, if any, is the name of the recording; the others run the command.
record() { # [RECORDING [LAUNCHER...]]
	run --separate-stderr timeout 60 setpriv --inh-caps=-all --bounding-set=-all --no-new-privs \
		"$MXBPF" record --gpu --no-bpf -o "${1:-job.mxd}" -- "${@:2}" /usr/bin/python3 job.py
	[[ -z $(find . -name '.mxbpf-*') ]] || { echo "the agent's directory was not removed"; return 1; }
}

# record of a command that succeeds.
recorded() { record "$@" && expect_status 0; }

# Prints NUMBER, a Python expression of `report` (JSON), `account` (by process, sorted), count(TABLE), calls and notes.
told() { # NUMBER
	"$MXBPF" report job.mxd --all -f json >report.json
	python3 - "$1" <<-'EOF'
		import glob, json, sys
		report = json.load(open("report.json"))
		account = [json.load(open(path)) for path in sorted(glob.glob("account.*"))]
		def count(kind, what="count"):
		    return sum(row[what] for row in report.get("gpu", {}).get(kind, []))
		calls = sum(row["count"] for row in report["tables"].get("CUDA call", []))
		notes = " ".join(note["text"] for note in report["window"]["notes"])
		print(eval(sys.argv[1]))
	EOF
}

@test "Without BPF and without privileges, every kernel, copy and call of the mock's account is recorded" {
	job 'launch(1000)
		ops.gpuops_copy(True, True, 4096, 1)
		ops.gpuops_sync()'
	recorded
	expect_same "$(told 'count("kernels"), count("copies"), calls')" \
		"$(told 'account[0]["launched"]["kernel"], account[0]["launched"]["copy"], account[0]["made"]["runtime"]')"
	expect_same "$(told 'count("kernels"), count("copies", "bytes")')" "(1000, 4096)"
	expect_same "$(told 'report["loss"]["attempted"] == report["loss"]["stored"] > 3000')" True
	expect_re 'no probes: operators are not recorded' "$(told notes)"
	"$MXBPF" report job.mxd --top 0 >report.txt
	grep -q "^whether your Python code had a CPU is not known" report.txt
	expect_re 'letting go took [0-9.]+ ?[nmu]?s' "$(told notes)"
}

@test "Queries of streams and events are no waits, whether their calls have records or not" {
	local gpu
	for gpu in "$O/gpu" "$O/gpu/old"; do
		rm -f account.* job.mxd
		job 'launch(100)
			ops.gpuops_query(0)
			ops.gpuops_sync_stream(0)
			for _ in range(100):
			    ops.gpuops_query(0)
			    ops.gpuops_query_event(0)'
		sed -i "s|$O/gpu/|$gpu/|; s|libcupti.so.12|$(basename "$gpu"/libcupti.so.*)|" job.py
		recorded
		expect_same "$(told '[(row["name"], row["count"]) for row in report["gpu"]["waits"]], 200 <= report["gpu"]["records"][0]["queries"] <= 201')" \
			"([('Stream Synchronize', 1)], True)"
		expect_same "$(told 'count("kernels"), report["loss"]["dropped"]')" "(100, 0)"
	done
}

@test "Where CUPTI cannot select calls, those of the driver have records only if a library calls it, from then on" {
	gcc -shared -nostdlib -x c /dev/null -o libtriton.so
	export MXBPF_DOUBLE_LOG=$PWD/log
	cat >job.py <<-EOF
		import ctypes, time
		class Size(ctypes.Structure):
		    _fields_ = [(d, ctypes.c_uint) for d in "xyz"]
		# gpuops is linked with libcuda, so it would count as a library that calls the driver.
		cuda = ctypes.CDLL("$O/gpu/libcuda.so.1")
		runtime = ctypes.CDLL("$O/gpu/old/libcudart.so.11.0")
		cupti = ctypes.CDLL("$O/gpu/old/libcupti.so.11.8")
		cuda.cuInit(0)
		module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
		cuda.cuModuleLoadData(ctypes.byref(module), b".entry my_kernel(")
		cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"my_kernel")
		def launch():
		    for _ in range(100):
		        runtime.cudaLaunchKernel(kernel, Size(1, 1, 1), Size(32, 1, 1), None, ctypes.c_size_t(0), None)
		launch()
		ctypes.CDLL("$PWD/libtriton.so")
		while "cuptiActivityEnable(4) 0" not in open("log").read():
		    time.sleep(0.01)
		launch()
	EOF
	recorded
	expect_same "$(told 'count("kernels"), calls, report["gpu"]["records"][0]["nested"], account[0]["made"]["driver"], count("kernels", "unlaunched")')" \
		"(200, 200, 100, 100, 0)"
	sed -i 's|^cuda.cuInit|ctypes.CDLL("'"$O"'/gpu/old/libgpuops.so")\n&|; s|^ctypes.CDLL.*libtriton.*||' job.py
	rm -f account.* log job.mxd
	recorded
	expect_same "$(told 'calls, report["gpu"]["records"][0]["nested"]')" "(200, 200)"
}

@test "Records that the process had not flushed when it exited are in the recording" {
	export MXBPF_DOUBLE=at-exit
	job 'launch(500)
		ops.gpuops_sync()'
	record
	expect_same "$(told 'count("kernels"), account[0]["lost"]["kernel"]')" "(500, 0)"
}

@test "Everything that a process handed over before SIGKILL is in the recording, which says that the end is missing" {
	job 'launch(3000)
		ops.gpuops_sync()
		while b"cuptiActivityFlushAll" not in open("log", "rb").read():
		    time.sleep(.01)
		time.sleep(.3)
		os.kill(os.getpid(), signal.SIGKILL)'
	MXBPF_DOUBLE_LOG=$PWD/log record
	expect_status 137
	expect_same "$(told 'count("kernels")')" 3000
	expect_re 'ended without a regular exit' "$(told notes)"
}

@test "Children that use the GPU have records of their own, and a child that only inherits CUDA has none" {
	job 'if os.fork() == 0:
		    launch(30)
		    ops.gpuops_sync()
		    sys.exit()
		os.wait()
		launch(70)
		ops.gpuops_sync()
		if os.fork() == 0:
		    sys.exit()
		os.wait()'
	recorded
	expect_same "$(told 'count("kernels")')" 100
	"$MXBPF" report job.mxd --all --by process -f json >by.json
	expect_same "$(python3 -c 'import json; print(len({row["pid"] for row in json.load(open("by.json"))["tables"]["CUDA call"]}))')" 2
}

@test "No process is forked while the agent is in the loader or registers what it does at exit, however long both take: the child would hang" {
	# As on a busy machine, where the agent's thread loses its CPU while it has a lock, and a fork takes half a second.
	cc -shared -fPIC -D_GNU_SOURCE -o slow.so -x c - <<-'EOF'
		#include <dlfcn.h>
		#include <pthread.h>
		#include <string.h>
		#include <sys/prctl.h>
		#include <unistd.h>
		volatile int inside, calls;
		static int of_agent(void)
		{
			char name[16] = "";

			prctl(PR_GET_NAME, name);
			return !strcmp(name, "mxbpf-gpu");
		}
		static void enter(void) { inside = 1; usleep(300000); }
		static void leave(void) { inside = 0; calls++; }
		int __cxa_atexit(void (*fn)(void *), void *arg, void *dso)
		{
			int (*real)(void (*)(void *), void *, void *) = dlsym(RTLD_NEXT, "__cxa_atexit"), ret;

			if (!of_agent())
				return real(fn, arg, dso);
			enter();
			ret = real(fn, arg, dso);
			leave();
			return ret;
		}
		int dl_iterate_phdr(int (*fn)(void *, size_t, void *), void *ctx)
		{
			int (*real)(int (*)(void *, size_t, void *), void *) = dlsym(RTLD_NEXT, "dl_iterate_phdr"), ret;

			if (!of_agent())
				return real(fn, ctx);
			enter();
			ret = real(fn, ctx);
			leave();
			return ret;
		}
		static void slow_fork(void) { usleep(400000); }
		__attribute__((constructor)) static void begin(void) { pthread_atfork(slow_fork, 0, 0); }
	EOF
	job 'slow = ctypes.CDLL("./slow.so")
		inside, calls = ctypes.c_int.in_dll(slow, "inside"), ctypes.c_int.in_dll(slow, "calls")
		launch(1)
		until = time.monotonic() + 30
		while calls.value < 8 and time.monotonic() < until:
		    child = os.fork()
		    if not child:
		        os._exit(inside.value)
		    assert os.waitpid(child, 0)[1] == 0, "a child was forked meanwhile"
		assert calls.value >= 8, "the agent made %d calls" % calls.value
		ops.gpuops_sync()'
	recorded job.mxd env LD_PRELOAD="$PWD/slow.so"
}

@test "Where the kernel has no MADV_WIPEONFORK, everything is recorded, and a forked child writes nothing" {
	job 'libc = ctypes.CDLL(None)
		launch(1000)
		ops.gpuops_copy(True, True, 4096, 1)
		ops.gpuops_sync()
		def child(number):
		    if number == 0:
		        libc.exit(0)
		    assert os.waitpid(number, 0)[1] == 0, "the child was killed"
		child(os.fork())
		child(libc.syscall(57)) # fork without the handlers of pthread_atfork()'
	recorded job.mxd "$O/prog/refuse_madvise" 18
	expect_same "$(told 'count("kernels"), count("copies"), calls')" \
		"$(told '1000, 1, account[0]["made"]["runtime"]')"
	expect_same "$(told 'report["loss"]["attempted"] == report["loss"]["stored"] > 3000')" True
	job 'launch(10)'
	record other.mxd "$O/prog/refuse_madvise" 10 # MADV_DONTFORK
	expect_status 5
	expect_re 'the agent has not started: Invalid argument' "$stderr"
}

@test "libcupti is found under the names and in the places of CUDA 11, 12 and 13, and is not newer than the driver" {
	# The driver, the libcudart that is mapped, whether the loader finds all, and the libcupti that must be used.
	cat >rows <<-'EOF'
		13000 nvidia/cu13/lib/libcudart.so.13          - nvidia/cu13/lib/libcupti.so.13
		13000 nvidia/cuda_runtime/lib/libcudart.so.12  - nvidia/cuda_cupti/lib/libcupti.so.12
		12040 cuda/lib64/libcudart.so.11.0             - cuda/extras/CUPTI/lib64/libcupti.so.11.2
		13000 torch/lib/libcudart-0a1b.so.13           - nvidia/cu13/lib/libcupti.so.13
		13000 -                                        all ../all/libcupti.so.13
		12040 -                                        all ../all/libcupti.so.12
		11080 -                                        all ../all/libcupti.so.11.2
		11010 -                                        all none
		12040 nvidia/cu13/lib/libcudart.so.13          - none
		13000 cuda/lib64/libcudart.so.11.0             mapped ../all/libcupti.so.12
	EOF
	cp -r "$O/gpu/places" .
	mkdir -p places/torch/lib all
	cp places/nvidia/cu13/lib/libcudart.so.13 places/torch/lib/libcudart-0a1b.so.13
	cp places/nvidia/cu13/lib/libcupti.so.13 places/nvidia/cuda_cupti/lib/libcupti.so.12 \
		places/cuda/extras/CUPTI/lib64/libcupti.so.11.2 all
	cat >job.py <<-EOF
		import ctypes, os, subprocess, sys
		if len(sys.argv) > 1:
		    ops = ctypes.CDLL("$O/gpu/static/libgpuops.so")
		    cudart, path = sys.argv[1:]
		    cudart == "-" or ctypes.CDLL("places/" + cudart)
		    path == "mapped" and ctypes.CDLL("all/libcupti.so.12")
		    ops.gpuops_launch(b"k", ctypes.c_uint64(1000), 0)
		    ops.gpuops_sync()
		    sys.exit()
		jobs = []
		for number, line in enumerate(open("rows")):
		    driver, cudart, path, _ = line.split()
		    env = dict(os.environ, MXBPF_DOUBLE="driver=" + driver, MXBPF_DOUBLE_ACCOUNT="")
		    if path == "all":
		        env["LD_LIBRARY_PATH"] = "all"
		    jobs.append(subprocess.Popen([sys.executable, __file__, cudart, path], env=env))
		for job in jobs:
		    job.wait()
		with open("pids", "w") as f:
		    print(*(job.pid for job in jobs), sep="\n", file=f)
	EOF
	recorded
	told notes >notes
	paste -d ' ' pids rows | while read -r pid driver cudart path library; do
		if [[ $library == none ]]; then
			expect_re "process $pid: no record of the GPU: .* not newer than the driver .* beside [a-z]+" "$(<notes)"
		else
			seen=$(sed -n "s/.*process $pid: CUPTI [0-9]*, \([^;]*\);.*/\1/p" notes)
			expect_same "$library" "$(realpath --relative-to=places "${seen:-none}")"
		fi
	done
	expect_same 8 "$(told 'count("kernels")')"
}

@test "Times of the records are those of the system's clock, although CUPTI's clock runs faster and jumps" {
	export MXBPF_DOUBLE=drift=100,step=1000000000,step-after=1
	job 'begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
		for i in range(300):
		    launch(1)
		    ops.gpuops_sync()
		    time.sleep(.01)
		print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC))'
	record
	"$MXBPF" export job.mxd -o trace.json
	python3 - $output <<-'EOF'
		import json, sys
		begin, end = map(int, sys.argv[1:])
		trace = json.load(open("trace.json"))
		start = trace["otherData"]["window"]["start_mono_ns"]
		kernels = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
		times = [start + e["ts"] * 1000 for e in kernels]
		assert len(kernels) == 300, len(kernels)
		assert begin - 20000 < min(times) and max(times) < end + 20000, (begin, min(times), max(times), end)
		assert all(9990 < e["dur"] * 1000 < 10010 for e in kernels)
	EOF
}

@test "A command that does not use CUDA runs to its end, and mxbpf says that nothing was recorded" {
	printf 'print("hello")\nraise SystemExit(0)\n' >job.py
	record
	expect_status 5
	[[ $output == hello ]]
	expect_re 'no process of the command initialised CUDA' "$stderr"
	expect_same "$(told 'report["loss"]["attempted"]')" 0
}

@test "If another client holds CUPTI, the recording says so" {
	export MXBPF_DOUBLE=busy
	job 'launch(10)
		ops.gpuops_sync()
		time.sleep(.3)'
	record
	expect_re 'another client .*holds CUPTI' "$(told notes)"
	expect_same "$(told 'count("kernels")')" 0
}

@test "The command's exit status and signals pass through mxbpf, and a missing command has status 127" {
	printf 'raise SystemExit(7)\n' >job.py
	record
	expect_status 7
	printf 'import os\nos.kill(os.getpid(), 15)\n' >job.py
	record
	expect_status 143
	run -127 --separate-stderr "$MXBPF" record --gpu --no-bpf -o job.mxd -- ./absent
	[[ $stderr == "mxbpf: error: cannot run './absent': No such file or directory" ]]
	[[ -z $(find . -name '.mxbpf-*') ]]
	job 'launch(10)
		ops.gpuops_sync()
		while b"cuptiActivityFlushAll" not in open("log", "rb").read():
		    time.sleep(.01)
		time.sleep(.3)
		print("ready", os.getpid(), flush=True)
		time.sleep(60)'
	MXBPF_DOUBLE_LOG=$PWD/log start_ready mxbpf "$MXBPF" record --gpu --no-bpf -o job.mxd -- /usr/bin/python3 job.py >/dev/null
	kill -TERM "$BG_PID"
	wait_exit "$BG_PID" 20 || status=$?
	expect_status 143
	expect_same "$(told 'count("kernels")')" 10
}

@test "A full disk costs records, but never the job, and mxbpf says what is missing" {
	need_root
	job 'for _ in range(20):
		    ops.gpu_burst(20000)
		    ops.gpuops_sync()
		print("the job has ended")'
	mkdir small
	on_disk() { # SIZE
		run unshare -m sh -c "mount -t tmpfs -o size=$1 none small && timeout 60 '$MXBPF' record --gpu --no-bpf \
			-o small/job.mxd -- /usr/bin/python3 job.py; code=\$?; cp small/job.mxd .; exit \$code"
		expect_re 'the job has ended' "$output"
	}
	on_disk 24m
	expect_status 1
	expect_re 'cannot write .*job.mxd: No space left on device' "$output"
	on_disk 2m
	expect_status 5
	expect_re 'the agent has not started: there is no room' "$output"
}

@test "Where the agent cannot have a thread, all records come when the process ends, and mxbpf says so" {
	# The agent's thread is known by its stack.
	gcc -shared -fPIC -O1 -o refuse.so -x c - <<-'EOF'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <pthread.h>
		int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
		{
			int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
			size_t bytes = 0;

			if (attr)
				pthread_attr_getstacksize(attr, &bytes);
			return bytes == 256 << 10 ? EAGAIN : next(thread, attr, run, arg);
		}
	EOF
	job 'launch(1000)
		ops.gpuops_sync()'
	recorded job.mxd env "LD_PRELOAD=$PWD/refuse.so"
	expect_same "$(told 'count("kernels"), report["loss"]["dropped"]')" "(1000, 0)"
	expect_re 'the agent could not start its thread: Resource temporarily unavailable; ' "$(told notes)"
}

@test "Records that the agent could not write are counted as dropped" {
	# Python ignores SIGXFSZ, so a write beyond the limit fails as on a full disk.
	job 'import resource
		resource.setrlimit(resource.RLIMIT_FSIZE, (92 << 20, 92 << 20))
		for _ in range(10):
		    ops.gpu_burst(20000)
		    ops.gpuops_sync()'
	recorded
	expect_same "$(told 'count("kernels") > 1000 and 0 < report["loss"]["dropped"] < report["loss"]["attempted"]')" True
	expect_re 'records are missing in the agent.s file' "$(told notes)"
}

# Makes a directory whose path has so many bytes, and prints its path from here.
deep_directory() { # BYTES
	local path=$PWD rest
	while ((rest = $1 - ${#path}, rest > 0)); do
		((rest <= 200)) || rest=100
		path+=/$(printf "%0$((rest - 1))d" 0)
	done
	mkdir -p "$path"
	echo "${path#"$PWD"/}"
}

@test "With the longest path that CUDA's driver takes, everything is recorded, and with one byte more it is refused" {
	local bytes deep
	job 'launch(10)
		ops.gpuops_sync()'
	for bytes in 500 1000; do # with "/.mxbpf-XXXXXX/agent.so" 1023
		rm -f account.* job.mxd
		deep=$(deep_directory "$bytes")
		recorded "$deep/job.mxd"
		mv "$deep/job.mxd" job.mxd
		expect_same "$(told 'count("kernels")')" 10
	done
	run -1 "$MXBPF" record --gpu --no-bpf -o "$(deep_directory 1001)/job.mxd" -- /usr/bin/python3 job.py
	expect_re "has 1024 bytes, and CUDA's driver ignores one of more than 1023" "$output"
}

@test "A directory whose path is too long for CUDA's driver is refused" {
	local deep part=$(printf '%0250d' 0)
	deep=$part/$part/$part/$part
	mkdir -p "$deep"
	job 'launch(10)'
	run -1 --separate-stderr "$MXBPF" record --gpu --no-bpf -o "$deep/job.mxd" -- /usr/bin/python3 job.py
	expect_re "the agent's path .* has [0-9]+ bytes, and CUDA's driver ignores one of more than 1023; .* -o FILE" "$stderr"
	[[ -z $(ls "$deep") ]]
}

@test "Options that need probes are refused with --no-bpf, and so is a process that runs already" {
	expect_error 2 '--py-stacks needs probes, and --no-bpf uses none' "$MXBPF" record --gpu --no-bpf --py-stacks -- true
	expect_error 2 '--no-bpf needs -- COMMAND' "$MXBPF" record --gpu --no-bpf --pid $$
	expect_error 2 '--no-bpf needs --gpu' "$MXBPF" record --no-bpf -- true
	CUDA_INJECTION64_PATH=/other.so run -2 "$MXBPF" record --gpu --no-bpf -- true
	expect_re 'CUDA_INJECTION64_PATH is set to /other.so' "$output"
}
