#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `mxbpf trace --via kineto`: traces by Kineto itself. The job's own account and tests/kineto/fake.py, which plays Kineto, are
# the reference. The socket's name belongs to a network namespace, so this file has one of its own.

load helpers

# Two real jobs are for all tests: one with the abstract names that are the default, one with names in a directory.
setup_file() {
	[[ $(id -u) == 0 && -x $PYTHON_TORCH ]] || return 0
	cd "$BATS_FILE_TMPDIR" || return 1
	unshare --net sleep infinity 3>&- &
	echo $! >holder
	mkdir -m 1777 traces
	mkdir abstract named sock
	# Kineto asks every second with this file, instead of every five.
	echo 'ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1' >kineto.conf
	environment
	BATS_TEST_TMPDIR=$PWD/abstract start_bg job "${IN[@]}" env KINETO_USE_DAEMON=1 "$PYTHON_TORCH" "$JOB"
	BATS_TEST_TMPDIR=$PWD/named start_bg job env KINETO_USE_DAEMON=1 KINETO_IPC_SOCKET_DIR="$PWD/sock" "$PYTHON_TORCH" "$JOB"
}

teardown_file() {
	local job
	[[ -f $BATS_FILE_TMPDIR/holder ]] || return 0
	for job in abstract named; do
		BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR/$job kill_started
	done
	kill "$(<"$BATS_FILE_TMPDIR/holder")"
}

environment() {
	IN=(nsenter --net="/proc/$(<"$BATS_FILE_TMPDIR/holder")/ns/net")
	FAKE=(python3 "$REPO/tests/kineto/fake.py")
	JOB=$REPO/tests/kineto/job.py
	TRACE=(timeout 60 "${IN[@]}" "$MXBPF" trace --via kineto)
	export KINETO_CONFIG=$BATS_FILE_TMPDIR/kineto.conf KINETO_ONDEMAND_TRACE_DIR=$BATS_FILE_TMPDIR/traces
}

setup() {
	root_setup torch
	environment
}

# start_fake HOW [COMMAND...]: sets READY_PID. The command runs the program, such as in another namespace.
start_fake() {
	start_ready "$1" "${IN[@]}" "${@:2}" "${FAKE[@]}" "$1" >/dev/null
}

# real_job NAME: sets READY_PID and REAL, the job's output.
real_job() {
	REAL=$BATS_FILE_TMPDIR/$1/job.out
	wait_line "$REAL" '^ready'
	READY_PID=$(sed -n 's/^ready //p' "$REAL")
}

# Succeeds if each whole step of a trace has the operators of the job's own account, and the job goes on with its results.
same_as_job() { # TRACE
	run -0 python3 "$REPO/tests/kineto/compare.py" "$1" "$(head -n 1 "$REAL")"
	wait_new_line "$REAL" '^step'
	[[ $(sed -n 's/^step [0-9]* //p' "$REAL" | sort -u | wc -l) == 1 ]]
}

# Succeeds if a request has left no directory, and nobody has the name.
nothing_left() {
	local left
	left=$(ls -A "$KINETO_ONDEMAND_TRACE_DIR" && "${IN[@]}" sed -n '/@dynolog@/p' /proc/net/unix)
	[[ -z $left ]] && return 0
	echo "left: $left" >&2
	return 1
}

# start_request ARGS...: starts mxbpf; sets REQUEST_PID.
start_request() {
	start_bg request "${IN[@]}" "$MXBPF" trace --via kineto "$@"
	REQUEST_PID=$BG_PID
}

# interrupt SIGNAL: ends mxbpf by a signal, and waits until its helper has ended, too. Returns its exit code.
interrupt() {
	local helper code=0
	helper=$(pgrep -P "$REQUEST_PID" -x mxbpf-kineto)
	kill -s "$1" "$REQUEST_PID"
	wait_exit "$REQUEST_PID" || code=$?
	wait_gone "$helper" 20
	return $code
}

@test "Kineto's trace has the operators that the job says it runs, in every step" {
	real_job abstract
	run -0 "${TRACE[@]}" --pid "$READY_PID" -d 500ms -o trace.json
	expect_re "^wrote trace.json: Kineto's trace of process $READY_PID, " "$output"
	[[ $(stat -c %a trace.json) == 600 ]]
	same_as_job trace.json
	nothing_left
}

