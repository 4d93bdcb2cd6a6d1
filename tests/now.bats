#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The calls that are open when a window ends, and the threads in them. /proc and the programs' own output are the
# reference.

load helpers

setup() { need_root; }

# Starts a program that hangs; sets HANG_PID.
start_hang() {
	start_ready hang "$O/toy/hang" >/dev/null
	HANG_PID=$READY_PID
}

hang() {
	kill -USR1 "$HANG_PID"
	wait_line "$(out hang)" '^hung$'
}

# The program continues and has the result of a run without mxbpf.
go_on() {
	kill -USR2 "$HANG_PID"
	wait_exit "$HANG_PID"
	jq -e '.operator.gated == 1 and ."Engine wait".WaitForVar == 1' <(tail -n 1 "$(out hang)") >/dev/null
}

# Checks the three open calls in a JSON report.
expect_open() {
	jq -e --arg hang "$HANG_PID" '
		([.open[] | .name] | sort) == ["MXNDArrayWaitToRead", "WaitForVar", "gated"] and
		all(.open[]; .state == "S" and .syscall == "futex" and .open_ns > 0 and .pid == ($hang | tonumber)) and
		([.open[] | select(.name != "gated") | .thread_name] | unique) == ["caller"]' "$1" >/dev/null && return 0
	jq -c '.open' "$1" >&2
	return 1
}

@test "Calls that hang at the end of the window are reported with age, thread, state and system call" {
	start_hang
	start_mxbpf --pid "$HANG_PID" --format json
	hang
	stop_pid "$MXBPF_PID" INT
	expect_open "$(out mxbpf)"
	[[ $(cat "/proc/$HANG_PID/task/$(jq '.open[0].thread' "$(out mxbpf)")/wchan") == $(jq -r '.open[0].wchan' "$(out mxbpf)") ]]
	go_on
}

@test "Calls that hang are reported at each interval, with growing age" {
	start_hang
	start_mxbpf --pid "$HANG_PID" --format json --interval 300ms
	hang
	wait_new_line "$(out mxbpf)" '"open":' 2
	stop_pid "$MXBPF_PID" INT
	expect_open <(tail -n 1 "$(out mxbpf)")
	jq -s -e '[.[] | select(.open) | .open[0].open_ns] | length >= 3 and . == (unique)' "$(out mxbpf)"
	go_on
}

@test "A recording has hanging calls in its tables and CSV, and as unfinished slices in its timeline" {
	local rec=$BATS_TEST_TMPDIR/hang.mxd
	start_hang
	start_mxbpf record --pid "$HANG_PID" -o "$rec"
	hang
	stop_pid "$MXBPF_PID" INT
	expect_open <("$MXBPF" report "$rec" --format json)
	[[ $("$MXBPF" report "$rec" --format csv | grep -c '^"open",.*,"sleeping","futex: ') == 3 ]]
	"$MXBPF" export "$rec" -o - | jq -e '(.traceEvents | map(select(.args.unfinished?))) as $open |
		($open | map(.name) | sort) == ["MXNDArrayWaitToRead", "WaitForVar", "gated"] and
		all($open[]; .ph == "X" and .dur > 0) and all(.traceEvents[]; .ph != "B" and .ph != "b")'
	go_on
}

@test "An operator whose process is killed is reported as begun on a thread that has ended" {
	start_hang
	start_mxbpf --pid "$HANG_PID" --format json
	hang
	kill -KILL "$HANG_PID"
	wait_exit "$MXBPF_PID"
	jq -e '[.open[] | select(.name == "gated" and .state == "X")] | length == 1' "$(out mxbpf)"
}

@test "A window without long open calls has no table of them" {
	start_toy 20 1
	start_mxbpf --pid "$READY_PID" --all
	kill -USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
	run ! grep -q 'still open' "$(out mxbpf)"
}

# Writes the JSON of `mxbpf now` to $NOW.
now() {
	NOW=$BATS_TEST_TMPDIR/now.json
	"$MXBPF" now --pid "$1" --format json -q "${@:2}" >"$NOW"
}

