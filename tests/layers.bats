#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --layers: the layer of each operator, with the model's own description as the reference.

load helpers

setup() { root_setup mxnet; }

STEPS=10

# The job's own account: two forward passes and one backward pass per step.
check_layers() { # REPORT BY_LAYER NODES
	python3 - "$@" $STEPS <<'PY'
import collections, json, sys
report, by_layer, nodes, steps = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3])), int(sys.argv[4])
calls = collections.Counter()
for row in json.load(open(report))['tables']['operator']:
    if row['layer']:
        calls[row['layer'], row['name']] += 1
for node, op in nodes.items():
    assert calls[node, op] == 2 * steps, (node, op, calls[node, op])
    back = [(name, n) for (layer, name), n in calls.items() if layer == node + '_backward']
    assert back == [('_backward_' + op, steps)], (node, back)
layers = {row['layer']: row for row in json.load(open(by_layer))['tables']['operator'] if row['layer']}
for node in nodes:
    name = node[:-4] if node.endswith('_fwd') else node
    assert layers[name]['count'] == 3 * steps and layers[name]['name'] == name, (node, layers.get(name))
print(len(nodes), 'nodes,', sum(calls.values()), 'operators with a layer')
PY
}

of_model() { # ARGUMENTS...
	start_ready job "$PYTHON" "$REPO/tests/inside/layers.py" --steps $STEPS "$@"
	start_bg mxbpf "$MXBPF" record --pid "$READY_PID" --layers --probes op,inside -o layers.mxb
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" '^(mxbpf: )?attached: [0-9]+ probes' "$MXBPF_PID"
	end_ready
	tail -n 1 "$(out job)" >nodes.json
	"$MXBPF" report layers.mxb --by event --format json >events.json
	"$MXBPF" report layers.mxb --by layer --format json >layers.json
	check_layers events.json layers.json nodes.json
}

@test "Each operator of a hybridized net has the name of its node, forward and backward, in bulks" {
	of_model
	"$MXBPF" report layers.mxb --by layer --format csv | grep -q '"net_conv0"'
	"$MXBPF" report layers.mxb --all --by layer | grep -q '^net_dense0 '
	"$MXBPF" export layers.mxb -f chrome -o t.json
	[[ $(jq '[.traceEvents[] | select(.args.layer == "net_conv0_fwd_backward")] | length' t.json) == "$STEPS" ]]
	# A process without a runtime is refused.
	run "$MXBPF" --pid $$ --layers --by layer -d 1s
	[[ $status != 0 ]]
}

@test "Each operator of a static graph has the name of its node, in segments" { of_model --static; }

@test "MXNet 2.0 has layers of operators in bulks and in segments, too" {
	need_mxnet_2
	of_model
}

@test "MXNet 2.0 has layers of static graphs, too" {
	need_mxnet_2
	of_model --static
}

@test "--by layer without --layers names the missing option, and --layers is refused for PyTorch" {
	start_workload --tiny
	expect_run 2 "$MXBPF" --exact --pid "$WORKLOAD_PID" --by layer -d 1s
	expect_re -- '--layers' "$output"
	stop_pid "$WORKLOAD_PID"
	need_torch
	torch_server
	expect_error 2 'layers' "$MXBPF" --exact --pid "$SERVER_PID" --layers -d 1s
}
