#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf --gpu on several processes, each with a GPU of its own on the mock (tests/gpu/double). The account of each process and
# that of its double are the ground truth.

load helpers

setup() {
	torch_setup
	export MXBPF_DOUBLE_ACCOUNT=$PWD/told/double.%p.json
	mkdir told
}

TORCHRUN=(-m torch.distributed.run --standalone --nproc-per-node 4)

start_ranks() {
	start_bg job "$PYTHON_TORCH" "${TORCHRUN[@]}" "$REPO/tests/gpu/torch_ranks.py" told
	JOB_PID=$BG_PID
	timeout 120 bash -c 'until (($(grep -c "^ready" "$0") == 4)); do sleep 0.1; done' "$(out job)"
}

# Reports, and exports as a timeline.
same_as_ranks() { # RECORDING...
	"$MXBPF" report "$@" --format json -o report.json
	"$MXBPF" export "$@" -o trace.json
	python3 "$REPO/tests/gpu/torch_ranks.py" told report.json trace.json
}

ready_pids() { sed -n 's/^ready //p' "$(out job)"; }

# The processes of this test that have the thread of the agent which is a client of CUPTI.
clients() {
	local pid
	grep -l '^mxbpf-gpu$' /proc/[0-9]*/task/[0-9]*/comm 2>/dev/null | cut -d / -f 3 | sort -u | while read -r pid; do
		! grep -qz "^BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR\$" "/proc/$pid/environ" 2>/dev/null || echo "$pid"
	done
}

@test "Four ranks of torchrun with a GPU each have every kernel at their own operator, with times by their own clock" {
	start_ranks
	start_mxbpf record --pid "$JOB_PID" --gpu -o job.mxd
	grep '^CUPTI delivers records of 4 processes' "$(err mxbpf)"
	grep '^the agent is in 4 processes' "$(err mxbpf)"
	expect_same "$(ready_pids | sort)" "$(clients)" # neither the launcher nor loader workers
	: >told/go
	wait_exit "$JOB_PID"
	wait_exit "$MXBPF_PID"
	same_as_ranks job.mxd
	jq -e 'any(.window.notes[]; .text == "the agent was in 4 processes")' report.json
	[[ $(grep -c 'rank [0-3] GPU 0 *Mock H200 [0-3] *0000:1[9a-c]:00.0' <("$MXBPF" report job.mxd)) == 4 ]]
	[[ $(sed -n '/^Operators on the GPU/,/^$/p' <("$MXBPF" report job.mxd --by rank --all) | grep -c '^gpuops::gemm  *rank [0-3] ') == 4 ]]
}

@test "In serve, the library of --gpu enters only processes of the jobs that are named" {
	SLURM_JOB_ID=77 start_ranks
	start_bg other "$MXBPF" serve --pid "$JOB_PID" --gpu --gpu-jobs 'train*,78' --interval 200ms --listen none --textfile other.prom
	wait_line "$(err other)" 'attached: [0-9]+ probes' "$BG_PID"
	timeout 60 bash -c 'until awk "/^mxbpf_targets/ { n += \$NF } END { exit n < 4 }" other.prom 2>/dev/null; do sleep 0.1; done'
	[[ -z $(clients) ]]
	end_pid "$BG_PID"
	start_bg named "$MXBPF" serve --pid "$JOB_PID" --gpu --gpu-jobs 'train*,77' --interval 200ms --listen none --textfile named.prom
	wait_line "$(err named)" 'CUPTI delivers records of 4 processes' "$BG_PID"
	wait_line "$(err named)" 'attached: [0-9]+ probes' "$BG_PID"
	expect_same "$(ready_pids | sort)" "$(clients)"
	: >told/go
	wait_exit "$JOB_PID"
	# What the ranks did last is in the next text that is written.
	timeout "$WAIT_SECONDS" bash -c 'until awk "/^mxbpf_gpu_kernels_total/ { n += \$NF } END { exit !n }" named.prom; do sleep 0.1; done'
	end_pid "$BG_PID"
}

@test "Ranks of a launched job have the agent as soon as they have mapped CUDA" {
	start_bg mxbpf "$MXBPF" record -v --gpu -o job.mxd -- "$PYTHON_TORCH" "${TORCHRUN[@]}" "$REPO/tests/gpu/torch_ranks.py" told
	MXBPF_PID=$BG_PID
	timeout 120 bash -c 'until (($(grep -c "CUPTI delivers records: version" "$0") == 4)); do sleep 0.1; done' "$(err mxbpf)"
	: >told/go
	wait_exit "$MXBPF_PID"
	same_as_ranks job.mxd
}

# bats test_tags=alone
@test "With --agent, operators and kernels of each rank are those of its agent" {
	start_ranks
	start_mxbpf record --pid "$JOB_PID" --agent --gpu -o job.mxd
	: >told/go
	wait_exit "$JOB_PID"
	wait_exit "$MXBPF_PID"
	same_as_ranks job.mxd
	# Each of the sixteen loader workers, eight of them late ones, makes up to 16 calls, until its loader ends it. One that ends before
	# it has an agent has lost them, which is counted.
	jq -c .loss report.json
	jq -e '.loss.dropped <= 16 * 16' report.json
}

@test "Two recordings, each of two ranks, are together the recording of all" {
	start_ranks
	local pids first second
	mapfile -t pids < <(ready_pids)
	start_bg first "$MXBPF" record --pid "${pids[0]},${pids[1]}" --gpu -o first.mxd
	first=$BG_PID
	start_bg second "$MXBPF" record --pid "${pids[2]},${pids[3]}" --gpu -o second.mxd
	second=$BG_PID
	wait_line "$(err first)" '^attached' "$first"
	wait_line "$(err second)" '^attached' "$second"
	: >told/go
	wait_exit "$JOB_PID"
	wait_exit "$first"
	wait_exit "$second"
	same_as_ranks first.mxd second.mxd
}

# bats test_tags=alone
@test "What a rank loses is its own loss, and a rank whose CUPTI is busy costs the others nothing" {
	# CUPTI drops every record of rank 3, so it never completes a buffer there.
	export DOUBLE_OF_1=drop=10 DOUBLE_OF_2=busy,holder=Nsight DOUBLE_OF_3=drop=1
	start_ranks
	start_mxbpf record --pid "$JOB_PID" --gpu -o job.mxd
	: >told/go
	wait_exit "$JOB_PID"
	wait_exit "$MXBPF_PID"
	local pid=$(jq .pid told/rank.2.json)
	grep "process $pid: no record of the GPU: another client (Nsight) holds CUPTI" "$(err mxbpf)"
	! python3 "$REPO/tests/gpu/torch_ranks.py" told report.json >wrong || false
	"$MXBPF" report job.mxd --format json -o report.json
	expect_run 1 python3 "$REPO/tests/gpu/torch_ranks.py" told report.json
	echo "$output"
	run ! grep '^rank 0:' <<<"$output"
	jq -s -e --slurpfile report report.json '(map({pid, dropped: ([.dropped[]] | add)} | select(.dropped > 0)) | sort)
		== ([$report[0].gpu.records[] | select(.dropped > 0) | {pid, dropped}] | sort) and length > 1' told/double.*.json
	"$MXBPF" report job.mxd >report.txt
	expect_re '^GPU records lost because CUPTI had no buffer: [0-9,]+ \([0-9]+ of rank 1, [0-9,]+ of rank 3\)$' "$(<report.txt)"
}
