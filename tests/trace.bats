#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces in the real Perfetto: its engine in node, and its user interface in headless Chromium.
load helpers

PERFETTO=$REPO/tests/perfetto
DEPS=$O/deps/perfetto

setup_file() {
	[[ -f $O/deps/perfetto/stamp ]] || "$REPO/tests/perfetto/setup.sh" "$O/deps/perfetto"
}

# Writes the engine's results for a trace to $BATS_TEST_TMPDIR/engine.json; fails on an import error.
engine() {
	node "$PERFETTO/engine.mjs" "$DEPS" "$1" --json >"$BATS_TEST_TMPDIR/engine.json" || {
		jq .errors "$BATS_TEST_TMPDIR/engine.json"
		return 1
	}
}

# expect JQ-CONDITION FILE...: prints the compared values if the condition is false.
expect() {
	local condition=$1
	shift
	jq -e -s "$condition" "$@" >/dev/null && return 0
	printf 'does not hold: %s\n' "$condition" >&2
	jq -c 'del(.operators, .other_data.probes)' "$BATS_TEST_TMPDIR/engine.json" >&2
	return 1
}

# Records a real job once for all tests that need it.
real_recording() {
	need_root
	need_mxnet
	REAL=$BATS_FILE_TMPDIR/real.mxb
	[[ -f $REAL ]] && return 0
	start_workload --tiny
	"$MXBPF" record --quiet -p "$WORKLOAD_PID" -d 1s -o "$REAL"
	stop_pid "$WORKLOAD_PID"
}

@test "The engine test detects a trace that Perfetto does not accept" {
	echo '{"otherData":{},"traceEvents":[
		{"ph":"X","pid":1,"tid":1,"ts":0,"dur":10,"cat":"cpu_op","name":"a","args":{}},
		{"ph":"X","pid":1,"tid":1,"ts":5,"dur":10,"cat":"cpu_op","name":"b","args":{}}]}' >"$BATS_TEST_TMPDIR/bad.json"
	expect_error 1 overlapping node "$PERFETTO/engine.mjs" "$DEPS" "$BATS_TEST_TMPDIR/bad.json" --json
}

@test "Perfetto's engine shows lanes, arrows, empty and equal spans and hostile names correctly" {
	"$O/unit/test_chrome" "$BATS_TEST_TMPDIR/t.json"
	engine "$BATS_TEST_TMPDIR/t.json"
	expect '.[0] | .slices == {"c_api": 405, "cpu_op": 400, "wait": 202}' "$BATS_TEST_TMPDIR/engine.json"
	expect '.[0] | .flows == 400 and .flow_pairs_ok == 400 and .counters == 400' "$BATS_TEST_TMPDIR/engine.json"
	expect '.[0] | [.threads[].name] == ["trainer", "worker", "async 1", "async 2", "async 3"]' "$BATS_TEST_TMPDIR/engine.json"
}

@test "Perfetto's engine shows a process for each GPU and a track for each stream, with an arrow from the launching call to each activity" {
	"$O/unit/test_tracks" "$BATS_TEST_TMPDIR/gpu.mxd"
	"$MXBPF" report "$BATS_TEST_TMPDIR/gpu.mxd" --format json >"$BATS_TEST_TMPDIR/report.json"
	"$MXBPF" export "$BATS_TEST_TMPDIR/gpu.mxd" -o "$BATS_TEST_TMPDIR/t.json"
	engine "$BATS_TEST_TMPDIR/t.json"
	expect '.[0] | .flows == 6 and .flow_pairs_ok == 6' "$BATS_TEST_TMPDIR/engine.json"
	expect '.[0].slices as $s | ([.[1].gpu.kernels[].count] | add) == $s.kernel' \
		"$BATS_TEST_TMPDIR"/{engine,report}.json
	expect '.[0] | [.processes[] | select(.name // "" | startswith("GPU")) | [.pid, .name]] == [
		[0, "GPU 0, process 4242 (trainer)"], [1, "GPU 1, process 4242 (trainer)"], [3200000002, "GPU 0, process 5242 (process)"]]' \
		"$BATS_TEST_TMPDIR/engine.json"
	# A track of a stream that overlaps itself would have a depth of 2.
	expect '.[0] | [.threads[] | select(.name // "" | startswith("stream")) | [.pid, .name, .depth]] == [[0, "stream 7", 1],
		[0, "stream 13", 1], [0, "stream 7 (2)", 1], [1, "stream 7", 1], [3200000002, "stream 7", 1]]' "$BATS_TEST_TMPDIR/engine.json"
}

