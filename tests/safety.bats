#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf never harms the target: one test per hazard.

load helpers

setup() { root_setup mxnet; }

# The file offsets of all probes that mxbpf would attach to a process, without memory.throw, which is in another library.
probe_offsets() {
	"$MXBPF" check --pid "$1" | sed -n '/ memory.throw /d; s/^  ok .* +0x\([0-9a-f]*\) .*/\1/p'
}

code_bytes() { # PID OFFSET...
	local pid=$1
	shift
	"$PYTHON" "$REPO/tests/code_bytes.py" "$pid" libmxnet.so "$@"
}

EVERYTHING=(--life --memory --layers --shapes)

count_of() { # JSON TABLE NAME
	jq "[.tables[\"$2\"][] | select(.name == \"$3\") | .count] | add // 0" "$1"
}

# bats test_tags=alone
@test "A second process on the same library contributes no events, and its code is unchanged" {
	start_workload --tiny
	local watched=$WORKLOAD_PID offsets before
	start_ready other "$PYTHON" "$REPO/tests/workload/mxnet_train.py" --tiny
	local other=$READY_PID
	mapfile -t offsets < <(probe_offsets "$watched")
	((${#offsets[@]} >= 8))
	before=$(code_bytes "$other" "${offsets[@]}")

	kill -s STOP "$watched" # only the other process runs, so every event would be its
	start_mxbpf --pid "$watched" --trace "$BATS_TEST_TMPDIR/t.json" --format json
	[[ $(code_bytes "$other" "${offsets[@]}") == "$before" ]]
	code_bytes "$watched" "${offsets[@]}" | tee /dev/stderr | grep -q ' cc$' # the probes are in this process only
	local status=0
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID" || status=$?
	[[ $status == 0 || $status == 5 ]]
	[[ $(jq .loss.attempted "$(out mxbpf)") == 0 ]]
	kill -s CONT "$watched"
}

# bats test_tags=alone
@test "SIGKILL of mxbpf leaves no probe and no temporary file, and the target survives" {
	start_workload --tiny
	local links dir=$BATS_TEST_TMPDIR/dir
	mkdir "$dir"
	links=$(probe_links)
	[[ -z $(code_bytes "$WORKLOAD_PID" --changed) ]]
	start_mxbpf --pid "$WORKLOAD_PID" "${EVERYTHING[@]}" --trace "$dir/t.json"
	[[ -n $(code_bytes "$WORKLOAD_PID" --changed) ]]
	[[ $(probe_links) != "$links" ]]
	stop_pid "$MXBPF_PID" KILL
	# The kernel removes the probes after the last descriptor is closed, some grace periods after the exit.
	timeout 20 bash -c 'while [[ -n $("$@") ]]; do sleep 0.02; done' - \
		"$PYTHON" "$REPO/tests/code_bytes.py" "$WORKLOAD_PID" libmxnet.so --changed
	[[ -z $(ls -A "$dir") ]]
	no_new_links "$links"
	wait_new_line "$(out workload)" '^step' # the target survives
	stop_pid "$WORKLOAD_PID"
}

@test "Each probe that can be attached is on the first byte of an instruction, by another disassembler" {
	local seen
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" "${EVERYTHING[@]}"
	seen=$(code_bytes "$WORKLOAD_PID" --boundaries)
	echo "$seen"
	# Three unnamed functions of MXNet call the Python part of custom operators. Each has a start and an end probe.
	expect_re '^[6-9][0-9] changed, 6 in functions without a name, 0 within an instruction$' "$seen"
	wait_new_line "$(out workload)" '^step'
}

@test "SIGKILL of mxbpf record leaves a readable recording that says that it is incomplete" {
	shared_workload --tiny
	start_mxbpf record --pid "$WORKLOAD_PID" -o "$BATS_TEST_TMPDIR/r.mxd"
	timeout 20 bash -c 'until [[ $(stat -c %s "$0") -gt 1200000 ]]; do sleep 0.02; done' "$BATS_TEST_TMPDIR/r.mxd"
	stop_pid "$MXBPF_PID" KILL
	expect_run 0 --separate-stderr "$MXBPF" report --all "$BATS_TEST_TMPDIR/r.mxd"
	expect_re incomplete "$stderr"
	expect_re log_softmax "$output"
}

# Makes a copy of MXNet's library that the test may delete, replace or damage. The environment directs MXNet to it.
copy_library() {
	local lib
	lib=$("$PYTHON" -c 'import mxnet.libinfo as l; print(l.find_lib_path()[0])')
	cp "$lib" "$BATS_TEST_TMPDIR/libmxnet.so"
	export MXNET_LIBRARY_PATH=$BATS_TEST_TMPDIR/libmxnet.so LD_LIBRARY_PATH=${lib%/*} # next to openblas
}

@test "A library that was deleted on disk can be profiled" {
	copy_library
	start_workload --tiny
	rm "$BATS_TEST_TMPDIR/libmxnet.so"
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s --format json
	(($(count_of <(echo "$output") operator log_softmax) > 0))
}

@test "A library that was replaced on disk is probed in the file that is mapped" {
	copy_library
	start_workload --tiny
	cp "$BATS_TEST_TMPDIR/libmxnet.so" "$BATS_TEST_TMPDIR/new"
	mv "$BATS_TEST_TMPDIR/new" "$BATS_TEST_TMPDIR/libmxnet.so"
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s --format json
	(($(count_of <(echo "$output") operator log_softmax) > 0))
}

@test "A build with unknown structure offsets that its code does not show is refused" {
	TOY=$BATS_TEST_TMPDIR/toy
	cp -r "$O/toy" "$TOY"
	"$PYTHON" "$REPO/tests/versions/other_build.py" "$TOY/libmxnet.so"
	start_toy 20 2
	expect_error 3 'not verified for this build.*, and its code does not show' --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 1s
	[[ -z $output ]]
	start_mxbpf --pid "$READY_PID" --probes api,wait --api all --format json
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID"
	(($(count_of "$(out mxbpf)" MXNET_C_API MXNDArrayFree) > 0))
}

@test "Exceptions of operators, synchronous or not, reach the program as without mxbpf" {
	start_ready thrower "$PYTHON" "$REPO/tests/workload/mxnet_throw.py"
	start_mxbpf --pid "$READY_PID" --trace "$BATS_TEST_TMPDIR/t.json" --format json
	end_ready
	[[ $(tail -n 1 "$(out thrower)") == "caught 200 sync, 200 async" ]]
	[[ $(jq '.loss.dropped' "$(out mxbpf)") == 0 ]]
}

# bats test_tags=smoke
@test "The result of a job is bit-identical with mxbpf attached" {
	local args=(--tiny --steps 400 --seed 3 --print-result) plain
	start_bg plain "$PYTHON" "$REPO/tests/workload/mxnet_train.py" "${args[@]}"
	wait_exit "$BG_PID" 60
	plain=$(grep '^result ' "$(out plain)")
	start_workload "${args[@]}"
	kill -s STOP "$WORKLOAD_PID" # otherwise it may end before mxbpf attaches
	start_mxbpf --pid "$WORKLOAD_PID" "${EVERYTHING[@]}" --trace "$BATS_TEST_TMPDIR/t.json"
	end_pid "$WORKLOAD_PID" CONT 60
	wait_exit "$MXBPF_PID" 60
	[[ -n $plain && $(grep '^result ' "$(out workload)") == "$plain" ]]
}

@test "Twenty attaches and detaches during training have no effect" {
	local i links seen=0
	shared_workload --tiny
	links=$(probe_links)
	for i in {1..20}; do
		run --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 20ms --format json
		[[ $status == 0 || $status == 5 ]] || expect_status 0
		expect_re '^attached: ' "$stderr"
		((seen += status == 0)) || true
	done
	((seen))
	wait_new_line "$(out workload)" '^step' # the target survives
	no_new_links "$links"
}

@test "mxbpf works with a tiny RLIMIT_MEMLOCK that may not be raised" {
	shared_workload --tiny
	expect_run 0 --separate-stderr prlimit --memlock=65536:65536 setpriv --bounding-set=-sys_resource \
		"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 500ms --format json
	(($(count_of <(echo "$output") operator log_softmax) > 0))
}
