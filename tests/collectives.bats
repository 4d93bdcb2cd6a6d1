#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Collectives of four ranks of torchrun on gloo, some of which are late on purpose, against the ranks' own clocks.

# bats file_tags=alone

load helpers

setup() {
	torch_setup
	export OMP_NUM_THREADS=1
	mkdir told
}

TORCHRUN=(-m torch.distributed.run --standalone --nproc-per-node 4)

# Reports and exports, and compares with the accounts of the ranks.
same_as_ranks() { # RECORDING...
	"$MXBPF" report "$@" --format json -o report.json
	"$MXBPF" export "$@" -o trace.json
	"$MXBPF" report "$@" --all >report.txt
	cat report.txt
	python3 "$REPO/tests/workload/collectives.py" told report.json trace.json
}

@test "Sizes, groups, waits and bandwidths of collectives are those of the ranks' clocks, and the late ranks are named" {
	: >told/go
	"$MXBPF" record --agent --shapes -o job.mxd -- "$PYTHON_TORCH" "${TORCHRUN[@]}" "$REPO/tests/workload/collectives.py" told
	same_as_ranks job.mxd
	expect_re '^all_reduce +gloo +ranks 0-3 +4.00 MiB +12 ' "$(<report.txt)"
	expect_re '^[12]\. The others wait for rank [12] in ' "$(<report.txt)" # both are as late
	expect_re 'ranks 0-3 wait in all_(reduce|gather) the most' "$(<report.txt)"
	jq -e '.collectives.ranks | map(select(.group == "ranks 0-3")) | length == 4' report.json
}

@test "Two recordings of two ranks each, by probes, have the collectives of all four" {
	start_bg job "$PYTHON_TORCH" "${TORCHRUN[@]}" "$REPO/tests/workload/collectives.py" told
	local job=$BG_PID pids first second
	wait_lines 4 "$(out job)" '^ready'
	mapfile -t pids < <(sed -n 's/^ready //p' "$(out job)")
	start_bg first "$MXBPF" record --pid "${pids[0]},${pids[1]}" --shapes -o first.mxd
	first=$BG_PID
	start_bg second "$MXBPF" record --pid "${pids[2]},${pids[3]}" --shapes -o second.mxd
	second=$BG_PID
	wait_line "$(err first)" '^attached' "$first"
	wait_line "$(err second)" '^attached' "$second"
	: >told/go
	wait_exit "$job"
	wait_exit "$first"
	wait_exit "$second"
	same_as_ranks first.mxd second.mxd
}

@test "In serve, each rank has the number of its collectives and its wait for the others, and late ranks are last" {
	start_bg job "$PYTHON_TORCH" "${TORCHRUN[@]}" "$REPO/tests/workload/collectives.py" told
	local job=$BG_PID
	wait_lines 4 "$(out job)" '^ready'
	start_bg serve "$MXBPF" serve --pid "$job" --max-overhead 100% --interval 500ms --textfile m.prom --listen none
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$BG_PID"
	: >told/go
	wait_exit "$job"
	wait_exit "$BG_PID"
	grep -E '^mxbpf_collective' m.prom
	python3 - <<-'END'
		import collections, json, re
		seen = collections.defaultdict(dict)
		for name, rank, value in re.findall(r'^(mxbpf_collective\w*)_total\{.*rank="(\d)".*\} (\S+)$', open('m.prom').read(), re.M):
		    seen[int(rank)][name] = float(value)
		for rank in range(4):
		    told, row = json.load(open('told/rank.%d' % rank))['calls'], seen[rank]
		    print(rank, len(told), row)
		    assert len(told) * 0.75 <= row['mxbpf_collectives'] <= len(told), 'a broadcast waits for nobody'
		    assert row['mxbpf_collective_wait_seconds'] < row['mxbpf_collective_seconds']
		# Rank 2 comes 40 ms later to all twelve all_reduce, and rank 1 to all_gather.
		assert seen[1]['mxbpf_collectives_last'] >= 6 and seen[2]['mxbpf_collectives_last'] >= 6
		assert all(seen[r]['mxbpf_collective_wait_seconds'] > 12 * 0.04 / 2 for r in range(4))
	END
}

