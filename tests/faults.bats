#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Faults within mxbpf itself: it never ends by a signal, and never says that a file is wrong when it is not.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o fail_nth.so "$REPO/tests/faults/fail_nth.c"
	RECORDING=$REPO/tests/golden/real.mxd
}

# Each of POINTS allocations of the command fails in another run of it.
lacks() { # POINTS COMMAND...
	run "$REPO/tests/faults/lack.sh" "$PWD/fail_nth.so" "$1" "$MXBPF" "${@:2}"
	[[ -z $output ]] || echo "$output"
	expect_status 0
}

@test "Whichever allocation of report, export or diff fails, the result is the same or an error names the lack of memory" {
	lacks 60 report "$RECORDING"
	lacks 40 report "$RECORDING" --all --format json
	lacks 40 report "$RECORDING" --format csv
	lacks 40 export "$RECORDING" -f chrome -o -
	lacks 40 export "$RECORDING" -f pftrace -o -
	lacks 40 diff "$RECORDING" "$RECORDING"
	lacks 20 report "$RECORDING" --layout mxnet
	lacks 20 report "$RECORDING" --layout torch
	lacks 150 export "$RECORDING" -o x.arrow
}

@test "Whichever system call of report, export or diff fails, the result is the same or the failure is told, and no file is called damaged" {
	make -s -C "$REPO" O="$O" static
	run "$REPO/tests/faults/calls.sh" "$O/mxbpf-static" report "$RECORDING" --format json
	[[ -z $output ]] || echo "$output"
	expect_status 0
	run "$REPO/tests/faults/calls.sh" "$O/mxbpf-static" export "$RECORDING" -f chrome -o -
	[[ -z $output ]] || echo "$output"
	expect_status 0
	run "$REPO/tests/faults/calls.sh" "$O/mxbpf-static" export "$RECORDING" -o x.arrow
	[[ -z $output ]] || echo "$output"
	expect_status 0
	run "$REPO/tests/faults/calls.sh" "$O/mxbpf-static" diff "$RECORDING" "$RECORDING"
	[[ -z $output ]] || echo "$output"
	expect_status 0
}

@test "Whichever allocation of a session fails, the process goes on, no probe is left, and an error names the lack of memory" {
	local n count status before
	start_toy 60 3
	before=$(probe_links)
	session() { timeout 30 env FAIL_NTH="$1" FAIL_COUNT="$PWD/count" LD_PRELOAD="$PWD/fail_nth.so" "$MXBPF" --exact -q -d 50ms --pid "$READY_PID" -f json; }
	session 0 >/dev/null 2>err || (($? == 5)) # the toy may have called nothing
	count=$(<count)
	for ((n = 1; n < count; n += count / 30)); do
		status=0
		session "$n" >out 2>err || status=$?
		echo "allocation $n of $count: status $status: $(tail -n 1 err)"
		kill -0 "$READY_PID"
		((status == 0 || status == 5)) || { ((status <= 4)) && grep -Eq 'memory' err; }
	done
	no_new_links "$before"
}

@test "With too few descriptors a session names the lack of them, the process goes on, and no probe is left" {
	local n backend status before ended=
	start_toy 60 3
	before=$(probe_links)
	for n in {4..8} 12 20 40 64 {90..150..10} 200 400; do
		for backend in uprobe_multi perf; do
			status=0
			timeout 30 prlimit --nofile="$n:$n" "$MXBPF" --exact -q -d 50ms --backend "$backend" --pid "$READY_PID" -f json >out 2>err || status=$?
			echo "$n descriptors, $backend: status $status: $(tail -n 1 err)"
			kill -0 "$READY_PID"
			((status == 0 || status == 5)) && ended+=" $backend" && continue
			((status <= 4)) && grep -Eq 'error: .*Too many open files' err
		done
	done
	[[ $ended == *uprobe_multi*perf* ]] # the most of these were enough
	no_new_links "$before"
}

@test "A process with 60,000 mappings, and one with 5,000 threads, are watched, shown and listed as any other" {
	local what status
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o many.so "$REPO/tests/faults/many.c"
	for what in MANY_MAPS=60000 MANY_THREADS=5000; do
		start_ready "$what" env LD_PRELOAD="$PWD/many.so" "$what" "$O/toy/toy" 60 3 >/dev/null
		status=0
		timeout 60 "$MXBPF" --exact -q -d 100ms --sched --pid "$READY_PID" -f json >out 2>err || status=$?
		((status == 0 || status == 5)) || { cat err && return 1; }
		timeout 60 "$MXBPF" now --pid "$READY_PID" -f json >"$what.json"
		timeout 60 "$MXBPF" list >list
		expect_re "^ *$READY_PID +toy " "$(<list)"
		stop_pid "$READY_PID" TERM || true
	done
	jq -e '.threads | length == 5001' MANY_THREADS=5000.json
}
