#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --by stack, module and shape on a real PyTorch job: splitting the rows of a name loses nothing, and shapes equal
# torch.profiler's.

load helpers

setup() { torch_setup; }

# Sums of the columns of each name, over all its rows.
sums() { jq -S '.tables.operator | group_by(.name) | map({(.[0].name): [map([.count, .total_ns, .self_ns, .self_alloc_bytes]) |
	transpose[] | add]}) | add' "$@"; }

# Each convolution is in its own module.
CONVOLUTIONS='[.tables.operator[] | select(.name == "aten::conv2d" and .count > 0).stack[0]] | length > 0 and all(test("Conv2d"))'

# The rows of a recording by each WHAT add up to those by name, which has one row for each name.
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

@test "Rows by stack and module add up to those by name, and backward rows have the forward pass's stacks" {
	recording_stacks sgd
	adds_up stack module
	jq -e '[.tables.operator[] | select(.name == "ReluBackward0").stack] | length > 0 and all(any(test("nn.Module: ConvNet")))' stack.json
	jq -e '[.tables.operator[] | select(.name == "AddmmBackward0") | .stack] == [["nn.Module: Linear"]]' module.json
	jq -e "$CONVOLUTIONS" module.json
	"$MXBPF" report --by stack --layout torch job.mxd | grep -q 'Source Location'
}

@test "A session shows the stacks that its recording shows" {
	traced_prog '--py-stacks --by module --format json' sgd --bare
	jq -e '[.tables.operator[] | select(.name == "AddmmBackward0") | .stack] == [["nn.Module: Linear"]]' mxbpf.json
}

@test "Rows by shape equal torch.profiler's for a CNN, foreach optimizers, a transformer and custom Functions" {
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

@test "Rows without profiling overhead are those that calls can have, in each grouping, with probes and with the agent" {
	local file by files=()
	recording_stacks sgd
	cp job.mxd probes.mxd
	traced_prog 'record --agent --py-stacks -o agent.mxd' sgd --bare
	"$MXBPF" report --format json --top 0 probes.mxd agent.mxd >merged.json
	for file in probes agent; do
		for by in name thread device stack module process; do
			"$MXBPF" report --by "$by" --format json "$file.mxd" >"$file-$by.json"
			files+=("$file-$by.json")
		done
	done
	"$REPO/tests/judge/can_be.py" merged.json "${files[@]}"
	"$MXBPF" report --by event --format json --top 1000000 probes.mxd >events.json
	jq -e '[.tables[][]] | length > 100 and all(.self_ns <= .total_ns and (.account | .on_cpu_ns + .runq_ns + .blocked_ns + .elsewhere_ns) == .total_ns)' events.json
}

@test "Rows by shape add up to those by name, and a recording shows what its session showed" {
	recording_shapes sgd
	adds_up shape
	reference_shapes sgd
	"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json shape.json
	"$MXBPF" report --by shape --layout torch job.mxd | grep 'aten::conv2d .* \[\[8, 3, 16, 16\], \[8, 3, 3, 3\], \[8\], \[\], \[\], \[\], \[\]\]  $'
	"$MXBPF" report --by event --format json --top 1000000 job.mxd >events.json
	expect_same "$(jq '.tables.operator | group_by([.name, .shapes]) | map([.[0].name, .[0].shapes, length])' events.json)" \
		"$(jq '.tables.operator | group_by([.name, .shapes]) | map([.[0].name, .[0].shapes, (map(.count) | add)])' shape.json)"
}

# Both profilers record one run. Its annotations are named like MXNet's bulks, like an operator, or not at all.
@test "Self and total times equal torch.profiler's, no thread exceeds the window, and annotations are not operators" {
	local by
	traced_prog 'record -o job.mxd' nested --builtin builtin.json --all-threads --gates
	for by in name thread device; do
		"$MXBPF" report --by $by --format json job.mxd >$by.json
	done
	"$JUDGE/nested.py" builtin.json name.json thread.json device.json
	"$MXBPF" report --layout torch job.mxd | grep -c '^ *aten::mm ' | grep -x 2
}

@test "A node with too many tensors has no shapes and counts as truncated" {
	"$MXBPF" --exact --shapes --by shape --format json -- "$PYTHON_TORCH" -c '
import torch
sum(torch.ones(40, requires_grad=True).unbind()).backward()' >shape.json
	jq -e '[.tables.operator[] | select(.name == "UnbindBackward0") | .shapes] == [[]] and .loss.truncated >= 1' shape.json
}
