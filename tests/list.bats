#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf list shows every process with a known runtime, and whether mxbpf can attach to it.

load helpers

setup() {
	need_root
	DIR=$(mktemp -d /tmp/mxbpf-list-XXXXXX)
	chmod 755 "$DIR"
	cp "$O/prog/loads" "$DIR/loads"
	LIB=$DIR/libmxnet.so
}

teardown() {
	kill_started
	rm -rf "$DIR"
}

# A library with the functions of MXNet's C API, but not its build-id.
make_lib() {
	local f
	for f in _ZN5mxnet12on_enter_apiEPKc _ZN5mxnet11on_exit_apiEv _ZN5mxnet6engine14ThreadedEngine10WaitForAllEv \
		_ZN5mxnet6engine14ThreadedEngine10WaitForVarEPNS0_3VarE; do
		echo "void $f(void *a) { __asm__ volatile(\"push %rax; pop %rax\"); }"
	done | cc -shared -fPIC -Wl,--build-id -x c - -o "$LIB"
}

start_fake() { # [WRAPPER...]
	make_lib
	start_ready fake "$@" "$DIR/loads" "$LIB"
}

line_of() { grep -E "^ *$1 " <<<"$output"; }

# Runs `mxbpf list` in a pid namespace with only COMMAND, because rows of other processes change the width of columns. COMMAND
# prints "ready PID". BEFORE runs in bash after that.
list_alone() { # BEFORE COMMAND...
	# shellcheck disable=SC2016 # for that shell
	run --separate-stderr unshare --pid --fork --mount-proc bash -c '
		exec {job}< <(exec "${@:2}")
		grep -q -m 1 "^ready" <&"$job"
		eval "$1"
		exec "$0" list' "$MXBPF" "$@"
	expect_status 0
}

