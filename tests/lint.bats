#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The tree passes the lint, and the lint detects each rule's violation in a copy.

load helpers

lint() { "$REPO/tests/lint/run.sh" "$O" "$@"; }

@test "Includes, sizes and licences follow the rules, and no file names a machine" { lint tree; }
@test "C files have the house format" { lint format; }
@test "Shell scripts pass shellcheck" { lint shell; }
@test "C files pass cppcheck" { lint cppcheck; }
@test "Words are spelled correctly" { lint spelling; }

# A file with this line violates a rule, and the message matches REGEX.
expect_offence() {
	local file=$BATS_TEST_TMPDIR/tree/$1
	mkdir -p "$(dirname "$file")"
	printf '/* SPDX-License-Identifier: Apache-2.0 */\n%s\n' "$2" >"$file"
	cd "$BATS_TEST_TMPDIR/tree"
	expect_error 1 "^$1:[0-9]+: .*$3" python3 "$REPO/tests/lint/tree.py" "$1"
}

@test "lint detects an include that the layers forbid" {
	expect_offence user/model/x.c '#include "target/target.h"' 'model may not see target'
	expect_offence user/view/x.c '#include <bpf/libbpf.h>' 'may not see that library'
	expect_offence user/view/text/x.c '#include "feature/kv/sheet.h"' 'view may not see feature.view'
	expect_offence user/base/x.h '#include "mxbpf_event.h"' 'base sees no contract'
	expect_offence user/plan/x.c '#include "cmd/cmd.h"' 'plan may not see cmd'
	expect_offence user/nowhere/x.c '#include "base/err.h"' 'has no row'
	expect_offence bpf/x.bpf.c '#include "base/err.h"' 'bpf sees include and vmlinux'
	expect_offence include/x.h '#include "base/err.h"' 'a contract sees contracts only'
}

@test "lint takes the layer of a feature's file from its name" {
	expect_offence user/feature/kv/fold.c '#include "view/sheet.h"' 'feature.fold may not see view'
	expect_offence user/feature/kv/fold.c '#include "model/priv.h"' 'model/priv.h is for user/model/ alone'
	expect_offence user/feature/kv/kv.h '#include "view/sheet.h"' 'feature.fold may not see view'
	expect_offence user/feature/kv/sheet_keys.c '#include "attach/attach.h"' 'feature.view may not see attach'
	expect_offence user/feature/kv/read.c '#include "model/model.h"' 'feature.read may not see model'
	expect_offence user/feature/kv/load.c '#include "view/view.h"' 'feature.load may not see view'
	expect_offence user/feature/kv/options.c '#include "attach/attach.h"' 'feature.options may not see attach'
}

@test "lint detects a cycle of rooms and a room that is too large" {
	local big=$BATS_TEST_TMPDIR/big
	mkdir -p "$big/user/base"
	cd "$big"
	for i in {1..8}; do { echo '// SPDX-License-Identifier: Apache-2.0' && seq 750; } >"user/base/$i.c"; done
	expect_error 1 'user/base:1: room of 6008 lines, at most 6000' python3 "$REPO/tests/lint/tree.py" user/base/*.c
	sed "s/'base': ('',/'base': ('view',/" "$REPO/tests/lint/tree.py" >tree.py
	expect_error 1 'circle of rooms: base sees view sees base' python3 tree.py
	mkdir -p user/feature/{a,b}
	printf '%s\n' '// SPDX-License-Identifier: Apache-2.0' '#include "feature/b/b.h"' >user/feature/a/fold.c
	printf '%s\n' '// SPDX-License-Identifier: Apache-2.0' '#include "feature/a/sheet.h"' >user/feature/b/sheet.c # another layer
	python3 "$REPO/tests/lint/tree.py" user/feature/{a/fold,b/sheet}.c
	printf '%s\n' '// SPDX-License-Identifier: Apache-2.0' '#include "feature/a/a.h"' >user/feature/b/fold.c
	expect_run 1 python3 "$REPO/tests/lint/tree.py" user/feature/{a,b}/*.c
	expect_re 'circle of rooms: a, feature.fold sees b, feature.fold sees a, feature.fold' "$output"
}

@test "lint detects a file or a function that is too long" {
	expect_offence user/base/x.c "$(seq 801)" '802 lines'
	expect_offence user/base/x.c "$(printf 'int f(void)\n{\n'; seq 79; echo '}')" 'function of 81 lines'
}

@test "lint detects a registry's host, a machine's path and open work" {
	expect_offence user/base/x.c "/* see py""pi.org */" 'registry host'
	expect_offence tests/x.sh "cd /wo""rk/here" 'path of one machine'
	expect_offence tests/x.py "# TO""DO: later" 'left open'
}
