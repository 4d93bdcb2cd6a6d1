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

@test "A process with a thread that waits in vfork is watched with all calls of the others, and its child with none of them" {
	local parent child
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o vforks.so "$REPO/tests/faults/vforks.c"
	start_ready vforks env LD_PRELOAD="$PWD/vforks.so" "$O/toy/toy" 20 2 hold
	parent=$READY_PID
	timeout 20 bash -c 'until [[ $(ps -L -o wchan= -p "$0") == *clone* || $(ps -L -o stat= -p "$0") == *D* ]]; do :; done' "$parent"
	child=$(pgrep -P "$parent")
	echo "$child $(start_time "$child")" >>started
	start_bg child "$MXBPF" --pid "$child" --api all -f json
	local of_child=$BG_PID
	wait_line "$(err child)" '^attached:' "$of_child"
	start_mxbpf --pid "$parent" --api all -f json
	kill -s USR1 "$parent"
	wait_line "$(out vforks)" '^{' "$parent"
	kill -s INT "$MXBPF_PID" "$of_child"
	wait_exit "$MXBPF_PID" 20
	same_counts "$(out vforks)" "$(out mxbpf)"
	wait_exit "$of_child" 20 || status=$?
	[[ $status == 5 ]]
	ends 20 now --pid "$parent" -f json
	jq -e '[.threads[] | select(.state == "D")] | length == 1' <<<"$output"
}

# Prints the directory of a control group of the freezer that has the process, for version 1 or 2, and freezes it.
freeze() { # PID VERSION
	local group
	if [[ $2 == 1 ]]; then
		group=/sys/fs/cgroup/freezer/mxbpf-test-$1
		mkdir "$group" && echo "$1" >"$group/cgroup.procs" && echo FROZEN >"$group/freezer.state"
	else
		group=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)/mxbpf-test-$1
		mkdir "$group" && echo "$1" >"$group/cgroup.procs" && echo 1 >"$group/cgroup.freeze"
		timeout 20 bash -c 'until grep -q "frozen 1" "$0/cgroup.events"; do :; done' "$group"
	fi
	echo "$group"
}

@test "A frozen process is named as frozen at both ends of a session, shown, and gets no agent" {
	local version group tried=
	for version in 1 2; do
		start_toy 20 2
		group=$(freeze "$READY_PID" "$version" 2>/dev/null) || continue
		tried+=$version
		ends 20 --pid "$READY_PID" -d 100ms
		expect_status 5
		[[ $(grep -c "process $READY_PID (toy) is frozen by its control group" <<<"$stderr") == 2 ]]
		ends 20 now --pid "$READY_PID"
		expect_status 0
		kill -s KILL "$READY_PID"
		echo THAWED >"$group/freezer.state" 2>/dev/null || true # version 1 kills only then
		wait_gone "$READY_PID" 20
		rmdir "$group"
	done
	[[ $tried ]] || skip "no control group can be frozen here"
}

# One layer of two containers has the library. The second container loads it from a file that only memory holds.
@test "Two processes with the same library of two overlays are told apart by both backends, and a library in a memfd is refused or watched" {
	local one two first
	mkdir low up1 up2 work1 work2 one two
	cp "$O/toy/toy" "$O/toy/libmxnet.so" low
	for dir in 1:one 2:two; do
		mount -t overlay overlay -o "lowerdir=$PWD/low,upperdir=$PWD/up${dir%:*},workdir=$PWD/work${dir%:*}" "${dir#*:}" || skip "no overlayfs here"
	done
	start_ready one one/toy 20 2 >/dev/null && one=$READY_PID
	start_ready two two/toy 30 3 >/dev/null && two=$READY_PID
	umount -l one two
	start_bg first "$MXBPF" --pid "$one" --api all -f json --backend perf && first=$BG_PID
	wait_line "$(err first)" '^attached:' "$first"
	start_mxbpf --pid "$two" --api all -f json
	kill -s USR1 "$one" "$two"
	wait_exit "$first" 60
	wait_exit "$MXBPF_PID" 60
	same_counts "$(out one)" "$(out first)"
	same_counts "$(out two)" "$(out mxbpf)"

	ln -sf /proc/self/fd/9 low/libmxnet.so
	start_ready memory "$PYTHON" -c 'import os, sys
fd = os.memfd_create("libmxnet.so", 0)
os.write(fd, open(sys.argv[1], "rb").read())
os.dup2(fd, 9)
os.execv(sys.argv[2], ["toy", "20", "2"])' "$O/toy/libmxnet.so" low/toy
	ends 30 --pid "$READY_PID" -d 100ms
	[[ $status == [35] ]]
	ends 30 list
	kill -s USR1 "$READY_PID"
	wait_exit "$READY_PID" 20
}