@test "An MXNet job is listed with its version as attachable on one line of 80 columns" {
	need_mxnet
	list_alone : "$PYTHON" "$REPO/tests/workload/mxnet_train.py" --tiny
	expect_re '^ *PID +COMMAND +RUNTIME +CONTAINER +ATTACH +LIBRARY$' "$output"
	expect_re "^[0-9]+ +python[^ ]* +MXNet 1\.9\.1 +[^ ]+ +yes +.*libmxnet\.so$" "$output"
	[[ ${#lines[@]} == 2 && $(wc -L <<<"$output") -le 80 ]]
	start_workload --tiny
	"$MXBPF" list --format json | jq -e --argjson pid "$WORKLOAD_PID" '.processes[] | select(.pid == $pid) |
		.runtime == "MXNet" and .version == "1.9.1" and .attachable and .reason == null and .deleted == false and
		(.library | endswith("/libmxnet.so")) and (.groups | contains(["op", "api", "mem", "wait"]))'
}

@test "A PyTorch job is listed with the groups that PyTorch has" {
	start_torch
	expect_run 0 --separate-stderr "$MXBPF" list
	expect_re "^$READY_PID +[^ ]+ +PyTorch 2\.13\.0 [^ ]* +[^ ]+ +yes +.*libtorch_cpu\.so$" "$output"
	"$MXBPF" list --format json | jq -e --argjson pid "$READY_PID" '.processes[] | select(.pid == $pid) |
		.runtime == "PyTorch" and .attachable and .groups == ["op", "mem"]'
}

@test "An unknown build is listed with the features that work on it, and they do" {
	start_fake
	expect_run 0 --separate-stderr "$MXBPF" list
	expect_re "^$READY_PID +loads +MXNet \? .* api,wait only +.*libmxnet\.so$" "$output"
	"$MXBPF" list --format json | jq -e --argjson pid "$READY_PID" '.processes[] | select(.pid == $pid) |
		.version == null and .attachable and .groups == ["api", "wait"] and (.reason | test("not verified for this build"))'
	expect_error 3 'not verified for this build' --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 1ms --api all
	expect_error 5 '^attached: 4 probes' --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 1ms --probes api,wait --api all
}

@test "A deleted library is marked, even in the narrowest line" {
	make_lib
	list_alone "rm '$LIB'" "$DIR/loads" "$LIB"
	expect_re "^[0-9]+ .*libmxnet\.so \(deleted\)$" "$output"
	start_fake
	rm "$LIB"
	"$MXBPF" list --format json | jq -e --argjson pid "$READY_PID" '.processes[] | select(.pid == $pid) | .deleted'
}

@test "A library that was overwritten in place is not attachable, with the reason" {
	start_fake
	cat "$(ldconfig -p | sed -n 's/.*libm\.so\.6 (libc6,x86-64.*) => //p' | head -1)" >"$LIB"
	run --separate-stderr "$MXBPF" list
	expect_re "^$READY_PID .* no: overwritten +.*libmxnet\.so$" "$output"
}

@test "A 32-bit process is listed as such" {
	# 1: mov $SYS_pause, %eax; int $0x80; jmp 1b
	python3 - "$LIB" <<-'END'
		import struct, sys
		code = bytes([0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7])
		head = struct.pack('<16sHHIIIIIHHHHHH', b'\x7fELF\1\1\1', 2, 3, 1, 0x10054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
		size = len(head) + 32 + len(code)
		open(sys.argv[1], 'wb').write(head + struct.pack('<8I', 1, 0, 0x10000, 0, size, size, 5, 0x1000) + code)
	END
	chmod +x "$LIB"
	start_bg victim "$LIB"
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(readlink "/proc/$0/exe") == "$1" || ! -d /proc/$0 ]]; do sleep 0.02; done' "$BG_PID" "$LIB"
	[[ $(readlink "/proc/$BG_PID/exe") == "$LIB" ]] || skip "this kernel runs no 32-bit programs"
	run --separate-stderr "$MXBPF" list
	expect_re "^$BG_PID +libmxnet\.so +MXNet \? .* no: 32-bit +-$" "$output"
}

@test "list without privileges shows the user's own processes, says so and counts the others" {
	start_fake setpriv --reuid 65534 --regid 65534 --clear-groups
	local fake=$READY_PID
	start_workload --tiny
	expect_run 0 --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$(for_others "$MXBPF")" list
	expect_re "^$fake .* no: permission " "$output"
	[[ -z $(line_of "$WORKLOAD_PID") ]]
	expect_re '^mxbpf: warning: [0-9]+ of [0-9]+ processes cannot be read: run mxbpf with sudo$' "$stderr"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$(for_others "$MXBPF")" list --format json 2>/dev/null |
		jq -e '.not_permitted > 0 and ([.processes[] | .attachable or .reason == null] | any | not)'
}

@test "A process in its own namespace is marked, and is not attachable if BPF cannot identify it" {
	start_fake unshare --mount
	run --separate-stderr "$MXBPF" list
	expect_re "^$READY_PID .* \(mount ns\) " "$output"
	# mxbpf in a container sees a process of a nested one.
	run unshare --pid --fork --mount-proc bash -c '
		exec {job}< <(exec unshare --pid --fork "$1" "$2")
		grep -q -m 1 "^ready" <&"$job"
		"$0" list' "$MXBPF" "$DIR/loads" "$LIB"
	expect_status 0
	expect_re 'MXNet \? +\(pid ns\) +no: namespace +.*libmxnet\.so' "$output"
}

@test "An empty list gives one line and exit code 3" {
	expect_run 3 --separate-stderr unshare --pid --fork --mount-proc "$MXBPF" list
	[[ -z $output && ${#stderr_lines[@]} == 1 ]]
	expect_re '^mxbpf: error: no process has loaded MXNet' "$stderr"
	expect_run 3 --separate-stderr unshare --pid --fork --mount-proc "$MXBPF" list --format json
	jq -e '.processes == [] and .looked_at >= 1' <<<"$output"
}

@test "Names and paths of processes are escaped in the table and exact in JSON" {
	local name=$'x\e[7m' dir=$DIR/$'a\e[2J\nb'
	mkdir "$dir"
	mv "$DIR/loads" "$DIR/$name"
	LIB=$dir/libmxnet.so
	make_lib
	start_ready hostile "$DIR/$name" "$LIB"
	run --separate-stderr "$MXBPF" list
	expect_re "^$READY_PID +x\\\\x1b\[7m " "$output"
	[[ $output != *$'\e'* && $(line_of "$READY_PID" | wc -l) == 1 ]]
	"$MXBPF" list --format json | jq -e --argjson pid "$READY_PID" --arg lib "$LIB" \
		'.processes[] | select(.pid == $pid) | .library == $lib and .comm == "x\u001b[7m"'
}
