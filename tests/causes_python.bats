#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Causes that are Python's own: the garbage collector, locks, threads that poll. docs/causes.md describes them.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

# bats test_tags=alone
@test "Python's garbage collector is named with the line that makes the objects, also in a late rank" {
	judge --seconds 4 collector rank_collects
}
