#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranges and marks of NVTX: by probes in a running process, and by the injection library in a launched command.

load helpers

N=$REPO/tests/nvtx

setup() {
	root_setup torch
	[[ -d $O/deps/nvtx ]] || skip "no NVTX at $O/deps/nvtx: run tests/setup.sh"
	PYTHONPATH=$(echo "$O"/deps/nvtx/lib/python3*/site-packages)
	NVTX=$PYTHONPATH/nvidia/nvtx
	export PYTHONPATH
}

# Builds a library of ranges.c: with the functions that the headers define, or with those of libnvToolsExt.
header() { cc -O1 -shared -fPIC -I"$NVTX/include" -D_GNU_SOURCE -o header.so "$N/ranges.c" -ldl; }
exported() { cc -O1 -shared -fPIC -DEXPORTED -I"$NVTX/include" -D_GNU_SOURCE -o exported.so "$N/ranges.c" "$NVTX/lib/libnvToolsExt.so.1" -Wl,-rpath,"$NVTX/lib"; }

counts() { jq -c '[.tables["NVTX range"][] | {(.name): .count}] | add' "$1"; }

@test "Ranges of a running process that uses libnvToolsExt are recorded by probes, each at its thread and time" {
	exported
	start_ready job "$PYTHON_TORCH" "$N/job.py" 50 0 "$PWD/exported.so" >/dev/null
	start_mxbpf record --pid "$READY_PID" -o r.mxd
	local exact=$MXBPF_PID
	start_mxbpf --pid "$READY_PID" --max-overhead 10% --format json -o limited.json
	end_pid "$READY_PID" USR1
	wait_exit "$exact"
	wait_exit "$MXBPF_PID"
	"$MXBPF" export r.mxd -o t.json
	python3 "$N/compare.py" t.json exported.so.told
	"$MXBPF" report r.mxd --format json >r.json
	expect_same '{"cross":100,"inner":100,"outer":100}' "$(jq -S -c . <(counts r.json))"
	expect_same '{"cross":100,"inner":100,"outer":100}' "$(jq -S -c . <(counts limited.json))"
	jq -e '.loss | .dropped + .unmatched == 0' r.json
}

@test "A launched command with --agent has all ranges and marks, of headers, libraries and Python, once each" {
	header
	exported
	GO=1 "$MXBPF" record --agent -o r.mxd -- "$PYTHON_TORCH" "$N/job.py" 50 1 "$PWD/header.so" "$PWD/exported.so" python >job.out
	"$MXBPF" export r.mxd -o t.json
	python3 "$N/compare.py" t.json header.so.told exported.so.told
	"$MXBPF" report r.mxd --format json >r.json
	jq -e '.loss.dropped == 0' r.json
	expect_same '{"add":50,"cross":100,"inner":200,"outer":200,"overlapping":200,"reg: cross":100,"reg: registered":100,"registered":100,"started":200,"train: step":50,"wide é":200}' \
		"$(jq -S -c . <(counts r.json))"
	jq -e '[.instants[] | [.name, .count]] == [["here", 200]]' r.json
	"$MXBPF" report r.mxd --by range --format json >range.json
	expect_same '[["aten::add",null,1],["aten::add","add",50],["aten::mm","train: step",50]]' \
		"$(jq -c '[.tables.operator[] | select(.name == "aten::add" or .name == "aten::mm") | [.name, .range, .count]] | sort' range.json)"
	# Nothing is said of rows that found their functions, or wait for them.
	run "$MXBPF" report r.mxd
	[[ $output != *nvtx.* ]]
}

@test "A running library of NVIDIA's headers that has not called NVTX yet is given a tool with the agent, each range at its thread and time" {
	header
	start_ready job "$PYTHON_TORCH" "$N/job.py" 50 1 "$PWD/header.so" >/dev/null
	start_mxbpf record --agent --pid "$READY_PID" -o r.mxd
	end_ready
	"$MXBPF" export r.mxd -o t.json
	python3 "$N/compare.py" t.json header.so.told
	"$MXBPF" report r.mxd --format json >r.json
	expect_same '{"inner":100,"outer":100,"overlapping":100,"reg: cross":100,"reg: registered":100,"started":100,"wide é":100}' \
		"$(jq -S -c . <(counts r.json))"
}

