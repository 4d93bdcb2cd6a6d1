#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A PyTorch job is never harmed: a return probe on a frame that an exception leaves would kill it.

load helpers

# Forty attaches take longer than the default.
export BATS_TEST_TIMEOUT=300

setup() { root_setup torch; }

result_of() { # FILE
	grep '^result ' "$1"
}

@test "The job survives every exception that it catches, and then computes as without mxbpf" {
	local name
	torch_server
	for name in plain watched; do
		start_ready "$name" "${SERVED[@]}" "$REPO/tests/workload/torch_throw.py"
		[[ $name == plain ]] || start_mxbpf --pid "$READY_PID" --trace "$BATS_TEST_TMPDIR/t.json" --format json
		end_pid "$READY_PID" USR1 100
	done
	wait_exit "$MXBPF_PID" 60
	expect_re '^caught 1275 of 1275$' "$(<"$(out watched)")"
	[[ $(result_of "$(out watched)") == "$(result_of "$(out plain)")" ]]
	jq -e '.loss | del(.attempted, .stored) | add == 0' "$(out mxbpf)"
}

@test "The result of a job is bit-identical with mxbpf attached" {
	local args=(--tiny --steps 300 --seed 3 --print-result) optimizer
	for optimizer in sgd adam-fused; do
		torch_server
		start_ready plain "${SERVED[@]}" "$REPO/tests/workload/torch_train.py" "${args[@]}" --optimizer "$optimizer"
		wait_exit "$READY_PID" 100
		start_torch "${args[@]}" --optimizer "$optimizer"
		kill -s STOP "$WORKLOAD_PID" # otherwise it may end before mxbpf attaches
		start_mxbpf --pid "$WORKLOAD_PID" --trace "$BATS_TEST_TMPDIR/t.json"
		end_pid "$WORKLOAD_PID" CONT 100
		wait_exit "$MXBPF_PID" 60
		[[ $(result_of "$(out workload)") == "$(result_of "$(out plain)")" ]]
	done
}

# Several sessions run at once, so attaches and detaches overlap. A short window may have no events (status 5), or none that
# --ops selects (status 3).
attach_often() { # PID TIMES OPTION...
	local i status
	for ((i = 0; i < $2; i++)); do
		status=0
		"$MXBPF" --exact --pid "$1" -d 20ms --format json "${@:3}" >/dev/null || status=$?
		[[ $status =~ ^[035]$ ]] || { echo "session $i ended with $status"; return 1; }
	done
}

# The window lasts as long as the job needs for two iterations.
sees_iterations() { # PID
	"$MXBPF" --pid "$1" --iterations 2 --format json >"$BATS_TEST_TMPDIR/seen.json"
	jq -e '.window.sampled_iterations == 2 and .loss.dropped == 0' "$BATS_TEST_TMPDIR/seen.json"
}

@test "Twenty-four attaches and detaches during training have no effect" {
	local i links pids=()
	links=$(probe_links)
	# The job trains from the same seed repeatedly and fails if a result differs.
	start_torch --tiny --steps 50 --repeat
	for i in 1 2; do # with all probes, and with a few hundred
		attach_often "$WORKLOAD_PID" 6 3>&- &
		pids+=($!)
		attach_often "$WORKLOAD_PID" 6 --ops '*mm*,*add*,*relu*' 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
	sees_iterations "$WORKLOAD_PID"
	stop_pid "$WORKLOAD_PID"
	wait_exit "$WORKLOAD_PID"
	expect_re '^equal [1-9][0-9]+$' "$(<"$(out workload)")"
	no_new_links "$links"
}

# The kernel leaves probes behind if the thread that attaches or removes them is being killed.
killed_in() { # PHASE TIMES: a job that start_torch started
	python3 "$REPO/tests/safety/killed.py" "$MXBPF" "$WORKLOAD_PID" "$2" "$1" >"$1" 3>&-
	cat "$1"
	grep -qE '^sites [1-9][0-9]{3} left 0$' "$1"
	[[ $(grep -c '^killed left 0$' "$1") == "$2" ]]
}

# Alone, because a session of several processes puts probes into every process that has mapped the library.
# bats test_tags=alone
@test "SIGKILL of mxbpf or its group in the middle of an attach or a detach leaves no breakpoint; of all its processes none after the next session" {
	cd "$BATS_TEST_TMPDIR"
	start_torch --tiny
	killed_in attach 2
	killed_in detach 2
	killed_in group 1
}

@test "Attaches and detaches while exceptions unwind probed frames have no effect" {
	torch_server
	start_ready thrower "${SERVED[@]}" "$REPO/tests/workload/torch_throw.py" --repeat
	kill -s USR1 "$READY_PID"
	attach_often "$READY_PID" 6
	sees_iterations "$READY_PID"
	stop_pid "$READY_PID"
	wait_exit "$READY_PID"
	expect_re '^caught ([1-9][0-9]+) of \1$' "$(<"$(out thrower)")"
}

@test "What mxbpf needs only while it attaches does not stay in its memory" {
	start_torch --tiny
	start_mxbpf --pid "$WORKLOAD_PID"
	own=$(awk '/^RssAnon/ { print $2 }' "/proc/$MXBPF_PID/status") # kB; BPF maps are not in it
	echo "$own kB"
	((own < 16000)) # 8,000 here; 51,000 if it stays
	stop_pid "$MXBPF_PID" INT
}

# The agent comes along into forked children.
@test "A process ends as it would alone, in every way that a program can end, with probes and with the agent" {
	cd "$BATS_TEST_TMPDIR"
	local name
	for name in plain probes agent; do
		start_ready "$name" "$PYTHON_TORCH" "$REPO/tests/workload/torch_ends.py"
		case $name in
		probes) start_mxbpf --pid "$READY_PID" --format json ;;
		agent) start_mxbpf --pid "$READY_PID" --agent --probes op --format json ;;
		esac
		end_pid "$READY_PID" USR1 100
		[[ $name == plain ]] || wait_exit "$MXBPF_PID" 60
		tail -n +2 "$(out "$name")" >"$name.ends"
		expect_same "$(<plain.ends)" "$(<"$name.ends")"
		[[ $name == plain ]] || jq -e 'first(.tables.operator[] | select(.name == "aten::mm")).count >= 50' "$(out mxbpf)"
	done
	expect_same "$(awk '{ print $2 }' plain.ends | xargs)" '0 3 4 1 -15 -6 0 6 0'
}
