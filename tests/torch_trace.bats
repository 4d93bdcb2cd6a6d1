#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf's trace of a PyTorch job in Kineto's conventions: against torch.profiler's own of the same program, and in the real
# tools that read torch's traces.

load helpers

JUDGE=$REPO/tests/judge_torch
PERFETTO=$REPO/tests/perfetto

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	export TORCHINDUCTOR_CACHE_DIR=$O/deps/inductor
}

# A real job's recording, with its tables and its trace, made once for all tests that want them.
recorded() {
	REAL=$BATS_FILE_TMPDIR
	[[ -f $REAL/job_1.pt.trace.json ]] && return 0
	"$PYTHON_TORCH" "$REPO/tests/judge/drive.py" --tool "$MXBPF record --pid {pid} -o $REAL/job.mxd" --stdout /dev/null -- \
		"$PYTHON_TORCH" "$JUDGE/prog.py" sgd --bare
	"$MXBPF" report "$REAL/job.mxd" --format json >"$REAL/report.json"
	"$MXBPF" export "$REAL/job.mxd" -f chrome -o "$REAL/job_1.pt.trace.json"
}

# expect JQ-CONDITION FILE...: prints what was compared if it does not hold.
expect() {
	local condition=$1
	shift
	jq -e -s "$condition" "$@" >/dev/null && return 0
	printf 'does not hold: %s\n' "$condition" >&2
	jq -c 'del(.operators, .other_data)?' "$@" | cut -c-2000 >&2
	return 1
}

@test "Perfetto's engine takes the trace of a PyTorch job without an error and counts what the tables count" {
	recorded
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" "$REAL/job_1.pt.trace.json" --json >engine.json ||
		{ jq .errors engine.json; return 1; }
	expect '.[0] as $e | .[1].tables as $t | ([$t.operator[].count] | add) == $e.slices.cpu_op + $e.slices.user_annotation' \
		engine.json "$REAL/report.json"
	expect '.[0] as $e | ([.[1].tables.memory[] | .allocs + .frees] | add) as $n |
		$e.slices.cpu_instant_event == $n and $e.counters == $n and $n > 100' engine.json "$REAL/report.json"
	expect '.[0] | .flows == .flow_pairs_ok and .flows == .other_data.arrows and .other_data.loss.dropped == 0' engine.json
	# By name, too: the engine's own sums are the table's, to the ns.
	expect '([.[0].operators[] | {name, n, total_ns}] | sort) as $e | [.[1].tables.operator[] |
		{name, n: .count, total_ns}] as $t | ($e | length) > 50 and all($e[]; . as $row | any($t[]; . == $row))' \
		engine.json "$REAL/report.json"
}

@test "an annotation's name with quotes, a backslash and a newline makes no broken trace, as it does of torch's" {
	cat >annotate.py <<-'EOF'
		import os
		import torch
		torch.ones(1) + 1
		print('ready', os.getpid(), flush=True)
		while True:
		    with torch.profiler.record_function('say "hello" \\ \n twice'):
		        torch.ones(1) + 1
	EOF
	start_ready annotate "$PYTHON_TORCH" annotate.py
	"$MXBPF" --pid "$READY_PID" -d 200ms --format json --trace trace.json >mxbpf.json
	stop_pid "$READY_PID"
	local name='say "hello" \ 
 twice'
	jq -e --arg name "$name" '[.tables.operator[] | select(.name == $name)] | length == 1' mxbpf.json
	jq -e --arg name "$name" '[.traceEvents[] | select(.name == $name and .cat == "user_annotation")] | length > 0' trace.json
}
