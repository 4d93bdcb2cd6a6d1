#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --life: the stages of each operator from push to completion, and the program's waits, in programs with known dependencies
# (tests/life/prog.py), on all three engines. Times are compared only with times of the same run.

load helpers

setup() { root_setup mxnet; }

ROUNDS=3

# run_life ENGINE PROGRAM MXBPF_ARGS...: writes life.json
run_life() {
	local engine=$1 program=$2
	shift 2
	MXNET_ENGINE_TYPE=$engine traced "--life --format json $*" life.json "$PYTHON" "$REPO/tests/life/prog.py" "$program" "$ROUNDS"
}

# Tests a jq filter. $l has the operators by name, $w the program's own waits for operators, $rounds the rounds.
life() { # FILTER [FILE]
	jq -e --argjson rounds "$ROUNDS" '(.life.operators | map({(.name): .}) | add) as $l |
		[.life.waits[] | select(.for == "operator" and .operator != "WaitForVar")] as $w | '"$1" "${2:-life.json}" >/dev/null && return 0
	echo "not so: $1" >&2
	jq -c '.life, .loss, .probes' "${2:-life.json}" >&2
	return 1
}

nothing_lost() {
	life '[.loss | .dropped, .truncated, .unreadable, .unmatched] | add == 0'
}

# Every operator has all four parts, and as many calls as the program made.
all_known() { # {"name": TIMES A ROUND}
	life "($1) as \$known | [\$known | keys[] as \$k | [\"dispatch\", \"dependencies\", \"queue\", \"run\"][] as \$p |
		\$l[\$k][\$p].count == \$rounds * \$known[\$k]] | all"
}

# Each operator waits for the previous one. asnumpy() waits for the last one, for about as long.
chain_holds() {
	nothing_lost
	all_known '{"dot": 1, "exp": 1, "sqrt": 1, "sum": 1}'
	life '$l.exp.dependencies.total_ns > 0.5 * $l.dot.run.total_ns'
	life '$l.sqrt.dependencies.total_ns > 0.5 * ($l.dot.run.total_ns + $l.exp.run.total_ns)'
	life '$l.sum.dependencies.total_ns > 0.5 * ([$l["dot", "exp", "sqrt"].run.total_ns] | add)'
	life '$l.dot.dependencies.total_ns < 0.5 * $l.exp.dependencies.total_ns'
	life '[$w[] | {operator, within, call, wait, count}] ==
		[{operator: "sum", within: null, call: "MXNDArraySyncCopyToCPU", wait: "WaitForVar", count: $rounds}]'
	life '$w[0].total_ns > 0.5 * $l.sum.dependencies.total_ns'
}

@test "A chain shows each operator waiting for its predecessor, and asnumpy for the last" {
	run_life ThreadedEnginePerDevice chain
	chain_holds
}

@test "A chain on the engine with a thread pool shows the same waits" {
	run_life ThreadedEngine chain
	chain_holds
}

@test "A chain on the naive engine shows waits of zero for operators and for the program" {
	run_life NaiveEngine chain --raw
	nothing_lost
	all_known '{"dot": 1, "exp": 1, "sqrt": 1, "sum": 1}'
	life '[$l["dot", "exp", "sqrt", "sum"] | .dependencies.total_ns + .queue.total_ns] == [0, 0, 0, 0]'
	# The operators' table has the same calls with the same times.
	life '(.tables.operator | map({(.name): .}) | add) as $t |
		[$l["dot", "exp", "sqrt", "sum"] | .run.total_ns == $t[.name].total_ns and .run.max_ns == $t[.name].max_ns] | all'
	life '$w == []'
}

@test "A fan-out shows all operators waiting for the first, then for each other in the queue, and waitall for the last" {
	run_life ThreadedEnginePerDevice fan
	nothing_lost
	all_known '{"dot": 1, "exp": 4}'
	life '$l.exp.dependencies.total_ns > 0.5 * 4 * $l.dot.run.total_ns'
	# The second operator waits behind one, the third behind two and the fourth behind three.
	life '$l.exp.queue.total_ns > 0.9 * $rounds * 6 * $l.exp.run.min_ns'
	life '[$w[] | {operator, call, wait, count}] ==
		[{operator: "exp", call: "MXNDArrayWaitAll", wait: "WaitForAll", count: $rounds}]'
	life '$w[0].total_ns > 0.5 * $l.exp.run.total_ns'
}

