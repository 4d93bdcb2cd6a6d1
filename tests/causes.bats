#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Findings on jobs with a planted cause, with their lines, and none on their healthy twins. tests/causes/run.py all runs all of them.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "Python code of the program, and a rank that computes what the others do not, are named with their lines" {
	judge own_code rank_decodes
}
