#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "why slow" for a part of a program that is slow once, for a known reason (tests/workload/torch_slow.py).
load helpers

setup() { root_setup torch; }

# slow REASON [MXBPF-OPTION...]: runs the program, with the report in mxbpf.out. For "preempted" a process named hog takes its
# CPU. Real-time priority keeps other processes from being the reason.
slow() {
	local reason=$1 pid
	shift
	torch_server
	start_ready part "${SERVED[@]}" "$REPO/tests/workload/torch_slow.py" "$reason" >/dev/null
	pid=$READY_PID
	taskset -a -c -p 1 "$pid"
	chrt -a -f -p 5 "$pid"
	start_mxbpf --pid "$pid" -f json "$@"
	kill -USR1 "$pid"
	wait_line part.out '^usual' "$pid"
	if [[ $reason == preempted ]]; then
		start_bg hog chrt -f 6 taskset -c 1 "$O/prog/hog"
		wait_line hog.out '^on' "$BG_PID"
	fi
	kill -USR1 "$pid"
	wait_line part.out '^done' "$pid"
	stop_pid "$MXBPF_PID"
	stop_pid "$pid"
}

# The slowest call is the slow part, and the condition holds for it. A hypervisor may steal as much time from any other call,
# which then "computed".
worst() { # JQ-CONDITION
	jq -e "[.slow[] | select(.cause != \"computed\")][0] | .name == \"part\" and ($1)" mxbpf.out >/dev/null && return 0
	jq -c '.slow[:3][]' mxbpf.out >&2
	return 1
}

@test "A call preempted by a busy process on its CPU is reported with the time and the process" {
	slow preempted --sched
	# The two values have different sources: context switches that BPF sees, and the kernel's sum for the thread.
	worst '.cause == "runnable" and .account.nivcsw > 0 and .kept_by.comm == "hog" and .kept_by.ns <= 1.01 * .account.runq_ns'
	worst '.why | test("^preempted .*, [0-9.]+ ms by hog \\([0-9]+\\) on CPU 1$")'
}

@test "A preempted call is reported without --sched, too, but without the other process" {
	slow preempted
	worst '.cause == "runnable" and (.why | test("^preempted [0-9.]+ ms \\([0-9a-z ]+\\)$")) and .kept_by == null'
}

@test "A call slowed by a lock is reported with the thread that owns it" {
	slow lock --sched
	worst '.cause == "blocked" and .slept.what == "futex" and (.why | test("for a lock \\(futex\\), until .* woke it$"))'
	worst '.slept.comm | test("python")'
}

@test "A call slowed by an uncached file is reported as a wait for the disk" {
	slow read --sched
	worst '.cause == "blocked" and .slept.what == "io" and (.why | test("for a disk"))'
}

@test "A call slowed by freshly mapped memory is reported with its page faults" {
	slow faults
	worst '.cause == "faulted" and .account.minflt >= 16384 and (.why | test("with 16,[0-9]{3} page faults$"))'
}