@test "An operator independent of a slow one before it waits in the queue, not for dependencies" {
	run_life ThreadedEnginePerDevice front
	nothing_lost
	all_known '{"dot": 1, "sqrt": 1}'
	life '$l.sqrt.queue.total_ns > 0.5 * $l.dot.run.total_ns'
	life '$l.sqrt.dependencies.total_ns < 0.5 * $l.sqrt.queue.total_ns'
	life '[$w[] | {operator, call, count}] == [{operator: "sqrt", call: "MXNDArrayWaitToRead", count: $rounds}]'
}

@test "An operator that ends on another thread keeps asnumpy waiting until its true end" {
	run_life ThreadedEnginePerDevice custom
	nothing_lost
	# time.sleep(0.1) never sleeps less.
	life '$l.Custom.run.min_ns > 100e6'
	life '[$w[] | select(.operator == "Custom") | {call, count}] == [{call: "MXNDArraySyncCopyToCPU", count: $rounds}]'
	life '[$w[] | select(.operator == "Custom")][0].total_ns > 0.5 * $rounds * 100e6'
}

@test "An operator in a bulk is named as the one waited for, with its bulk, and a segment stands alone" {
	run_life ThreadedEnginePerDevice bulk
	nothing_lost
	all_known '{"ImperativeBulk": 1}'
	life '[$w[] | select(.call == "MXNDArrayWaitToRead") | {operator, within, count}] ==
		[{operator: "sqrt", within: "ImperativeBulk", count: $rounds}]'
	run_life ThreadedEnginePerDevice segment
	life '[$w[] | select(.call == "MXNDArrayWaitToRead") | {operator, within, count}] ==
		[{operator: ([$l | keys[] | select(test(","))][0]), within: null, count: $rounds}]'
}

@test "A recording has the same tables, and a trace has the waits as arguments and the length of each queue" {
	traced "record --life -o fan.mxbpf" out "$PYTHON" "$REPO/tests/life/prog.py" fan "$ROUNDS"
	"$MXBPF" report fan.mxbpf --format json >life.json
	"$MXBPF" export fan.mxbpf -o trace.json
	nothing_lost
	all_known '{"dot": 1, "exp": 4}'
	"$MXBPF" report --all fan.mxbpf | grep -A 3 '^what the program waited for' >table
	expect_re '^exp +MXNDArrayWaitAll +3 ' "$(<table)"
	"$MXBPF" report fan.mxbpf --format csv >csv
	expect_re '^"waits","exp",.*,"MXNDArrayWaitAll",' "$(<csv)"
	[[ $(grep -c -E '^"life_(dispatch|dependencies|queue|run)","exp","cpu/0",12,' csv) == 4 ]]
	# Each operator's sum is exact. The queue held three operators at least and is empty at the end.
	jq -e --slurpfile life life.json '.traceEvents as $e | $life[0].life as $l |
		([$l.operators[] | select(.name == "exp")][0]) as $exp |
		([$e[] | select(.name == "exp" and .ph == "X").args] | (map(.dependencies_us) | add * 1000 | round) == $exp.dependencies.total_ns and
			(map(.queue_us) | add * 1000 | round) == $exp.queue.total_ns) and
		([$e[] | select(.name == "WaitForAll" and .ph == "X").args.waited_for] == ["exp", "exp", "exp", "(nothing)"]) and
		([$e[] | select(.ph == "C" and (.name | test("^queue of thread"))) | {k: .name, n: .args.operators}] | group_by(.k) |
			all(.[-1].n == 0 and (map(.n) | min) == 0) and (map(.[].n) | max) >= 3)' trace.json
}

@test "Options that --life does not support are refused before anything is attached" {
	need_torch
	torch_server
	expect_error 2 'life: PyTorch has no queue of operators' --separate-stderr "$MXBPF" --pid "$SERVER_PID" --life
	expect_run 2 --separate-stderr "$MXBPF" --pid "$SERVER_PID" --life --layout mxnet
}