@test "--with makes Kineto record shapes and Python stacks, and --steps counts those of the optimizer" {
	real_job named
	run -0 "${TRACE[@]}" --pid "$READY_PID" -q --steps 3 --with shapes,stacks -o trace.json.gz
	[[ -z $output ]]
	zcat trace.json.gz >trace.json
	jq -e '[.traceEvents[] | select(.name == "aten::addmm") | .args["Input Dims"]] | length > 2 and
		all(.[1:3] == [[128, 256], [256, 512]] or .[1:3] == [[128, 512], [512, 64]])' trace.json
	jq -e '[.traceEvents[] | select(.cat == "python_function" and (.name | contains("job.py")))] | length > 2' trace.json
	jq -e '[.traceEvents[] | select(.name == "job_step")] | length >= 2 and length <= 4' trace.json
	same_as_job trace.json
}

@test "Only the process that was asked for is traced, and what strangers send changes nothing" {
	start_fake noise
	start_fake begin
	start_fake late
	start_request --pid "$READY_PID" -o trace.json
	wait_line "$(out noise)" '^sent'
	kill -s USR1 "$READY_PID"
	wait_exit "$REQUEST_PID"
	[[ $(jq -r '.traceEvents[].name' trace.json) == "by $READY_PID" ]]
	[[ $(grep -c '^got' "$(out noise)" "$(out begin)" | sort -u) == *:0*:0 ]]
	nothing_left
}

@test "--job traces the descendants, too, each into its own file; a forked child that asks nothing is not waited for" {
	start_fake two
	run -0 "${TRACE[@]}" --pid "$READY_PID" --job -o trace.json
	[[ $(cat trace-*.json | jq -r '.traceEvents[].name' | sort -u | wc -l) == 2 ]]
	start_fake fork
	run -0 "${TRACE[@]}" --pid "$READY_PID" --job -o one.json
	[[ $(jq -r '.traceEvents[].name' one.json) == "by $READY_PID" ]]
}

@test "A process that cannot be asked is refused with the reason and what helps" {
	start_ready plain python3 -c 'import os, time; print("ready", os.getpid(), flush=True); time.sleep(600)' >/dev/null
	expect_error 3 'has not loaded PyTorch' "${TRACE[@]}" --pid "$READY_PID"
	start_torch --tiny >/dev/null
	expect_error 3 'was not started with KINETO_USE_DAEMON=1.*restart it.*mxbpf --pid [0-9]+ --trace' "${TRACE[@]}" --pid "$WORKLOAD_PID"
	start_bg gone true
	wait_exit "$BG_PID"
	expect_run 3 "${TRACE[@]}" --pid "$BG_PID"
	start_fake trace
	expect_error 2 'ends with .json' "${TRACE[@]}" --pid "$READY_PID" -o trace.pftrace
	nothing_left
}

@test "Another daemon keeps its name and is named" {
	# shellcheck disable=SC2016 # Python
	start_ready daemon "${IN[@]}" python3 -c 'import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0dynolog\0")
print("ready", os.getpid(), flush=True)
while True: print(len(s.recv(9999)), flush=True)' >/dev/null
	local owner=$READY_PID
	start_fake mute
	expect_error 1 "process $owner \(python3\) answers Kineto here already.*dyno gputrace --pids $READY_PID" "${TRACE[@]}" --pid "$READY_PID"
	"${IN[@]}" grep -q '@dynolog@' /proc/net/unix
	[[ -z $(ls "$KINETO_ONDEMAND_TRACE_DIR") ]]
}

@test "A process that does not ask, whose profiler is in use, or that begins no trace is given up" {
	local how
	declare -A pids=() requests=() codes=([mute]=3 [busy]=1 [forget]=1) texts=(
		[mute]='has not asked' [busy]='is in use' [forget]='took the request and began no trace')
	for how in mute busy forget; do
		mkdir "$how"
		start_fake "$how" env KINETO_IPC_SOCKET_DIR="$PWD/$how"
		pids[$how]=$READY_PID
		start_bg "asks-$how" "${TRACE[@]}" --pid "$READY_PID"
		requests[$how]=$BG_PID
	done
	for how in mute busy forget; do
		status=0
		wait_exit "${requests[$how]}" || status=$?
		expect_status "${codes[$how]}"
		expect_re "Kineto of process ${pids[$how]} ${texts[$how]}" "$(<"$(err "asks-$how")")"
		[[ ! -e $how/dynolog ]]
	done
	nothing_left
}

