#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/run.sh itself, on a tree with bats files that these tests write.

load helpers

setup() {
	TREE=$BATS_TEST_TMPDIR/tree
	mkdir -p "$TREE/tests/unit" "$TREE/build/unit"
	cp "$REPO/tests/run.sh" "$TREE/tests"
	: >"$TREE/tests/seconds"
	printf 'all units progs:\n\t@:\n' >"$TREE/Makefile"
	cd "$BATS_TEST_TMPDIR" || return 1
	export TEST_OF_RUN=$BATS_TEST_TMPDIR
	unset ONLY LANES # they belong to the run of this test
}

file() { # NAME LINE...: a bats file
	printf '%s\n' "${@:2}" >"$TREE/tests/$1.bats"
}

# Unsets O, because another tests/run.sh may run this test.
run_tree() { env -u O "$@" "$TREE/tests/run.sh" "$TREE/build"; }

# Succeeds if no `sleep SECONDS` of this test is left.
none_left() { # SECONDS
	local pid
	for pid in $(pgrep -fx "sleep $1"); do
		! grep -szqxF "TEST_OF_RUN=$TEST_OF_RUN" "/proc/$pid/environ" || return 1
	done
}

@test "Files run in parallel, tests with the tag alone run by themselves, and the last line has the sums" {
	# Each of the two tests waits until the other one has started.
	mkfifo ab ba
	file a '@test "a" {' "echo >'$PWD/ab' && read -r <'$PWD/ba'" '}'
	file b '@test "b" {' "read -r <'$PWD/ab' && echo >'$PWD/ba'" '}' '# bats test_tags=alone' '@test "quiet" {' \
		"mkdir '$PWD/quiet'; read -rt 0.5 <> <(:) || rmdir '$PWD/quiet'" '}'
	file c '# bats file_tags=alone' '@test "c" {' "[[ ! -e '$PWD/quiet' ]]" '}' '@test "not yet" { skip "no day"; }'
	expect_run 0 run_tree LANES=2
	[[ $(grep -c '^ok ' <<<"$output") == 4 && ${lines[-1]} == '4 passed, 0 failed, 1 skipped' ]]
	expect_re 'skipped: not yet: no day' "$output"
	expect_re '^ok +1 passed .* s  b\.bats alone$' "$output"
}

@test "A failure is shown with its output, repeated at the end, and gives exit code 1" {
	file a '@test "holds" { true; }' '@test "breaks" { echo said; false; }'
	expect_run 1 run_tree
	expect_re '^    FAILED: breaks$' "$output"
	expect_re '# said$' "$output"
	[[ ${lines[-2]} == 'FAILED: a.bats: breaks' && ${lines[-1]} == '1 passed, 1 failed, 0 skipped' ]]
}

@test "A test of measured times that fails measures again, and the output says so; one that fails twice has failed" {
	file a "load '$REPO/tests/helpers'" 'setup() { measured; }' '@test "first" {' "[[ -e '$PWD/first' ]] || { : >'$PWD/first' && false; }" '}' \
		'@test "both" {' "echo >>'$PWD/both'; false" '}'
	expect_run 1 run_tree
	[[ $(grep -c '^    measured again: ' <<<"$output") == 2 && $(wc -l <both) == 2 ]]
	expect_re '^    measured again: first$' "$output"
	[[ ${lines[-2]} == 'FAILED: a.bats: both' && ${lines[-1]} == '1 passed, 1 failed, 0 skipped' ]]
}

@test "ONLY selects files and unit programs, and is an error that lists all if it matches none" {
	file one '@test "1" { true; }'
	file two '@test "2" { true; }'
	touch "$TREE/tests/unit/test_three.c"
	printf '#!/bin/sh\necho "ok 1 - three"; echo 1..1\n' >"$TREE/build/unit/test_three"
	chmod +x "$TREE/build/unit/test_three"
	expect_run 0 run_tree ONLY='^one|three'
	[[ ${lines[-1]} == '2 passed, 0 failed, 0 skipped' && $output != *two.bats* ]]
	expect_run 1 run_tree ONLY=four
	expect_re 'no file of tests .* ONLY=four' "$output"
	expect_re 'unit/test_three one.bats two.bats' "$output"
}

