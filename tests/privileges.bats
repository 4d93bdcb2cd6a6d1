#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf limits itself: it has a seccomp filter, needs three capabilities, and can drop all privileges.

load helpers

setup() { root_setup; }

# The named line of /proc/PID/status, in all threads.
status_of() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/task/"*/status | sort -u; }

# read, bpf; ptrace, process_vm_writev, which load the agent; mount, which nothing needs.
CALLS=(0 321 101 311 165)

# limited ALLOWED ARGS...: the command has a filter in each of its threads, which allows these of CALLS. It ends at once.
limited() {
	local allowed=$1
	shift
	start_bg limited "$MXBPF" "$@"
	timeout 60 bash -c 'until grep -qs "^Seccomp:.2" "/proc/$0/status"; do [[ -e /proc/$0 ]] || exit 1; done' "$BG_PID" || {
		echo "no filter: mxbpf $*" >&2
		return 1
	}
	expect_same "$(status_of "$BG_PID" Seccomp)" 2
	expect_same "$(python3 "$REPO/tests/seccomp_allows.py" "$BG_PID" "${CALLS[@]}")" "$allowed"
	kill -s INT "$BG_PID"
	wait_exit "$BG_PID" || true
}

@test "Every command is limited by seccomp, in all its threads, and says so with --verbose" {
	start_ready toy "$O/toy/libtorch_cpu.so"
	local pid=$READY_PID
	start_mxbpf --verbose --probes op --pid "$pid"
	expect_re '^mxbpf: seccomp limits mxbpf to .* loads and attaches BPF programs$' "$(<"$(err mxbpf)")"
	expect_same "$(status_of "$MXBPF_PID" Seccomp)" 2
	expect_same "$(python3 "$REPO/tests/seccomp_allows.py" "$MXBPF_PID" "${CALLS[@]}")" '0 321'
	stop_pid "$MXBPF_PID" INT
	limited '0 321' record --probes op --pid "$pid" -o r.mxd
	limited '0 321' top --exact --batch --probes op --pid "$pid"
	limited '0 321' serve --listen none --textfile m.prom --probes op --pid "$pid"
	start_toy 1 1
	limited '0 321' now --duration 60s --pid "$READY_PID"
}

@test "A launched command has neither the filter of mxbpf nor its other limits" {
	"$MXBPF" --exact --verbose -- grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status >own 2>err || true
	expect_re '^mxbpf: seccomp limits mxbpf' "$(<err)"
	expect_same "$(grep -h -oE '(Seccomp|NoNewPrivs):.*' own err | tr -s '\t' ' ' | sort)" \
		"$(grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -s '\t' ' ' | sort)"
}

@test "--no-seccomp leaves mxbpf unlimited, and --agent leaves it the calls that load the agent; --verbose says so" {
	start_ready toy "$O/toy/libtorch_cpu.so"
	start_mxbpf --no-seccomp --verbose --probes op --pid "$READY_PID"
	expect_re '^mxbpf: seccomp does not limit mxbpf: --no-seccomp$' "$(<"$(err mxbpf)")"
	expect_same "$(status_of "$MXBPF_PID" Seccomp)" 0
	stop_pid "$MXBPF_PID" INT
	limited '0 321 101 311' --agent --wait --comm nothing
	"$MXBPF" --agent --verbose --pid "$READY_PID" -d 100ms 2>err || true
	expect_re '^mxbpf: seccomp limits mxbpf to .*; it loads the agent into other processes$' "$(<err)"
}

@test "serve refuses an agent that comes with a new configuration, because it has limited itself, and goes on" {
	echo 'probes = op' >conf
	start_ready toy "$O/toy/libtorch_cpu.so"
	start_bg serve "$MXBPF" serve --listen none --textfile m.prom --config conf --pid "$READY_PID"
	wait_line "$(err serve)" 'attached' "$BG_PID"
	printf 'probes = op\nagent\n' >conf
	kill -s HUP "$BG_PID"
	wait_line "$(err serve)" 'need another start.*the options stay as they were' "$BG_PID"
	stop_pid "$BG_PID" TERM
}

