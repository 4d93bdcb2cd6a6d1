#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A short form of tests/day/day.py, which docs/testing.md describes.

load helpers

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
}

@test "Through restarts, upgrades, clocks that jump, full disks, a full ring and clients that hang, no count is lost or falls and nothing is left" {
	python3 "$REPO/tests/day/day.py" --mxbpf "$MXBPF" --python "$PYTHON_TORCH" --toy "$O/toy" --loads "$O/prog/loads" --seconds 0 --short
}
