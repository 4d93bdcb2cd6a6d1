#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --agent in CPython 3.14, 3.14t and 3.15 if no thread can be stopped at an operator: the interpreter runs a script that loads the agent
# (PEP 768). tests/stacks/setup.sh installs the interpreter. The program calls operators of the wheel's library through
# ctypes.

load helpers

setup() {
	root_setup torch
	PYTHON_314=$O/deps/pythons/3.14/python
	[[ -x $PYTHON_314 ]] || skip "no $PYTHON_314: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	LIBTORCH=$(echo "$O"/deps/torch/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
}

# start [NAME=VALUE...] [-- EVENT ACTION]
start() {
	local environment=(OMP_NUM_THREADS=1)
	while (($#)) && [[ $1 != -- ]]; do
		environment+=("$1")
		shift
	done
	start_ready job env "${environment[@]}" "$PYTHON_314" "$REPO/tests/workload/torch_ctypes.py" "$LIBTORCH" "${@:2}"
}

ask() { # SIGNAL WORD: prints the program's next line that starts with WORD
	local n
	n=$(wc -l <"$(out job)")
	kill -s "$1" "$READY_PID"
	timeout 60 tail -n +$((n + 1)) -f "$(out job)" 2>/dev/null | grep -m 1 "^$2"
}

files() { find /tmp /var/tmp /dev/shm -maxdepth 1 -name '.mxbpf-*.py' -newer "$BATS_TEST_TMPDIR/started"; }

# Ends the session. mxbpf's count must equal the program's.
counted() { # ROUTE COUNT
	stop_pid "$MXBPF_PID" INT
	jq -e --arg route "$1" --argjson n "$2" '(.target.agent | test($route)) and (.loss | .dropped == 0 and .attempted == .stored)
		and ([.tables.operator[] | select(.name == "aten::neg_").count] == [$n])' "$(out mxbpf)" ||
		{ jq -c '.target, .loss, .tables.operator' "$(out mxbpf)"; cat "$(err mxbpf)"; return 1; }
	[[ -z $(files) ]]
}

silent() { [[ ! -s $(err job) ]] || { cat "$(err job)"; return 1; }; }

session() { # ROUTE
	start_mxbpf --pid "$READY_PID" --agent --format json
	ask USR1 worked
	counted "$1" 1000
}

refused() { # REASON
	run --separate-stderr -3 "$MXBPF" --pid "$READY_PID" --agent -d 100ms
	expect_re "$1" "$stderr"
	[[ -z $(files) ]]
}

# Waits until the helper of mxbpf has removed the file.
no_files_soon() { timeout 20 bash -c "$(declare -f files)"'; while [[ -n $(files) ]]; do sleep 0.02; done'; }

waits() { # REASON
	start_bg mxbpf "$MXBPF" --pid "$READY_PID" --agent
	wait_line "$(err mxbpf)" "^waiting until process $READY_PID .* calls operators, to load the agent there: .*$1" "$BG_PID"
	no_files_soon
	stop_pid "$BG_PID" INT
}

injects() {
	local before
	start
	run -0 "$MXBPF" check --pid "$READY_PID"
	expect_re '^  ok +route of the agent +by ptrace, else by a script' "$output"
	before=$(ask USR2 state)
	session 'PEP 768'
	expect_re 'one thread was stopped for .*PEP 768' "$(<"$(err mxbpf)")"
	expect_same "${before/\"agent\": false\} scripts 0/\"agent\": true\} scripts 1}" "$(ask USR2 state)"
	ask USR1 worked # without a reader the agent removes its callbacks; the next session adds them again
	session 'PEP 768'
	expect_re 'scripts 2$' "$(ask USR2 state)"
	silent
}

@test "A script injects the agent into a program that calls no operator, with the right counts, and leaves no trace of itself" { injects; }
injects_on() { # VERSION
	PYTHON_314=$O/deps/pythons/$1/python
	[[ -x $PYTHON_314 ]] || skip "no $PYTHON_314: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	injects
}
@test "A script injects the agent into CPython 3.15" { injects_on 3.15; }
@test "A script injects the agent into CPython 3.14t" { injects_on 3.14t; }

@test "ptrace injects the agent where operators are called, and disabled remote debugging leads to no other method" {
	start -- calls
	session ptrace
	expect_re '"agent": true} scripts 0' "$(ask USR2 state)"
	silent
	kill_started
	start PYTHON_DISABLE_REMOTE_DEBUG=1
	run -0 "$MXBPF" check --pid "$READY_PID"
	expect_re '^  -- +route of the agent +by ptrace only: remote debugging is disabled' "$output"
	waits 'no thread of process [0-9]+ waits where it is known to hold no lock'
	expect_re '"agent": false} scripts 0' "$(ask USR2 state)"
	silent
}

@test "A script request that the main thread does not execute is withdrawn, even by SIGKILL of mxbpf, and never runs later" {
	start
	ask HUP waits
	waits 'executed no Python code in 2 s'
	start_bg mxbpf "$MXBPF" --pid "$READY_PID" --agent
	while [[ -z $(files) ]]; do sleep 0.02; done
	kill -s KILL "$BG_PID"
	no_files_soon
	expect_re '"agent": false} scripts 0' "$(ask USR2 state)"
	session 'PEP 768'
	silent
}

@test "SIGKILL of mxbpf during the script leaves a silent agent and no file, and the next session works" {
	local event
	for event in cpython.remote_debugger_script ctypes.dlopen; do
		start -- "$event" kill
		start_bg mxbpf "$MXBPF" --pid "$READY_PID" --agent
		echo "$BG_PID" >victim.new
		mv victim.new victim
		wait_exit "$BG_PID" || (($? == 137))
		no_files_soon
		rm victim
		expect_re '"agent": true} scripts 1$' "$(ask USR2 state)"
		session .
		silent
		kill_started
	done
}

@test "A script that the program forbids is refused with the reason, and exceptions of its signal handlers stay the program's" {
	start -- ctypes.dlopen refuse
	refused 'the script failed: RuntimeError: the program forbids it'
	silent
	kill_started
	start -- cpython.remote_debugger_script refuse
	waits 'the interpreter did not open the script'
	kill_started
	start -- ctypes.dlsym alarm
	refused 'the script failed: Alarm'
	expect_re '^alarm of the program$' "$(<"$(out job)")"
	silent
}

teardown() {
	kill_started
	park_jobs
	[[ ! ${OUTSIDE:-} ]] || rmdir "$OUTSIDE"
}

# Starts the job in a root of its own, like a container's. /tmp is a symlink there, to the path OUTSIDE, which is another directory
# outside. What that or a full disk hides of the checkout is mounted there again.
start_in_root() { # [MODE]
	local user=(setpriv --reuid 65534 --regid 65534 --clear-groups) program=$REPO/tests/workload/torch_ctypes.py
	"${user[@]}" test -r "$LIBTORCH" -a -x "$PYTHON_314" -a -r "$program" || user=()
	OUTSIDE=$(mktemp -d /run/mxbpf-test.XXXXXX)
	chmod 1777 "$OUTSIDE"
	mkdir root
	# shellcheck disable=SC2016 # for that shell
	start_ready job unshare --mount bash -ec '
		mount -t tmpfs none root
		for dir in /*; do
			[[ ! -L $dir ]] || cp -P "$dir" root/
			[[ -L $dir || ! -d $dir || $dir == /tmp ]] || { mkdir "root$dir" && mount --rbind "$dir" "root$dir"; }
		done
		mount -t tmpfs -o mode="$2" none "root$1"
		ln -s "$1" root/tmp
		if [[ ${FULL:-} ]]; then for dir in "$1" /var/tmp /dev/shm; do mount -t tmpfs -o "mode=1777,size=$FULL" none "root$dir"; done; fi
		for dir in "$REPO" "$O" "$O/deps"; do
			at=root$dir
			[[ $dir != /tmp/* ]] || at=root$1${dir#/tmp}
			[[ -e $at ]] || { mkdir -p "$at" && mount --rbind "$dir" "$at"; }
		done
		exec chroot root "${@:3}"' - "$OUTSIDE" "${1:-1777}" env OMP_NUM_THREADS=1 "${user[@]}" "$PYTHON_314" "$program" "$LIBTORCH"
}

# bats test_tags=place
@test "A symlink in a container does not redirect the script's file to the host" {
	local before
	start_in_root
	before=$(stat -c %y "$OUTSIDE" "/proc/$READY_PID/root$OUTSIDE")
	session 'PEP 768'
	silent
	# Creating and removing a file changes the modification time of its directory.
	expect_same "$(head -n 1 <<<"$before")" "$(stat -c %y "$OUTSIDE")"
	[[ $(tail -n 1 <<<"$before") != $(stat -c %y "/proc/$READY_PID/root$OUTSIDE") ]]
}

# bats test_tags=place
@test "If no directory has space for the script, mxbpf says so and leaves no file and no request, and a later session works" {
	FULL=16k start_in_root
	refused 'cannot create the script.s file in its /tmp, /var/tmp or /dev/shm: no space is left'
	ask USR1 worked
	[[ -z $(find "/proc/$READY_PID/root$OUTSIDE" "/proc/$READY_PID/root"/{var/tmp,dev/shm} -mindepth 1 -maxdepth 1 -name '.*') ]]
	silent
	nsenter --target "$READY_PID" --mount mount -o remount,size=8m "$PWD/root$OUTSIDE"
	session 'PEP 768'
	silent
}

@test "The script's file is in no directory that the process's user may not write to" {
	local before
	start_in_root 755
	[[ $(stat -c %u "/proc/$READY_PID") != 0 ]] || skip "no other user can read the program"
	before=$(stat -c %y "/proc/$READY_PID/root$OUTSIDE")
	session 'PEP 768' # by /var/tmp
	silent
	expect_same "$before" "$(stat -c %y "/proc/$READY_PID/root$OUTSIDE")"
}