@test "A real job's trace, plain or gzipped, has as many slices, arrows and counters as the tables count" {
	local file
	real_recording
	"$MXBPF" report "$REAL" --format json >"$BATS_TEST_TMPDIR/report.json"
	for file in t.json t.json.gz; do
		"$MXBPF" export "$REAL" -o "$BATS_TEST_TMPDIR/$file"
		engine "$BATS_TEST_TMPDIR/$file"
		expect '.[0] as $e | .[1].tables as $t | ([$t.operator[].count] | add) == $e.slices.cpu_op and
			([$t.MXNET_C_API[].count] | add) == $e.slices.c_api' "$BATS_TEST_TMPDIR"/{engine,report}.json
		expect '.[0] as $e | ([.[1].tables."Device Storage"[] | .allocs + .frees] | add) == $e.counters' \
			"$BATS_TEST_TMPDIR"/{engine,report}.json
		# The engine's sums by name equal the table's, to the ns.
		expect '([.[0].operators[] | {name, n, total_ns}] | sort) ==
			([.[1].tables.operator[] | {name, n: .count, total_ns: (.raw_total_ns // .total_ns)}] | sort)' "$BATS_TEST_TMPDIR"/{engine,report}.json
		expect '([.[0].open[].name] | sort) == ([.[1].open // [] | .[].name] | sort) and .[0].endless == []' \
			"$BATS_TEST_TMPDIR"/{engine,report}.json
		expect '.[0] | .flows > 100 and .flows == .flow_pairs_ok and .flows == .other_data.arrows' "$BATS_TEST_TMPDIR/engine.json"
		expect '.[0] | all(.threads[]; .name != null and .name != "") and .other_data.loss.dropped == 0' \
			"$BATS_TEST_TMPDIR/engine.json"
	done
}

@test "A real job's trace in the classic form has the same slices, with lanes for overlapping ones" {
	real_recording
	"$MXBPF" report "$REAL" --format json >"$BATS_TEST_TMPDIR/report.json"
	"$MXBPF" export "$REAL" -f chrome-classic -o "$BATS_TEST_TMPDIR/t.json"
	engine "$BATS_TEST_TMPDIR/t.json"
	expect '([.[0].slices[]] | add) == ([.[1].tables[][].count // 0] | add)' \
		"$BATS_TEST_TMPDIR"/{engine,report}.json
}

# same_answers RECORDING: the engine gives the same answers about both formats, and no import error.
same_answers() {
	local form
	cd "$BATS_TEST_TMPDIR"
	for form in json pftrace; do
		"$MXBPF" export "$1" -o "t.$form"
		node "$PERFETTO/answers.mjs" "$DEPS" "t.$form" >"$form.txt" || { tail -n 3 "$form.txt"; return 1; }
	done
	(($(wc -l <json.txt) == 10))
	diff <(sed 's/},{/},\n{/g' json.txt) <(sed 's/},{/},\n{/g' pftrace.txt) | head -n 20
	cmp json.txt pftrace.txt
}

@test "Perfetto's engine gives the same answers to ten questions about a real job in JSON and in Perfetto's own format, which is less than half as large" {
	real_recording
	same_answers "$REAL"
	grep -q '^arrows: \[{' pftrace.txt # the questions are about something
	grep -q '^counters: \[{' pftrace.txt
	(($(stat -c %s t.pftrace) * 2 < $(stat -c %s t.json)))
}

@test "Perfetto's engine gives the same answers about GPUs, their streams and launches in both formats" {
	"$O/unit/test_tracks" "$BATS_TEST_TMPDIR/gpu.mxd"
	same_answers "$BATS_TEST_TMPDIR/gpu.mxd"
	grep -q '^arrows: \[{' pftrace.txt
}

@test "Perfetto's engine gives the same answers about a PyTorch job, with its shapes, stacks and memory, in both formats" {
	need_root
	need_torch
	start_torch --tiny >/dev/null
	"$MXBPF" record --quiet -p "$READY_PID" --shapes --py-stacks -d 500ms -o "$BATS_TEST_TMPDIR/torch.mxd"
	stop_pid "$READY_PID"
	same_answers "$BATS_TEST_TMPDIR/torch.mxd"
	grep -q '"key":"Input Dims"' pftrace.txt
	grep -q '"key":"Call stack"' pftrace.txt
	grep -q '^instants: \[{' pftrace.txt
	grep -q '^arrows: \[{' pftrace.txt
}

@test "A .pftrace that is cut anywhere loads up to the cut, plain or compressed" {
	local whole cut slices=0 last
	cd "$BATS_TEST_TMPDIR"
	"$O/unit/test_tracks" gpu.mxd
	"$MXBPF" export gpu.mxd -o t.pftrace
	"$MXBPF" export gpu.mxd -o t.pftrace # it may replace its own
	"$MXBPF" export gpu.mxd -o t.pftrace.gz
	gunzip -c t.pftrace.gz | cmp - t.pftrace
	[[ $(stat -c %a t.pftrace) == 600 ]]
	whole=$(stat -c %s t.pftrace)
	for cut in $((whole / 2)) $((whole * 3 / 4 + 1)) $((whole - 1)); do
		node "$PERFETTO/answers.mjs" "$DEPS" t.pftrace "$cut" >cut.txt # an import error is exit 1
		last=$slices
		slices=$(sed -n 's/^slices of each[^:]*: //p' cut.txt | jq 'map(.n) | add // 0')
		((slices >= last))
	done
	((slices > 5))
}

@test "Perfetto's user interface shows the tracks and arrows of a real job's trace" {
	real_recording
	"$MXBPF" export "$REAL" -o "$BATS_TEST_TMPDIR/t.json.gz"
	mkdir -p "$O/test" # kept there for inspection
	node "$PERFETTO/ui.mjs" "$DEPS" "$BATS_TEST_TMPDIR/t.json.gz" "$O/test/trace.png" >"$BATS_TEST_TMPDIR/ui.json"
	jq -e '.errors == [] and .import_errors == 0 and .problems == [] and .selected and
		any(.tracks[]; startswith("memory cpu/0"))' "$BATS_TEST_TMPDIR/ui.json" || { cat "$BATS_TEST_TMPDIR/ui.json"; return 1; }
	[[ $(file -b "$O/test/trace.png") == "PNG image data, 1600 x 900"* ]]
}
