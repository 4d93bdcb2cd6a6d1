#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# CUDA graphs: a job that captures operators and replays them on the double of a GPU (tests/gpu/double). Its own account says
# which operator captured each kernel.

load helpers

# Records a job of graph_job.py, in the current directory: job.mxd, report.json, planted.json.
record_job() {
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/graph_job.py" --steps 30 --go "$PWD/go" >/dev/null
	start_mxbpf record --pid "$READY_PID" --gpu "$@" -o job.mxd
	: >go
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd --format json -o report.json
	tail -n 1 "$(out job)" >planted.json
}

@test "Replays of a graph count for the operators that captured it, to the kernel and the ns" {
	torch_setup
	record_job
	# What no operator captured, and what was captured before mxbpf came, belongs to the operator that launched the graph.
	jq -e --slurpfile p planted.json '.gpu.operators as $rows | $p[0] | to_entries | map(. as {$key, $value}
		| $rows[] | select(.name == $key and .kind == "operator")
		| .self_kernels == $value.kernels and .gpu_self_ns == $value.ns) | length == 3 and all' report.json
}