@test "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE suffice for sessions, record, top, now and list of another user's process" {
	[[ $("$MXBPF" check) == *"ok   uprobe_multi"* ]] || skip "perf uprobes need CAP_SYS_ADMIN"
	local caps=+bpf,+perfmon,+sys_ptrace
	local program
	program=$(for_others "$MXBPF")
	three() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps" --ambient-caps "$caps" "$program" "$@"; }
	mkdir -m 777 there
	cd there
	TOY=$(for_others "$O/toy")
	start_ready torch "$TOY/libtorch_cpu.so"
	local pid=$READY_PID
	three --exact --probes op --pid "$pid" -d 300ms -f json | jq -e '.tables.operator[] | select(.name == "aten::honest").count > 0'
	three record --quiet --probes op --pid "$pid" -d 300ms -o r.mxd
	"$MXBPF" report r.mxd -f json | jq -e '.tables.operator[] | select(.name == "aten::honest").count > 0'
	three top --batch --probes op --pid "$pid" -d 1100ms | grep -q 'aten::honest'
	three list | grep -q "^$pid "
	start_toy 1 1
	three now --pid "$READY_PID" -d 100ms | grep -q '^thread'
}

@test "--drop-privileges goes on without any capability, as the user of the process, and loses nothing" {
	mkdir -m 777 there
	cd there
	start_bg torch setpriv --reuid 65534 --regid 65534 --clear-groups "$(for_others "$O/toy/libtorch_cpu.so")"
	wait_line "$(out torch)" '^ready'
	local pid=$BG_PID
	start_mxbpf --drop-privileges --verbose --probes op --pid "$pid" --trace t.json --output tables.json
	wait_line "$(err mxbpf)" '^dropped all privileges; mxbpf goes on as user 65534$' "$MXBPF_PID"
	expect_same "$(status_of "$MXBPF_PID" CapPrm)" 0000000000000000
	expect_same "$(status_of "$MXBPF_PID" CapEff)" 0000000000000000
	expect_same "$(status_of "$MXBPF_PID" Uid | tr -s '\t' ' ')" '65534 65534 65534 65534'
	expect_same "$(status_of "$MXBPF_PID" Groups | tr -d ' ')" 65534
	expect_same "$(status_of "$MXBPF_PID" Seccomp)" 2
	wait_lines 1 "$(err mxbpf)" 'dropped'
	read -rt 0.3 <> <(:) || true # of the job
	stop_pid "$MXBPF_PID" INT
	jq -e '.tables.operator[] | select(.name == "aten::honest").count > 0' tables.json
	jq -e '.loss.dropped == 0' tables.json
	jq -e '[.traceEvents[] | select(.name == "aten::honest")] | length > 0' t.json
	mkdir -m 700 mine
	expect_run 4 --separate-stderr "$MXBPF" --exact --drop-privileges --probes op --pid "$pid" -d 100ms -o mine/o.json
	expect_re 'user 65534 could not write mine/o.json' "$stderr"
	[[ -z $(ls -A mine) ]]
	"$MXBPF" record --drop-privileges --probes op --pid "$pid" -d 200ms -o mine/r.mxd # it is open already
	"$MXBPF" report mine/r.mxd -f json | jq -e '.tables.operator[] | select(.name == "aten::honest").count > 0'
}

@test "--drop-privileges is refused where something is attached later" {
	local options
	for options in '--follow shared' '--iterations 3/9' '--agent' '--counters task-clock' '--job' '--trace-every 1s --trace t.json'; do
		# shellcheck disable=SC2086 # words
		expect_error 2 '--drop-privileges' --separate-stderr "$MXBPF" --drop-privileges --pid 1 $options
	done
	expect_run 2 --separate-stderr "$MXBPF" --drop-privileges -- true
	expect_run 2 --separate-stderr "$MXBPF" serve --drop-privileges
}
