#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf -- COMMAND: the command runs as its caller, without a trace of mxbpf, and every call is recorded.

load helpers

setup() {
	root_setup mxnet
	TRAIN=("$PYTHON" "$REPO/tests/workload/mxnet_train.py")
}

@test "mxbpf returns the command's exit status, or 128 plus the signal that ended it" {
	expect_run 7 "$MXBPF" -- sh -c 'exit 7'
	expect_run 143 "$MXBPF" -- sh -c 'kill -s TERM $$'
}

@test "A missing command gives one line and exit code 127, one without execute permission 126" {
	run -127 --separate-stderr "$MXBPF" -- "$BATS_TEST_TMPDIR/absent"
	[[ $stderr == "mxbpf: error: cannot run '$BATS_TEST_TMPDIR/absent': No such file or directory" ]]
	run -126 --separate-stderr "$MXBPF" -- /dev/null
}

@test "A command without a runtime runs to its end, and mxbpf says that nothing was recorded" {
	expect_run 3 --separate-stderr "$MXBPF" -- echo hello
	[[ $output == hello ]]
	expect_re 'loaded no supported library \(looked for libmxnet' "$stderr"
}

# Imitates sudo: the parent process has the user's own environment.
as_sudo() { # MXBPF_ARGS...
	cp "$(command -v bash)" "$BATS_TEST_TMPDIR/sudo"
	# shellcheck disable=SC2016 # for that shell
	env -i HOME=/its/home PATH=/its:/usr/bin:/bin OWN=1 SHARED=its "$BATS_TEST_TMPDIR/sudo" -c \
		'SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody PATH=/secure:/usr/bin:/bin HOME=/other SHARED=given "$@"; exit $?' - "$@"
}

