#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Parsers of what mxbpf did not write, under AddressSanitizer and UndefinedBehaviorSanitizer: see tests/fuzz/README.md.

setup_file() {
	make -s -C "$REPO" O="$O" fuzzers
}

@test "No input that once was a defect is one again, and the inputs in the tree reach the lines of each parser" {
	"$REPO/tests/fuzz/coverage.sh" "$O"
}

@test "Fifteen seconds of new inputs for each parser find nothing" {
	FUZZ_SECONDS=15 FUZZ_CORPUS=$BATS_TEST_TMPDIR "$REPO/tests/fuzz/run.sh" "$O"
}
