#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf watches, shows and lists a process whatever its state, or says why not, and always ends.
load helpers

setup() {
	need_root
	cd "$BATS_TEST_TMPDIR"
}

# `timeout` would wait for ever for an mxbpf that waits in the kernel. The process that holds it up ends first.
ends() { # SECONDS MXBPF_ARGS...
	start_bg mxbpf "$MXBPF" "${@:2}"
	status=0
	wait_exit "$BG_PID" "$1" || status=$?
	output=$(<"$(out mxbpf)") stderr=$(<"$(err mxbpf)")
	((status != 124)) || { kill -s KILL "$READY_PID" && echo "hangs: ${*:2}" && return 1; }
}

@test "A library in a file system that does not answer is refused, and holds up neither list nor a session" {
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o stuck.so "$REPO/tests/faults/stuck.c"
	: >libtorch_cpu.so
	start_ready stuck env LD_PRELOAD="$PWD/stuck.so" STUCK=texts STUCK_AT="$PWD/libtorch_cpu.so" sleep 1000
	ends 20 list
	expect_re "^ *$READY_PID +sleep .* no: unreadable +libtorch_cpu\.so" "$output"
	ends 20 --pid "$READY_PID" -d 100ms
	expect_status 3
	expect_re 'its file system does not answer' "$stderr"
	ends 20 now --pid "$READY_PID"
}

@test "A process with a thread in uninterruptible sleep is watched and shown, and the thread waits on" {
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o stuck.so "$REPO/tests/faults/stuck.c"
	: >file
	start_ready stuck env LD_PRELOAD="$PWD/stuck.so" STUCK=sleep STUCK_AT="$PWD/file" "$O/toy/toy" 20 2
	kill -s USR2 "$READY_PID"
	timeout 20 bash -c 'until [[ $(ps -L -o stat= -p "$0") == *D* ]]; do :; done' "$READY_PID"
	ends 20 now --pid "$READY_PID" -f json
	jq -e '[.threads[] | select(.state == "D")] | length == 1' <<<"$output"
	start_mxbpf --pid "$READY_PID" --api all --sched -f json
	kill -s USR1 "$READY_PID"
	wait_line "$(out stuck)" '^{' "$READY_PID" # it cannot end, but has made all of its calls
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID" 20
	same_counts "$(out stuck)" "$(out mxbpf)"
}
