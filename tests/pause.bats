#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SIGUSR1 pauses a session and SIGUSR2 resumes it. All numbers cover the time outside of the pause.

load helpers

setup() { root_setup mxnet; }

# pause_once ARGS...: runs a session with a pause of one or two seconds; its tables are in $(out mxbpf).
pause_once() {
	start_mxbpf --pid "$WORKLOAD_PID" "$@"
	wait_new_line "$(out workload)" '^step'
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step' # the job prints a line per second
	wait_new_line "$(out workload)" '^step'
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^resumed, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
}

@test "A pause is not in the window and in no duration, and is reported" {
	shared_workload --tiny
	pause_once --format json --trace "$BATS_TEST_TMPDIR/t.json"
	end_pid "$MXBPF_PID"
	# A span across the pause would be longer than the pause.
	jq -e '.window.paused_ns > 900000000 and .window.duration_ns > 0 and
		.loss.dropped == 0 and .loss.stored > 0 and
		([.tables[][] | .max_ns // 0] | max) < .window.paused_ns and .loss.unmatched < 100' "$(out mxbpf)"
	"$PYTHON" -m jsonschema -i "$(out mxbpf)" "$O/report.schema.json"
	# The trace has a gap as long as the pause, and no span in it or across it.
	jq -e --argjson paused "$(jq .window.paused_ns "$(out mxbpf)")" '.otherData.window.paused_ns == $paused and
		([.traceEvents[] | select(.ph == "X") | {b: .ts, e: (.ts + .dur)}] | sort_by(.b) |
		reduce .[] as $s ({e: .[0].e, gap: 0}; .gap = ([.gap, $s.b - .e] | max) | .e = ([.e, $s.e] | max)) |
		.gap * 1000 > $paused * 0.9)' "$BATS_TEST_TMPDIR/t.json"
}

@test "A call with an end probe of its own, like PyTorch's operators, does not end another call after a pause" {
	start_torch --tiny
	pause_once --format json
	end_pid "$MXBPF_PID"
	jq -e '.window.paused_ns > 900000000 and .loss.dropped == 0 and .loss.stored > 0 and .loss.unmatched < 100 and
		([.tables.operator[].max_ns] | max) < .window.paused_ns' "$(out mxbpf)"
}

@test "-d does not count a pause" {
	shared_workload --tiny
	# The signal is pending when the session starts. One sent later could miss the one-second window.
	start_bg mxbpf python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
os.execv(sys.argv[1], sys.argv[1:])' "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s --format json
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step' 3
	kill -s 0 "$MXBPF_PID"
	end_pid "$MXBPF_PID" USR2
	jq -e '.window.duration_ns >= 1000000000 and .window.paused_ns > 1000000000 and .loss.stored > 0' "$(out mxbpf)"
}

@test "A session that ends in a pause says so in tables and CSV, and signals that change nothing print nothing" {
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --all
	kill -s USR2 "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	kill -s USR1 "$MXBPF_PID"
	end_pid "$MXBPF_PID" TERM
	[[ $(grep -c '^paused\|^resumed' "$(err mxbpf)") == 1 ]]
	expect_re '^paused   .* not in the window' "$(<"$(out mxbpf)")"
	expect_re 'log_softmax' "$(<"$(out mxbpf)")"
}

@test "A recording keeps the time of its pauses" {
	shared_workload --tiny
	start_mxbpf record --pid "$WORKLOAD_PID" -o "$BATS_TEST_TMPDIR/r.mxd"
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^resumed, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
	end_pid "$MXBPF_PID"
	"$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --format json | jq -e '.window.paused_ns > 0'
	"$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --format csv |
		grep -qE "^\"window\",\"paused\",,,$("$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --format json | jq .window.paused_ns),"
}
