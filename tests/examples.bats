#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Examples that MXNet and PyTorch publish (tests/examples/programs.py: which, and where their files are looked for) against the
# runtimes' own profilers and the programs themselves. tests/examples/matrix.py has every option; here are the cheapest.

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
