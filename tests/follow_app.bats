#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --follow-app: the program's own calls of its profiler open and close the window.

load helpers

APP=$REPO/tests/marks/app.py

setup() { root_setup mxnet; }

# app ARGS...: starts the program, which waits for its first step.
app() {
	mkfifo steps
	exec 8<>steps
	start_ready app bash -c 'exec "$0" "$@" <steps' "$PYTHON" "$APP" "$@"
}

# steps FROM TO: lets the program make these steps one after the other.
steps() {
	local i
	for ((i = $1; i <= $2; i++)); do
		printf x >&8
		wait_line "$(out app)" "^$i did "
	done
}

end_all() {
	end_pid "$MXBPF_PID"
	printf x >&8
	wait_exit "$READY_PID"
}

# Operators that only a single step runs.
operators() { jq -c '[.tables.operator[].name | select(. != "DeleteVariable" and . != "WaitForVar")] | sort' "$1"; }

@test "The tables have exactly the operators between run and stop, without those in a pause" {
	app wrwpwuwdwswrw
	start_mxbpf --pid "$READY_PID" --follow-app --format json
	steps 0 12
	end_all
	# arccosh ran before the window, arctanh in the pause and expm1 after the stop.
	[[ $(operators "$(out mxbpf)") == '["arcsinh","cbrt","erf","gamma"]' ]]
	jq -e '([.instants[] | {(.what): .count}] | add) == {run: 2, stop: 1, pause: 1, resume: 1, dump: 1} and
		.window.paused_ns > 0 and .window.duration_ns > 0 and .loss.dropped == 0' "$(out mxbpf)"
	[[ $(grep -c '^resumed by the program' "$(err mxbpf)") == 3 ]]
	[[ $(grep -c '^paused by the program' "$(err mxbpf)") == 2 ]]
	grep -q '^waiting for the program' "$(err mxbpf)"
}

@test "A profiler that already runs counts as an open window, and a signal pauses that window, too" {
	app --running wwwsw
	start_mxbpf --pid "$READY_PID" --follow-app --format json
	steps 0 0
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	steps 1 1
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^resumed, ' "$MXBPF_PID"
	steps 2 4
	end_all
	[[ $(operators "$(out mxbpf)") == '["arccosh","arctanh"]' ]]
}

@test "A launched program is followed from its first call" {
	"$MXBPF" --follow-app --format json -- "$PYTHON" "$APP" --free wrwsw >report.json
	[[ $(operators report.json) == '["arcsinh"]' ]]
}

@test "--follow-app is refused where there is nothing to follow" {
	expect_error 2 '--probes leaves out; add mark to --probes' "$MXBPF" --pid $$ --follow-app --probes op
	expect_run 2 "$MXBPF" --pid $$ --follow-app --iterations 1/2
	torch_server
	expect_error 2 '--follow-app: PyTorch has no profiler that mxbpf can follow' "$MXBPF" --pid "$SERVER_PID" --follow-app
}
