#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf watches, shows and lists a process whatever its state, or says why not, and always ends.
load helpers

setup() { root_setup; }

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
	expect_re "^ *$READY_PID +sleep .* no: unreadable " "$output" # the end of the path may be cut
	ends 20 --exact --pid "$READY_PID" -d 100ms
	expect_status 3
	expect_re 'its file system does not answer' "$stderr"
	ends 20 now --pid "$READY_PID"
}

# The kernel asks the file system at each open, read and close, so these numbers are moments in the life of a session.
@test "A library whose file system falls silent at any moment is refused, and a session ends" {
	local answers
	local -A jobs runs
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o stuck.so "$REPO/tests/faults/stuck.c"
	for answers in 1 4 5 12 60 250 9999999; do
		mkdir "$answers" && : >"$answers/libmxnet.so"
		start_ready "stuck$answers" env LD_PRELOAD="$PWD/stuck.so" STUCK=library STUCK_AT="$PWD/$answers/libmxnet.so" STUCK_OF="$O/toy/libmxnet.so" \
			STUCK_ANSWERS="$answers" sleep 1000 >/dev/null
		jobs[$answers]=$READY_PID
	done
	for answers in "${!jobs[@]}"; do
		start_bg "mxbpf$answers" "$MXBPF" --exact --pid "${jobs[$answers]}" -d 100ms
		runs[$answers]=$BG_PID
	done
	for answers in "${!jobs[@]}"; do
		status=0
		wait_exit "${runs[$answers]}" 30 || status=$?
		stderr=$(<"$(err "mxbpf$answers")")
		echo "$answers: status $status: $(tail -n 1 <<<"$stderr")"
		kill -s KILL "${jobs[$answers]}" # ends the wait of an mxbpf that hangs
		[[ $status == $((answers < 9999999 ? 3 : 5)) ]]
		((answers == 9999999)) || expect_re 'does not answer|Connection timed out' "$stderr"
	done
}

@test "A process with a thread in uninterruptible sleep is watched and shown, and the thread waits on" {
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o stuck.so "$REPO/tests/faults/stuck.c"
	: >file
	start_ready stuck env LD_PRELOAD="$PWD/stuck.so" STUCK=sleep STUCK_AT="$PWD/file" "$O/toy/toy" 20 2
	kill -s USR2 "$READY_PID"
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(ps -L -o stat= -p "$0") == *D* ]]; do sleep 0.02; done' "$READY_PID"
	ends 20 now --pid "$READY_PID" -f json
	jq -e '[.threads[] | select(.state == "D")] | length == 1' <<<"$output"
	start_mxbpf --pid "$READY_PID" --api all --sched -f json
	kill -s USR1 "$READY_PID"
	wait_line "$(out stuck)" '^{' "$READY_PID" # it cannot end, but has made all of its calls
	end_pid "$MXBPF_PID"
	same_counts "$(out stuck)" "$(out mxbpf)"
}

@test "A process with a thread that waits in vfork is watched with all calls of the others, and its child with none of them" {
	local parent child
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o vforks.so "$REPO/tests/faults/vforks.c"
	start_ready vforks env LD_PRELOAD="$PWD/vforks.so" "$O/toy/toy" 20 2 hold
	parent=$READY_PID
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(ps -L -o wchan= -p "$0") == *clone* || $(ps -L -o stat= -p "$0") == *D* ]]; do sleep 0.02; done' "$parent"
	child=$(pgrep -P "$parent")
	echo "$child $(start_time "$child")" >>started
	start_bg child "$MXBPF" --exact --pid "$child" --api all -f json
	local of_child=$BG_PID
	wait_line "$(err child)" '^attached:' "$of_child"
	start_mxbpf --pid "$parent" --api all -f json
	kill -s USR1 "$parent"
	wait_line "$(out vforks)" '^{' "$parent"
	kill -s INT "$MXBPF_PID" "$of_child"
	wait_exit "$MXBPF_PID"
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
		timeout "$WAIT_SECONDS" bash -c 'until grep -q "frozen 1" "$0/cgroup.events"; do sleep 0.02; done' "$group"
	fi
	echo "$group"
}

@test "A frozen process is named as frozen at both ends of a session, shown, and gets no agent" {
	local version group tried=
	for version in 1 2; do
		start_toy 20 2
		group=$(freeze "$READY_PID" "$version" 2>/dev/null) || continue
		tried+=$version
		ends 20 --exact --pid "$READY_PID" -d 100ms
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
	start_bg first "$MXBPF" --exact --pid "$one" --api all -f json --backend perf && first=$BG_PID
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
	ends 30 --exact --pid "$READY_PID" -d 100ms
	[[ $status == [35] ]]
	ends 30 list
	end_pid "$READY_PID" USR1
}

