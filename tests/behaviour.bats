#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Start and end of a session, and its messages when something is wrong.

load helpers

setup() { root_setup mxnet; }

teardown() {
	[[ ! -d $BATS_TEST_TMPDIR/small ]] || umount -l "$BATS_TEST_TMPDIR/small" 2>/dev/null || true
	kill_started
	park_jobs
}

# A complete session has tables on stdout and a complete trace, and both have the loss.
expect_complete() {
	expect_re '^ *operator' "$(<"$(out mxbpf)")"
	expect_re 'log_softmax' "$(<"$(out mxbpf)")"
	expect_re '^loss +0 dropped' "$(<"$(out mxbpf)")"
	jq -e '.traceEvents | length > 100' "$BATS_TEST_TMPDIR/t.json" >/dev/null
	[[ $(ls "$BATS_TEST_TMPDIR" | grep -c 't\.json') == 1 ]]
}

@test "-d ends the session with complete outputs and exit code 0" {
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --all -d 1500ms --trace "$BATS_TEST_TMPDIR/t.json"
	wait_exit "$MXBPF_PID"
	expect_complete
}

end_by_signal() {
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --all --trace "$BATS_TEST_TMPDIR/t.json"
	wait_new_line "$(out workload)" '^step' # the job prints a line per second and makes many steps in between
	wait_new_line "$(out workload)" '^step'
	kill -s "$1" "$MXBPF_PID"
	wait_exit "$MXBPF_PID"
	expect_complete
}

@test "Ctrl-C ends the session with complete outputs and exit code 0" {
	# A shell without job control starts background jobs with SIGINT ignored. mxbpf handles it nevertheless.
	end_by_signal INT
}

@test "SIGTERM ends the session with complete outputs and exit code 0" {
	end_by_signal TERM
}

@test "SIGHUP ends the session with complete outputs and exit code 0" {
	end_by_signal HUP
}

@test "The exit of the target ends the session with complete outputs and exit code 0" {
	start_workload --tiny --steps 400
	kill -s STOP "$WORKLOAD_PID" # otherwise it may end before mxbpf attaches
	start_mxbpf --pid "$WORKLOAD_PID" --all --trace "$BATS_TEST_TMPDIR/t.json"
	kill -s CONT "$WORKLOAD_PID"
	wait_exit "$MXBPF_PID" 60
	expect_complete
}

@test "SIGKILL of the target ends the session with complete outputs and exit code 0" {
	start_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --all --trace "$BATS_TEST_TMPDIR/t.json"
	wait_line "$(out workload)" '^step' "$WORKLOAD_PID"
	kill -s KILL "$WORKLOAD_PID"
	wait_exit "$MXBPF_PID"
	expect_complete
	expect_re "^process $WORKLOAD_PID has ended\$" "$(<"$(err mxbpf)")"
}

@test "A stopped or traced target is reported at attach and at the end, with its tracer and exit code 5" {
	start_ready idle "$O/toy/toy" 20 2
	kill -s STOP "$READY_PID"
	expect_run 5 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 200ms
	[[ $(grep -c "process $READY_PID (toy) is stopped by a signal.*kill -CONT $READY_PID" <<<"$stderr") == 2 ]]
	expect_re 'no event was recorded in 0.2 s: process .* is stopped' "$stderr"
	kill -s CONT "$READY_PID"
	start_bg gdb gdb -q -batch -p "$READY_PID" -ex 'shell echo ready 1' -ex 'shell sleep 1000'
	wait_line "$(out gdb)" '^ready 1$' "$BG_PID"
	expect_run 5 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 200ms
	[[ $(grep -c "process $READY_PID (toy) is stopped by its tracer, gdb (pid $BG_PID)" <<<"$stderr") == 2 ]]
	pkill -P "$BG_PID"
}

@test "SIGHUP under nohup does not end the session, and Ctrl-C does" {
	start_toy 20 2
	start_bg mxbpf nohup "$MXBPF" --exact --pid "$READY_PID" -f json
	wait_line "$(err mxbpf)" '^attached:' "$BG_PID"
	kill -s HUP "$BG_PID"
	kill -s USR1 "$BG_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$BG_PID" # mxbpf still runs
	kill -s INT "$BG_PID"
	local status=0
	wait_exit "$BG_PID" || status=$?
	[[ $status == 5 ]]
	jq -e .loss "$(out mxbpf)"
}

