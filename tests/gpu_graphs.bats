#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# CUDA graphs: a job that captures operators and replays them on the mock of a GPU (tests/gpu/double). Its own account says
# which operator captured each kernel.

load helpers

# Records a job of graph_job.py in the current directory.
record_job() {
	MXBPF_DOUBLE_ACCOUNT=$PWD/account start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/graph_job.py" --steps 30 --go "$PWD/go" >/dev/null
	start_mxbpf record --pid "$READY_PID" --gpu --py-stacks -o job.mxd
	: >go
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd --format json -o report.json
	tail -n 1 "$(out job)" >planted.json
}

setup() {
	torch_setup
	take_shared gpu_graphs record_job
}

# Times of each kernel are converted to the clock of the CPU and rounded, so each duration may be 2 ns longer or shorter.
ABOUT='def about($ns; $kernels): (. - $ns | fabs) <= 2 * $kernels;'

@test "Replays of a CUDA graph count for the operators that captured it, to the kernel, and to 2 ns of each kernel" {
	# What no operator captured, and what was captured before mxbpf came, belongs to the operator that launched the graph.
	jq -e --slurpfile p planted.json "$ABOUT"'.gpu.operators as $rows | $p[0] | to_entries | map(. as {$key, $value}
		| $rows[] | select(.name == $key and .kind == "operator")
		| .self_kernels == $value.kernels and (.gpu_self_ns | about($value.ns; $value.kernels))
			and (.graphs_ns | about($value.replayed_ns // 0; $value.replayed // 0))) | length == 3 and all' report.json
	jq -e '([.gpu.operators[].gpu_self_ns] | add) == ([.gpu.kernels[].total_ns] | add)' report.json
	"$MXBPF" report job.mxd >report.txt
	grep -q '^operator .* in graphs ' report.txt
	run ! grep -q 'without an activity' report.txt
}

@test "The table of CUDA graphs names the operators with the most time, and says why others are not known" {
	jq -e "$ABOUT"'.gpu.graphs | map(select(.unseen_ns == 0)) | length == 1 and (.[0].by | map([.name, .captured, .kernels])
		== [["gpuops::relu", "operator", 90], ["gpuops::outer", "operator", 30], [null, "no operator", 30]]
		and ([(.[0] | .gpu_ns | about(3600000; 90)), (.[1] | .gpu_ns | about(900000; 30)), (.[2] | .gpu_ns | about(150000; 30))] | all))' \
		report.json
	jq -e '.gpu.graphs | map(select(.unseen_ns > 0)) | length == 1 and .[0].unseen_ns == .[0].gpu_total_ns' report.json
	"$MXBPF" report job.mxd --top 0 >report.txt
	grep -q '^graph .* gpuops::relu 77%, gpuops::outer 19%, \[no operator\] 3%' report.txt
	grep -q '^4.65 ms is under the operators that launched the graphs, because the capture was not seen: it was before' report.txt
	grep -q '^150 us is under the operators that launched the graphs, because no operator was open' report.txt
}

@test "Kernels of a CUDA graph have the operator that captured them, and its line of Python, in a trace and in the table of modules" {
	"$MXBPF" export job.mxd -f chrome -o trace.json
	jq -e '[.traceEvents[] | select(.cat == "kernel" and .args."captured by") | .args] | length == 120
		and (map(select(."captured by" == "gpuops::outer")) | length == 30)
		and all(."captured at" | test("graph_job.py\\([0-9]+\\): (forward|outer)$"))' trace.json
	jq -e "$ABOUT"'.gpu.modules | (map(del(.gpu_self_ns))
		== [{"module": "nn.Module: Model", "launches": 4, "kernels": 120, "copied_bytes": 0}])
		and (.[0].gpu_self_ns | about(4500000; 120))' report.json
}

@test "CUPTI calls back for nodes of graphs while mxbpf records, and not before" {
	# Five nodes were captured while it did; each is copied, which CUPTI tells by two calls.
	jq -e '.node_callbacks == 15 and .left_enabled == 0' account*
}
