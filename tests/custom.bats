#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Operators written in Python: their time in Python and the operators they push, with MXNet's profiler as the reference.

load helpers

setup() { root_setup mxnet; }

# Two counts are races: whether a Python or an engine thread frees an array, and how many threads run Python operators, each of
# which seeds its generator once.
custom_rows() {
	jq -S "$1 | with_entries(select(.key | test(\"(DeleteVariable|ResourceParallelRandomSetSeed)$\") | not))" "$2"
}

session() {
	take_shared mxnet-custom traced '--format json --trace t.json' mxbpf.json "$PYTHON" "$REPO/tests/inside/custom.py" --bare
}

@test "Custom operators have the rows and counts of dumps(), and so have the other operators" {
	local theirs ours
	"$PYTHON" "$REPO/tests/inside/custom.py" --builtin builtin
	theirs=$(custom_rows '.Time["Custom Operator"] | map_values(.Count)' builtin.json)
	expect_re 'sigmoid::pure_python' "$theirs"
	expect_re 'other::exp' "$theirs"
	session
	ours=$(custom_rows '.tables["Custom Operator"] | map({(.name): .count}) | add' mxbpf.json)
	expect_same "$theirs" "$ours"
	traced '--layout mxnet --format json' same.json "$PYTHON" "$REPO/tests/inside/custom.py" --bare
	expect_same "$theirs" "$(custom_rows '.Time["Custom Operator"] | map_values(.Count)' same.json)"
	expect_same "$(custom_rows '.Time.operator | map_values(.Count)' builtin.json)" \
		"$(custom_rows '.Time.operator | map_values(.Count)' same.json)"
}

# dumps() switches bulks off, so other threads push the work and it has other rows. A trace of MXNet's profiler leaves them on.
@test "Generators that threads of custom operators seed are in a table as often as MXNet's profiler records them in the same run" {
	local theirs
	traced 'record -o seeds.mxd' record.out "$PYTHON" "$REPO/tests/inside/custom.py" --seeds builtin
	"$MXBPF" report --format json seeds.mxd >seeds.json
	theirs=$(jq '[.traceEvents[] | select(.ph == "B" and .name == "::ResourceParallelRandomSetSeed")] | length' builtin.trace.json)
	[[ $theirs -ge 1 ]]
	expect_same "$theirs" "$(jq '[.tables["Custom Operator"][] | select(.name | endswith("::ResourceParallelRandomSetSeed")) |
		.count] | add' seeds.json)"
}

@test "A custom operator in Python ends when its work is done, not when its function returns" {
	session
	python3 - <<'PY'
import json
spans = [e for e in json.load(open('t.json'))['traceEvents'] if e['ph'] == 'X']
custom = [e for e in spans if e['name'] in ('Custom', '_backward_Custom')]
python = sorted((e['ts'], e['ts'] + e['dur']) for e in spans if e['name'].endswith('::pure_python'))
assert len(custom) == len(python) == 12, (len(custom), len(python))
# The operators run one after the other. Each one contains its own Python function.
for e, (start, end) in zip(sorted(custom, key=lambda e: e['ts']), python):
    assert e['ts'] <= start and end <= e['ts'] + e['dur'], (e, start, end)
PY
}

# Only counts are compared. The relative speed of the engine's threads decides where bulks end.
@test "autograd Functions, nested operators and failed ones have the rows and counts of dumps()" {
	local table theirs
	"$PYTHON" "$REPO/tests/inside/custom.py" --builtin builtin --more 2>/dev/null
	traced 'record -o job.mxd' record.out "$PYTHON" "$REPO/tests/inside/custom.py" --bare --more 2>/dev/null
	"$MXBPF" report --layout mxnet --format json job.mxd >same.json
	"$MXBPF" report --format json job.mxd >mxbpf.json
	theirs=$(custom_rows '.Time["Custom Operator"] | map_values(.Count)' builtin.json)
	for table in ::pure_python ::exp nesting::_backward_CustomFunction nesting::_backward_relu raising::CustomOperatorWait \
		_backward_raising_backward::CustomOperatorWait; do expect_re "\"$table\": " "$theirs"; done
	for table in raising _backward_raising_backward; do ! grep -F "\"$table::pure_python\"" <<<"$theirs"; done
	for table in 'Custom Operator' operator; do
		expect_same "$(custom_rows ".Time[\"$table\"] | map_values(.Count)" builtin.json)" \
			"$(custom_rows ".Time[\"$table\"] | map_values(.Count)" same.json)"
	done
	# Rows of bulks are left out, because only mxbpf has them.
	expect_same "$theirs" "$(custom_rows '.tables["Custom Operator"] | map(select(.name | endswith("::ImperativeBulk") | not) |
		{(.name): .count}) | add' mxbpf.json)"
}

@test "A custom operator still running at the end is reported as open, not as a call of 0 ns" {
	start_ready linger "$PYTHON" "$REPO/tests/inside/custom.py" --linger
	start_mxbpf --pid "$READY_PID" --format json --raw --by thread
	kill -s USR1 "$READY_PID"
	wait_line "$(out linger)" '^begun' "$READY_PID"
	end_pid "$MXBPF_PID"
	kill -s USR2 "$READY_PID"
	jq -e '[.tables[][] | select(has("min_ns")) | .min_ns] | all(. > 0)' "$(out mxbpf)"
	jq -e '[.tables["Custom Operator"][]? | select(.name == "lingering::pure_python")] == []' "$(out mxbpf)"
	jq -e '[.open[] | select(.name == "lingering::pure_python")] | length == 1' "$(out mxbpf)"
}
