#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A program in C++ that uses PyTorch's libraries without Python. Its own account is the reference.

load helpers

setup_file() {
	need_root
	need_torch
	local torch=${MXBPF_TEST_LIBTORCH%/lib/*}
	g++ -O1 -std=c++20 -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" -o "$BATS_FILE_TMPDIR/train" \
		"$REPO/tests/workload/torch_train.cpp" -L"$torch/lib" -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# Runs STEPS steps under mxbpf with ARGS. The report is in $(out mxbpf), and the program's account in $(out train).
train() { # STEPS ARGS...
	start_ready train "$BATS_FILE_TMPDIR/train" "$1" ${MODULE:+"$MODULE"} >/dev/null
	start_mxbpf --pid "$READY_PID" --format json "${@:2}"
	kill -s USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
}

counts_are_its_own() {
	jq -e --argjson did "$(tail -n 1 "$(out train)")" '[.tables.operator[] | select($did[.name]) | {(.name): .count}] | add == $did' \
		"$(out mxbpf)"
}

@test "A program in C++ has exact counts, iterations by the steps of its optimizer, memory, and a warning that it has no stacks" {
	train 30 --memory --shapes --py-stacks
	counts_are_its_own
	grep -q 'runs no Python.*; mxbpf goes on without it' "$(err mxbpf)"
	# The first iteration ends with the first step that is seen.
	jq -e '.iterations.loops[0] | .count == 29 or .count == 30' "$(out mxbpf)"
	jq -e '.tables.memory[0].allocs > 100' "$(out mxbpf)"
}

@test "With the agent, a program in C++ has the same counts and iterations" {
	train 30 --agent --shapes
	counts_are_its_own
	jq -e '.iterations.loops[0] | .count == 29 or .count == 30' "$(out mxbpf)"
}

@test "In a program in C++, the time outside of operators is called that of your own code, not of Python" {
	train 1000 --exact --format table
	grep -q 'iterations per second, .* in your own code' "$(out mxbpf)"
	! grep -q Python "$(out mxbpf)"
}

@test "A server in C++ that runs a module of TorchScript has exact counts, repeats of operators, and its functions in now" {
	"$PYTHON_TORCH" -c '
import torch
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).eval()
torch.jit.script(net).save("module.pt")'
	MODULE=module.pt
	train 300 --sample 499
	counts_are_its_own
	jq -e '.iterations == null and .samples.count > 10 and ([.samples.ran_in[].name] | index("aten::addmm"))' "$(out mxbpf)"
	train 1000 --exact --format table
	grep -q '^No optimizer: the same [0-9]* calls of operators repeat' "$(out mxbpf)"
	run ! grep -E 'Python|^refused' "$(out mxbpf)"
	start_ready train "$BATS_FILE_TMPDIR/train" 100000 module.pt >/dev/null
	# It waits, and calls an operator every 5 ms. A look that meets it in the operator need not show main.
	for _ in {1..5}; do "$MXBPF" now --pid "$READY_PID"; done >now
	grep -qE '^ +main +train$' now
}
