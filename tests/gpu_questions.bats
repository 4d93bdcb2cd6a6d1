#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The ten questions of HolisticTraceAnalysis (docs/gpu.md) are answered from one recording: of two ranks with a GPU each on the
# double (tests/gpu/double), whose own accounts are the ground truth. One rank lags.
# bats file_tags=alone

load helpers

setup() {
	torch_setup
	take_shared gpu-questions record_ranks
}

# Makes job.mxd and the accounts rank.N.json in the current directory.
record_ranks() {
	start_bg job "$PYTHON_TORCH" -m torch.distributed.run --standalone --nproc-per-node 2 "$REPO/tests/gpu/questions_job.py" "$PWD"
	JOB_PID=$BG_PID
	timeout 120 bash -c 'until (($(grep -c "^ready" "$0") == 2)); do sleep 0.1; done' "$(out job)"
	start_mxbpf record --pid "$JOB_PID" --gpu -o job.mxd
	grep '^CUPTI delivers records of 2 processes' "$(err mxbpf)"
	: >go
	wait_exit "$JOB_PID"
	wait_exit "$MXBPF_PID"
}

@test "Types of work, launches, queues, sequences and critical paths of two ranks are those of their accounts" {
	"$MXBPF" report job.mxd --format json -o report.json
	python3 "$REPO/tests/gpu/questions_job.py" "$PWD" report.json
	# The rank that lags is the one with the most time in its slow operator.
	jq -e '.ranks[] | select(.name == "gpuops::slow") | .max_rank == 1 and .min_ns == 0' report.json
}

# Prints "COMMAND<tab>TEXT" for each question: the command, and what stands in its output.
questions() {
	sed -n '/^## Ten questions/,/^## [^T]/s/^| [^|]* | `\([^`]*\)` | [^|]*\*\*\([^*]*\)\*\*.*/\1\t\2/p' "$REPO/docs/gpu.md"
}

@test "Each question of the page has a command, whose output has what the page names" {
	local command text n=0
	cp job.mxd a.mxd
	cp job.mxd b.mxd
	while IFS=$'\t' read -r command text; do
		n=$((n + 1))
		rm -f trace.json
		bash -c "${command/#mxbpf/\"\$MXBPF\"}" >output 2>messages </dev/null || { cat messages; return 1; }
		[[ ! -e trace.json ]] || cat trace.json >>output
		grep -qF "$text" output || { echo "$command: no \"$text\""; cat output; return 1; }
	done < <(questions)
	((n == 10))
}
