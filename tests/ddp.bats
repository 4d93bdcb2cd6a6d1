#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Two workers of a real torchrun, new interpreters both, against torch.profiler in each of them.

load helpers

export BATS_TEST_TIMEOUT=300

setup() { torch_setup; }

torchrun() { # MXBPF_ARGS...
	# Port 0: any that is free.
	OMP_NUM_THREADS=1 run --separate-stderr "$MXBPF" "$@" -- "$PYTHON_TORCH" -m torch.distributed.run --nproc-per-node 2 \
		--rdzv-backend c10d --rdzv-endpoint localhost:0 "$JUDGE/ddp.py"
	expect_status 0
	sed -n '/^{$/,$p' <<<"$output" >report.json
}

# Rows of one worker, of the kinds that the pattern says, as {name: count}.
builtin() { jq -S --arg re "$2" '.rows | with_entries(select(.key | test($re)))' "$1.json"; }
seen() {
	jq -S --slurpfile of "$1.json" --arg re "$2" '[.tables.operator[] | select(.pid == $of[0].pid and (.name | test($re)))
		| {key: .name, value: .count}] | from_entries' report.json
}

@test "both workers of torchrun: collectives, operators and backward nodes are counted as by torch.profiler in each of them" {
	local rank re
	torchrun --format json
	jq -e '.window | .followed == 2 and .unfollowed == 0 and (has("fallbacks") | not)' report.json
	jq -e '.loss | del(.attempted, .stored) | add == 0' report.json
	for rank in 0 1; do
		# Point to point is no work of the kind that a collective is.
		for re in '^c10d::' '^gloo:(?!send|recv)' 'Backward0|AccumulateGrad' '^Optimizer' '^aten::(addmm|sum|ones|fill_|mul)$'; do
			diff <(builtin "$rank" "$re") <(seen "$rank" "$re")
			[[ $(seen "$rank" "$re" | jq length) -gt 0 ]]
		done
		[[ $(seen "$rank" '^c10d::' | jq length) == 9 ]]
	done
}
