#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --kernel-metrics: hardware counters of chosen kernels in the program's own launches, on the mock of a GPU (tests/gpu/double),
# whose counters follow from the duration of a kernel. All but the last test run without BPF, where the agent is the same.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export MXBPF_DOUBLE_ACCOUNT=$PWD/account MXBPF_DOUBLE_LOG=$PWD/log
}

# Writes job.py: Python code that uses the mock. $1 is indented with tabs, which are removed.
job() { # CODE
	cat >job.py <<-EOF
		import ctypes, threading, time
		ops = ctypes.CDLL("$O/gpu/libgpuops.so")
		cupti = ctypes.CDLL("${CUPTI:-$O/gpu/libcupti.so.12}")
		ops.gpuops_launch.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint)
		ops.gpuops_launch.restype = ctypes.c_uint64
		def launch(count, name, ns, stream=0):
		    assert all(ops.gpuops_launch(name, ns, stream) == ns for _ in range(count))
	EOF
	sed 's/^\t*//' <<<"$1" >>job.py
}

# Records job.py with --kernel-metrics $1, and makes report.json, report.txt and note: what the output says about them.
record() { # METRICS
	rm -f job.mxd account log
	expect_run 0 --separate-stderr timeout 60 "$MXBPF" record --gpu --no-bpf --kernel-metrics "$1" -o job.mxd -- /usr/bin/python3 job.py
	"$MXBPF" report job.mxd --all >report.txt
	"$MXBPF" report job.mxd -f json >report.json
	jq -r '.window.notes[].text | select(startswith("kernel metrics"))' report.json >note
}

# Prints what the mock's account says, as in '.ranges'.
account() { # FILTER
	jq -c "$1" account
}

@test "Counters are those of the device, and of as many launches of each chosen kernel as were asked for" {
	job 'for i in range(10):
		    launch(1, b"gemm_a", 20000 + i)
		    launch(1, b"gemm_b", 30000, 1)
		    launch(2, b"relu", 1000, 1)
		ops.gpuops_sync()'
	record gemm:3
	# Durations of gemm_a: 20,000, 20,001 and 20,002 ns. The mock moves 1,000 bytes in a ns.
	expect_same "$(jq -c '[.gpu.counters[] | [.name, .count, .passes, .avg_ns, .dram_bytes]]' report.json)" \
		'[["gemm_a",3,1,20001,20001000],["gemm_b",3,1,30000,30000000]]'
	expect_same "$(jq -c '.gpu.counters[0] | [.multiprocessors, .occupancy, .issue, .tensor, .l1_hit, .dram, has("l2_hit")]' report.json)" \
		'[0.9125,0.625,0.37125,0,0.33,0.705,false]'
	# Nothing else was measured, and each kernel was executed once. All other kernels have records, and no record is lost: the
	# measured ones have none, nor a launch that would wait for it.
	expect_same "$(account '[.ranges, .ranges_mixed, .executed, .launched.kernel, .zero_times]')" '[6,0,6,40,0]'
	expect_same "$(jq -c '[([.gpu.kernels[].count] | add), .loss.dropped, ([.gpu.launches[].count] | add)]' report.json)" '[34,0,34]'
	run ! grep 'without an activity' report.txt
	expect_re '^kernel metrics: 6 launches were measured on a GH100; each kernel ran 1 time[.] The launches were held up for .* in all' "$(cat note)"
	grep -q '^Hardware counters of kernels: 6 launches measured, in 2 rows' report.txt
	# It ends what it began, and the callbacks, too.
	expect_same "$(grep -c 'cuptiRangeProfilerDisable() 0' log) $(grep -c 'cuptiRangeProfilerEnable() 0' log)" "1 1"
	expect_same "$(grep -c 'cuptiEnableCallback(0 1 307) 0' log)" 1
}

@test "Without the option, nothing of the range profiler is called, and launches are not called back" {
	job 'launch(10, b"gemm", 20000)'
	timeout 60 "$MXBPF" record --gpu --no-bpf -o job.mxd -- /usr/bin/python3 job.py
	run ! grep -E 'Profiler|cuptiEnableCallback\(1 1|ChipName' log
	"$MXBPF" report job.mxd -f json >report.json
	jq -e '.gpu.counters == []' report.json
}

