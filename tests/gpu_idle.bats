#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Why a GPU runs nothing: a job with planted causes on the double of a GPU (tests/gpu/double), whose own clock is the truth.

load helpers

@test "95 % of the idle time of a GPU is at its planted cause, with its operator, and busy time and causes make up the window" {
	torch_setup
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/idle_job.py" --steps 30 --go "$PWD/go" >/dev/null
	start_mxbpf record --pid "$READY_PID" --gpu -o job.mxd
	: >go
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd --format json -o report.json
	tail -n 1 "$(out job)" >planted.json
	jq -e --slurpfile p planted.json '($p[0]) as $p | .gpu.idle as $rows
		| ([$p[]] | add) as $all
		| (($rows | map({(.cause): .total_ns}) | add | .cpu += (.no_cpu // 0) + (.blocked // 0)) as $got
			| [$p | to_entries[] | [.value, ($got[.key] // 0)] | min] | add) as $right
		| ($rows | map(.total_ns) | add) as $whole
		| (.gpu.devices[0] | .busy_ns + .idle_ns) as $seen
		| $right >= 0.95 * $all and (($whole - $seen) | fabs) <= 0.01 * $seen' report.json
	jq -e '.gpu.idle | any(.cause == "cpu" and .name == "gpuops::think") and any(.cause == "data" and (.name | startswith("enumerate(DataLoader)")))
		and any(.cause == "host_waits" and (.name | test("Synchronize")))' report.json
	# The program spins in a function, and the thread is looked at ten times a second.
	jq -e '.gpu.idle | any(.cause == "program" and (.line | test("idle_job.py\\([0-9]+\\): spin")))' report.json
	jq -e '.iterations.loops[0].count as $n | .gpu.idle | any(.cause == "data" and .per_iteration_ns * $n <= .total_ns and .per_iteration_ns > 25000000)' report.json
	"$MXBPF" report job.mxd >report.txt
	grep -q '^GPU idle time by cause: ' report.txt
	grep -Eq '^waits for data .* enumerate\(DataLoader\)' report.txt
}
