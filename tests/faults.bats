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
}

@test "Whichever allocation of a session fails, the process goes on, no probe is left, and an error names the lack of memory" {
	local n count status before
	start_toy 60 3
	before=$(probe_links)
	session() { timeout 30 env FAIL_NTH="$1" FAIL_COUNT="$PWD/count" LD_PRELOAD="$PWD/fail_nth.so" "$MXBPF" -q -d 50ms --pid "$READY_PID" -f json; }
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
