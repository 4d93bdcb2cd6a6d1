#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The trace of a job on a GPU: what HolisticTraceAnalysis, TensorBoard's plugin and Perfetto make of it. The recording is a
# training loop of known times (tests/unit/gpu_tape.h), so that each number can be calculated.

load helpers

PERFETTO=$REPO/tests/perfetto
READERS=$O/deps/readers/bin/python
STEPS=20

setup() {
	[[ -x $READERS ]] || { echo "no readers of traces at $READERS: run tests/setup.sh" >&2; return 1; }
	cd "$BATS_TEST_TMPDIR" || return
	"$O/unit/test_gpu_trace" loop.mxd "$STEPS"
	"$MXBPF" export loop.mxd -o job_1.pt.trace.json
	"$MXBPF" report loop.mxd --format json >report.json
}

# expect JQ-CONDITION FILE...: prints the compared values if the condition is false.
expect() {
	local condition=$1
	shift
	jq -e -s --argjson n "$STEPS" "$condition" "$@" >/dev/null && return 0
	printf 'does not hold: %s\n' "$condition" >&2
	jq -c 'del(.operators, .other_data, .traceEvents)?' "$@" | cut -c-600 >&2
	return 1
}

@test "HolisticTraceAnalysis finds the busy, computing and idle time of a GPU, and its analyses all work" {
	"$READERS" "$REPO/tests/readers/read_hta.py" job_1.pt.trace.json >hta.json
	expect '.[0].analyses | length == 8 and all(.[]; . == "ok")' hta.json
	# From the first copy (40) to the end of the last kernel (900). Waits of 100 us in each step are no work.
	expect '.[0].gpu["temporal breakdown"][0] | .["kernel_time(us)"] == 1000 * ($n - 1) + 860 and
		.["compute_time(us)"] == 520 * $n and .["non_compute_time(us)"] == 60 * $n and
		.["idle_time(us)"] == .["kernel_time(us)"] - 580 * $n' hta.json
	expect '.[0].gpu["idle time"] | ([.[] | select(.stream == 7).idle_time] | add) == 1000 * ($n - 1) + 860 - 580 * $n and
		([.[] | select(.stream == 13).idle_time] | add) == 900 * ($n - 1) and any(.[]; .idle_category == "host_wait")' hta.json
	expect '.[0].gpu.overlap[0].comp_comm_overlap_pctg == 100' hta.json
}

@test "HolisticTraceAnalysis has the kernels and copies of the tables, to the microsecond" {
	"$READERS" "$REPO/tests/readers/read_hta.py" job_1.pt.trace.json >hta.json
	expect '([.[0].gpu["kernel breakdown"][] | select(.name) | {name, us: .["sum (us)"], max: .["max (us)"], min: .["min (us)"]}] | sort)
		== ([.[1].gpu | .kernels[], .copies[], .sets[] | {name, us: (.total_ns / 1000), max: (.max_ns / 1000), min: (.min_ns / 1000)}]
		| sort) and (.[1].gpu.kernels | length) == 3' hta.json report.json
	expect '.[0].slices as $s | ([.[1].gpu | .kernels[], .copies[], .sets[] | {(.name): .count}] | add) ==
		([$s.kernel, $s.gpu_memcpy, $s.gpu_memset] | add) and $s.cuda_sync == {"Stream Sync": $n}' hta.json report.json
	expect '.[0].gpu.bandwidth | map(to_entries | map({(.key): .value}) | add | {(.["('"'name', '')"'"]): .["('"'memory_bw_gbps', 'mean')"'"]})
		| add == {"Memcpy HtoD": 81.92, "Memset": 6.5536}' hta.json
}

@test "HolisticTraceAnalysis joins each launch with its kernel, and knows how long the kernel waited" {
	"$READERS" "$REPO/tests/readers/read_hta.py" job_1.pt.trace.json >hta.json
	# It joins calls of the runtime that launch one thing: not the driver's, and not the launch of a graph.
	expect '.[0].gpu.launches | length == 5 * $n and ([.[] | [.cpu_duration, .gpu_duration, .launch_delay]] | group_by(.) |
		map({(.[0] | tostring): length}) | add) == ({"[10,50,10]": $n, "[10,200,10]": $n, "[5,200,30]": $n, "[10,100,20]": $n,
		"[5,10,35]": $n})' hta.json
}

