#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Short forms of tests/day/day.py and tests/day/cycles.py, which docs/testing.md describes.

load helpers

setup() { root_setup torch; }

@test "A day of restarts, upgrades, jumping clocks, full disks and rings, and clients that hang loses no count and leaves nothing" {
	python3 "$REPO/tests/day/day.py" --mxbpf "$MXBPF" --python "$PYTHON_TORCH" --toy "$O/toy" --loads "$O/prog/loads" \
		--seconds 0 --short
}

@test "Sessions on living jobs, again and again, leave memory of mxbpf, jobs and kernel flat and measure the same durations" {
	python3 "$REPO/tests/day/cycles.py" --mxbpf "$MXBPF" --python "$PYTHON_TORCH" --toy "$O/toy" --cycles 45
}
