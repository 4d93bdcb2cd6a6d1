#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A PyTorch job is never harmed: one return probe on a frame that an exception crosses would end it.

load helpers

setup() {
	need_root
	need_torch
}

@test "the job survives every exception that its program catches" {
	start_ready thrower "$PYTHON_TORCH" "$REPO/tests/workload/torch_throw.py"
	start_mxbpf --pid "$READY_PID" --trace "$BATS_TEST_TMPDIR/t.json" --format json
	kill -s USR1 "$READY_PID"
	wait_exit "$READY_PID" 100
	wait_exit "$MXBPF_PID" 60
	grep '^caught [1-9]' "$(out thrower)"
	jq -e '.loss.dropped == 0 and .loss.unreadable == 0' "$(out mxbpf)"
}

@test "attaching and detaching thirty times during training has no effect" {
	local i
	start_ready trainer "$PYTHON_TORCH" "$REPO/tests/workload/torch_train.py" --tiny
	local trainer=$READY_PID
	for i in {1..30}; do
		run --separate-stderr "$MXBPF" --pid "$trainer" -d 20ms --format json
		[[ $status == 0 || $status == 5 ]] || expect_status 0
	done
	kill -s 0 "$trainer"
	stop_pid "$trainer"
}

@test "the result of a job is the same to the last bit with mxbpf attached" {
	local args=(--tiny --steps 300 --seed 3 --print-result) plain
	start_bg plain "$PYTHON_TORCH" "$REPO/tests/workload/torch_train.py" "${args[@]}"
	wait_exit "$BG_PID" 100
	plain=$(grep '^result ' "$(out plain)")
	start_ready trainer "$PYTHON_TORCH" "$REPO/tests/workload/torch_train.py" "${args[@]}"
	start_mxbpf --pid "$READY_PID"
	wait_exit "$READY_PID" 100
	wait_exit "$MXBPF_PID" 60
	[[ -n $plain && $(grep '^result ' "$(out trainer)") == "$plain" ]]
}