@test "Each of several running processes is given a tool with the agent, each range at its thread and time" {
	header
	mkdir two
	cp header.so two
	start_ready first "$PYTHON_TORCH" "$N/job.py" 50 1 "$PWD/header.so" >/dev/null
	local first=$READY_PID
	start_ready second "$PYTHON_TORCH" "$N/job.py" 50 1 "$PWD/two/header.so" >/dev/null
	start_mxbpf record --agent --pid "$first,$READY_PID" -o r.mxd
	kill -s USR1 "$first" "$READY_PID"
	wait_exit "$first"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
	"$MXBPF" export r.mxd -o t.json
	python3 "$N/compare.py" t.json header.so.told two/header.so.told
}

@test "A tool that NVTX_INJECTION64_PATH names already stays, gets all calls, and a line says so" {
	header
	cc -shared -fPIC -I"$NVTX/include" -o tool.so "$N/tool.c"
	NVTX_INJECTION64_PATH=$PWD/tool.so TOOL_OUT=$PWD/tool.out GO=1 "$MXBPF" record --agent -o r.mxd -- \
		"$PYTHON_TORCH" "$N/job.py" 5 0 "$PWD/header.so" 2>err.txt
	grep -q 'NVTX has another tool' err.txt
	expect_same 'pushes 20 pops 20' "$(<tool.out)"
	"$MXBPF" report r.mxd --format json | jq -e '.tables | has("NVTX range") | not'
}

@test "A command that closes the library's descriptor runs to its end, as without a tool" {
	header
	GO=1 "$MXBPF" record --agent -o r.mxd -- bash -c \
		'fd=${NVTX_INJECTION64_PATH##*/}; eval "exec $fd>&-"; exec "$@"' - \
		"$PYTHON_TORCH" "$N/job.py" 5 0 "$PWD/header.so" >job.out
	[[ $(tail -n 1 job.out) == done && $(wc -l <header.so.told) == 30 ]]
	"$MXBPF" report r.mxd --format json | jq -e '.tables | has("NVTX range") | not'
}

@test "A child of the command that closes all descriptors, as those of Python's subprocess do, has each range at its thread and time" {
	header
	GO=1 "$MXBPF" record --agent -o r.mxd -- python3 -c 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))' \
		"$PYTHON_TORCH" "$N/job.py" 50 1 "$PWD/header.so" >job.out
	"$MXBPF" export r.mxd -o t.json
	python3 "$N/compare.py" t.json header.so.told
}

@test "Without --agent and --gpu, a launched command gets no library, and libnvToolsExt is probed all the same" {
	header
	exported
	GO=1 "$MXBPF" record -o r.mxd -- "$PYTHON_TORCH" "$N/job.py" 5 0 "$PWD/header.so" "$PWD/exported.so"
	"$MXBPF" report r.mxd --format json >r.json
	expect_same '{"cross":10,"inner":10,"outer":10}' "$(jq -S -c . <(counts r.json))"
}

@test "Kernels of the GPU are those of the range that launched them, and of the ranges around it" {
	GPU=$O/gpu GO=1 "$MXBPF" record --gpu -o r.mxd -- "$PYTHON_TORCH" "$N/job.py" 300 1 python
	"$MXBPF" report r.mxd --format json >r.json
	expect_same '{"add":300,"train: step":300}' "$(jq -S -c . <(counts r.json))"
	# Those before the agent has subscribed are not recorded.
	jq -e '.gpu.operators | map(select(.kind == "annotation")) | map({(.name): .}) | add |
		.add.kernels > 0 and .add.kernels == .["train: step"].kernels and
		.add.gpu_self_ns == .["train: step"].gpu_total_ns and .["train: step"].gpu_self_ns == 0' r.json
	kernels=$(jq '.gpu.operators[] | select(.name == "add") | .kernels' r.json)
	"$MXBPF" report r.mxd --by range --format json >range.json
	expect_same "[[\"a_kernel\",\"add\",$kernels]]" "$(jq -c '[.kernels_by_range[] | [.name, .range, .count]]' range.json)"
}