@test "With replay, the device executes a kernel several times, and outputs say how often and for how long" {
	job 'launch(10, b"gemm", 20000)
		ops.gpuops_sync()'
	record gemm:2:replay
	expect_same "$(jq -c '.gpu.counters[0] | [.count, .passes, .l2_hit, .sm_throughput, .fma, .l2_throughput, .avg_ns]' report.json)" \
		'[2,8,0.44,0.55,0.22,0.11,20000]'
	expect_same "$(account '[.ranges, .executed]')" '[2,16]'
	expect_re 'each kernel ran 8 times' "$(cat note)"
	grep -q '^CUPTI executed each measured kernel up to 8 times, and restored its memory' report.txt
	# Both launches have waited for at least 8 executions.
	jq -e '.gpu.counters[0] | .held_ns >= 2 * 8 * 20000 and .held_max_ns <= .held_ns' report.json
}

@test "Kernels that wait for others, cooperative ones, and captured ones are not measured, and outputs say how many" {
	job 'launch(3, b"ncclDevKernel_gemm", 1000)
		launch(2, b"gemm_all_reduce", 1000)
		cuda = ctypes.CDLL("libcuda.so.1")
		function = ctypes.c_void_p()
		module = ctypes.c_void_p()
		assert cuda.cuModuleLoadData(ctypes.byref(module), b".entry gemm_coop()") == 0
		assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"gemm_coop") == 0
		assert cuda.cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None) == 0
		class Attribute(ctypes.Structure):
		    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16)]
		class Config(ctypes.Structure):
		    _fields_ = [("n", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]
		attribute = Attribute(2, 0, (ctypes.c_int * 16)(1))
		config = Config((ctypes.c_uint * 7)(1, 1, 1, 1, 1, 1, 0), None, ctypes.pointer(attribute), 1)
		assert cuda.cuLaunchKernelEx(ctypes.byref(config), function, None, None) == 0
		config.count = 0
		assert cuda.cuLaunchKernelEx(ctypes.byref(config), function, None, None) == 0
		stream = ctypes.c_void_p()
		assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
		assert cuda.cuStreamBeginCapture_v2(stream, 2) == 0
		config.stream = stream
		assert cuda.cuLaunchKernelEx(ctypes.byref(config), function, None, None) == 0
		graph = ctypes.c_void_p()
		assert cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
		copy = ctypes.c_void_p()
		assert cuda.cuGraphInstantiateWithFlags(ctypes.byref(copy), graph, ctypes.c_uint64(0)) == 0
		assert cuda.cuGraphLaunch(copy, stream) == 0
		launch(1, b"gemm_late", 1000)
		ops.gpuops_sync()'
	record gemm
	# The capture may have ended less than a second ago, so gemm_late is not measured either.
	expect_same "$(jq -c '[.gpu.counters[] | [.name, .count]]' report.json)" '[["gemm_coop",1]]'
	expect_same "$(account '[.ranges, .ranges_mixed]')" '[1,0]'
	expect_re 'not measured: launches cooperative \(2\), of kernels that by their name wait for others \(5\), captured for a graph, or just after that \(2\)' "$(cat note)"
}

@test "Launches of other threads wait while a launch is measured, and are not measured with it" {
	job 'def work(name):
		    launch(300, name, 2000, 1 + (name == b"relu"))
		threads = [threading.Thread(target=work, args=(name,)) for name in (b"relu", b"gemm_a", b"gemm_b")]
		[t.start() for t in threads]
		[t.join() for t in threads]
		ops.gpuops_sync()'
	record gemm:20
	expect_same "$(account '[.ranges_mixed, .launched.kernel]')" '[0,900]'
	# As many as were counted, and all of the chosen kernels.
	jq -e --argjson ranges "$(account .ranges)" '[.gpu.counters[] | .count] | add == $ranges and add <= 40 and add >= 1' report.json
	expect_same "$(jq -c '[.gpu.counters[] | [.avg_ns, .dram_bytes]] | unique' report.json)" '[[2000,2000000]]'
}

