#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A short form of tests/day/day.py, which docs/testing.md describes.

load helpers

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
}

@test "A day of restarts, upgrades, jumping clocks, full disks and rings, and clients that hang loses no count and leaves nothing" {
	python3 "$REPO/tests/day/day.py" --mxbpf "$MXBPF" --python "$PYTHON_TORCH" --toy "$O/toy" --loads "$O/prog/loads" \
		--seconds 0 --short
}
