#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Parsers of what mxbpf did not write, under AddressSanitizer and UndefinedBehaviorSanitizer: see tests/fuzz/README.md.

setup_file() {
	make -s -C "$REPO" O="$O" fuzzers
}

@test "No input that once was a defect is one again, and the inputs in the tree reach the lines of each parser" {
	"$REPO/tests/fuzz/coverage.sh" "$O"
}

# Every second fuzzer, because a test may take five minutes. The seed is always the same, so that two runs try much the same
# inputs. `make fuzz` tries new seeds.
fuzz() { # 0 or 1
	local all names=() i
	mapfile -t all < <(basename -s .c "$REPO"/tests/fuzz/fuzz_*.c)
	for ((i = $1; i < ${#all[@]}; i += 2)); do names+=("${all[i]}"); done
	FUZZ_SECONDS=30 FUZZ_SEED=33 FUZZ_CORPUS=$BATS_TEST_TMPDIR "$REPO/tests/fuzz/run.sh" "$O" "${names[@]}"
}

@test "Half a minute of random inputs for each parser finds nothing: one half of the fuzzers" {
	fuzz 0
}

@test "Half a minute of random inputs for each parser finds nothing: the other half" {
	fuzz 1
}
