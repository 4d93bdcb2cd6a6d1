#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
# Findings about memory: their lines, and none on healthy twins (tests/causes/run.py).

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/causes/run.py" "$@"; }

@test "Workers that copy pages of their parent are named with the line that touches the objects" {
	judge copied_pages
}

@test "Files that the page cache has lost are named with the line of the worker that reads them" {
	judge disk_reads
}

@test "Memory that a server or a loop keeps is named with its line, and how much of it the runtime holds" {
	judge kept_objects kept_outside
}

@test "A process that swaps is named with the line that waits for its pages" {
	[[ $(stat -fc %T /var/tmp) != tmpfs && ( -w /sys/fs/cgroup/memory/cgroup.procs || -w /sys/fs/cgroup/cgroup.procs ) ]] || skip "no swap file or no control group"
	judge swapping
}