@test "Only what the chosen files need is built, and --tag selects tests" {
	file fast '# bats test_tags=smoke' '@test "yes" { true; }' '@test "no" { false; }'
	file other '@test "never" { false; }'
	touch "$TREE/tests/unit/test_"{one,two}.c
	printf 'all progs build/unit/test_one build/unit/test_two:\n\t@echo $@ >>made\n' >"$TREE/Makefile"
	run run_tree ONLY=test_one
	expect_same $'all\nbuild/unit/test_one' "$(sort "$TREE/made")"
	rm "$TREE/made"
	expect_run 0 env -u O "$TREE/tests/run.sh" --tag=smoke "$TREE/build"
	[[ ${lines[-1]} == '1 passed, 0 failed, 0 skipped' && $output != *other* ]]
	expect_same $'all\nprogs' "$(sort "$TREE/made")"
}

@test "A file that hangs is ended with every process that it started, and leftovers of any file are ended, too" {
	file hangs '@test "hangs" {' 'setsid sleep 1111 & sleep 1112' '}'
	file leaves '@test "leaves" {' 'setsid sleep 1113 3>&- >/dev/null 2>&1 &' '}'
	expect_run 1 run_tree FILE_SECONDS=2
	expect_re 'FAILED: hangs.bats: ended early, 0 of 1 tests, exit code 124' "$output"
	expect_re '^ok +1 passed .* leaves.bats$' "$output"
	local n
	for n in 1111 1112 1113; do none_left "$n"; done
}

@test "SIGINT and SIGTERM end every started process" {
	local signal status
	file hangs '@test "hangs" {' "setsid sleep 1114 & echo >'$PWD/here'; sleep 1115" '}'
	mkfifo here
	for signal in INT TERM; do
		start_bg run env --default-signal=INT "$TREE/tests/run.sh" "$TREE/build"
		timeout 20 cat here
		kill -s "$signal" "$BG_PID"
		status=0
		wait_exit "$BG_PID" || status=$?
		[[ $status == 1 ]]
		expect_re '^FAILED: interrupted' "$(<run.out)"
		none_left 1114
		none_left 1115
	done
}

@test "The ten slowest files are named, the slowest first" {
	local i
	for i in {1..11}; do
		file "f$i" '@test "t" { true; }'
	done
	file f5 '@test "t" { read -rt 3 <> <(:) || true; }'
	# bats may leave its timer behind if a test ends before the timer has started, and then waits for it.
	BATS_TEST_TIMEOUT=10 run run_tree
	expect_status 0
	[[ ${lines[-12]} == 'The ten slowest files:' ]]
	printf '%s\n' "${lines[@]: -11:10}" >ten
	sort -c -s -n -r ten
	expect_re '^ +[0-9]+ s, +[0-9]+ s of CPU time  f5\.bats$' "$(<ten)"
}

@test "Unit tests without their libraries are skipped with the reason, and none fails" {
	local t
	for t in caller calibrate elf hidden layout marks omp; do
		touch "$TREE/tests/unit/test_$t.c"
		ln -s "$O/unit/test_$t" "$TREE/build/unit"
	done
	expect_run 0 "$TREE/tests/run.sh" --unit "$TREE/build"
	expect_re 'skipped: the symbols of libmxnet 1\.9\.1 .*: no libmxnet\.so in MXBPF_TEST_LIBMXNET' "$output"
	expect_re 'skipped: .*: no libtorch_cpu\.so in MXBPF_TEST_LIBTORCH' "$output"
	expect_re '^[0-9]+ passed, 0 failed, 7 skipped$' "${lines[-1]}"
}

@test "probe_links omits links of other sessions, and waits for the test's own" {
	local other
	need_root
	start_toy 1000 2
	start_bg other env BATS_TEST_TMPDIR=/elsewhere "$MXBPF" --exact --pid "$READY_PID"
	other=$BG_PID
	wait_line other.err '^attached' "$other"
	sed -s -n 's/^link_id:[[:space:]]*//p' "/proc/$other/fdinfo"/* | sort >theirs
	start_mxbpf --exact --pid "$READY_PID" # links of slices come and go
	sed -s -n 's/^link_id:[[:space:]]*//p' "/proc/$MXBPF_PID/fdinfo"/* | sort >own
	probe_links | sort >seen
	[[ -s theirs && -s own && -z $(comm -12 theirs seen) && -z $(comm -23 own seen) ]]
	stop_pid "$MXBPF_PID" KILL
	no_new_links ''
}
