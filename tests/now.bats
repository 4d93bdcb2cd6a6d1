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

# `mxbpf now` as JSON into $NOW.
now() {
	NOW=$BATS_TEST_TMPDIR/now.json
	"$MXBPF" now --pid "$1" --format json -q "${@:2}" >"$NOW"
}

# expect_now JQ-CONDITION: of the threads.
expect_now() {
	jq -e ".threads | $1" "$NOW" >/dev/null && return 0
	printf 'does not hold: %s\n' "$1" >&2
	jq -c '.threads[] | {tid, name, state, syscall, wchan, lock_held_by, open, last, python, stack: [.stack[]?.function]}' "$NOW" >&2
	return 1
}

# Whether each thread of a process that stands still has the very frames that gdb finds. MIN: so many frames in all at
# least. What gdb stops goes on.
same_as_gdb() {
	gdb -p "$1" -batch -nx -x "$REPO/tests/now/gdb_stacks.py" 2>/dev/null | sed -n 's/^STACKS //p' >"$BATS_TEST_TMPDIR/gdb.json"
	# Behind a call's last instruction another function may begin: mxbpf names the byte before.
	jq -S -c '[.threads[] | select(.still) | {key: (.tid | tostring),
		value: [.stack | to_entries[] | .value.address + (if .key > 0 then 1 else 0 end)]}] | from_entries' "$NOW" >"$BATS_TEST_TMPDIR/ours.json"
	jq -e --argjson min "$2" '[.[] | length] | add >= $min' "$BATS_TEST_TMPDIR/ours.json" >/dev/null
	diff <(jq -S . "$BATS_TEST_TMPDIR/gdb.json") <(jq -S . "$BATS_TEST_TMPDIR/ours.json") >&2
}

@test "a call that hung after the attach is found: its name, its age, the lock, who holds that, and the way it came" {
	start_hang
	start_bg now "$MXBPF" now --pid "$HANG_PID" --format json -d 10s
	wait_line "$(err now)" '^attached'
	hang
	stop_pid "$BG_PID" INT
	NOW=$(out now)
	expect_now "([.[] | select(.open != []) | .name] | sort) == [\"caller\", \"hang\"]"
	expect_now "[.[] | select(.name == \"caller\") | .open[].name] == [\"WaitForVar\", \"MXNDArrayWaitToRead\"]"
	expect_now ".[] | select(.open[0].name == \"gated\") | .state == \"S\" and .syscall == \"futex\" and
		.lock_held_by == $HANG_PID and any(.stack[]; .function == \"mxnet::engine::ThreadedEngine::ExecuteOprBlock\"
		and .call == \"operator.start\")"
	go_on
}

@test "one that hung before is found by its stack, which is gdb's" {
	start_hang
	hang
	now "$HANG_PID" -d 100ms
	expect_now "all(.[]; .open == [] and .still and .state == \"S\")"
	expect_now "any(.[]; .name == \"caller\" and any(.stack[]; .call == \"WaitForVar\" and .class == \"wait\"))"
	expect_now "any(.[]; .lock_held_by == $HANG_PID and any(.stack[]; .call == \"operator.start\"))"
	same_as_gdb "$HANG_PID" 20
	go_on
}
