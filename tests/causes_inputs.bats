#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Operators that are slow for their inputs, and healthy twins of these jobs.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "Denormal values are found with the line that computes with them, and a processor that takes them as 0 is healthy" {
	judge denormals
}

@test "An operator that is slow for inputs of one size is named with the size and the line" {
	judge slow_sizes
}
