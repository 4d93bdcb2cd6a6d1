#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One program on every MXNet on PyPI, with that version's own profiler as the reference for each table. The table of docs/mxnet.md
# has the results.

load helpers

HERE=$REPO/tests/versions
DEPS=$O/deps/versions

setup() { root_setup mxnet; }

# Selects MXNet VERSION for the tests' own Python, which has one of its own.
mxnet() { # VERSION
	[[ $1 == 1.9.1 ]] && return 0
	[[ -f $DEPS/$1/stamp ]] || skip "no MXNet $1 at $DEPS: tests/versions/setup.sh"
	export PYTHONPATH=$DEPS/$1
}

library() { # VERSION
	[[ $1 == 1.9.1 ]] && "$PYTHON" -c 'import mxnet; print(mxnet.__path__[0] + "/libmxnet.so")' || echo "$DEPS/$1/mxnet/libmxnet.so"
}

# Copies the library with one bit of its build-id flipped: the same code in an unknown build, with its dependencies beside it.
other_build() { # VERSION
	local lib
	lib=$(library "$1")
	mkdir lib
	ln -s "${lib%/*}"/*.so* lib/
	rm lib/libmxnet.so
	cp --reflink=auto "$lib" lib/
	"$PYTHON" "$HERE/other_build.py" lib/libmxnet.so
}

# Runs the version's own profiler once per file.
builtin() { # VERSION
	BUILTIN=$BATS_FILE_TMPDIR/$1
	[[ -f $BUILTIN.table.txt ]] || "$PYTHON" -W ignore "$HERE/prog.py" --builtin "$BUILTIN" >/dev/null
}

traced_prog_of() { traced '--api all --format json' mxbpf.json "$PYTHON" -W ignore "$HERE/prog.py" --bare "$@"; }

# Features that may be missing are in the table of docs/mxnet.md.
judged() { # VERSION [MAY_BE_MISSING...]
	local version=$1 without=() feature
	for feature in "${@:2}"; do without+=(--without "$feature"); done
	mxnet "$version"
	builtin "$version"
	traced_prog_of
	mv mxbpf.json single.json
	traced_prog_of --bulk
	# Options that the version does not allow are left out.
	traced '--api all --format json --life --memory --layers --shapes --by shape' options.json \
		"$PYTHON" -W ignore "$HERE/prog.py" --bare --bulk
	"$PYTHON" "$HERE/compare.py" "$version" "$BUILTIN" single.json --bulk mxbpf.json --options options.json \
		-o "$BATS_FILE_TMPDIR/$version.cells" "${without[@]}"
}

# Checks that every planned probe is found, or every one whose name matches.
resolves() { # PID [BEGIN_REGEX]
	run --separate-stderr "$MXBPF" check --pid "$1"
	expect_re '^  ok +operator\.start ' "$output"
	expect_re '^  ok +memory\.alloc' "$output"
	run grep -E "^  NO +${2:-}" <<<"$output"
	expect_status 1
}

@test "MXNet 2.0.0b1 has the counts of its own profiler" { judged 2.0.0b1; }
# bats test_tags=next
@test "MXNet 1.9.1 has the counts of its own profiler" { judged 1.9.1; }
@test "MXNet 1.8.0.post0 has the counts of its own profiler" { judged 1.8.0.post0; }
@test "MXNet 1.7.0.post2 has the counts of its own profiler" { judged 1.7.0.post2; }
@test "mxnet-mkl 1.6.0, whose engine functions have no names, has the counts of its own profiler" {
	judged mkl-1.6.0 'operators in bulks' 'layers, shapes' 'Custom in Python' 'memory by operator'
}
@test "MXNet 1.5.1.post0, whose engine functions have no names, has the counts of its own profiler" {
	judged 1.5.1.post0 'operators in bulks' 'layers, shapes' 'Custom in Python' 'memory by operator'
}

@test "MXNet 1.6.0, which is packed by UPX, is refused with that reason" {
	mxnet 1.6.0
	start_ready packed "$PYTHON" -c 'import mxnet, os, time; print("ready", os.getpid(), flush=True); time.sleep(100)'
	expect_run 3 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 1s
	expect_re 'libmxnet.so is packed by UPX: its code lies in anonymous memory, not in the file' "$stderr"
	expect_run 3 --separate-stderr "$MXBPF" check --pid "$READY_PID"
	"$MXBPF" list --format json | jq -e --argjson pid "$READY_PID" '.processes[] | select(.pid == $pid) |
		.attachable == false and (.reason | test("packed by UPX"))'
	echo '{"version": "1.6.0", "packed": true}' >"$BATS_FILE_TMPDIR/1.6.0.cells"
}

@test "mxnet-cu112 resolves every probe" {
	[[ -f $DEPS/cu112-1.9.1/stamp ]] || skip "no mxnet-cu112 at $DEPS: tests/versions/setup.sh"
	start_ready cuda "$O/prog/maps_elf" "$(library cu112-1.9.1)"
	resolves "$READY_PID"
	"$MXBPF" check --pid "$READY_PID" >rows
	expect_re '^  ok +MXNet 1\.9\.1 \(cu112\) in ' "$(<rows)"
	# The library of memory.throw, libgcc_s, is in each process that runs MXNet, but not in this program.
	expect_run 1 grep -E '^  no +((inside|custom|life|mark|kv)\.|memory\.[^t])' rows
	expect_re '^  ok +inside\.fcompute_executor ' "$(<rows)"
	echo '{"version": "cu112-1.9.1", "resolves": true}' >"$BATS_FILE_TMPDIR/cu112-1.9.1.cells"
}

# mxnet-cu112 needs a GPU to run, so this compares code instead: equal functions build, copy and free these structures alike.
@test "mxnet-cu112 has the structures of operators in bulks and of arrays where MXNet 1.9.1 has them" {
	[[ -f $DEPS/cu112-1.9.1/stamp ]] || skip "no mxnet-cu112 at $DEPS: tests/versions/setup.sh"
	local pushes='(12PushFCompute|14PushFComputeEx|12PushOperator)E' executors='(FCompute|StatefulCompute)(Ex)?Executor'
	expect_run 0 "$HERE/same_code.py" "$(library 1.9.1)" "$(library cu112-1.9.1)" \
		"^_ZZN5mxnet10imperative$pushes.*[CD]1E|^_ZN5mxnet4exec[0-9]+$executors[CD]1E|^_ZN5mxnet7NDArrayC1ERKS0_$"
	expect_re '^1[0-9] functions, 0 differ$' "$output"
}

# The code shows the same offsets that are known by build-id. User annotations need function names that this code lacks.
other_build_is_judged() { # VERSION
	mxnet "$1"
	other_build "$1"
	builtin "$1"
	export MXNET_LIBRARY_PATH=$PWD/lib/libmxnet.so
	traced_prog_of
	"$PYTHON" "$HERE/compare.py" "$1" "$BUILTIN" mxbpf.json --without 'user marks' --without 'Custom in Python'
}

@test "A rebuilt MXNet 2.0.0b1 has its own profiler's counts, with offsets read from its code" { other_build_is_judged 2.0.0b1; }
@test "A rebuilt MXNet 1.5.1.post0, without function names, has its own profiler's counts, with offsets read from its code" { other_build_is_judged 1.5.1.post0; }

@test "Rebuilds of every other version show operators, calls, memory and waits by their code" {
	local v
	for v in 1.9.1 1.8.0.post0 1.7.0.post2 mkl-1.6.0; do
		[[ $v == 1.9.1 || -f $DEPS/$v/stamp ]] || continue
		other_build "$v"
		start_ready "anew-$v" "$O/prog/maps_elf" "$PWD/lib/libmxnet.so"
		resolves "$READY_PID" '(api|operator|memory|wait)\.'
		expect_re '^  ok +operator\.start .*; offsets read from its code' "$("$MXBPF" check --pid "$READY_PID")"
		# Features whose offsets the code does not show are off.
		expect_run 1 grep -E '^  ok +(inside|custom|mark\.st|counter|marker|life\.(push|ready)|pool)' <("$MXBPF" check --pid "$READY_PID")
		stop_pid "$READY_PID"
		rm -rf lib
	done
}

@test "The table of docs/mxnet.md equals what these tests measured" {
	[[ $(find "$BATS_FILE_TMPDIR" -name '*.cells' | wc -l) == 8 ]] || skip "not every version was there"
	"$PYTHON" "$HERE/table.py" --check "$REPO/docs/mxnet.md" "$BATS_FILE_TMPDIR"/*.cells
}
