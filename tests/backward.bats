#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --backward: forward operators with their backward time, against torch.profiler's events of the same program.

load helpers

setup() { torch_setup; }

judged() { # PROGRAM PROG_ARGS...
	if (($# > 1)); then
		prog "$@" --builtin builtin.json
	else
		reference "$1"
	fi
	session "$1"
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json mxbpf.json
}

@test "the nodes of each forward operator are those of torch.profiler: a CNN" { judged sgd; }
@test "the nodes of each forward operator are those of torch.profiler: a transformer" { judged transformer; }
@test "the nodes of each forward operator are those of torch.profiler: a compiled net" { judged compiled; }
@test "the nodes of each forward operator are those of torch.profiler: TorchScript" { judged script; }
@test "the nodes of each forward operator are those of torch.profiler: custom Functions, twice differentiated" { judged custom; }
@test "the nodes of each forward operator are those of torch.profiler: exceptions in between" { judged exceptions; }
@test "the nodes of each forward operator are those of torch.profiler: two threads" { judged threads --all-threads; }

@test "a recording joins forward and backward as the session did, asked for or not" {
	recording custom
	reference custom
	"$MXBPF" report --backward --format json job.mxd >report.json
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json report.json
	"$MXBPF" report --backward job.mxd | grep -A1 '^forward and backward: 12 operators$'
	"$MXBPF" report --backward --layout torch job.mxd | grep '^# aten::tanh '
	"$MXBPF" report --backward --format csv job.mxd | grep '^"backward","SquareBackward",,0,0,'
}

@test "a recording shows its calls one by one, in every layout and format, a session none" {
	recording custom
	"$MXBPF" report --by event --format json --top 1000000 job.mxd >events.json
	"$MXBPF" report --format json job.mxd >report.json
	# Every call of the tables is there, in order.
	[[ $(jq '[.tables.operator[].count] | add' report.json) == "$(jq '.tables.operator | length' events.json)" ]]
	jq -e '[.tables.operator[].start_unix_ns] | . == sort' events.json
	[[ $(jq '[.tables.operator[].total_ns] | add' report.json) == "$(jq '[.tables.operator[].total_ns] | add' events.json)" ]]
	"$MXBPF" report --by event --layout torch --row-limit 2 job.mxd | grep -c ' 1  $' | grep -x 2
	"$MXBPF" report --by event --layout torch-classic job.mxd | grep -q '^aten::mul '
	"$MXBPF" report --by event --format csv --top 5 job.mxd | head -1 | grep '^table,.*,start_unix_ns,thread,unwound,'
	run "$MXBPF" --pid $$ --by event
	expect_status 2
	[[ $output == *'mxbpf record'* ]]
	run "$MXBPF" report --sort start job.mxd
	expect_status 2
	recording_stats custom
	run "$MXBPF" report --by event job.mxd
	expect_status 2
	[[ $output == *'without --stats'* ]]
}

@test "what cannot join forward and backward says so" {
	recording_stats custom
	run "$MXBPF" report --backward job.mxd
	expect_status 2
	[[ $output == *'record with --backward'* ]]
	run "$MXBPF" --pid $$ --backward --layout mxnet
	expect_status 2
	run "$MXBPF" --pid $$ --backward --stats
	expect_status 2
	run "$MXBPF" --pid $$ --backward --ops mm
	expect_status 2
	start_toy 1 1
	run "$MXBPF" --pid "$READY_PID" --backward
	expect_status 2
	[[ $output == *'of MXNet, forward and backward cannot be joined'* ]]
	run "$MXBPF" report --by shape job.mxd
	expect_status 2
	[[ $output == *'record with --shapes'* ]]
	run "$MXBPF" --pid $$ --by stack
	expect_status 2
	[[ $output == *'add --py-stacks'* ]]
}