# expect_now JQ-CONDITION: the condition holds for the list of threads.
expect_now() {
	jq -e ".threads | $1" "$NOW" >/dev/null && return 0
	printf 'does not hold: %s\n' "$1" >&2
	jq -c '.threads[] | {tid, name, state, syscall, wchan, lock_held_by, open, last, python, stack: [.stack[]?.function]}' "$NOW" >&2
	return 1
}

# PID MIN: each thread that is still has exactly gdb's frames, at least MIN in all. gdb stops the process and lets it go on.
same_as_gdb() {
	gdb -p "$1" -batch -nx -x "$REPO/tests/now/gdb_stacks.py" 2>/dev/null | sed -n 's/^STACKS //p' >"$BATS_TEST_TMPDIR/gdb.json"
	# A return address may be the first byte of the next function, so mxbpf names the byte before it.
	jq -S -c '[.threads[] | select(.still) | {key: (.tid | tostring),
		value: [.stack | to_entries[] | .value.address + (if .key > 0 then 1 else 0 end)]}] | from_entries' "$NOW" >"$BATS_TEST_TMPDIR/ours.json"
	jq -e --argjson min "$2" '[.[] | length] | add >= $min' "$BATS_TEST_TMPDIR/ours.json" >/dev/null
	diff <(jq -S . "$BATS_TEST_TMPDIR/gdb.json") <(jq -S . "$BATS_TEST_TMPDIR/ours.json") >&2
}

@test "now finds a call that hung after the attach, with name, age, lock, lock owner and stack" {
	start_hang
	start_bg now "$MXBPF" now --pid "$HANG_PID" --format json -d 10s
	wait_line "$(err now)" '^attached'
	hang
	stop_pid "$BG_PID" INT
	NOW=$(out now)
	expect_now "([.[] | select(.open != []) | .name] | sort) == [\"caller\", \"hang\"]"
	expect_now "[.[] | select(.name == \"caller\") | .open[].name] == [\"WaitForVar\", \"MXNDArrayWaitToRead\"]"
	expect_now ".[] | select(.open[0].name == \"gated\") | .state == \"S\" and .syscall == \"futex\" and
		.lock_held_by == $HANG_PID and any(.stack[]; .function == \"mxnet::engine::ThreadedEngine::ExecuteOprBlock\"
		and .call == \"operator.start\")"
	go_on
}

@test "now finds a call that hung before the attach by its stack, which equals gdb's" {
	start_hang
	hang
	now "$HANG_PID" -d 100ms
	expect_now "all(.[]; .open == [] and .still and .state == \"S\")"
	expect_now "any(.[]; .name == \"caller\" and any(.stack[]; .call == \"WaitForVar\" and .class == \"wait\"))"
	expect_now "any(.[]; .lock_held_by == $HANG_PID and any(.stack[]; .call == \"operator.start\"))"
	same_as_gdb "$HANG_PID" 20
	go_on
}

# Starts a real job; sets HANG_PID. faulthandler prints Python's own frames.
start_job() { # INTERPRETER MODE [LIBMXNET]
	start_ready hang "$1" "$REPO/tests/now/hang.py" "${@:2}" >/dev/null
	HANG_PID=$READY_PID
}

# Prints one sorted line per thread with its frames as FILE(LINE): FUNCTION, without the directories of packages.
python_says() {
	kill -USR1 "$HANG_PID"
	wait_line "$(err hang)" '^ +File .* in main$'
	wait_line "$(err hang)" '^ +File .* in <module>$'
	awk '/ \(most recent call first\):$/ { if (line) print line; line = "-" }
		/^  File "/ { split($0, part, "\""); file = part[2]; sub(/.*\/(site|dist)-packages\//, "", file)
			split(part[3], word, " "); f = $0; sub(/.* in /, "", f); line = line " " file "(" word[3] "): " f }
		END { print line }' "$(err hang)" | sort
}

same_as_python() {
	diff <(python_says) <(jq -r '.threads[] | .python // [] | select(length > 0) | "- " + join(" ")' "$NOW" | sort) >&2
}

job_goes_on() { # RESULT
	kill -USR2 "$HANG_PID"
	wait_exit "$HANG_PID"
	grep -q "^result $1$" "$(out hang)"
}