watched_exactly() { # the toy of $TOY
	start_toy 20 2
	start_mxbpf --pid "$READY_PID" --api all -f json
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID" 60
	same_counts "$(out toy)" "$(out mxbpf)"
}

# A root in a read-only image, as a container of Singularity has it.
@test "A library on squashfs is watched exactly by both backends, also after the image is unmounted" {
	local first
	mkdir files toy
	cp "$O/toy/toy" "$O/toy/libmxnet.so" files
	mksquashfs files image -quiet -no-progress -noappend
	mount -t squashfs -o loop,ro image toy || skip "no squashfs here"
	TOY=$PWD/toy
	start_toy 20 2
	umount -l toy
	start_bg first "$MXBPF" --exact --pid "$READY_PID" --api all -f json --backend perf && first=$BG_PID
	wait_line "$(err first)" '^attached:' "$first"
	start_mxbpf --pid "$READY_PID" --api all -f json
	kill -s USR1 "$READY_PID"
	wait_exit "$first" 60
	wait_exit "$MXBPF_PID" 60
	same_counts "$(out toy)" "$(out first)"
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "A library with symbols without size, and one whose symbols are in a file of its own, are watched exactly; IFUNC is refused" {
	TOY=$PWD/toy
	cp -r "$O/toy" toy
	python3 "$REPO/tests/faults/symbols.py" toy/libmxnet.so sizeless
	watched_exactly

	rm -r toy && cp -r "$O/toy" toy
	objcopy --only-keep-debug toy/libmxnet.so toy/libmxnet.so.debug
	objcopy --strip-all --add-gnu-debuglink=toy/libmxnet.so.debug toy/libmxnet.so
	watched_exactly

	rm -r toy && cp -r "$O/toy" toy
	start_toy 20 2
	python3 "$REPO/tests/faults/symbols.py" toy/libmxnet.so ifunc
	ends 30 --exact --pid "$READY_PID" --api all -d 10ms
	expect_status 3
	expect_re 'is not a function' "$stderr"
}

@test "A target that executes a program with the rights of another user is not read as that, with and without root" {
	local privilege caps=+bpf,+perfmon,+sys_ptrace
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o turns.so "$REPO/tests/faults/turns.c"
	cp /bin/sleep sleep && chmod 4755 sleep
	cp "$MXBPF" mxbpf
	cp -r "$O/toy" toy
	chmod a+x . .. ../.. # for the other user
	chmod -R a+rX toy turns.so sleep mxbpf
	for privilege in "" "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps $caps --ambient-caps $caps"; do
		start_ready turns setpriv --reuid 65534 --regid 65534 --clear-groups env LD_PRELOAD="$PWD/turns.so" TURNS_INTO="$PWD/sleep" toy/toy 20 2
		# shellcheck disable=SC2086 # words
		start_bg mxbpf $privilege "$PWD/mxbpf" --pid "$READY_PID" -f json
		wait_line "$(err mxbpf)" '^attached:' "$BG_PID"
		kill -s USR2 "$READY_PID"
		timeout "$WAIT_SECONDS" bash -c 'until [[ $(<"/proc/$0/comm") == sleep ]]; do sleep 0.02; done' "$READY_PID"
		status=0
		wait_exit "$BG_PID" 30 || status=$? # mxbpf looks for it once a second
		[[ $status == 5 ]]
		jq -e '.loss.attempted == 0' "$(out mxbpf)"
		[[ $(ps -o stat= -p "$READY_PID") == S* ]]
		kill -s KILL "$READY_PID"
	done
}

@test "PyTorch with 5,000 threads more and 50,000 mappings more gets the agent within a minute, and its calls are seen" {
	need_torch
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o many.so "$REPO/tests/faults/many.c"
	start_ready job env LD_PRELOAD="$PWD/many.so" MANY_MAPS=50000 MANY_THREADS=5000 "$PYTHON_TORCH" -c 'import os, torch, time
print("ready", os.getpid(), flush=True)
while True:
	torch.ones(3) + 1
	time.sleep(0.001)'
	ends 60 --agent --pid "$READY_PID" -d 200ms -q -f json
	expect_status 0
	jq -e '.tables.operator | map(.name) | index("aten::add")' <<<"$output"
}
