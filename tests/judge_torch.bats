#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf on an unmodified PyTorch job compared with torch.profiler on the same program, one run each: rows of operators, backward
# nodes and annotations, allocations, bytes. judge_torch/compare.py lists what only torch.profiler can name.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" "$@"; }

judged() { # PROGRAM
	reference "$1"
	session "$1"
	compare builtin.json mxbpf.json
	cmp builtin.result mxbpf.result
	# All end probes are reliable, also when exceptions leave their functions.
	jq -e '.window | has("fallbacks") | not' mxbpf.json
	jq -e '[.probes[] | select(.name | startswith("exception.")).status] == ["attached", "attached"]' mxbpf.json
}

# bats test_tags=smoke
@test "mxbpf counts a CNN trained with SGD as torch.profiler does" { judged sgd; }
@test "mxbpf counts a CNN trained with Adam as torch.profiler does" { judged adam; }
@test "mxbpf counts a CNN trained with foreach Adam as torch.profiler does" { judged adam-foreach; }
@test "mxbpf counts a CNN trained with fused Adam as torch.profiler does" { judged adam-fused; }
@test "mxbpf counts a transformer encoder, in mixed precision and on its fused path, as torch.profiler does" { judged transformer; }
@test "mxbpf counts a compiled net as torch.profiler does" { judged compiled; }
@test "mxbpf counts TorchScript as torch.profiler does" { judged script; }
@test "mxbpf counts custom autograd Functions, differentiated twice, as torch.profiler does" { judged custom; }
@test "mxbpf counts bags of embeddings as torch.profiler does" { judged bags; }
@test "mxbpf counts operators that raise caught exceptions as torch.profiler does" { judged exceptions; }

@test "mxbpf counts backward passes 70 deep and annotations 500 deep as torch.profiler does, ended or left by exceptions" {
	judged deep
	jq -e '.loss.dropped == 0' mxbpf.json
}

@test "mxbpf counts two Python threads as two torch.profiler runs do, which see one thread each" {
	judged threads
	# torch.profiler reports the other thread the same way in a second run and with --all-threads, which excludes memory.
	prog threads --builtin all.json --all-threads
	compare builtin.json all.json
}

@test "mxbpf and torch.profiler in the same run count the same" {
	traced_prog '--format json' exceptions --builtin builtin.json --gates
	compare builtin.json mxbpf.json
}

@test "A program computes the same under mxbpf as without it" {
	local name
	for name in custom threads; do
		printf '\n\n' | prog "$name" --bare --result plain >/dev/null
		session "$name"
		cmp plain mxbpf.result
	done
}

@test "The judge detects a surplus row, count, allocation or byte" {
	judged sgd
	local change
	for change in '.tables.operator[0].count += 1' 'del(.tables.operator[3])' '.tables.operator += [.tables.operator[0] * {name: "aten::new"}]' \
		'.tables.memory[0].frees += 1' '.tables.memory[0].alloc_bytes += 4' '.loss.dropped = 1' \
		'.tables.operator[0].self_alloc_bytes += 4'; do
		jq "$change" mxbpf.json >changed.json
		echo "$change"
		expect_run 1 compare builtin.json changed.json
	done
}
