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

# Runs STEPS steps of WHAT under mxbpf with ARGS. The report is in $(out mxbpf), and the program's account in $(out train).
train() { # STEPS ARGS...
	start_ready train "${PROGRAM:-$BATS_FILE_TMPDIR/train}" "$1" "${WHAT:-train}" >/dev/null
	start_mxbpf --pid "$READY_PID" --format json "${@:2}"
	end_ready
}

counts_are_its_own() {
	jq -e --argjson did "$(tail -n 1 "$(out train)")" '[.tables.operator[] | select($did[.name]) | {(.name): .count}] | add == $did' \
		"$(out mxbpf)"
}

# All rows but that of the calls before the steps, and $2: {"name": count} of those that nobody tells PyTorch's observer of. $1 of its
# account are names that it makes for a profiler alone.
counts_are_pytorchs() { # NAMES CALLS
	jq -e --argjson did "$(tail -n 1 "$(out train)")" --argjson names "$1" --argjson calls "$2" '
		[.tables.operator[] | select(.name != "aten::neg") | {(.name): .count}] | add
		== ($did | delpaths([$names[] | [.]])) + $calls' "$(out mxbpf)"
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
	run ! grep -q Python "$(out mxbpf)"
}

@test "Every operator and backward node of a training loop in C++ has the count that PyTorch tells an observer" {
	export OBSERVE=1
	train 30 --memory
	counts_are_pytorchs '["detach", "detach_"]' '{}'
	train 30 --memory --agent
	counts_are_pytorchs '[]' '{}'
}

@test "A finding names the function of a program in C++ that computes outside of operators, and by its address if the file has no names" {
	local finding='.findings[] | select(.finding == "own_code")'
	WHAT=augment
	train 80 --exact
	jq -e "$finding"' | (.evidence | test("^/.*/train: \\(anonymous namespace\\)::augment, [0-9]+% of")) and .next == "--pid PID --sample 99"' "$(out mxbpf)"
	strip -o stripped "$BATS_FILE_TMPDIR/train"
	PROGRAM=$PWD/stripped train 80 --exact
	address=$(nm "$BATS_FILE_TMPDIR/train" | awk '/ t .*augment/ { sub(/^0*/, "", $1); print $1; exit }')
	jq -e --arg at "/stripped: +0x$address, " "$finding | .evidence | contains(\$at)" "$(out mxbpf)"
}

@test "A package of AOTInductor that a program in C++ runs has exact counts of its operators, those past the dispatcher too, and of its kernels" {
	# The package has its source: the calls of one run.
	"$PYTHON_TORCH" -c '
import json, re, torch, zipfile
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).eval()
with torch.no_grad():
	program = torch.export.export(net, (torch.ones(64, 256),))
	torch._inductor.aoti_compile_and_package(program, package_path="net.pt2")
package = zipfile.ZipFile("net.pt2")
source = package.read(next(n for n in package.namelist() if n.endswith("wrapper.cpp"))).decode()
calls = re.findall(r"(aoti_torch_cpu_\w+|cpp_fused_\w+)\(", source)
print(json.dumps({name: 30 * len(re.findall(r"^\s+(?:AOTI\w+\()?%s\(" % name, source, re.M)) for name in set(calls)}))' | tail -n 1 >calls.json
	export OBSERVE=1 WHAT=net.pt2
	train 30
	shims=$(jq -c 'with_entries(select(.key | startswith("aoti_")))' calls.json)
	counts_are_pytorchs '[]' "$shims"
	jq -e '.aoti_torch_cpu_addmm_out == 60' calls.json
	kernels_are_its_own() {
		jq -e --slurpfile calls calls.json '[.tables["compiled kernel"][] | {(.name): .count}] | add
			== ($calls[0] | with_entries(select(.key | startswith("cpp_"))))' "$(out mxbpf)"
	}
	kernels_are_its_own
	train 30 --agent
	counts_are_pytorchs '[]' '{}'
	kernels_are_its_own
}

@test "A server in C++ that runs a module of TorchScript has exact counts, repeats of operators, and its functions in now" {
	"$PYTHON_TORCH" -c '
import torch
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).eval()
torch.jit.script(net).save("module.pt")'
	WHAT=module.pt
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