@test "A launch that takes too long is the last one that is measured" {
	job 'launch(10, b"gemm", 20000)
		ops.gpuops_sync()'
	MXBPF_DOUBLE=slow-stop=2100 record gemm
	expect_same "$(jq -c '[.gpu.counters[] | .count]' report.json)" '[1]'
	expect_re 'the last one took so long that no other was measured' "$(cat note)"
	expect_same "$(grep -c 'cuptiRangeProfilerDisable() 0' log)" 1
}

@test "Counters that a chip lacks are absent, and the others are there" {
	job 'launch(2, b"gemm", 20000)'
	MXBPF_DOUBLE=lacks=dram__bytes.sum record gemm
	expect_same "$(jq -c '.gpu.counters[0] | [.count, .avg_ns, .dram_bytes, .dram]' report.json)" '[2,20000,null,0.705]'
}

@test "Each step that fails ends the measurement and not the program, and the message says what to do" {
	local word text
	job 'launch(10, b"gemm", 20000)
		ops.gpuops_sync()'
	while IFS='|' read -r word text; do
		MXBPF_DOUBLE=$word record gemm
		expect_re "^kernel metrics: no launch was measured: .*$text" "$(cat note)"
		expect_re "warning: kernel metrics: no launch was measured" "$stderr"
		expect_same "$(account '.launched.kernel') $(jq '.loss.dropped' report.json)" "10 0"
		jq -e '.gpu.kernels[0].count >= 9' report.json # the one in which the error came may have no record
	done <<-'EOF'
		cuptiRangeProfilerEnable=35|cuptiRangeProfilerEnable failed \(error 35\): only administrators may profile this GPU; load the module nvidia with NVreg_RestrictProfilingToAdminUsers=0
		cuptiRangeProfilerStart=26|another tool uses the hardware that counts events
		cuptiRangeProfilerSetConfig=14|cuptiRangeProfilerSetConfig failed \(error 14\)
		cuptiProfilerInitialize=39|another client holds it
		cuptiProfilerHostInitialize=999|cuptiProfilerHostInitialize, which needs libnvperf_host.so beside libcupti, failed
		cuptiProfilerHostConfigAddMetrics=17|CUPTI knows none of the counters for this chip
		cuptiProfilerDeviceSupported=43|the GPU is divided by MIG
		unprofiled=1|the GPU is older than compute capability 7.5
		unprofiled=4|confidential computing does not allow it
		cuptiDeviceGetChipName=2|cuptiDeviceGetChipName failed
		cuptiRangeProfilerStop=999|cuptiRangeProfilerStop failed
		cuptiRangeProfilerDecodeData=7|cuptiRangeProfilerDecodeData failed
		cuptiProfilerHostEvaluateToGpuValues=999|cuptiProfilerHostEvaluateToGpuValues failed
	EOF
	# A CUPTI without a range profiler, and a name that no kernel has.
	CUPTI=$O/gpu/old/libcupti.so.11.8 job 'launch(10, b"gemm", 20000)'
	record gemm
	expect_re 'this CUPTI has no range profiler, which CUDA 12.6 brought' "$(cat note)"
	job 'launch(10, b"gemm", 20000)'
	record relu
	expect_re "none outside of a CUDA graph had 'relu' in the symbol of its kernel" "$(cat note)"
}

@test "Wrong values of the option are refused with an example" {
	local value
	for value in '' ':3' gemm:0 gemm:1001 gemm:x gemm:3:again 'at::native::relu'; do
		run -2 --separate-stderr "$MXBPF" record --gpu --no-bpf --kernel-metrics "$value" -o job.mxd -- true
		expect_re "^mxbpf: error: --kernel-metrics: '$value' " "$stderr"
	done
	expect_error 2 'kernel-metrics needs --gpu' --separate-stderr "$MXBPF" --pid $$ --kernel-metrics gemm
}

@test "A job that runs already is measured too, and again in the next session" {
	local i
	torch_setup
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --seconds 60 >/dev/null
	for i in 1 2; do
		"$MXBPF" --pid "$READY_PID" --gpu --kernel-metrics Gemm:4 --duration 2s -f json >report$i.json 2>err || { cat err; return 1; }
		jq -e '[.gpu.counters[] | .count == 4 and .passes == 1 and .occupancy == 0.625] | length > 0 and all' report$i.json
	done
	kill "$READY_PID"
	wait "$READY_PID" || :
	account .ranges_mixed | grep -qx 0
}
