#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Parsers of what mxbpf did not write, under AddressSanitizer and UndefinedBehaviorSanitizer: see tests/fuzz/README.md.

setup_file() { make -s -C "$REPO" O="$O" fuzzers; }

@test "No input that once was a defect is one again, and the inputs in the tree reach the lines of each parser" {
	"$REPO/tests/fuzz/coverage.sh" "$O"
}

# The seed is always the same, so that two runs try much the same inputs. `make fuzz` tries new seeds, for longer.
@test "Five seconds of random inputs for each parser find nothing" {
	FUZZ_SECONDS=5 FUZZ_SEED=33 FUZZ_CORPUS=$BATS_TEST_TMPDIR "$REPO/tests/fuzz/run.sh" "$O"
}
