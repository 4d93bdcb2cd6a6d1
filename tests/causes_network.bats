#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Findings on ranks that wait for the network, for one CPU, or for ever, and none of these on a healthy twin.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" --seconds 4 "$@"; }

@test "a rank that is gone, stopped, at its exit or in another collective is named with the lines of all, and a long step is no hang" {
	judge rank_dead rank_mismatch rank_leaves rank_stopped
}

@test "a network between ranks that is slow or loses packets, and ranks or threads that share one CPU by their affinity, are findings" {
	judge rank_link rank_loss rank_pinned pinned_threads
}