@test "Types of work, and launches with their delays, are those of HolisticTraceAnalysis" {
	"$READERS" "$REPO/tests/readers/read_hta.py" job_1.pt.trace.json >hta.json
	expect '(.[1].gpu.types | map({(.type): .}) | add) as $t | .[0].gpu["temporal breakdown"][0] as $hta |
		$t.computation.busy_ns == 1000 * $hta["compute_time(us)"] and
		$t.communication.alone_ns + $t.memory.alone_ns == 1000 * $hta["non_compute_time(us)"]' hta.json report.json
	expect '(.[1].gpu.types | map({(.type): .}) | add) as $t |
		([.[0].gpu["kernel breakdown"][] | select(.percentage) | {(.kernel_type): (1000 * .sum)}] | add) ==
		{COMPUTATION: $t.computation.alone_ns, "COMPUTATION overlapping COMMUNICATION": $t.communication.beside_ns,
		MEMORY: $t.memory.busy_ns}' hta.json report.json
	# It knows neither calls of the driver nor launches of several activities.
	expect '[.[1].gpu.launches[] | select(.name | test("^cuda[^G]"))] as $l | .[0].gpu.launches as $hta |
		([$l[].count] | add) == ($hta | length) and
		([$l[] | .count * .call_avg_ns] | add) == ([$hta[].cpu_duration] | 1000 * add) and
		([$l[] | .count * .delay_avg_ns] | add) == ([$hta[].launch_delay] | 1000 * add) and
		([$l[].delay_max_ns] | max) == ([$hta[].launch_delay] | 1000 * max) and
		([$l[].shorter] | add) == ([$hta[] | select(.gpu_duration < .cpu_duration)] | length)' hta.json report.json
}

@test "TensorBoard's plugin shows the GPU with its name, its use, and the kernels of the tables" {
	mkdir -p logs/run
	cp job_1.pt.trace.json logs/run
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0] | .errors == [] and all(.status[]; . == 200) and (.views | index("Kernel")) and (.steps | length) == $n' tb.json
	expect '.[0].gpu.summary | .Name == "NVIDIA H200" and .Memory == "150.0 GB" and .["Compute Capability"] == "9.0" and
		.["Est. Achieved Occupancy"] == "13.0 %"' tb.json
	# Kernels run 520 us in each step. The steps last from 0 to 990 of the last one.
	expect '.[0].gpu.summary["GPU Utilization"] | rtrimstr(" %") | tonumber as $use |
		(52000 * $n / (1000 * ($n - 1) + 990) - $use) | fabs < 0.006' tb.json
	expect '.[0].gpu.step | .Kernel == 520 and .Memcpy == 50 and .Memset == 10' tb.json
	expect '([.[0].gpu.kernels | to_entries[] | {name: .key, n: .value.Calls, us: .value["Total Duration (us)"]}] | sort) ==
		([.[1].gpu.kernels[] | {name, n: .count, us: (.total_ns / 1000)}] | sort) and
		all(.[0].gpu.kernels[]; .["Mean Blocks Per SM"] == 1)' tb.json report.json
	expect '.[0].gpu.counters | index("GPU 0 Utilization")' tb.json
	# It warns of every kernel whose process is not its device.
	run ! grep 'is not equal to args.device' tensorboard.log
}

@test "Perfetto's engine shows the streams of a GPU without overlap, and binds an arrow to each activity" {
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" job_1.pt.trace.json --json >engine.json || { jq .errors engine.json; return 1; }
	expect '.[0] | .flows == 8 * $n and .flow_pairs_ok == .flows' engine.json
	expect '.[0].processes | map(select(.name)) | map([.pid, .name]) == [[0, "GPU 0: NVIDIA H200"], [4242, "trainer"]]' engine.json
	# What HolisticTraceAnalysis adds to a trace. Nothing waits in stream 13.
	expect '.[0].counter_tracks | map([.name, .min, .max]) == [["Memcpy HtoD GB/s", 0, 81.92], ["Memset GB/s", 0, 6.553],
		["stream 7 queue launches", 0, 2]]' engine.json
	expect '.[0].threads | map(select(.pid == 0 and .name != "idle") | [.tid, .name, .depth, .slices]) == [[7, "stream 7", 1, 7 * $n],
		[13, "stream 13", 1, $n], [2600000000, "stream 7 waits", 1, $n]]' engine.json
}

