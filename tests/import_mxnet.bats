#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces and tables of MXNet's profiler, which report and other commands read as recordings. docs/import.md describes them.

load helpers

JUDGE=$REPO/tests/judge

setup() { root_setup mxnet; }

# rows JSON: names, counts and durations of each table of calls, in one order.
rows() {
	jq -S '.tables | map_values(select(type == "array" and (.[0] | has("min_ns"))) |
		map({name, count, total_ns, min_ns, max_ns}) | group_by(.name) |
		map({name: .[0].name, count: map(.count) | add, total_ns: map(.total_ns) | add,
			min_ns: map(.min_ns) | min, max_ns: map(.max_ns) | max}))' "$1"
}

@test "A trace of MXNet's profiler gives the table that this profiler prints, to the last digit, also with annotations and Python operators" {
	local program
	mxnet_reference "$JUDGE/prog.py"
	"$PYTHON" "$REPO/tests/marks/prog.py" --builtin marks >told.json
	"$PYTHON" "$REPO/tests/inside/custom.py" --builtin custom
	for program in builtin marks custom; do
		# The total of MXNet's counter of calls is the value of the thread that wrote last, and not the largest.
		"$MXBPF" report --layout mxnet $program.trace.json | grep -v '^#\|^MXNet C API Calls ' >ours
		grep -v '^MXNet C API Calls ' $program.table.txt >theirs
		diff ours theirs >differs || cat differs
		[[ -s ours && ! -s differs ]]
	done
}

@test "An iteration of MXNet's trace ends where a backward pass begins, and calls that wait are its waits" {
	mxnet_reference "$JUDGE/prog.py"
	gzip -c builtin.trace.json >packed.gz
	"$MXBPF" report packed.gz -f json >got.json
	jq -e --argjson n "$(jq '[.traceEvents[] | select(.ph == "b" and (.name | test("^MX(Autograd|Executor)BackwardEx$")))] | length' builtin.trace.json)" '
		(.iterations.loops[0] | .count == $n - 1 and .parts.wait.total_ns > 0) and .window.profiler == "mxnet.profiler" and
		.target.pid == 0 and .loss.dropped == 0' got.json
	"$MXBPF" report packed.gz >text
	grep -q '^window .*s from 20.* UTC, python, from a trace of mxnet.profiler$' text
	"$MXBPF" export packed.gz -o out.json
	jq -e '[.traceEvents[] | select(.name == "Convolution")] | length > 10' out.json
	# A trace of a job that was killed ends anywhere.
	head -c 60000 builtin.trace.json >cut.json
	"$MXBPF" report cut.json >text
	grep -q '^trace .*only a part of the file could be read' text
	grep -q '^Convolution ' text
}

@test "A table that dumps() made gives the rows of the trace of the same run, and no percentile, self time or memory that it does not have" {
	local form
	mxnet_reference "$JUDGE/prog.py"
	"$PYTHON" "$REPO/tests/marks/prog.py" --builtin marks >told.json
	"$MXBPF" report builtin.trace.json -f json >trace.json
	"$MXBPF" report builtin.table.txt -f json >table.json
	expect_same "$(rows trace.json)" "$(rows table.json)"
	jq -e '.mode == "stats" and (.tables.operator | all(has("p99_ns") or has("p50_ns") | not)) and (.memory | not) and
		(.tables | has("Device Storage") | not)' table.json
	for form in table.txt json; do # numbers of JSON have four digits
		"$MXBPF" report builtin.$form -f json | jq '.tables.operator | map([.name, .count]) | sort' >$form.counts
		"$MXBPF" report marks.$form >text
		grep -q '^items  *train  *40 ' text
		grep -q '^step  *20 .*train' text
		"$MXBPF" report builtin.$form >text
		grep -q '^memory .*between .* kB, [0-9]* allocations and frees' text
		grep -q '^window   unknown time, python, from a table of mxnet.profiler$' text
	done
	cmp table.txt.counts json.counts
	expect_error 1 'is a table, without single calls' "$MXBPF" diff builtin.json builtin.trace.json
	expect_error 1 'is a table, without single calls' "$MXBPF" export builtin.json -o t.json
	expect_error 2 'it is a table' "$MXBPF" report --by event builtin.json
	head -c 3000 builtin.json >cut.json
	expect_error 1 'no complete JSON' "$MXBPF" report cut.json
	gzip -c builtin.table.txt >packed.gz
	"$MXBPF" report packed.gz -f json >packed.json
	expect_same "$(rows table.json)" "$(rows packed.json)"
	# Results of both sides compare.
	"$MXBPF" diff table.json table.json | grep -q '^Convolution .*0'
}
