#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Findings about the program's own code in its loop: planted jobs and healthy twins, see tests/causes/run.py.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" --seconds 4 "$@"; }

@test "code of the program that runs inside the optimizer's step or the backward pass is named with its line" {
	judge inside_step inside_backward
}

@test "an exception that the program catches and tries again after is named, in the loop, in a worker and in another rank" {
	judge retries worker_retries rank_retries
}
