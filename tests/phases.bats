#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C, or the end of the target, while mxbpf plans, loads, attaches, waits and writes. bpftrace stops a copy of mxbpf
# at the start of each phase, so that the timing does not depend on the machine.
load helpers

# The first function of each phase, in order.
PHASES=(plan_make att_load att_attach ses_wait cmd_print_tables cmd_write_trace)

setup_file() {
	[[ $(id -u) == 0 ]] && command -v bpftrace >/dev/null || return 0
	local phase script='BEGIN { printf("armed\n"); }'
	cp "$MXBPF" "$BATS_FILE_TMPDIR/phases" # a copy, because bpftrace stops every process that runs the file
	for phase in "${PHASES[@]}"; do
		script+="uprobe:$BATS_FILE_TMPDIR/phases:$phase { signal(\"SIGSTOP\"); }"
	done
	bpftrace --unsafe -e "$script" >"$BATS_FILE_TMPDIR/bpftrace.out" 3>&- &
	echo $! >"$BATS_FILE_TMPDIR/bpftrace.pid"
	wait_line "$BATS_FILE_TMPDIR/bpftrace.out" '^armed$' $!
}

teardown_file() {
	# bpftrace may miss a signal just before it waits, so KILL ends it. The kernel removes its probes.
	[[ ! -f $BATS_FILE_TMPDIR/bpftrace.pid ]] || kill -s KILL "$(<"$BATS_FILE_TMPDIR/bpftrace.pid")"
}

setup() {
	need_root
	command -v bpftrace >/dev/null || skip "bpftrace is not installed"
	mkdir "$BATS_TEST_TMPDIR/here" && cd "$BATS_TEST_TMPDIR/here" || return 1
	start_toy 20 2 # calls nothing until it gets a signal
	AT=-1
}

# Waits until the last started mxbpf has stopped; fails if it has ended. SIGCONT clears the stop at once.
stopped() {
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(ps -o stat= -p "$0") == [TZ]* || ! -d /proc/$0 ]]; do sleep 0.02; done' "$BG_PID"
	[[ $(ps -o stat= -p "$BG_PID") == T* ]]
}

# go_to PHASE: lets mxbpf run until it stops there.
go_to() {
	until ((AT >= 0)) && [[ ${PHASES[AT]} == "$1" ]]; do
		((AT < 0)) || kill -s CONT "$BG_PID"
		AT=$((AT + 1))
		stopped || { cat "$(err mxbpf)" && return 1; }
	done
}

# start_to PHASE ARGS...: starts mxbpf, which stops there.
start_to() {
	start_bg mxbpf "$BATS_FILE_TMPDIR/phases" "${@:2}"
	AT=-1
	go_to "$1"
}

# Lets mxbpf run to its end.
run_on() {
	while stopped; do
		kill -s CONT "$BG_PID"
	done
	status=0
	wait_exit "$BG_PID" || status=$?
}

@test "Ctrl-C works in every phase, also if the shell started mxbpf with INT ignored" {
	local phase
	for phase in plan_make att_load att_attach; do
		start_to $phase --pid "$READY_PID" -o t.json --trace t.trace.json
		kill -s INT "$BG_PID"
		run_on
		[[ $status == 5 ]]
		expect_re '^mxbpf: interrupted before recording began; no event was recorded$' "$(<"$(err mxbpf)")"
		[[ -z $(ls) ]]
	done
}

@test "A second Ctrl-C reports what was written and what was not" {
	start_to ses_wait --pid "$READY_PID" -o tables.json --trace t.json
	kill -s INT "$BG_PID" # ends the window
	go_to cmd_print_tables
	kill -s INT "$BG_PID"
	run_on
	[[ $status == 130 ]]
	expect_re '^mxbpf: aborted; not written: tables.json, t.json$' "$(<"$(err mxbpf)")"
	[[ -z $(ls) ]]

	start_to ses_wait record --pid "$READY_PID" -o job.mxd --trace t.json
	kill -s INT "$BG_PID"
	go_to cmd_print_tables # record prints no tables; it writes its trace here
	kill -s INT "$BG_PID"
	run_on
	[[ $status == 130 ]]
	expect_re '^mxbpf: aborted; not written: t.json; job.mxd is complete$' "$(<"$(err mxbpf)")"
	[[ $(ls) == job.mxd ]]
	"$MXBPF" report job.mxd -f json | jq -e '.window.incomplete | not'
}

@test "The first Ctrl-C aborts nothing, also if the window has just ended by itself" {
	start_to cmd_write_trace --pid "$READY_PID" -d 100ms -o tables.json --trace t.json
	kill -s INT "$BG_PID"
	run_on
	[[ $status == 5 ]] # the toy called nothing
	expect_re '^mxbpf: writing the results; another Ctrl-C aborts$' "$(<"$(err mxbpf)")"
	jq -e '.loss.attempted == 0' tables.json
	jq -e .traceEvents t.json
}

@test "A target that is killed in any phase gives exit code 5 with no events" {
	local phase
	for phase in plan_make att_attach ses_wait; do
		start_toy 20 2
		start_to $phase --exact --pid "$READY_PID"
		kill -s KILL "$READY_PID"
		wait_gone "$READY_PID"
		run_on
		[[ $status == 5 ]]
		expect_re 'no event was recorded' "$(<"$(err mxbpf)")"
	done
}

@test "A target that calls exec between the plan and the window is never probed at the old addresses, and runs on" {
	local phase
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o ../turns.so "$REPO/tests/faults/turns.c"
	for phase in plan_make att_load att_attach ses_wait; do
		start_ready turns env LD_PRELOAD="$BATS_TEST_TMPDIR/turns.so" "$O/toy/toy" 20 2 >/dev/null
		start_to $phase --exact --pid "$READY_PID" -d 200ms
		kill -s USR2 "$READY_PID" # it becomes sleep
		timeout "$WAIT_SECONDS" bash -c 'until [[ $(<"/proc/$0/comm") == sleep ]]; do sleep 0.02; done' "$READY_PID"
		run_on
		echo "$phase: status $status: $(tail -n 1 "$(err mxbpf)")"
		[[ $status == [35] ]]
		[[ $(ps -o stat= -p "$READY_PID") == S* ]]
		stop_pid "$READY_PID"
	done
}

@test "A library that is overwritten in place, or cut, between the plan and the window gets no probe" {
	local phase before
	TOY=$BATS_TEST_TMPDIR/toy
	before=$(probe_links)
	for phase in att_load att_attach; do
		rm -rf "$TOY" && cp -r "$O/toy" "$TOY" && cp "$TOY/libmxnet.so" ../whole
		start_toy 20 2
		start_to $phase --exact --pid "$READY_PID" -d 200ms
		dd if=../whole of="$TOY/libmxnet.so" conv=notrunc status=none # the same bytes: only a probe would harm the toy
		run_on
		echo "$phase: status $status: $(tail -n 1 "$(err mxbpf)")"
		[[ $status == 3 ]]
		expect_re 'libmxnet.so was overwritten in place while mxbpf attached to it: restart the job' "$(<"$(err mxbpf)")"
		end_pid "$READY_PID" USR1
	done
	start_toy 20 2
	start_to ses_wait --exact --pid "$READY_PID" -d 200ms
	: >"$TOY/libmxnet.so" # the toy has no code now
	run_on
	[[ $status == 5 ]]
	[[ $(ps -o stat= -p "$READY_PID") == S* ]]
	no_new_links "$before"
}
