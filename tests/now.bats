#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a job does at this moment: calls that are open when a window ends, and their threads. The ground truth is /proc's,
# and the programs' own.

load helpers

setup() {
	need_root
}

teardown() { kill_started; }

# A program that hangs: HANG_PID.
start_hang() {
	start_ready hang "$O/toy/hang" >/dev/null
	HANG_PID=$READY_PID
}

hang() {
	kill -USR1 "$HANG_PID"
	wait_line "$(out hang)" '^hung$'
}

# It goes on as if nothing had been, and did what it does without mxbpf.
go_on() {
	kill -USR2 "$HANG_PID"
	wait_exit "$HANG_PID"
	jq -e '.operator.gated == 1 and ."Engine wait".WaitForVar == 1' <(tail -n 1 "$(out hang)") >/dev/null
}

# STATES that the three open calls have, from JSON.
expect_open() {
	jq -e --arg hang "$HANG_PID" '
		([.open[] | .name] | sort) == ["MXNDArrayWaitToRead", "WaitForVar", "gated"] and
		all(.open[]; .state == "S" and .syscall == "futex" and .open_ns > 0 and .pid == ($hang | tonumber)) and
		([.open[] | select(.name != "gated") | .thread_name] | unique) == ["caller"]' "$1" >/dev/null && return 0
	jq -c '.open' "$1" >&2
	return 1
}

@test "calls that hang when the window ends are told with their age, thread, state and system call" {
	start_hang
	start_mxbpf --pid "$HANG_PID" --format json
	hang
	stop_pid "$MXBPF_PID" INT
	expect_open "$(out mxbpf)"
	[[ $(cat "/proc/$HANG_PID/task/$(jq '.open[0].thread' "$(out mxbpf)")/wchan") == $(jq -r '.open[0].wchan' "$(out mxbpf)") ]]
	go_on
}

@test "so they are at each interval, older each time" {
	start_hang
	start_mxbpf --pid "$HANG_PID" --format json --interval 300ms
	hang
	wait_new_line "$(out mxbpf)" '"open":'
	wait_new_line "$(out mxbpf)" '"open":'
	stop_pid "$MXBPF_PID" INT
	expect_open <(tail -n 1 "$(out mxbpf)")
	jq -s -e '[.[] | select(.open) | .open[0].open_ns] | length >= 3 and . == (unique)' "$(out mxbpf)"
	go_on
}

@test "so they are in a recording: in its tables, its CSV, and begun in its timeline" {
	local rec=$BATS_TEST_TMPDIR/hang.mxd
	start_hang
	start_mxbpf record --pid "$HANG_PID" -o "$rec"
	hang
	stop_pid "$MXBPF_PID" INT
	expect_open <("$MXBPF" report "$rec" --format json)
	[[ $("$MXBPF" report "$rec" --format csv | grep -c '^"open",.*,"sleeping","futex: ') == 3 ]]
	"$MXBPF" export "$rec" -o - | jq -e '[.traceEvents[] | select(.ph == "B") | .name] | sort ==
		["MXNDArrayWaitToRead", "WaitForVar", "gated"]'
	go_on
}

@test "a window in which nothing is open for long has no table of it" {
	start_toy 20 1
	start_mxbpf --pid "$READY_PID"
	kill -USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
	! grep -q 'still open' "$(out mxbpf)"
}
