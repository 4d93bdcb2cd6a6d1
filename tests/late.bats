#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Code that a process maps after mxbpf has been attached to it: kernels that torch.compile makes, each a library of its own.

load helpers

export BATS_TEST_TIMEOUT=300

setup() {
	need_root
	need_torch
	WAIT_SECONDS=120
	# What torch.compile has made once stays.
	export TORCHINDUCTOR_CACHE_DIR=$O/deps/inductor
	PROGRAM=("$PYTHON_TORCH" "$REPO/tests/workload/torch_compile.py")
}

# The workload with its standard input at fd 9.
start_compiling() {
	mkfifo "$BATS_TEST_TMPDIR/in"
	start_bg workload bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "${PROGRAM[@]}"
	exec 9>"$BATS_TEST_TMPDIR/in"
	wait_line "$(out workload)" '^ready' "$BG_PID"
	WORKLOAD_PID=$BG_PID
}

call() { # FUNCTION TIMES
	echo "$1 $2" >&9
	wait_line "$(out workload)" "^done $1"
}

counts() { # JSON
	jq -c '[.tables["compiled kernel"][].count] | sort' "$1"
}

@test "kernels that torch.compile made before are there, those that it makes later are attached as they are mapped; nobody is stopped" {
	start_compiling
	call first 1
	start_mxbpf --pid "$WORKLOAD_PID" --format json
	call first 20
	call second 1 # its library is mapped in this call
	call second 29
	echo 'end 0' >&9
	wait_exit "$MXBPF_PID" 60
	[[ $(counts "$(out mxbpf)") =~ ^\[20,(29|30)\]$ ]]
	# Each is named by its file, and the report says where that is.
	jq -e '.target.libraries as $libs | .tables["compiled kernel"] | length == 2 and all(.[]; (.name | startswith("inductor::c"))
		and (.name[10:] as $hash | any($libs[]; .path | contains("/" + $hash))))' "$(out mxbpf)"
	jq -e '.window | .late_libraries == 2 and .late_refused == 0 and (has("fallbacks") | not)' "$(out mxbpf)"
	jq -e '.loss | .dropped + .unmatched + .unreadable == 0' "$(out mxbpf)"
	# torch.profiler does not know them: they are no operators.
	jq -e 'all(.tables.operator[]; .name | startswith("inductor") | not)' "$(out mxbpf)"
}

@test "of a launched command, a compiled kernel is seen from its first call, and has a category of its own in a trace" {
	printf 'first 7\nsecond 3\n' >"$BATS_TEST_TMPDIR/in"
	run --separate-stderr "$MXBPF" --no-follow --trace "$BATS_TEST_TMPDIR/t.json" --format json -- \
		bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "${PROGRAM[@]}"
	expect_status 0
	sed -n '/^{$/,$p' <<<"$output" >"$BATS_TEST_TMPDIR/json"
	[[ $(counts "$BATS_TEST_TMPDIR/json") == '[3,7]' ]]
	jq -e '[.traceEvents[] | select(.cat == "compiled_kernel")] | length == 10 and all(.name | startswith("inductor::"))' \
		"$BATS_TEST_TMPDIR/t.json"
	[[ $(jq '[.traceEvents[] | select(.cat == "cpu_op" and (.name | startswith("inductor")))] | length' "$BATS_TEST_TMPDIR/t.json") == 0 ]]
}

@test "torch's own tables do not show compiled kernels" {
	printf 'first 7\n' >"$BATS_TEST_TMPDIR/in"
	run --separate-stderr "$MXBPF" --no-follow --layout torch -- bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "${PROGRAM[@]}"
	expect_status 0
	expect_re '^ *aten::ones ' "$output"
	! expect_re 'inductor' "$output" 2>/dev/null
}
