#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What operators reach against the peaks of a GPU: a job with planned kernels on the mock of a GPU (tests/gpu/double).

load helpers

@test "Operators with shapes have their time on the GPU, the part of its peaks, and what bounds them, live and in a report" {
	torch_setup
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/roof_job.py" --go "$PWD/go" >/dev/null
	start_mxbpf record --pid "$READY_PID" --gpu --shapes -o job.mxd
	: >go
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd --format json -o report.json
	tail -n 1 "$(out job)" >planned.json
	# Calls are those of the job, and times as well, as exactly as both clocks can be read at once.
	jq -e --slurpfile p planned.json '($p[0]) as $p
		| [.gpu.roofline[] | "\(.name) \(.shapes[0][0])" as $key | $p[$key] as $of | .count == $of.calls
			and (.gpu_total_ns - $of.ns | fabs) <= .kernels + $of.ns / 1000] | length == ($p | length) and all' report.json
	# The mock has 132 multiprocessors of 1.98 GHz and compute capability 9.0, and 3.2 GHz on a bus of 6,144 bits.
	jq -e 'def about($x): (. / $x - 1 | fabs) < 0.001;
		(.gpu.roofline | map({key: "\(.name) \(.shapes[0][0])", value: .}) | from_entries) as $r
		| $r["aten::mm 1024"] | .flops == 2147483648 and .bytes == 6291456 and .type == "float16" and .bound == "compute"
			and (.of_peak_flops | about(2147483648 / 2500 / (132 * 1.98 * 4096))) and (.of_peak_bytes | about(6291456 / 2500 / 4916.736))
		and ($r["aten::mm 64"].bound == "too small") and ($r["aten::relu 2048"] | .bound == "memory" and (has("flops") | not) and .bytes == 16777216)' report.json
	"$MXBPF" report job.mxd --all >report.txt
	grep -q "^Operators against the GPU's peaks: .* in 3 rows" report.txt
}
