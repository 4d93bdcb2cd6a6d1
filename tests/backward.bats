#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --backward: forward operators with their backward time, against torch.profiler's events of the same program.

load helpers

JUDGE=$REPO/tests/judge_torch

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	export TORCHINDUCTOR_CACHE_DIR=$O/deps/inductor
}

prog() { "$PYTHON_TORCH" "$JUDGE/prog.py" "$@"; }

# mxbpf with these words around exactly the section of a program; what it prints is in mxbpf.json.
traced() { # WORDS PROG_ARGS...
	"$PYTHON_TORCH" "$REPO/tests/judge/drive.py" --tool "$MXBPF $1" --stdout mxbpf.json -- \
		"$PYTHON_TORCH" "$JUDGE/prog.py" "${@:2}"
}

judged() { # PROGRAM PROG_ARGS...
	prog "$@" --builtin builtin.json 3>&- &
	traced "--pid {pid} --backward --format json" "$1" --bare
	wait $!
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
	traced "record --pid {pid} -o job.mxd" custom --bare
	prog custom --builtin builtin.json
	"$MXBPF" report --backward --format json job.mxd >report.json
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json report.json
	"$MXBPF" report --backward job.mxd | grep -A1 '^forward and backward: 12 operators$'
	"$MXBPF" report --backward --layout torch job.mxd | grep '^# aten::tanh '
	"$MXBPF" report --backward --format csv job.mxd | grep '^"backward","SquareBackward",,0,0,'
}

@test "what cannot join forward and backward says so" {
	traced "record --stats --pid {pid} -o job.mxd" custom --bare
	run "$MXBPF" report --backward job.mxd
	expect_status 2
	[[ $output == *'record with --backward'* ]]
	run "$MXBPF" --pid $$ --backward --layout mxnet
	expect_status 2
	run "$MXBPF" --pid $$ --backward --stats
	expect_status 2
	run "$MXBPF" report --by shape job.mxd
	expect_status 2
	[[ $output == *'record with --shapes'* ]]
	run "$MXBPF" --pid $$ --by stack
	expect_status 2
	[[ $output == *'add --py-stacks'* ]]
}
