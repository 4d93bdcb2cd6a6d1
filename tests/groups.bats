#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --by stack, module and shape on a real PyTorch job: what tells the rows of one name apart takes nothing from them, and shapes are
# those that torch.profiler says.

load helpers

setup() { torch_setup; }

# Sums of each name's columns, however its rows are split.
sums() { jq -S '.tables.operator | group_by(.name) | map({(.[0].name): [map([.count, .total_ns, .self_ns, .self_alloc_bytes]) |
	transpose[] | add]}) | add' "$@"; }

# Where modules tell rows apart, each of a convolution is in its own.
CONVOLUTIONS='[.tables.operator[] | select(.name == "aten::conv2d" and .count > 0).stack[0]] | length > 0 and all(test("Conv2d"))'

# Of a recording: the rows of --by WHAT add up to those by name, in which there is one row a name.
adds_up() { # WHAT...
	local what
	"$MXBPF" report --format json job.mxd >name.json
	[[ $(jq '.tables.operator | length' name.json) == "$(jq '.tables.operator | map(.name) | unique | length' name.json)" ]]
	for what; do
		"$MXBPF" report --by "$what" --format json job.mxd >"$what.json"
		(($(jq '.tables.operator | length' "$what.json") > $(jq '.tables.operator | length' name.json)))
		expect_same "$(sums name.json)" "$(sums "$what.json")"
	done
}

@test "rows by stack and module add up to those by name; in the backward pass they are the forward ones'" {
	recording_stacks sgd
	adds_up stack module
	jq -e '[.tables.operator[] | select(.name == "ReluBackward0").stack] | length > 0 and all(any(test("nn.Module: ConvNet")))' stack.json
	jq -e '[.tables.operator[] | select(.name == "AddmmBackward0") | .stack] == [["nn.Module: Linear"]]' module.json
	jq -e "$CONVOLUTIONS" module.json
	"$MXBPF" report --by stack --layout torch job.mxd | grep -q 'Source Location'
}

@test "a session shows stacks as its recording does" {
	traced_prog '--py-stacks --by module --format json' sgd --bare
	jq -e '[.tables.operator[] | select(.name == "AddmmBackward0") | .stack] == [["nn.Module: Linear"]]' mxbpf.json
}

@test "rows by shape are torch.profiler's: a CNN, optimizers over lists of tensors, a transformer, custom Functions" {
	local name
	reference_shapes sgd
	traced_prog '--shapes --by shape --format json' sgd --bare
	"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json mxbpf.json
	for name in adam-foreach transformer custom; do
		reference_shapes "$name"
		recording_shapes "$name"
		"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json mxbpf.json
	done
}

@test "rows by shape and module are there when the kernel adds up, too" {
	traced_prog '--stats --shapes --by shape --format json' sgd --bare
	reference_shapes sgd
	"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json mxbpf.json
	traced_prog '--stats --py-stacks --by module --format json' sgd --bare
	jq -e "$CONVOLUTIONS" mxbpf.json
}

@test "rows by shape add up to those by name, and a recording shows what its session did" {
	recording_shapes sgd
	adds_up shape
	reference_shapes sgd
	"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json shape.json
	"$MXBPF" report --by shape --layout torch job.mxd | grep 'aten::conv2d .* \[\[8, 3, 16, 16\], \[8, 3, 3, 3\], \[8\], \[\], \[\], \[\], \[\]\]  $'
	"$MXBPF" report --by event --format json --top 1000000 job.mxd >events.json
	expect_same "$(jq '.tables.operator | group_by([.name, .shapes]) | map([.[0].name, .[0].shapes, length])' events.json)" \
		"$(jq '.tables.operator | group_by([.name, .shapes]) | map([.[0].name, .[0].shapes, (map(.count) | add)])' shape.json)"
}

# One run under both profilers: its annotations have names as MXNet's bulks have, or an operator's, or none.
@test "self and total times are torch.profiler's; a thread has at most the window, and an annotation is not the operator of its name" {
	local by
	traced_prog 'record -o job.mxd' nested --builtin builtin.json --all-threads --gates
	for by in name thread device; do
		"$MXBPF" report --by $by --format json job.mxd >$by.json
	done
	"$JUDGE/nested.py" builtin.json name.json thread.json device.json
	"$MXBPF" report --layout torch job.mxd | grep -c '^ *aten::mm ' | grep -x 2
}

@test "a node of more tensors than are looked at has no shapes, which counts as truncated: none are left out silently" {
	"$MXBPF" --shapes --by shape --format json -- "$PYTHON_TORCH" -c '
import torch
sum(torch.ones(40, requires_grad=True).unbind()).backward()' >shape.json
	jq -e '[.tables.operator[] | select(.name == "UnbindBackward0") | .shapes] == [[]] and .loss.truncated >= 1' shape.json
}
