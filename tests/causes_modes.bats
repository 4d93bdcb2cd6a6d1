#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Modes for debugging that were left on, compilers that compile anew, and workers that start anew: named with their lines, and nothing
# false about their healthy twins.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "modes for debugging that were left on are named, and variables that turn nothing on are not" {
	judge anomaly deterministic
}

@test "a function that is compiled anew is named with the guard that failed, also from a session on another rank" {
	judge recompiles rank_recompiles
}

@test "a loop that waits for new workers at each epoch is told so" {
	judge epochs
}
