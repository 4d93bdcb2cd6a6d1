#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Findings on jobs that become slower and slower, or push more than runs, and none on their healthy twins.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "Iterations that become slower are named with the line that grows, and batches of all lengths are no trend" {
	judge detach replay
}

@test "A queue of MXNet's engine that grows is named with the line that pushes, and is no leak" {
	judge never_waits
}
