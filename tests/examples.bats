#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Examples that MXNet and PyTorch publish, compared with the runtimes' own profilers and with their own results.
# tests/examples/programs.py lists them and where to find their files. matrix.py runs every option, these tests only three.

load helpers

setup() { need_root; }

judged() { # PROGRAM CELLS
	local why
	why=$(PYTHONPATH=$REPO/tests/examples python3 -c 'import sys, files, programs; print(files.missing(programs.PROGRAMS[sys.argv[1]]))' "$1")
	[[ -z $why ]] || skip "$why"
	python3 "$REPO/tests/examples/matrix.py" --out "$BATS_TEST_TMPDIR/out" --cells "$2" "$1"
}

QUICK='^(--format json|record, all options|export chrome)$'

@test "MXNet's Gluon LSTM-CRF example has its own result and its profiler's counts under mxbpf" { judged lstm_crf "$QUICK"; }
@test "PyTorch's language model example has its own result and its profiler's counts under mxbpf" { judged language_lstm "$QUICK"; }
