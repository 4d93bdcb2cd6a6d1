#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# The late rank of four, its line and why it is late, from sessions on another rank, on the late rank and on the launcher.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "a rank that waits busily in its backward pass is named by another rank, and no rank among four even ones is" {
	judge rank_spins
}

@test "a session on another rank says that the late one waits for its loader's workers, a lock of its logging, or the disk" {
	judge --seconds 4 rank_loader rank_logs rank_fsyncs
}

@test "a rank with a larger batch, one that reads from the disk, and one that saves a checkpoint are named with their lines" {
	judge rank_batch rank_reads rank_saves
}

@test "a session on the late rank says that its group is throttled" {
	judge --seconds 4 --view late rank_throttled
}

@test "a session on the launcher names the neighbour on the CPU to which the late rank is bound" {
	judge --seconds 4 --view launcher rank_neighbour
}
