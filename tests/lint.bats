#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The tree itself, and the lint: each rule is broken once in a copy and must be found.

load helpers

lint() { "$REPO/tests/lint/run.sh" "$O" "$@"; }

@test "rooms include what they may, sizes, licences, no trace of a machine" { lint tree; }
@test "C is in the house format" { lint format; }
@test "shell scripts pass shellcheck" { lint shell; }
@test "C passes cppcheck" { lint cppcheck; }
@test "words are spelled right" { lint spelling; }

# FILE and a line added to it are an offence that matches REGEX.
expect_offence() {
	local file=$BATS_TEST_TMPDIR/tree/$1
	mkdir -p "$(dirname "$file")"
	printf '/* SPDX-License-Identifier: Apache-2.0 */\n%s\n' "$2" >"$file"
	cd "$BATS_TEST_TMPDIR/tree"
	run python3 "$REPO/tests/lint/tree.py" "$1"
	expect_status 1
	expect_re "^$1:[0-9]+: .*$3" "$output"
}

@test "lint finds an include that the rooms' rules forbid" {
	expect_offence user/model/x.c '#include "target/target.h"' 'model may not see target'
	expect_offence user/sink/x.c '#include <bpf/libbpf.h>' 'may not see that library'
	expect_offence user/base/x.h '#include "mxbpf_event.h"' 'base sees no contract'
	expect_offence user/plan/x.c '#include "cmd/cmd.h"' 'plan may not see cmd'
	expect_offence user/nowhere/x.c '#include "base/err.h"' 'has no row'
	expect_offence bpf/x.bpf.c '#include "base/err.h"' 'bpf sees include and vmlinux'
	expect_offence include/x.h '#include "base/err.h"' 'a contract sees contracts only'
}

@test "lint finds a file or a function that is too long" {
	expect_offence user/base/x.c "$(seq 801)" '802 lines'
	expect_offence user/base/x.c "$(printf 'int f(void)\n{\n'; seq 79; echo '}')" 'function of 81 lines'
}

@test "lint finds a registry's host, a machine's path and what is left open" {
	expect_offence user/base/x.c "/* see py""pi.org */" 'registry host'
	expect_offence tests/x.sh "cd /wo""rk/here" 'path of one machine'
	expect_offence tests/x.py "# TO""DO: later" 'left open'
}