@test "Ranges of a job on MXNet are in the table of events, and operators pushed in them keep their rows" {
	need_mxnet
	cat >job.py <<-'EOF'
		import mxnet as mx, nvtx
		x = mx.nd.ones((64, 64))
		for i in range(50):
		    with nvtx.annotate("step"):
		        mx.nd.dot(x, x).wait_to_read()
	EOF
	"$MXBPF" --gpu -q --format json -o r.json -- "$PYTHON" job.py
	# A switch that BPF did not see is no lost call.
	jq -e '(.tables.Event | map([.name, .count])) == [["step", 50]] and
		.loss.dropped + .loss.unmatched - ([.sources[]? | select(.source == "scheduler").unmatched] | add // 0) == 0 and
		any(.tables.operator[]; .name == "dot" and .count == 50)' r.json
}

# Number of calls of an operator or range in a result of JSON, and the sum of those rows.
count_of() { jq --arg name "$2" '[.tables[][] | select(.name == $name) | .count] | add // 0' "$1"; }

@test "A pop without its push, and a push or pop inside an operator, leave all operators and ranges as they are" {
	# With the agent, operators need no frames of probes.
	"$MXBPF" record -o r.mxd -- "$PYTHON_TORCH" "$N/unbalanced.py" 600 "$NVTX/lib/libnvToolsExt.so.1" 2>err.txt
	"$MXBPF" report r.mxd --format json >r.json
	for op in mm neg exp sub; do
		[[ $(count_of r.json "aten::$op") == 600 ]]
	done
	[[ $(count_of r.json inside) == 600 && $(count_of r.json early) == 600 ]]
	# 600 pops have no push, and 600 pushes no pop; one end may be that of a call before the window.
	jq -e '.loss | .dropped == 0 and (.unmatched | . >= 1200 and . <= 1205)' r.json
	run "$MXBPF" report r.mxd
	[[ $output != *FALLBACK* && $output != *unwound* ]]
}

@test "Payloads, categories, colors and domains are in traces and results, with the names that the program gave them" {
	payload=$PYTHONPATH/nvidia/cu13/include
	[[ -f $payload/nvtx3/nvToolsExtPayload.h ]] || skip "no headers at $payload: run tests/setup.sh"
	g++ -std=c++17 -O1 -shared -fPIC -I"$payload" -o payloads.so "$N/payloads.cpp" -ldl
	GO=1 "$MXBPF" record --agent -o r.mxd -- "$PYTHON_TORCH" "$N/job.py" 20 1 "$PWD/payloads.so" >job.out
	"$MXBPF" export r.mxd -o t.json
	python3 "$N/compare.py" t.json payloads.so.told
	jq -c '[.traceEvents[] | select(.ph == "X" and .cat == "user_annotation" or .cat == "marker") | {(.name): (.args |
		with_entries(select(.key | test("^(payload|categ|color)"))))}] | add | to_entries[]' t.json | sort >args.txt
	expect_same '{"key":"NCCL: ended","value":{"payload.NCCL communicator ID":7,"payload.Message size [bytes]":4096,"payload.Reduction operation":"Sum"}}
{"key":"NCCL: float","value":{"category":3,"category_name":"three","payload":0.5}}
{"key":"NCCL: ncclAllReduce","value":{"payload.NCCL communicator ID":"0xabcdef0123456789","payload.Message size [bytes]":4115,"payload.Reduction operation":"Max"}}
{"key":"NCCL: ncclCommInitRank","value":{"payload.NCCL communicator ID":4660,"payload.No. of ranks":4,"payload.Rank":-1}}
{"key":"NCCL: wide","value":{"payload.number":8,"payload numbers left out":2}}
{"key":"a mark","value":{"color":"#010203","payload.NCCL communicator ID":7,"payload.Message size [bytes]":4096,"payload.Reduction operation":"Sum"}}
{"key":"aten::mm","value":{"payload.seq":19}}
{"key":"scoped","value":{"category":5,"color":"#010203","payload":-7}}' "$(<args.txt)"
	"$MXBPF" report r.mxd --format json >r.json
	expect_same '[["NCCL: ended","NCCL",20],["NCCL: float","NCCL",20],["NCCL: ncclAllReduce","NCCL",20],["NCCL: ncclCommInitRank","NCCL",1],["NCCL: wide","NCCL",20],["aten::mm",null,20],["scoped",null,20]]' \
		"$(jq -c '[.tables["NVTX range"][] | [.name, .domain, .count]] | sort' r.json)"
}

@test "Names of emit_nvtx lose their numbers, which join backward with forward, and a note names what cannot be seen" {
	start_ready job "$PYTHON_TORCH" "$N/emitted.py" 9000 "$NVTX/lib/libnvToolsExt.so.1" >/dev/null
	start_mxbpf record --pid "$READY_PID" --backward -o r.mxd
	end_ready
	"$MXBPF" report r.mxd --backward --format json >r.json
	# 9000 names of each kind would be more than BPF keeps.
	expect_same '{"MmBackward0":9000,"aten::mm":9000,"aten::t":9000,"autograd::engine::evaluate_function: MmBackward0":9000}' \
		"$(jq -S -c . <(counts r.json))"
	jq -e '.loss.truncated == 0' r.json
	expect_same '["aten::mm",9000,9000]' "$(jq -c '.backward.operators[] | [.name, .count, .backward_count]' r.json)"
	grep -q 'ranges of NVTX in lib.cpython.* are not recorded' "$(err mxbpf)"
}
