#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What mxbpf's records say of a PyTorch job beyond times, against torch.profiler on the same program: which operator made which
# node of the backward pass.

load helpers

JUDGE=$REPO/tests/judge_torch

setup() {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	export TORCHINDUCTOR_CACHE_DIR=$O/deps/inductor
}

prog() { "$PYTHON_TORCH" "$JUDGE/prog.py" "$@"; }

# mxbpf around exactly the section of a program: its recording is job.mxd, its tables are in mxbpf.json.
recorded() { # PROGRAM MXBPF_ARGS
	"$PYTHON_TORCH" "$REPO/tests/judge/drive.py" --tool "$MXBPF record --pid {pid} -o job.mxd $2" --stdout /dev/null -- \
		"$PYTHON_TORCH" "$JUDGE/prog.py" "$1" --bare --result mxbpf.result
	"$MXBPF" report job.mxd --format json >mxbpf.json
}

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" "$@"; }

same_joins() { # PROGRAM
	prog "$1" --builtin builtin.json --result builtin.result 3>&- &
	recorded "$1" ''
	wait $!
	compare builtin.json mxbpf.json --trace job.mxd
	cmp builtin.result mxbpf.result
}

@test "forward and backward are joined as torch joins them: a CNN" { same_joins sgd; }
@test "forward and backward are joined as torch joins them: all parameters at once" { same_joins adam-foreach; }
@test "forward and backward are joined as torch joins them: a transformer" { same_joins transformer; }
@test "forward and backward are joined as torch joins them: a compiled net" { same_joins compiled; }
@test "forward and backward are joined as torch joins them: TorchScript" { same_joins script; }
@test "forward and backward are joined as torch joins them: double backward, custom Functions" { same_joins custom; }
@test "forward and backward are joined as torch joins them: two Python threads" { same_joins threads; }
@test "forward and backward are joined as torch joins them: exceptions in between" { same_joins exceptions; }
