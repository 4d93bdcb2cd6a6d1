#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --backward shows forward operators with their backward time. torch.profiler's events of the same program are the reference.

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

@test "Each forward operator of a CNN has torch.profiler's backward nodes" { judged sgd; }
@test "Each forward operator of a transformer has torch.profiler's backward nodes" { judged transformer; }
@test "Each forward operator of a compiled net has torch.profiler's backward nodes" { judged compiled; }
@test "Each forward operator of TorchScript has torch.profiler's backward nodes" { judged script; }
@test "Each forward operator of custom Functions, differentiated twice, has torch.profiler's backward nodes" { judged custom; }
@test "Each forward operator of a program with exceptions has torch.profiler's backward nodes" { judged exceptions; }
@test "Each forward operator of two threads has torch.profiler's backward nodes" { judged threads --all-threads; }

@test "A recording joins forward and backward as its session did, with and without --backward" {
	recording custom
	reference custom
	"$MXBPF" report --backward --format json job.mxd >report.json
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json report.json
	"$MXBPF" report --all --backward job.mxd | grep -A1 '^forward and backward: 12 operators$'
	"$MXBPF" report --backward --layout torch job.mxd | grep '^# aten::tanh '
	"$MXBPF" report --backward --format csv job.mxd | grep '^"backward","SquareBackward",,0,0,'
}

@test "A recording lists calls one by one in every layout and format, and a session lists none" {
	recording custom
	"$MXBPF" report --raw --by event --format json --top 1000000 job.mxd >events.json
	"$MXBPF" report --raw --format json job.mxd >report.json
	# The list has every call of the tables, ordered by start.
	[[ $(jq '[.tables.operator[].count] | add' report.json) == "$(jq '.tables.operator | length' events.json)" ]]
	jq -e '[.tables.operator[].start_unix_ns] | . == sort' events.json
	[[ $(jq '[.tables.operator[].total_ns] | add' report.json) == "$(jq '[.tables.operator[].total_ns] | add' events.json)" ]]
	"$MXBPF" report --by event --layout torch --row-limit 2 job.mxd | grep -c ' 1  $' | grep -x 2
	"$MXBPF" report --by event --layout torch-classic job.mxd | grep -q '^aten::mul '
	"$MXBPF" report --by event --format csv --top 5 job.mxd | head -1 | grep '^table,.*,start_unix_ns,thread,unwound,'
	expect_run 2 "$MXBPF" --pid $$ --by event
	[[ $output == *'mxbpf record'* ]]
	expect_run 2 "$MXBPF" report --sort start job.mxd
}

@test "Options that --backward does not support are refused with the reason" {
	recording custom
	expect_run 2 "$MXBPF" --pid $$ --backward --layout mxnet
	expect_run 2 "$MXBPF" --pid $$ --backward --ops mm
	start_toy 1 1
	expect_run 2 "$MXBPF" --exact --pid "$READY_PID" --backward
	[[ $output == *'--backward is not supported with MXNet'* ]]
	expect_run 2 "$MXBPF" report --by shape job.mxd
	[[ $output == *'record with --shapes'* ]]
	expect_run 2 "$MXBPF" --pid $$ --by stack
	[[ $output == *'add --py-stacks'* ]]
}
