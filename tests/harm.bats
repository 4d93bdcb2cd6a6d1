#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The agent never harms a program, at whatever moment mxbpf is killed. This is a short form of tests/harm/harm.py, which
# docs/testing.md describes.

load helpers

setup() { torch_setup; }

@test "Programs over two allocators, which fork and load libraries, survive SIGKILL of mxbpf at random moments with the same results and import tables" {
	python3 "$REPO/tests/harm/harm.py" --mxbpf "$MXBPF" --python "$PYTHON_TORCH" --dir "$PWD" --injections 4 --whole 1 \
		--allocators glibc,jemalloc --seed "$RANDOM"
}
