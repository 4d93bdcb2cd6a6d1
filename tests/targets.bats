#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sessions on several processes: given by number, by name, as a job. Ground truth is what each process says that it did.

load helpers

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	mkdir bin
	NAME=c$$-count # of no other test that runs at the same time
	ln -s "$(readlink -f "$PYTHON_TORCH")" "bin/${NAME}d"
}

# SIGUSR1: calls an operator so many times as the argument says, and prints the sum so far.
COUNTED='
import os, signal, sys, torch
torch.set_num_threads(1)
one, did = torch.ones(1), 0
one.sinh()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
print("ready", os.getpid(), flush=True)
while signal.sigwait({signal.SIGUSR1, signal.SIGTERM}) == signal.SIGUSR1:
    for _ in range(int(sys.argv[1])):
        one.sinh()
    did += int(sys.argv[1])
    print("did", did, flush=True)
'

# The name of the process begins with NAME.
start_counted() { # NAME CALLS; sets READY_PID
	echo "$COUNTED" >counted.py
	start_ready "$1" env PYTHONPATH="$(dirname "$(dirname "$PYTHON_TORCH")")/lib/python3.11/site-packages" \
		"bin/${NAME}d" "$PWD/counted.py" "$2" >/dev/null
}

call() { # NAME PID SUM: until it has called the operator SUM times in all
	kill -s USR1 "$2"
	wait_line "$(out "$1")" "^did $3$"
}

calls_of() { # PID FILE
	jq --argjson pid "$1" '[.tables.operator[] | select(.pid == $pid).count] | add // 0' "$2"
}

@test "Each of several processes has its own counts, another process that hits the probes has none, and the session ends with the last of them" {
	local a b c links
	links=$(probe_links)
	start_counted a 100 && a=$READY_PID
	start_counted b 20 && b=$READY_PID
	start_counted c 3 && c=$READY_PID
	start_mxbpf --pid "$a,$b,$a" --by process --probes op --format json # a process that is named twice is one
	call a "$a" 100
	call b "$b" 20
	call c "$c" 3
	stop_pid "$a" # it is the first, with which the session began
	call b "$b" 40
	stop_pid "$b"
	wait_exit "$MXBPF_PID"
	jq -e '.loss | .dropped == 0 and .unmatched == 0 and .attempted == .stored' "$(out mxbpf)"
	[[ "$(calls_of "$a" "$(out mxbpf)") $(calls_of "$b" "$(out mxbpf)") $(calls_of "$c" "$(out mxbpf)")" == '100 40 0' ]]
	call c "$c" 6
	# The loader's hook of a session by name is in all processes, and SIGKILL removes it like every probe.
	start_mxbpf --comm "$NAME*" --probes op
	[[ $(probe_links) != "$links" ]]
	stop_pid "$MXBPF_PID" KILL
	no_new_links "$links"
	call c "$c" 9
}

@test "A process that gets the name later, and one that starts again, belong to a session by name" {
	local first second other
	start_bg mxbpf "$MXBPF" --exact --comm "$NAME*" --wait --by process --ops sinh --verbose --format json
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" "waiting until one of the processes named $NAME"
	start_counted first 100 && first=$READY_PID
	wait_line "$(err mxbpf)" 'attached: [0-9]+ probes' "$MXBPF_PID"
	call first "$first" 100
	stop_pid "$first"
	start_counted second 20 && second=$READY_PID
	wait_line "$(err mxbpf)" "following process $second" "$MXBPF_PID"
	call second "$second" 20
	# A process of another name loads the runtime with the loader's hook and the probes in place.
	start_ready other "$PYTHON_TORCH" "$PWD/counted.py" 3 >/dev/null && other=$READY_PID
	call other "$other" 3
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID"
	jq -e '.loss | .dropped == 0 and .unmatched == 0 and .attempted == .stored' "$(out mxbpf)"
	# The call before they were ready may be seen, too.
	[[ $(calls_of "$first" "$(out mxbpf)") =~ ^10[01]$ && $(calls_of "$second" "$(out mxbpf)") =~ ^2[01]$ ]]
	[[ $(calls_of "$other" "$(out mxbpf)") == 0 ]]
}

files_of() { awk 'NF > 5 && $5 { print $6 }' "$1" | sort -u; } # MAPS: the files that it names

# More processes than a session on some of them watches.
crowd() {
	start_ready crowd python3 -uc '
import os, signal
for _ in range(1100):
    os.posix_spawnp("setpriv", ["setpriv", "--pdeathsig", "KILL", "sleep", "600"], os.environ)
print("ready", os.getpid(), flush=True)
signal.pause()
' >/dev/null
}

# bats test_tags=alone
@test "Of all processes of a host, those that run a runtime are profiled, however many others run" {
	local first second
	crowd
	start_counted first 100 && first=$READY_PID
	start_mxbpf --host --by process --ops sinh --verbose --format json
	call first "$first" 100
	stop_pid "$first"
	start_counted second 20 && second=$READY_PID
	cp "/proc/$second/maps" before
	wait_line "$(err mxbpf)" "following process $second" "$MXBPF_PID"
	call second "$second" 20
	# Nothing enters a process that the user did not ask for.
	expect_same "$(files_of before)" "$(files_of "/proc/$second/maps")"
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID"
	jq -e '.loss | .dropped == 0 and .unmatched == 0 and .attempted == .stored' "$(out mxbpf)"
	[[ $(calls_of "$first" "$(out mxbpf)") =~ ^10[01]$ && $(calls_of "$second" "$(out mxbpf)") =~ ^2[01]$ ]]
	jq -e --argjson first "$first" --argjson second "$second" '.window.unfollowed == 0 and
		([.tables.operator[].pid] | unique - [$first, $second] == [])' "$(out mxbpf)"
}