# Rows that compare equal have another order in torch, so lines are compared in any order.
@test "The table of the layout torch is what torch's own code makes of the same events" {
	local key
	for key in self_cpu_time_total cuda_time_total; do
		"$PYTHON_TORCH" "$REPO/tests/readers/torch_table.py" job_1.pt.trace.json "$key" | sed "/^$/d" >torch.txt
		"$MXBPF" report loop.mxd --layout torch --sort "$key" --top 0 | sed '/^$/,$d' >mxbpf.txt
		expect_same "$(sort torch.txt)" "$(sort mxbpf.txt)"
		[[ $(sed -n 4p torch.txt) == "$(sed -n 4p mxbpf.txt)" ]]
	done
	grep -q '^Self CUDA time total: ' mxbpf.txt
}

# A real PyTorch job whose kernels run on the mock of a GPU (tests/gpu/double).
record_gpu_job() {
	torch_setup
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --account "$PWD/account.json" >/dev/null
	"$MXBPF" record --pid "$READY_PID" --gpu -d 2s -q -o real.mxd
	stop_pid "$READY_PID"
	"$MXBPF" export real.mxd -o real.pt.trace.json
}

# Counts of what ran on the GPU by name, in a trace.
ACTIVITIES='([.[1].traceEvents[] | select(.cat == "kernel" or .cat == "gpu_memcpy" or .cat == "gpu_memset") | .name] |
	group_by(.) | map({(.[0]): length}) | add)'

@test "HolisticTraceAnalysis, TensorBoard's plugin and Perfetto read the trace of a PyTorch job on a GPU, with all its kernels" {
	record_gpu_job
	"$READERS" "$REPO/tests/readers/read_hta.py" real.pt.trace.json >hta.json
	expect '.[0].analyses | length == 8 and all(.[]; . == "ok")' hta.json
	expect ".[0].slices as \$s | $ACTIVITIES == ([\$s.kernel, \$s.gpu_memcpy, \$s.gpu_memset] | add) and (\$s.kernel | length) > 5" \
		hta.json real.pt.trace.json
	mkdir -p logs/run
	cp real.pt.trace.json logs/run
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0] | .errors == [] and all(.status[]; . == 200) and .gpu.summary.Name == "Mock H200 0"' tb.json
	expect '([.[0].gpu.kernels | to_entries[] | {(.key): .value.Calls}] | add) == .[1].slices.kernel' tb.json hta.json
	# Every activity has an arrow, but for those that were launched before calls were recorded. No stream overlaps itself.
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" real.pt.trace.json --json >engine.json || { jq .errors engine.json; return 1; }
	expect '.[0] | .other_data.activities_unlaunched as $before | (.slices.kernel + .slices.gpu_memcpy + .slices.gpu_memset) as $all |
		.flows == .flow_pairs_ok and .flows - .other_data.arrows + $before == $all and $all > 500 and $before < $all / 10' engine.json
	expect '.[0].threads | all(.[] | select(.pid == 0); .depth == 1) and ([.[] | select(.pid == 0)] | length) >= 3' engine.json
	expect '.[0].processes | map(select(.pid == 0 and .name).name) == ["GPU 0: Mock H200 0"]' engine.json
}

@test "The table of the layout torch of a PyTorch job on a GPU is what torch's own code makes of its trace" {
	record_gpu_job
	"$MXBPF" report real.mxd --raw --layout torch --sort self_cuda_time_total --top 0 | sed '/^$/,$d' >mxbpf.txt
	grep -q '  CPU Mem  Self CPU Mem ' mxbpf.txt
	# torch is given no memory. Its columns stand behind a name of 55 and nine numbers of 12 columns.
	sed -E -i 's/ +CPU Mem  Self CPU Mem//; s/^(.{183}).{28}(.{14})$/\1\2/' mxbpf.txt
	"$PYTHON_TORCH" "$REPO/tests/readers/torch_table.py" real.pt.trace.json self_cuda_time_total mxbpf.txt
	sed 's/ 170.000us/ 170.002us/' mxbpf.txt >wrong.txt # of gpuops::gemm
	run ! "$PYTHON_TORCH" "$REPO/tests/readers/torch_table.py" real.pt.trace.json self_cuda_time_total wrong.txt
	[[ $(grep -c gpuops:: mxbpf.txt) -gt 5 && $(wc -l <mxbpf.txt) -gt 40 ]]
}
