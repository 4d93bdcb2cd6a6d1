#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --py-stacks: the Python frames at the start of an operator or a call. The programs' own frames and torch.profiler's are
# the reference. tests/stacks/setup.sh installs other versions of CPython.

load helpers

STACKS=$REPO/tests/stacks

setup() { root_setup; }

told() { # INTERPRETER: runs prog.py under mxbpf and compares its stacks
	traced 'record -o calls.mxd --py-stacks --probes api' record.out "$1" "$STACKS/prog.py" "$O/toy/libmxnet.so" said.json
	python3 "$STACKS/compare.py" said.json calls.mxd
}

judged() { # PROGRAM
	torch_setup
	torch_server
	"${SERVED[@]}" "$STACKS/torch_builtin.py" "$1" builtin.json
	recording_stacks "$1"
	python3 "$STACKS/compare_torch.py" builtin.json job.mxd "$("$MXBPF" report job.mxd -f json | jq .loss.unreadable)"
}

@test "Stacks equal the program's own in threads, generators, coroutines, C frames, deep recursion and with strange names" {
	told /usr/bin/python3
}

told_on() { # VERSION
	local python=$O/deps/pythons/$1/python
	[[ -x $python ]] || skip "no $python: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	told "$python"
}

@test "Stacks equal the program's own on CPython 3.9" { told_on 3.9; }
@test "Stacks equal the program's own on CPython 3.13" { told_on 3.13; }
@test "Stacks equal the program's own on CPython 3.14" { told_on 3.14; }
# bats test_tags=next
@test "Stacks equal the program's own on CPython 3.15" { told_on 3.15; }
@test "Stacks equal the program's own on CPython 3.13t" { told_on 3.13t; }
@test "Stacks equal the program's own on CPython 3.14t" { told_on 3.14t; }

@test "Stacks equal the program's own with musl, in the main thread and in others" {
	local musl=$O/deps/pythons/musl
	[[ -x $musl/python ]] || skip "no $musl/python: tests/stacks/setup_musl.sh makes it"
	mkdir musl
	musl-gcc -shared -fPIC -O1 -I"$musl/source" -I"$musl/source/Include" -o musl/libmxnet.so "$STACKS/musl.c"
	traced 'record -o calls.mxd --py-stacks --probes api' record.out "$musl/python" "$STACKS/prog.py" "$PWD/musl/libmxnet.so" said.json
	python3 "$STACKS/compare.py" said.json calls.mxd
}

embeds() { # LINKER-ARG...: builds a program that has Python inside
	command -v /usr/bin/python3-config >/dev/null || skip "no python3-dev"
	# shellcheck disable=SC2046 # several arguments
	gcc -o embeds "$STACKS/embeds.c" $(/usr/bin/python3-config --includes) "$@" -pthread
}

told_embedded() { # HOW
	traced 'record -o calls.mxd --py-stacks --probes api' record.out ./embeds "$1" "$STACKS/prog.py" "$O/toy/libmxnet.so" said.json
	python3 "$STACKS/compare.py" said.json calls.mxd
}

@test "Stacks equal the program's own if it has libpython, also if Python runs in another thread than the main one" {
	embeds -lpython3.11
	told_embedded main
	told_embedded thread
}

@test "Stacks equal the program's own if Python is linked into it" {
	local archive
	archive=$(/usr/bin/python3-config --configdir)/libpython3.11.a
	[[ -f $archive ]] || skip "no $archive"
	embeds -no-pie -Wl,-export-dynamic "$archive" -lexpat -lz -lm -ldl
	told_embedded thread
}

entered_on() { # VERSION
	local python=$O/deps/pythons/$1/python how
	[[ -x $python ]] || skip "no $python: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	for how in '' --shared; do
		# shellcheck disable=SC2086 # no argument, or one
		traced 'record -o calls.mxd --py-stacks --probes api' record.out "$python" "$STACKS/interpreters.py" "$O/toy/libmxnet.so" said.json $how
		python3 "$STACKS/compare.py" said.json calls.mxd
	done
}

@test "Stacks of threads that go through interpreters equal the program's own on CPython 3.13" { entered_on 3.13; }
@test "Stacks of threads that go through interpreters equal the program's own on CPython 3.14" { entered_on 3.14; }
# bats test_tags=next
@test "Stacks of threads that go through interpreters equal the program's own on CPython 3.15" { entered_on 3.15; }

@test "Before CPython 3.12 a process that makes a second interpreter has no stacks from then on, and one warning says why" {
	traced 'record -o calls.mxd --py-stacks --probes api' record.out \
		/usr/bin/python3 "$STACKS/interpreters.py" "$O/toy/libmxnet.so" said.json --shared 2>drive.err
	[[ $(grep -c 'no Python stacks of process .* made several interpreters' drive.err) == 1 ]]
	"$MXBPF" report calls.mxd --by stack --format json |
		jq -e '[.tables.MXNET_C_API[] | [.count, .stack]] == [[72, []]] and .loss.unreadable > 0'
}

@test "Operators of a CNN have torch.profiler's frames and modules" {
	need_torch
	judged sgd
}

@test "Operators of a program with caught exceptions have torch.profiler's frames and modules" {
	need_torch
	judged exceptions
}

@test "A program has the same result and counts with stacks" {
	torch_setup
	reference threads
	traced_prog '--format json --py-stacks' threads --bare --result watched
	cmp builtin.result watched
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json
}

@test "MXNet calls and their child processes' calls are below their source lines" {
	need_mxnet
	local how
	for how in --launched '--launched --spawn'; do
		# shellcheck disable=SC2086 # words
		printf '2\n0\n' | "$MXBPF" record -q -o forks.mxd --py-stacks --probes api -- \
			"$PYTHON" "$REPO/tests/workload/mxnet_forks.py" --calls 3000 $how
		"$MXBPF" report forks.mxd --by stack --format json >tables.json
		jq '[.tables.MXNET_C_API[] | select(.name == "MXRandomSeed") | {count, stack: .stack[0:2]}]' tables.json | tee seeds.json
		# The program starts two workers. Each call has a line of mxnet.random and a line of the program.
		jq -e 'map(.count) | add == 6000' seeds.json
		jq -e 'all(.stack[0] | test("^mxnet/random.py\\([0-9]+\\): seed$"))' seeds.json
		jq -e 'all(.stack[1] | test("/mxnet_forks.py\\([0-9]+\\): work$"))' seeds.json
		jq -e '.loss.dropped == 0' tables.json
	done
}

@test "A process without Python is profiled without stacks, with the reason, and calls that Python does not make are refused" {
	start_toy 60 3
	start_mxbpf --exact --pid "$READY_PID" --py-stacks --format json
	end_ready
	expect_re 'runs no Python, .*; mxbpf goes on without it' "$(<"$(err mxbpf)")"
	jq -e '(.tables.operator | length > 0) and
		([.window.notes[] | select(.name == "refused").text] | length == 1 and (.[0] | test("^--py-stacks: .* runs no Python")))' "$(out mxbpf)"
	start_workload
	expect_error 2 'Python' "$MXBPF" --pid "$WORKLOAD_PID" --py-stacks --probes op -d 1
}