@test "now names a PyTorch operator that waits for another thread, with Python's own stack" {
	need_torch
	start_job "$PYTHON_TORCH" torch-operator
	start_bg now "$MXBPF" now --pid "$HANG_PID" --format json -d 60s
	wait_line "$(err now)" '^attached'
	hang
	stop_pid "$BG_PID" INT
	NOW=$(out now)
	expect_now "any(.[]; .tid == $HANG_PID and .state == \"S\" and .syscall == \"futex\" and
		any(.open[]; .name == \"toy::wait\" and .class == \"cpu_op\"))"
	now "$HANG_PID" -d 100ms # a new session, as if the call hung before the attach
	expect_now "any(.[]; .tid == $HANG_PID and .open == [] and any(.stack[]; .class == \"cpu_op\"))"
	same_as_python
	job_goes_on '\[2.0, 2.0, 2.0\]'
}

@test "now shows a PyTorch collective whose peer is missing, with its Python caller and gloo's thread" {
	need_torch
	start_job "$PYTHON_TORCH" torch-collective
	hang
	now "$HANG_PID" -d 100ms
	expect_now "any(.[]; .tid == $HANG_PID and any(.stack[]; .function == \"c10d::Work::wait\") and
		any(.python[]; test(\"distributed_c10d.py.*: all_reduce\$\")))"
	expect_now 'any(.[]; .name == "pt_gloo_runloop" and any(.stack[]; .function // "" | test("waitRecv")))'
	same_as_python
	job_goes_on '\[3.0, 3.0, 3.0, 3.0\]'
}

@test "now shows an MXNet job that waits for a slow operator, with the custom operator and its Python line" {
	need_mxnet
	start_job "$PYTHON" mxnet-operator
	start_bg now "$MXBPF" now --pid "$HANG_PID" --format json -d 60s
	wait_line "$(err now)" '^attached'
	hang
	stop_pid "$BG_PID" INT
	NOW=$(out now)
	expect_now "any(.[]; .tid == $HANG_PID and .state == \"S\" and any(.open[]; .class == \"wait\") and
		any(.open[]; .class == \"c_api\"))"
	now "$HANG_PID" -d 100ms
	expect_now "any(.[]; .tid == $HANG_PID and .open == [] and any(.stack[]; .class == \"wait\"))"
	expect_now 'any(.[]; any(.python[]?; test("hang.py.*: forward$")))'
	same_as_python
	job_goes_on '\[2.0, 2.0, 2.0\]'
}

frames_on() { # VERSION
	local python=$O/deps/pythons/$1/python
	[[ -x $python ]] || skip "no $python: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	start_job "$python" frames "$O/toy/libmxnet.so"
	hang
	now "$HANG_PID" -d 100ms
	expect_now 'any(.[]; any(.python[]?; test("hang.py.*: generator$")))'
	same_as_python
	job_goes_on 7
}

@test "now shows the frames that CPython 3.9 itself shows" { frames_on 3.9; }
@test "now shows the frames that CPython 3.13 itself shows" { frames_on 3.13; }
@test "now shows the frames that CPython 3.14 itself shows" { frames_on 3.14; }
@test "now shows the frames that CPython 3.15 itself shows" { frames_on 3.15; }
@test "now shows the frames that CPython 3.13t itself shows" { frames_on 3.13t; }
@test "now shows the frames that CPython 3.14t itself shows" { frames_on 3.14t; }

@test "A program that starts its Python after the attach has no stacks in that session, and the reason, and now shows them later" {
	command -v /usr/bin/python3-config >/dev/null || skip "no python3-dev"
	# shellcheck disable=SC2046 # several arguments
	gcc -o "$BATS_TEST_TMPDIR/embeds" "$REPO/tests/stacks/embeds.c" $(/usr/bin/python3-config --includes) -lpython3.11 -pthread
	start_ready hang env "LD_PRELOAD=$O/toy/libmxnet.so" "$BATS_TEST_TMPDIR/embeds" late \
		"$REPO/tests/now/hang.py" frames "$O/toy/libmxnet.so" >/dev/null
	HANG_PID=$READY_PID
	run "$MXBPF" --pid "$HANG_PID" --py-stacks -d 100ms
	expect_re 'its Python 3.11 runs no thread yet; mxbpf goes on without it' "$output"
	kill -USR1 "$HANG_PID"
	wait_lines 2 "$(out hang)" '^ready'
	hang
	now "$HANG_PID" -d 100ms
	expect_now "any(.[]; .tid != $HANG_PID and any(.python[]?; test(\"hang.py.*: generator$\"))) and
		all(.[]; .tid != $HANG_PID or .python == [])"
	same_as_python
	job_goes_on 7
}

in_interpreters_on() { # VERSION
	local python=$O/deps/pythons/$1/python how said=$BATS_TEST_TMPDIR/said.json
	[[ -x $python ]] || skip "no $python: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	for how in '' --shared; do
		# shellcheck disable=SC2086 # no argument, or one
		start_ready hang "$python" "$REPO/tests/stacks/interpreters.py" "$O/toy/libmxnet.so" "$said" $how --hang >/dev/null
		now "$READY_PID" -d 100ms
		diff <(jq -S 'map({tid: .[0], python: [.[1][] | "\(.[0])(\(.[1])): \(.[2])"]}) | sort_by(.tid)' "$said") \
			<(jq -S '[.threads[] | {tid, python}] | sort_by(.tid)' "$NOW") >&2
		[[ $(jq length "$said") == 4 ]]
		stop_pid "$READY_PID" KILL
		rm "$said"*
	done
}

@test "now shows the frames of threads in other interpreters on CPython 3.13" { in_interpreters_on 3.13; }
@test "now shows the frames of threads in other interpreters on CPython 3.14" { in_interpreters_on 3.14; }
@test "now shows the frames of threads in other interpreters on CPython 3.15" { in_interpreters_on 3.15; }

@test "now says why a process with several interpreters of CPython 3.11 has no Python stacks" {
	start_ready hang /usr/bin/python3 "$REPO/tests/stacks/interpreters.py" "$O/toy/libmxnet.so" "$BATS_TEST_TMPDIR/said.json" --shared --hang >/dev/null
	expect_run 0 --separate-stderr "$MXBPF" now --pid "$READY_PID" -d 100ms
	expect_re "no Python stacks of process $READY_PID: its Python 3.11 has made several interpreters" "$stderr"
	run ! grep -q '^  python' <<<"$output"
}

@test "now leaves a stopped process stopped, and says that an ended one has ended" {
	start_hang
	hang
	kill -STOP "$HANG_PID"
	now "$HANG_PID" -d 100ms
	expect_now 'all(.[]; .state == "T" and .still and (.stack | length > 2))'
	[[ $(awk '/^State:/ { print $2 }' "/proc/$HANG_PID/status") == T ]]
	kill -CONT "$HANG_PID"
	go_on
	expect_error 3 "no process with pid $HANG_PID" "$MXBPF" now --pid "$HANG_PID"
}

@test "now never stops or traces a thread" {
	start_hang
	hang
	start_bg trace timeout 60 strace -f -qq -e trace=ptrace,kill,tgkill,tkill,rt_sigqueueinfo,pidfd_send_signal \
		-o "$BATS_TEST_TMPDIR/calls" "$MXBPF" now --pid "$HANG_PID" -d 100ms -q
	wait_exit "$BG_PID"
	grep -q 'caller' "$(out trace)"
	run ! grep . <(grep -v '+++' "$BATS_TEST_TMPDIR/calls")
	go_on
}

@test "now shows the current or last call of running threads, and groups threads that do the same" {
	start_toy 1000000 2
	kill -USR1 "$READY_PID"
	now "$READY_PID" -d 500ms
	expect_now 'all(.[] | select(.state == "R" and .open == []); .tid == '"$READY_PID"' or .last != null)'
	stop_pid "$READY_PID" KILL
	start_hang
	hang
	expect_run 0 --separate-stderr "$MXBPF" now --pid "$HANG_PID" -d 100ms
	expect_re '^thread [0-9]+ \(caller\): sleeping in futex \(' "$output"
	expect_re "^thread [0-9]+ \(hang\): .*for a lock that thread $HANG_PID \(hang\) holds$" "$output"
	expect_re 'ExecuteOprBlock  libmxnet.so  \[operator\]$' "$output"
	go_on
}

@test "now refuses options that do not apply to it" {
	expect_run 2 "$MXBPF" now
	expect_run 2 "$MXBPF" now --pid $$ --by name
	expect_error 3 'looked for libmxnet' "$MXBPF" now --pid $$
}
