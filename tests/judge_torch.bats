#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf on an unmodified PyTorch job against torch.profiler on the same program, one run under each: rows of operators, backward
# nodes and annotations, allocations, bytes. What torch.profiler alone can name is listed in judge_torch/compare.py.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" "$@"; }

judged() { # PROGRAM
	reference "$1"
	session "$1"
	compare builtin.json mxbpf.json
	cmp builtin.result mxbpf.result
	# The ends of all its functions hold, whatever was thrown through them.
	jq -e '.window | has("fallbacks") | not' mxbpf.json
	jq -e '[.probes[] | select(.name | startswith("exception.")).status] == ["attached", "attached"]' mxbpf.json
}

@test "a CNN trained with SGD counts the same under both" { judged sgd; }
@test "a CNN trained with Adam counts the same under both" { judged adam; }
@test "a CNN trained with Adam over all parameters at once counts the same under both" { judged adam-foreach; }
@test "a CNN trained with fused Adam counts the same under both" { judged adam-fused; }
@test "a transformer encoder, in mixed precision and on its fused path, counts the same under both" { judged transformer; }
@test "a compiled net counts the same under both" { judged compiled; }
@test "TorchScript counts the same under both" { judged script; }
@test "custom autograd Functions, twice differentiated, count the same under both" { judged custom; }
@test "operators that fail and are caught count the same under both" { judged exceptions; }

@test "backward passes 70 deep and annotations 500 deep count the same, ended or left by exceptions" {
	judged deep
	jq -e '.loss.dropped == 0' mxbpf.json
}

@test "two Python threads count the same, although torch.profiler sees one of them only" {
	judged threads
	# What it is told of the other thread by a second profiler is what it says when asked for all threads, without memory.
	prog threads --builtin all.json --all-threads
	compare builtin.json all.json
}

@test "two profilers in one run count the same" {
	traced_prog '--format json' exceptions --builtin builtin.json --gates
	compare builtin.json mxbpf.json
}

@test "what a program computes is the same under mxbpf as with nothing attached" {
	local name
	for name in custom threads; do
		printf '\n\n' | prog "$name" --bare --result plain >/dev/null
		session "$name"
		cmp plain mxbpf.result
	done
}

@test "the judge finds a row, a count, an allocation or a byte too many" {
	judged sgd
	local change
	for change in '.tables.operator[0].count += 1' 'del(.tables.operator[3])' '.tables.operator += [.tables.operator[0] * {name: "aten::new"}]' \
		'.tables.memory[0].frees += 1' '.tables.memory[0].alloc_bytes += 4' '.loss.dropped = 1' \
		'.tables.operator[0].self_alloc_bytes += 4'; do
		jq "$change" mxbpf.json >changed.json
		echo "$change"
		run compare builtin.json changed.json
		expect_status 1
	done
}
