#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `mxbpf now` on the ranks of a job. Each rank says itself which collective it is in.

load helpers

setup() { root_setup torch; }

in_futex() { # PID: its main thread sleeps in a lock
	[[ $(cut -d' ' -f1 "/proc/$1/syscall") == 202 ]]
}

# Starts four ranks that hang in the way of MODE; sets JOB_PID and the arrays PIDS and NUMBERS, by rank.
hang_ranks() { # MODE RANK...: ranks that wait in a collective
	local rank
	OMP_NUM_THREADS=1 start_bg job "$PYTHON_TORCH" -m torch.distributed.run --nproc-per-node 4 --rdzv-backend c10d \
		--rdzv-endpoint localhost:0 "$REPO/tests/now/ranks.py" "$1"
	JOB_PID=$BG_PID
	wait_lines 4 "$(out job)" '^at '
	for rank in 0 1 2 3; do
		read -r _ _ PIDS[rank] NUMBERS[rank] < <(grep "^at $rank " "$(out job)")
	done
	for rank in "${@:2}"; do
		until in_futex "${PIDS[rank]}"; do sleep 0.02; done
	done
}

@test "now names the rank that three others wait for in a collective, its number and where that rank is" {
	local rank line
	hang_ranks missing 0 1 3
	"$MXBPF" now --pid "${PIDS[0]}" --job | tee now
	line=$(grep -n 'signal.sigwait' "$REPO/tests/now/ranks.py" | cut -d: -f1)
	for rank in 0 1 3; do
		expect_re "^rank $rank \\(process ${PIDS[rank]}\\) waits in all_reduce number ${NUMBERS[rank]} for rank 2, at .*ranks.py\\([0-9]+\\): <module>" "$(<now)"
	done
	expect_re "^rank 2 \\(process ${PIDS[2]}\\) is in no collective, at .*ranks.py\\($line\\): load" "$(<now)"
	# The threads of each rank follow.
	for rank in 0 1 2 3; do
		expect_re "^rank $rank, process ${PIDS[rank]} \\(.*: [0-9]+ threads, observed for " "$(<now)"
	done
	"$MXBPF" now -q --pid "$(IFS=,; echo "${PIDS[*]}")" -d 100ms -f json >now.json
	jq -e --argjson late "${PIDS[2]}" --argjson number "${NUMBERS[0]}" '.processes | length == 4 and
		all(.[] | select(.rank != 2); .collective | .name == "all_reduce" and .number == $number and .group_size == 4 and
			.waits_for == [$late] and .differs_from == []) and
		all(.[]; .collective.group_rank // 2 == .rank) and (.[] | select(.rank == 2) | .collective == null)' now.json
	# Nothing was harmed: the job goes on and has its result.
	kill -s USR2 "${PIDS[2]}"
	wait_line "$(out job)" '^result 16.0$'
	wait_exit "$JOB_PID"
}

@test "now of a launcher names its ranks that are in different collectives of one number, and leaves out those that send and receive" {
	export SLURM_PROCID=0 SLURM_NTASKS=1 # Slurm may have started the launcher, which then has a rank of another job
	hang_ranks mismatch 0 1 2 3
	"$MXBPF" now --pid "$JOB_PID" 2>messages | tee now
	expect_re "^process $JOB_PID is a launcher; its 4 ranks are shown$" "$(<messages)"
	expect_re "^The ranks are in different collectives of number ${NUMBERS[0]}: rank 0 is in all_reduce, rank 1 in broadcast\\. They will wait for each other for ever\\." "$(<now)"
	expect_re "^rank 1 \\(process ${PIDS[1]}\\) waits in broadcast number ${NUMBERS[1]} for rank 0, 2, 3, at " "$(<now)"
	expect_re "^rank 2 \\(process ${PIDS[2]}\\) waits in send number [0-9]+, at " "$(<now)"
	expect_re "^rank 3 \\(process ${PIDS[3]}\\) waits in recv number [0-9]+, at " "$(<now)"
	"$MXBPF" now -q --pid "$JOB_PID" --job -d 100ms -f json >now.json
	expect_same "$(printf '%s\n' "${PIDS[@]}" | sort)" "$(jq '.processes[].pid' now.json | sort)"
}

# The older and the newer class of PyTorch for NCCL, both real, on a mock of NCCL and of the runtime of CUDA.
start_nccl() { # RANK
	RANK=$1 WORLD_SIZE=2 MXBPF_DOUBLE_NCCL=$BATS_TEST_TMPDIR LD_PRELOAD="$O/gpu/libnccl_double.so $O/gpu/libcuda.so.1" \
		start_bg "rank$1" "$NEXT/bin/python" "$REPO/tests/now/nccl.py" "$BATS_TEST_TMPDIR/store"
}

# The first rank waits in a collective of the group for the second one. The group has a name if NAMED is not null.
now_names() { # GROUP NAMED
	local pid number operation late
	wait_line "$(out rank0)" "^at $1 "
	wait_line "$(out rank1)" "^late $1 "
	read -r _ _ _ pid operation number < <(grep "^at $1 " "$(out rank0)")
	read -r _ _ _ late < <(grep "^late $1 " "$(out rank1)")
	"$MXBPF" now -q --pid "$pid,$late" -d 2s 2>&1 | tee now
	expect_re "^rank 0 \\(process $pid\\) waits in $operation number $number for rank 1, at " "$(<now)"
	expect_re "^rank 1 \\(process $late\\) is in no collective, at .*: hang" "$(<now)"
	"$MXBPF" now -q --pid "$pid,$late" -d 100ms -f json >now.json
	jq -e --argjson late "$late" --argjson number "$number" --arg operation "$operation" --argjson name "$2" '.processes[0].collective |
		.name == $operation and .number == $number and .group_size == 2 and .group_rank == 0 and .waits_for == [$late] and
		.group_name == $name' now.json
	kill -s USR2 "$late"
}

@test "now names the collective of NCCL that a GPU waits in, its number and who is late, with nccl2 and the older class in one process" {
	need_next
	local pids
	start_nccl 0
	pids=("$BG_PID")
	start_nccl 1
	pids+=("$BG_PID")
	now_names nccl2 '"0"'
	now_names older null
	# Nothing was harmed.
	wait_exit "${pids[0]}"
	wait_exit "${pids[1]}"
	expect_re '^result$' "$(<"$(out rank0)")"
}
