#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Inputs and outputs of MXNet's operators, with the program's own arrays as the reference; estimated floating-point
# operations; rows by device and by thread.

load helpers

JUDGE=$REPO/tests/judge

setup() { root_setup mxnet; }

# Runs one form of the program under mxbpf with these options.
watched() { # WORDS FORM
	traced "$1" mxbpf.out "$PYTHON" "$JUDGE/shapes.py" "$2" --says says.json
}

same() { "$PYTHON" "$JUDGE/shapes.py" form --against says.json "$1"; }

exactly() { # FORM
	watched '--shapes --by shape --format json' "$1"
	same mxbpf.out
}

@test "Eager operators have exact shapes and types, for 0 to 7 dimensions, sparse arrays, long lists and unknown shapes" {
	exactly eager
	jq -e '.loss.truncated == 1 and .loss.dropped == 0' mxbpf.out
	jq -e '[.tables.operator[] | select(.flops_calls > 0) | .gflop_per_s * .flops_ns / .flops] | length > 9 and all(. > 0.999 and . < 1.001)' mxbpf.out
}

# Bulks, segments of a graph and an executor, with gradients of parameters but not of the data.
@test "Hybridized operators have exact shapes, forward and backward" { exactly hybrid-backward; }
@test "Operators of static_shape have exact shapes, forward and backward" { exactly static-backward; }
@test "Operators of Module have exact shapes, forward and backward" { exactly module-backward; }

@test "MXNet 2.0 operators have exact shapes, eager, in bulks and in segments" {
	local form
	need_mxnet_2
	for form in eager hybrid-backward static-backward; do exactly "$form"; done
	jq -e '.loss | .dropped + .unreadable == 0' mxbpf.out
}

# Sums of a table. Rows by device and by thread have the operators in bulks, but not the bulks.
counts() { jq '[.tables.operator[] | select(.name != "ImperativeBulk") | .count] | add' "$1"; }
flops() { jq -c '.tables.operator | [map(.flops // 0), map(.flops_calls // 0), map(.flops_ns // 0)] | map(add)' "$1"; }

@test "A recording has shapes in rows, calls and the trace, and rows by operator, device and thread are their sums" {
	local by
	watched 'record --shapes -o job.mxd' hybrid-backward
	for by in operator shape device thread event; do
		"$MXBPF" report --raw --by "$by" --format json --top 100000 job.mxd >"$by.json"
		expect_same "$(flops operator.json)" "$(flops "$by.json")"
	done
	same shape.json
	for by in shape device thread; do
		expect_same "$(counts operator.json)" "$(counts "$by.json")"
	done
	jq -e '.tables.operator | map(.name) == ["cpu/0"]' device.json
	"$MXBPF" export job.mxd -o trace.json
	expect_same "$(jq -c '[.tables.operator[] | select(.flops) | .flops] | sort' event.json)" \
		"$(jq -c '[.traceEvents[].args? | select(.flops) | .flops] | sort' trace.json)"
	jq -e '[.traceEvents[] | select(.name == "_backward_Convolution") | .args | .["Output Dims"][0] == "unwanted" and
		."Input type"[0] == "float32" and .["GFLOP/s"] > 0] | length == 3 and all' trace.json
}

@test "--shapes is refused before anything is attached without the probes that read them" {
	start_workload
	expect_error 2 '^mxbpf: error: --shapes needs --probes inside with MXNet$' "$MXBPF" --exact --pid "$WORKLOAD_PID" --shapes --probes op -d 100ms
}
