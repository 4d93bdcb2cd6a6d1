#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Causes that are Python's own: the garbage collector, locks, threads that poll. docs/causes.md describes them.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "Python's garbage collector is named with the line that makes the objects, also in a late rank" {
	judge --seconds 4 collector rank_collects
}

@test "A thread that polls is named with its line, whether it sleeps in between or not" {
	judge --seconds 3 polling polling_spins
}

@test "In a server without iterations the interpreter lock and the lock of logging are named with their lines" {
	judge --seconds 3 gil_server lock_logging
}

# deadlock_of KIND JQ-CONDITION: mxbpf now finds what the program says.
deadlock_of() {
	start_ready locks "$PYTHON_TORCH" "$REPO/tests/now/deadlocks.py" "$1" >/dev/null
	"$MXBPF" now --pid "$READY_PID" -d 300ms -q --format json >now.json
	jq -e "(.deadlock // []) | $2" now.json >/dev/null || { jq .deadlock now.json >&2; return 1; }
	"$MXBPF" now --pid "$READY_PID" -d 300ms -q >now.txt
	[[ $1 = healthy ]] || grep -q '^deadlock of' now.txt
	[[ $1 != healthy ]] || run ! grep -q '^deadlock of' now.txt
	kill "$READY_PID"
}

@test "now names a deadlock: both locks, both threads by their names in Python, and the lines" {
	deadlock_of with '(map(.thread) | sort) == ["loading", "logging"] and (map(.lock) | sort) == ["first", "second"] and
		any(.line | test("deadlocks.py.*: reader")) and any(.line | test(": writer")) and all(.guessed | not)'
	deadlock_of acquire 'length == 2 and (map(.lock) | sort) == ["first", "second"] and all(.guessed)'
	deadlock_of self 'length == 1 and .[0].thread == "caching" and .[0].lock == "self.guard" and (.[0].held_line | test(": get$"))'
	deadlock_of healthy '. == []'
}