@test "A process that ends, or that gives its trace up, is given up at once" {
	local how
	for how in die give-up; do
		start_fake "$how"
		run "${TRACE[@]}" --pid "$READY_PID" -o trace.json
		[[ $how == die ]] && expect_status 3 && expect_re 'the process has ended' "$output"
		[[ $how == give-up ]] && expect_status 1 && expect_re 'gave the trace up' "$output"
		[[ ! -e trace.json ]]
	done
	nothing_left
}

@test "What a process puts in the place of the trace is not read, unless it is a plain file of its user" {
	local how
	for how in link fifo hard dir empty; do
		start_fake "$how"
		run "${TRACE[@]}" --pid "$READY_PID" -o trace.json
		[[ $status != 0 && ! -e trace.json ]]
		expect_re "error: .*trace" "$output"
		nothing_left
		stop_pid "$READY_PID" KILL
	done
}

@test "A process of another user in other namespaces is asked there, with that user's rights" {
	mkdir -m 1777 private
	# shellcheck disable=SC2016 # for that shell
	start_ready other env -u KINETO_ONDEMAND_TRACE_DIR unshare --net --mount bash -c 'exec <"$1" && mount --bind private /tmp &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 - trace' bash "${FAKE[1]}" >/dev/null
	run -0 "${TRACE[@]}" --pid "$READY_PID" -o trace.json
	[[ $(jq -r '.traceEvents[].name' trace.json) == "by $READY_PID" && $(stat -c %u trace.json) == 0 ]]
	expect_re '^ACTIVITIES_LOG_FILE=/tmp/mxbpf-kineto-' "$(<"$(out other)")"
	[[ -z $(ls private) ]]
}

@test "A process of the same user is asked without root, and one of another user is refused" {
	local user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	# shellcheck disable=SC2016 # for that shell
	start_ready own "${IN[@]}" env -u KINETO_ONDEMAND_TRACE_DIR bash -c 'exec <"$1" && exec "${@:2}" /usr/bin/python3 - trace' \
		bash "${FAKE[1]}" "${user[@]}" >/dev/null
	expect_error 4 'in another network namespace.*KINETO_IPC_SOCKET_DIR=DIR' "${user[@]}" "$MXBPF" trace --via kineto --pid "$READY_PID"
	run -0 --separate-stderr "${IN[@]}" "${user[@]}" "$MXBPF" trace --via kineto --pid "$READY_PID" -o -
	[[ $(jq -r '.traceEvents[].name' <<<"$output") == "by $READY_PID" ]]
	start_fake mute
	expect_run 4 "${IN[@]}" "${user[@]}" "$MXBPF" trace --via kineto --pid "$READY_PID"
	nothing_left
}

@test "Kineto is answered by a path with KINETO_IPC_SOCKET_DIR, and writes to KINETO_ONDEMAND_TRACE_DIR" {
	mkdir sock traces
	# A daemon that was killed has left its socket.
	python3 -c 'import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind("sock/dynolog")'
	start_fake trace env KINETO_IPC_SOCKET_DIR="$PWD/sock" KINETO_ONDEMAND_TRACE_DIR="$PWD/traces"
	run -0 "${TRACE[@]}" --pid "$READY_PID" -o trace.json
	expect_re "^ACTIVITIES_LOG_FILE=$PWD/traces/mxbpf-kineto-" "$(<"$(out trace)")"
	[[ ! -e sock/dynolog && -z $(ls traces) ]]
}

@test "Ctrl-C and SIGKILL leave nothing behind, before the question and after it" {
	local sig code
	for sig in INT KILL; do
		start_fake mute
		start_request --pid "$READY_PID" -o trace.json
		wait_line "$(err request)" '^waiting for Kineto'
		interrupt $sig || code=$?
		[[ $sig == KILL || $code == 5 ]]
		nothing_left
		start_fake begin
		start_request --pid "$READY_PID" -o trace.json
		wait_line "$(out begin)" '^began'
		interrupt $sig || code=$?
		[[ $sig == KILL || $code == 5 ]]
		nothing_left
		[[ ! -e trace.json ]]
	done
}

@test "A job whose request was interrupted goes on and can be asked again" {
	real_job named
	start_request --pid "$READY_PID" -d 1s -o trace.json
	wait_line "$(err request)" "^Kineto of process $READY_PID traces"
	interrupt INT || [[ $? == 5 ]]
	nothing_left
	run -0 "${TRACE[@]}" --pid "$READY_PID" -d 1s -o trace.json # long enough for two steps
	same_as_job trace.json
}
