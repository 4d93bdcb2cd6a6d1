#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What mxbpf itself is allowed to do: its seccomp filter, and the privileges that it drops.

load helpers

setup() {
	need_root
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	kill_started
	park_jobs
}

# The named line of /proc/PID/status, in all threads.
status_of() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/task/"*/status | sort -u; }

# limited ARGS...: the command runs with a filter in each of its threads. It ends at once.
limited() {
	start_bg limited "$MXBPF" "$@"
	timeout 60 bash -c 'until grep -qs "^Seccomp:.2" "/proc/$0/status"; do [[ -e /proc/$0 ]] || exit 1; done' "$BG_PID" || {
		echo "no filter: mxbpf $*" >&2
		return 1
	}
	expect_same "$(status_of "$BG_PID" Seccomp)" 2
	kill -s INT "$BG_PID"
	wait_exit "$BG_PID" || true
}

@test "Every command is limited by seccomp, in all its threads, and says so with --verbose" {
	start_ready toy "$O/toy/libtorch_cpu.so"
	local pid=$READY_PID
	start_mxbpf --verbose --probes op --pid "$pid"
	expect_re '^mxbpf: seccomp limits mxbpf to .* loads and attaches BPF programs$' "$(<"$(err mxbpf)")"
	expect_same "$(status_of "$MXBPF_PID" Seccomp)" 2
	stop_pid "$MXBPF_PID" INT
	limited record --probes op --pid "$pid" -o r.mxd
	limited top --batch --probes op --pid "$pid"
	limited serve --listen none --textfile m.prom --probes op --pid "$pid"
	start_toy 1 1
	limited now --duration 60s --pid "$READY_PID"
}

@test "A launched command has neither the filter of mxbpf nor its other limits" {
	"$MXBPF" --verbose -- grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status >own 2>err || true
	expect_re '^mxbpf: seccomp limits mxbpf' "$(<err)"
	expect_same "$(grep -h -oE '(Seccomp|NoNewPrivs):.*' own err | tr -s '\t' ' ' | sort)" \
		"$(grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -s '\t' ' ' | sort)"
}

@test "--no-seccomp and --agent leave mxbpf unlimited, and say so with --verbose" {
	start_ready toy "$O/toy/libtorch_cpu.so"
	start_mxbpf --no-seccomp --verbose --probes op --pid "$READY_PID"
	expect_re '^mxbpf: seccomp does not limit mxbpf: --no-seccomp$' "$(<"$(err mxbpf)")"
	expect_same "$(status_of "$MXBPF_PID" Seccomp)" 0
	stop_pid "$MXBPF_PID" INT
	"$MXBPF" --agent --verbose --pid "$READY_PID" -d 100ms 2>err || true
	expect_re '^mxbpf: seccomp does not limit mxbpf: with --agent' "$(<err)"
}
