#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What mxbpf's records say of a PyTorch job beyond times, against torch.profiler on the same program: which operator made which
# node of the backward pass, and sizes, types and strides of tensors.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" "$@"; }

same_joins() { # PROGRAM
	reference "$1"
	recording "$1"
	compare builtin.json mxbpf.json --trace job.mxd
	cmp builtin.result mxbpf.result
}

@test "forward and backward are joined as torch joins them: a CNN" { same_joins sgd; }
@test "forward and backward are joined as torch joins them: a compiled net" { same_joins compiled; }
@test "forward and backward are joined as torch joins them: two Python threads" { same_joins threads; }

# Arrows as well. record_shapes keeps tensors alive, which changes when they are freed: sizes come from a run of their own.
same_shapes() { # PROGRAM
	reference_shapes "$1"
	reference "$1"
	recording_shapes "$1"
	compare builtin.json mxbpf.json --trace job.mxd --shapes shaped.json
	"$MXBPF" export job.mxd -o export.json
	compare builtin.json mxbpf.json --trace export.json --shapes shaped.json
	cmp builtin.result mxbpf.result
}

@test "sizes, types and strides of tensors are torch's: a CNN, lists of tensors among them" { same_shapes adam-foreach; }
@test "sizes, types and strides of tensors are torch's: a transformer, nested tensors among them" { same_shapes transformer; }
@test "sizes, types and strides of tensors are torch's: every way to pass an argument, every kind of tensor" { same_shapes forms; }
@test "sizes, types and strides of tensors are torch's: TorchScript, values on its stack" { same_shapes script; }
@test "sizes, types and strides of tensors are torch's: vmap, custom Functions" { same_shapes custom; }
@test "sizes, types and strides of tensors are torch's: exceptions in between" { same_shapes exceptions; }

@test "the judge finds a size, a type, a stride or an arrow too many" {
	same_shapes sgd
	local change file
	for change in 'shaped .slices[5][2] += 1' 'shaped .by_shape[3][2] += 1' 'shaped .arguments = .arguments[1:]' \
		'builtin .links[0][2] += 1'; do
		file=${change%% *}.json
		jq "${change#* }" "$file" >changed.json
		mv "$file" kept.json
		mv changed.json "$file"
		echo "$change"
		run compare builtin.json mxbpf.json --trace job.mxd --shapes shaped.json
		expect_status 1
		mv kept.json "$file"
	done
}

@test "shapes need the operators: said before anything is attached" {
	torch_server
	run "$MXBPF" --pid "$SERVER_PID" --shapes --probes mem -d 100ms
	expect_status 2
	expect_re '^mxbpf: error: .*--probes op' "$output"
}