@test "A missing process gives one line and exit code 3" {
	expect_run 3 --separate-stderr "$MXBPF" --pid 4194304
	[[ -z $output && ${#stderr_lines[@]} == 1 ]]
}

@test "A process without a known runtime gives the names looked for and exit code 3" {
	# It has executed its program when it says so.
	start_ready sleeper python3 -c 'import os, time; print("ready", os.getpid(), flush=True); time.sleep(100)'
	expect_error 3 'libmxnet\.so' --separate-stderr "$MXBPF" --exact --pid "$READY_PID"
	[[ -z $output ]]
}

@test "A process that exits at any moment of the attach gives exit code 0, 3 or 5, no crash and no leftover probe" {
	local ms links
	links=$(probe_links)
	for ms in 0 1 2 3 5 8 13 20; do
		start_bg mayfly "$O/prog/mayfly" "$ms"
		run --separate-stderr timeout 20 "$MXBPF" --exact --pid "$BG_PID"
		[[ $status == 3 || $status == 5 ]] || expect_status 3
	done
	local lib
	lib=$("$PYTHON" -c 'import mxnet.libinfo as l; print(l.find_lib_path()[0])')
	for ms in 20 60 100 140 180; do
		start_ready mapped "$O/prog/maps_elf" "$lib" # maps the library without Python's start-up time; attaching takes the same steps
		start_bg killer bash -c "read -rt 0.$(printf %03d $ms) <> <(:); kill -KILL $READY_PID"
		run --separate-stderr timeout 20 "$MXBPF" --exact --pid "$READY_PID"
		[[ $status =~ ^(0|3|5)$ ]] || expect_status 3
	done
	no_new_links "$links"
}

@test "Missing privileges give the name of the capability and exit code 4" {
	shared_workload --tiny
	expect_error 4 'CAP_|sudo' --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$(for_others "$MXBPF")" --pid "$WORKLOAD_PID"
	[[ -z $output && ${#stderr_lines[@]} == 1 ]]
}

@test "An output path that cannot be written is reported before anything is attached" {
	local path
	shared_workload --tiny
	ln -s /etc/passwd "$BATS_TEST_TMPDIR/link.json"
	for path in "$BATS_TEST_TMPDIR/none/t.json" "$BATS_TEST_TMPDIR" /proc/t.json "$BATS_TEST_TMPDIR/link.json"; do
		expect_run 1 --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" -d 1s --trace "$path"
		[[ -z $output && ${#stderr_lines[@]} == 1 && $stderr != *attached* ]]
		expect_run 1 --separate-stderr "$MXBPF" record --pid "$WORKLOAD_PID" -d 1s -o "$path"
		[[ $stderr != *attached* ]]
	done
	[[ $(head -c 4 /etc/passwd) == root ]]
}

@test "A full disk gives an error and exit code 1, and the written part stays readable" {
	shared_workload --tiny
	mkdir "$BATS_TEST_TMPDIR/small"
	mount -t tmpfs -o size=2m tmpfs "$BATS_TEST_TMPDIR/small"
	start_mxbpf record --pid "$WORKLOAD_PID" -o "$BATS_TEST_TMPDIR/small/r.mxd"
	timeout 60 bash -c 'until [[ $(stat -f -c %f "$0") == 0 ]]; do sleep 0.02; done' "$BATS_TEST_TMPDIR/small"
	kill -s INT "$MXBPF_PID"
	local status=0
	wait_exit "$MXBPF_PID" || status=$?
	[[ $status == 1 ]]
	expect_re 'No space left' "$(<"$(err mxbpf)")"
	[[ $(<"$(err mxbpf)") != *wrote* ]]
	expect_run 0 --separate-stderr "$MXBPF" report "$BATS_TEST_TMPDIR/small/r.mxd"
	expect_re incomplete "$stderr"
}

@test "Events that a full ring drops are counted exactly and reported in every output" {
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --ring-size 64K --trace "$BATS_TEST_TMPDIR/t.json" --format json
	kill -s STOP "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
	wait_new_line "$(out workload)" '^step' # a full second of steps lies between the two lines
	kill -s CONT "$MXBPF_PID"
	end_pid "$MXBPF_PID"
	jq -e '.loss.dropped > 0 and .loss.attempted == .loss.stored + .loss.dropped' "$(out mxbpf)"
	jq -e '.loss.dropped == .sources[0].dropped and .sources[0].source == "probes"' "$(out mxbpf)"
	jq -e --argjson n "$(jq .loss.dropped "$(out mxbpf)")" '[.. | .dropped? | numbers] | index($n) != null' \
		<(jq 'del(.traceEvents)' "$BATS_TEST_TMPDIR/t.json")
	jq -e '[.tables[][] | .count // (.allocs + .frees)] | add <= $l' --argjson l "$(jq .loss.stored "$(out mxbpf)")" \
		"$(out mxbpf)"
}

@test "A second Ctrl-C aborts an export at once and leaves no partial file" {
	local status=0 dir=$BATS_TEST_TMPDIR/dir
	mkdir "$dir"
	mkfifo "$dir/t.json" # without a reader the export blocks forever
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --all --trace "$dir/t.json"
	wait_new_line "$(out workload)" '^step' 2
	kill -s INT "$MXBPF_PID"
	wait_line "$(out mxbpf)" '^loss' "$MXBPF_PID" # the tables are printed and the trace has begun
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID" || status=$?
	[[ $status == 130 ]]
	expect_re 'aborted' "$(<"$(err mxbpf)")"
	[[ $(ls -A "$dir") == t.json ]]
}

@test "Slots of ended threads are reused" {
	start_ready threads "$PYTHON" "$REPO/tests/workload/mxnet_threads.py"
	start_mxbpf --pid "$READY_PID" --format json
	end_pid "$READY_PID" USR1 60
	wait_exit "$MXBPF_PID"
	grep -q '^1500 one after another' "$(out threads)"
	jq -e '.loss.dropped == 0' "$(out mxbpf)"
	(($(jq '[.tables.MXNET_C_API[] | select(.name == "MXNDArrayWaitAll") | .count] | add' "$(out mxbpf)") == 1500))
}

@test "mxbpf in a container sees what it sees outside, and refuses a process in a nested container with the reason" {
	expect_run 0 unshare --pid --fork --mount-proc "$O/unit/test_attach_kernel"
	# The pid namespace ends with its first process, the shell, and kills the job.
	run unshare --pid --fork --mount-proc bash -c '
		exec {job}< <(exec unshare --pid --fork "$0" "$1/tests/workload/mxnet_train.py" --tiny)
		grep -q -m 1 "^ready" <&"$job"
		"$2" --pid "$(pgrep -n -f "^$0 .*mxnet_train")" -d 1s' "$PYTHON" "$REPO" "$MXBPF"
	expect_status 4
	expect_re 'in different pid namespaces' "$output"
}

@test "--probes attaches the named groups and no others" {
	shared_workload --tiny
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 500ms --probes api --api all --format json
	jq -e '(.tables.MXNET_C_API | length > 0) and (.tables.operator == null) and
		([.probes[] | select(.status == "attached") | .name | select(startswith("step.") | not)] == ["api.enter", "api.exit"])' <<<"$output"
}

@test "--probes wait is refused with exit code 2 without the calls that end its spans" {
	shared_workload --tiny
	expect_error 2 'wait requires api' --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 500ms --probes op,wait
	[[ -z $output && $stderr != *attached* ]]
}

@test "--delay waits before attaching" {
	shared_workload --tiny
	local began
	began=$(date +%s%N)
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" --delay 1s -d 200ms --format json
	jq -e --argjson began "$began" '.window | .start_unix_ns >= $began + 1000000000 and
		.duration_ns >= 200000000 and .duration_ns < 2000000000' <<<"$output"
}

@test "A signal during --delay ends mxbpf at once and writes nothing" {
	shared_workload --tiny
	start_bg mxbpf "$MXBPF" --pid "$WORKLOAD_PID" --delay 1h --format json --trace "$BATS_TEST_TMPDIR/t.json"
	local status=0
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(readlink /proc/$0/fd/*) == *signalfd* ]]; do sleep 0.02; done' "$BG_PID"
	kill -s TERM "$BG_PID"
	wait_exit "$BG_PID" || status=$?
	[[ $status == 5 && ! -s $(out mxbpf) && ! -e $BATS_TEST_TMPDIR/t.json ]]
	expect_re '^mxbpf: interrupted before recording began; no event was recorded$' "$(<"$(err mxbpf)")"
}

@test "A target that calls exec ends the session with the events seen so far" {
	start_ready changer "$PYTHON" -c 'import os, signal
from mxnet import nd
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
nd.ones((2, 2)).wait_to_read()
os.execvp("sleep", ["sleep", "1000"])'
	start_mxbpf --pid "$READY_PID" --format json
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID"
	jq -e '.loss.stored > 0 and .loss.dropped == 0' "$(out mxbpf)"
}

@test "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE suffice, also for iteration windows" {
	local caps=+bpf,+perfmon,+sys_ptrace start json least
	json=$(out mxbpf)
	setpriv --reuid 65534 --regid 65534 --clear-groups test -r "$PYTHON" || skip "other users may not enter the folder of the runtimes"
	least=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps" --ambient-caps "$caps" "$MXBPF")
	for start in shared_workload start_torch; do
		"$start" --tiny
		"${least[@]}" --exact --pid "$WORKLOAD_PID" -d 500ms --format json >"$json"
		jq -e '.mode == "events" and .loss.attempted > 0 and .loss.dropped == 0' "$json"
		start_bg mxbpf "${least[@]}" --pid "$WORKLOAD_PID" --iterations 1/3 -v --format json
		wait_line "$(err mxbpf)" 'all but one detached' "$BG_PID"
		wait_new_line "$(err mxbpf)" 'all but one detached'
		end_pid "$BG_PID"
		jq -e '.window.sampled_iterations >= 2 and .loss.dropped == 0' "$json"
		kill_started
	done
}

@test "check shows the kernel's features and every probe with its address" {
	shared_workload --tiny
	expect_run 0 --separate-stderr "$MXBPF" check --pid "$WORKLOAD_PID"
	expect_re 'ok +uprobe_multi' "$output"
	expect_re '(ok|no) +process filter' "$output"
	expect_re 'MXNet 1\.9\.1' "$output"
	expect_re 'ok +operator\.start +\+0x13a3220 push r15' "$output"
}
