#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf on an unmodified PyTorch job against torch.profiler on the same program: rows, counts, allocations and bytes.

load helpers

JUDGE=$REPO/tests/judge_torch

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
}

judged() { # PROGRAM
	"$PYTHON_TORCH" "$JUDGE/prog.py" "$1" --builtin builtin.json
	"$PYTHON_TORCH" "$REPO/tests/judge/drive.py" --tool "$MXBPF --pid {pid} --format json" --stdout mxbpf.json -- \
		"$PYTHON_TORCH" "$JUDGE/prog.py" "$1" --bare
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json
}

@test "a CNN trained with SGD counts the same under both" { judged sgd; }
@test "a CNN trained with Adam counts the same under both" { judged adam; }
@test "a transformer encoder counts the same under both" { judged transformer; }
@test "a compiled CNN counts the same under both" { judged compiled; }
@test "TorchScript counts the same under both" { judged script; }
@test "custom autograd Functions, twice differentiated, count the same under both" { judged custom; }
@test "two Python threads count the same under both, of which torch.profiler is told" { judged threads; }
@test "operators that fail and are caught count the same under both" { judged exceptions; }

@test "the judge finds a row, a count, an allocation or a byte too many" {
	judged sgd
	local change
	for change in '.tables.operator[0].count += 1' 'del(.tables.operator[3])' '.tables.operator += [{name: "aten::new", count: 1}]' \
		'.tables.memory[0].frees += 1' '.tables.memory[0].alloc_bytes += 4'; do
		jq "$change" mxbpf.json >changed.json
		echo "$change"
		run "$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json changed.json
		expect_status 1
	done
}