@test "Sends and receives of gloo have rows for each process with --agent, with exact counts and sizes" {
	sends_and_receives "$PYTHON_TORCH"
}

@test "Waits of NCCL's kernels and their overlap with others are those of the ranks, on the mock of a GPU" {
	start_bg job "$PYTHON_TORCH" "${TORCHRUN[@]}" "$REPO/tests/gpu/nccl_ranks.py" told
	local job=$BG_PID
	wait_lines 4 "$(out job)" '^ready'
	start_mxbpf record --pid "$job" --gpu -v -o job.mxd
	wait_lines 4 "$(err mxbpf)" 'CUPTI delivers records' # a slow machine may attach before all of them have it
	: >told/go
	wait_exit "$job"
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd --all | grep -A 12 '^Collectives'
	"$MXBPF" report job.mxd --format json | jq '.collectives.operations |= map(select(.backend == "nccl"))' >report.json
	python3 "$REPO/tests/gpu/nccl_ranks.py" told report.json
}

# Builds a library with the ranges of NCCL.
said() {
	local headers
	headers=$(echo "$O"/deps/nvtx/lib/python3*/site-packages/nvidia/cu13/include)
	[[ -f $headers/nvtx3/nvToolsExtPayload.h ]] || skip "no headers at $headers: run tests/setup.sh"
	cc -O1 -shared -fPIC -D_GNU_SOURCE -I"$headers" -o libnccl_said.so "$REPO/tests/nvtx/nccl.c" -ldl
}

SAID=("$REPO/tests/gpu/nccl_said.py" told "$BATS_TEST_TMPDIR/libnccl_said.so")

same_as_said() {
	"$MXBPF" report job.mxd --all | grep -A 14 '^Collectives'
	"$MXBPF" report job.mxd --format json >report.json
	python3 "$REPO/tests/gpu/nccl_said.py" told <report.json
}

@test "NCCL's ranges tell size, communicator, root and reduction of its kernels, in ranks that torchrun starts, to the byte" {
	said
	start_bg mxbpf "$MXBPF" record --gpu -v -o job.mxd -- "$PYTHON_TORCH" "${TORCHRUN[@]}" "${SAID[@]}"
	wait_lines 4 "$(err mxbpf)" 'CUPTI delivers records'
	: >told/go
	wait_exit "$BG_PID"
	same_as_said
}

@test "Ranks that run already and have not called NVTX yet tell the same, each of them" {
	said
	start_bg job "$PYTHON_TORCH" "${TORCHRUN[@]}" "${SAID[@]}"
	local job=$BG_PID
	wait_lines 4 "$(out job)" '^ready'
	start_mxbpf record --pid "$job" --gpu -v -o job.mxd
	wait_lines 4 "$(err mxbpf)" 'CUPTI delivers records' # a slow machine may attach before all of them have it
	: >told/go
	wait_exit "$job"
	wait_exit "$MXBPF_PID"
	same_as_said
}

@test "Collectives of nccl2 and of PyTorch's older class for NCCL in one process are told apart, and the late rank is named" {
	need_next
	said
	cat >ranks.sh <<-END
		export O=$O MXBPF_DOUBLE_NCCL=$PWD/told WORLD_SIZE=2
		export LD_PRELOAD="$O/gpu/libnccl_double.so $O/gpu/libcuda.so.1 $O/gpu/places/nvidia/cu13/lib/libcupti.so.13"
		for rank in 0 1; do
			RANK=\$rank $NEXT/bin/python $REPO/tests/gpu/nccl_groups.py told $PWD/libnccl_said.so &
		done
		wait
	END
	start_bg mxbpf "$MXBPF" record --gpu -v -o job.mxd -- bash ranks.sh
	wait_lines 2 "$(err mxbpf)" 'process [0-9]+: CUPTI delivers records'
	: >told/go
	wait_exit "$BG_PID"
	"$MXBPF" report job.mxd --all | tee report.txt | grep -A 14 '^Collectives'
	expect_re '^[0-9]\. The others wait for rank 1 in ' "$(<report.txt)"
	"$MXBPF" report job.mxd --format json >report.json
	python3 "$REPO/tests/gpu/nccl_groups.py" told <report.json
}
