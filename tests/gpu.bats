#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/facts.sh measures on a machine with a GPU. These tests run it on the double of a GPU, which says nothing about a
# GPU, but reveals errors in the checks themselves.

load helpers

FACTS=$REPO/tests/gpu/facts.sh

@test "Each GPU check completes on the double of a GPU and says that it ran on the double" {
	local check
	cd "$BATS_TEST_TMPDIR"
	MXBPF= MXBPF_GPU_DOUBLE=$O/gpu/libcupti.so.12 PYTHON=python3 run "$FACTS" facts.md
	expect_status 0 || { cat facts.md; return 1; }
	for check in $(python3 "$REPO/tests/gpu/facts.py" --list); do
		expect_re "^## $check\$" "$(<facts.md)"
	done
	expect_re 'answers of the double' "$(<facts.md)"
	# One call launches one kernel, and one call waits for them.
	expect_re '^- records: .*runtime.: 2001, .kernel.: 2000' "$(<facts.md)"
	expect_re '^- kernels that begin before their launch: 0 of 20; without a launch 0' "$(<facts.md)"
	expect_re '^- another one while it stands: 39 ' "$(<facts.md)"
	expect_re '^- kernels: 5000 of 5000, dropped 0, [0-9]{2,} buffers' "$(<facts.md)"
	! grep -E '\*\*(failed|did not end)' facts.md
}

@test "A GPU check that fails or hangs is in the results and in the exit code" {
	cd "$BATS_TEST_TMPDIR"
	cc -shared -fPIC -o libcupti.so.bad -x c - <<-'EOF'
		#include <unistd.h>
		int cuptiSubscribe(void **subscriber, void *f, void *data) { return 999; }
		int cuptiSubscribe_v2(void **subscriber, void *f, void *data, void *p) { for (;;) pause(); }
	EOF
	cp -P "$O"/gpu/libgpuops.so "$O"/gpu/libcu*.so.1* . # without CUPTI's double
	export MXBPF_GPU_DOUBLE=$PWD/libcupti.so.bad PYTHON=python3
	MXBPF= run "$FACTS" facts.md buffers
	expect_status 1
	expect_re '^- \*\*failed\*\* with exit code 1: cuptiSubscribe: 999 ' "$(<facts.md)"
	MXBPF= LIMIT=1 run "$FACTS" facts.md multiple-subscribers
	expect_status 1
	expect_re '^- \*\*did not end within 1 s\*\*' "$(<facts.md)"
}

@test "Without a GPU the checks are refused with the reason" {
	[[ ! -e /dev/nvidia0 ]] || skip "there is a GPU"
	PYTHON=python3 run "$FACTS" "$BATS_TEST_TMPDIR/facts.md"
	expect_status 3
	expect_re '^facts.sh: no GPU that PyTorch can use: ' "$output"
	[[ ! -e $BATS_TEST_TMPDIR/facts.md ]]
}