@test "A command under sudo has its caller's user, groups and environment, and no more privileges" {
	# The C library owns signals 32 and 33. The caller of the tests may have left them ignored.
	run --separate-stderr as_sudo "$MXBPF" -q -- sh -c 'id -u; id -g; id -G; echo "$HOME $PATH $OWN $SHARED"; env | grep -c ^SUDO_;
		grep -E "^(Cap[IPEA]|Sig[BI])" /proc/self/status | cut -f 2 | sed s/0000000180000000/0000000000000000/ | sort -u'
	[[ $output == "65534
65534
65534
/its/home /its:/usr/bin:/bin 1 given
0
0000000000000000" ]]
}

@test "The command inherits only standard input, output and error, and the tables follow its output" {
	local script='read -r x; echo "got $x" >&2; exec "$@"' before
	before=$(sh -c 'ls /proc/self/fd | wc -l')
	[[ $("$MXBPF" -q -- sh -c 'ls /proc/self/fd | wc -l' 2>/dev/null) == "$before" ]]
	run --separate-stderr "$MXBPF" -q -- sh -c "$script" - "${TRAIN[@]}" --tiny --steps 3 --print-result <<<input
	expect_status 0
	[[ $stderr == "got input" ]]
	[[ ${lines[0]} == ready* && ${lines[1]} == result* && ${lines[2]} =~ \ iterations?[\ ,] ]]
}

@test "-f json on stdout is only JSON with the command's output on stderr, and -o FILE leaves both in place" {
	local train=("${TRAIN[@]}" --tiny --steps 3 --print-result)
	expect_run 0 --separate-stderr "$MXBPF" --exact -q -f json -- "${train[@]}"
	jq -e '.tables.operator | length > 3' <<<"$output"
	expect_re '^result ' "$stderr"
	expect_run 0 --separate-stderr "$MXBPF" --exact -q -o "$BATS_TEST_TMPDIR/t.csv" -- "${train[@]}"
	[[ -z $stderr && ${lines[0]} == ready* && ${lines[-1]} == result* ]]
	expect_re '^"operator",' "$(<"$BATS_TEST_TMPDIR/t.csv")"
}

# An independent count: bpftrace attaches to the file before the program maps it.
first_calls() { # PROGRAM_TEXT -> {"NAME": COUNT, ...}, sorted
	local lib name script='' python=$PWD/venv/bin/python
	ln -sfn "${PYTHON%/bin/python}" venv # bpftrace takes no path with a blank
	lib=$("$python" -c 'import mxnet.libinfo as l; print(l.find_lib_path()[0])')
	for name in "${CALLS[@]}"; do
		script+="uprobe:$lib:$name /pid == cpid/ { @[\"$name\"] = count(); }"
	done
	bpftrace -f json -c "$python $1" -e "$script" | sed -n 's/^{"type": "map", "data": {"@": \(.*\)}}$/\1/p' | jq -cS .
}

CALLS=(MXListFunctions MXNetFuncListGlobalNames MXLibInfoFeatures MXAPIGetFunctionRegInfo MXSymbolCreateAtomicSymbol
	MXNDArrayCreateEx MXImperativeInvokeEx MXNDArraySyncCopyToCPU MXNotifyShutdown)

same_calls() { # EXPECTED JSON
	expect_same "$1" "$(jq -cS --argjson of "$1" '.tables.MXNET_C_API | group_by(.name) |
		map({key: .[0].name, value: map(.count) | add}) | map(select(.key | in($of))) | from_entries' "$2")"
	[[ $(jq '[.loss.dropped, .loss.unmatched] | add' "$2") == 0 ]]
}

write_program() {
	cat >"$BATS_TEST_TMPDIR/p.py" <<-'EOF'
		import os, sys
		if len(sys.argv) > 1:
		    print('ready', os.getpid(), flush=True)
		    open(sys.argv[1]).read()
		import mxnet as mx
		print((mx.nd.ones((3, 4)) + mx.nd.zeros((3, 4))).asnumpy().sum())
	EOF
}

count_calls() { first_calls "$BATS_TEST_TMPDIR/p.py" >calls; }

@test "Every call is counted from a library's first, also when it is loaded late or behind a wrapper" {
	local expected wrapper
	write_program
	shared launch-calls count_calls
	expected=$(<"$SHARED/calls")
	jq -e 'length >= 6' <<<"$expected"
	for wrapper in '"$@"' 'exec "$@"' '"$@"; exit $?' 'env -- "$@" | cat'; do
		"$MXBPF" --exact --api all --format json -- sh -c "$wrapper" - "$PYTHON" "$BATS_TEST_TMPDIR/p.py" >"$BATS_TEST_TMPDIR/out"
		echo "$wrapper"
		same_calls "$expected" "$BATS_TEST_TMPDIR/out"
	done
}

@test "The command waits until mxbpf has attached, however long that takes, and no call is missed" {
	local expected
	write_program
	shared launch-calls count_calls
	expected=$(<"$SHARED/calls")
	mkfifo "$BATS_TEST_TMPDIR/in"
	start_ready mxbpf "$MXBPF" --exact --api all -o "$BATS_TEST_TMPDIR/json.json" -- "$PYTHON" "$BATS_TEST_TMPDIR/p.py" "$BATS_TEST_TMPDIR/in"
	kill -s STOP "$BG_PID"
	: >"$BATS_TEST_TMPDIR/in"
	local waited=0
	# The command stops at each larger library that it maps, until mxbpf has handled it.
	while timeout "$WAIT_SECONDS" bash -c 'until [[ $(ps -o stat= -p "$0") == [TZ]* ]] || grep -q ^12 "$1"; do sleep 0.02; done' \
		"$READY_PID" "$(out mxbpf)" && [[ $(ps -o stat= -p "$READY_PID") == T* ]]; do
		((waited += 1))
		kill -s CONT "$BG_PID"
		timeout 20 bash -c 'while [[ $(ps -o stat= -p "$0") == T* ]]; do sleep 0.02; done' "$READY_PID"
		kill -s STOP "$BG_PID"
	done
	kill -s CONT "$BG_PID"
	((waited))
	wait_exit "$BG_PID"
	same_calls "$expected" "$BATS_TEST_TMPDIR/json.json"
}

@test "The result of a launched job is bit-identical" {
	local args=(--tiny --steps 50 --seed 3 --print-result) plain
	plain=$("${TRAIN[@]}" "${args[@]}" | grep ^result)
	expect_run 0 --separate-stderr "$MXBPF" -q --trace "$BATS_TEST_TMPDIR/t.json" -- "${TRAIN[@]}" "${args[@]}"
	[[ $(grep ^result <<<"$output") == "$plain" ]]
}

@test "record -- COMMAND writes a recording of the whole run" {
	expect_run 0 --separate-stderr "$MXBPF" record -o "$BATS_TEST_TMPDIR/r.mxd" -- "${TRAIN[@]}" --tiny --steps 7
	run "$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --format json
	[[ $(jq '[.tables.MXNET_C_API[] | select(.name == "MXAutogradBackwardEx").count] | add' <<<"$output") == 7 ]]
}

@test "-d ends the window and not the command" {
	run --separate-stderr "$MXBPF" --exact -d 300ms --format json -- "${TRAIN[@]}" --tiny --seconds 2 --print-result
	[[ $status == [05] ]] # on a busy machine the window may end before the first call
	expect_re '^result ' "$stderr"
	jq -e '.window.duration_ns | . > 0 and . < 2000000000' <<<"$output"
}

@test "A signal to mxbpf is passed to the command, and mxbpf waits for its end" {
	start_bg mxbpf "$MXBPF" --exact --format json -- "${TRAIN[@]}" --tiny --print-result
	wait_line "$(err mxbpf)" '^ready'
	end_pid "$BG_PID" TERM
	expect_re '^result ' "$(<"$(err mxbpf)")" # TERM lets the program end normally
	jq -e '.tables.operator | length > 3' "$(out mxbpf)"
}

@test "Ctrl-C reaches the command once" {
	cat >"$BATS_TEST_TMPDIR/count.sh" <<-'EOF'
		n=0
		trap 'n=$((n + 1))' INT
		echo ready
		while ((n == 0)); do read -r -t 0.1 <>"$1"; done
		read -r -t 0.5 <>"$1" # time for a second signal to arrive
		echo "interrupts $n"
	EOF
	mkfifo "$BATS_TEST_TMPDIR/never"
	"$PYTHON" - "$MXBPF" --exact -- bash "$BATS_TEST_TMPDIR/count.sh" "$BATS_TEST_TMPDIR/never" >"$BATS_TEST_TMPDIR/seen" <<-'EOF'
		import os, pty, sys
		pid, terminal = pty.fork()
		if not pid:
		    os.execv(sys.argv[1], sys.argv[1:])
		seen = b''
		try:
		    while part := os.read(terminal, 4096):
		        if b'ready' in part:
		            os.write(terminal, b'\x03')
		        seen += part
		except OSError:
		    pass
		os.waitpid(pid, 0)
		print(seen.decode())
	EOF
	expect_re 'interrupts 1' "$(<"$BATS_TEST_TMPDIR/seen")"
}

@test "SIGKILL of mxbpf while the command waits for it leaves the command running" {
	mkfifo "$BATS_TEST_TMPDIR/in"
	# shellcheck disable=SC2016 # for that shell
	start_ready mxbpf "$MXBPF" --exact -- sh -c 'echo "ready $$"; read -r x <"$1"; exec echo went on' - "$BATS_TEST_TMPDIR/in"
	kill -s STOP "$BG_PID"
	echo >"$BATS_TEST_TMPDIR/in"
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(ps -o stat= -p "$0") == T* ]]; do sleep 0.02; done' "$READY_PID" # stopped at its exec
	kill -s KILL "$BG_PID"
	wait_line "$(out mxbpf)" '^went on$'
	wait_gone "$READY_PID"
}
