#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --memory against programs that keep books of what they allocate, hold and let go: equal, to the byte.

load helpers

PROGS=$REPO/tests/memory

setup() {
	need_root
	need_mxnet
	need_torch
	cd "$BATS_TEST_TMPDIR"
}

held() { # MXBPF_ARGS RUNTIME ARGS...
	local python=$PYTHON
	[[ $2 == mxnet ]] || python=$PYTHON_TORCH
	traced "$1" mxbpf.out "$python" "$PROGS/held.py" "$2" books.json "${@:3}"
}

compare() { python3 "$PROGS/compare.py" books.json "$@"; }

@test "MXNet: peak, its moment, who held it, what is left, and what was there before are the program's own account" {
	held '--memory --format json' mxnet
	compare mxbpf.out
	jq -e '.memory.holders | map(select(.name == "[before]")) | .[0].frees == 5' mxbpf.out
}

@test "PyTorch: peak, its moment, who held it and what is left are the program's own account" {
	held '--memory --format json' torch
	compare mxbpf.out
	jq -e '.memory.devices[0].unsized_frees == 5' mxbpf.out
}
