#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Operators inside bulks and segments, which MXNet's own profiler shows only if it runs each operator by itself.

load helpers

setup() { root_setup mxnet; }

@test "MXNet with bulks on shows the operators of bulks off, in the same numbers" {
	local judge=$REPO/tests/judge
	mxnet_reference "$judge/prog.py"
	traced '--format json' mxbpf.json "$PYTHON" "$judge/prog.py" --bare --bulk
	expect_run 0 "$PYTHON" "$REPO/tests/inside/operators.py" builtin.json mxbpf.json
	[[ $(jq '.loss.dropped + .loss.unreadable' mxbpf.json) == 0 ]]
	# The comparison detects one surplus operator.
	jq '(.tables.operator[] | select(.name == "Pooling").count) += 1' mxbpf.json >changed.json
	expect_run 1 "$PYTHON" "$REPO/tests/inside/operators.py" builtin.json changed.json
	# MXNet's layout shows segments as dumps() does.
	take_shared mxnet-layout traced '--layout mxnet' mxbpf.txt "$PYTHON" "$judge/prog.py" --bare
	grep -q '^Activation,Pooling,BatchNorm,FullyConnected,Activation,Dropout ' mxbpf.txt
	"$PYTHON" "$judge/compare.py" builtin mxbpf.txt
}

# A bulk's own time is the engine's work between two operators and the overhead of probes. It is small if operators compute for
# some time.
@test "The operators inside a bulk or a segment add up to its duration within 10 %" {
	local kind
	for kind in dynamic static; do
		start_workload --hybridize "$kind"
		expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 2s --format json
		echo "$output" >report.json
		stop_pid "$WORKLOAD_PID"
		jq '[.tables.operator[] | select(.name == "ImperativeBulk" or (.name | contains(","))) | {name, count, total_ns, self_ns}]' \
			report.json | tee bulks.json
		jq -e '(map(.count) | add) > 20 and (map(.self_ns) | add) < 0.1 * (map(.total_ns) | add)' bulks.json
		# Shares do not count bulks and their operators twice.
		jq -e '.tables.operator | (map(.self_ns) | add) <= (map(.total_ns) | add)' report.json
	done
}

@test "A bulk is the parent of its operators in the trace, and they follow one another inside it" {
	shared_workload --tiny
	expect_run 0 --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" -d 1s --trace t.json --format json
	python3 - <<'PY'
import json
spans = [e for e in json.load(open('t.json'))['traceEvents'] if e['ph'] == 'X' and e['cat'] == 'cpu_op']
inside = 0
by_thread = {}
for e in sorted(spans, key=lambda e: (e['ts'], -e['dur'])):
    by_thread.setdefault(e['tid'], []).append(e)
for events in by_thread.values():
    bulk, end = None, 0
    for e in events:
        if e['name'] == 'ImperativeBulk':
            bulk, end = e, e['ts']
        elif bulk and e['ts'] < bulk['ts'] + bulk['dur']:
            inside += 1
            assert e['ts'] >= end - 0.001 and e['ts'] + e['dur'] <= bulk['ts'] + bulk['dur'] + 0.001, (bulk, e)
            end = e['ts'] + e['dur']
print(inside, 'inside')
assert inside > 100
PY
}

# Operators fail in bulks, alone, inside Python operators and as Python operators. A store call fails, too.
throws_as_without() { # ENGINE
	local plain
	export MXNET_ENGINE_TYPE=$1
	start_ready plain "$PYTHON" "$REPO/tests/inside/custom.py" --throw 40
	end_pid "$READY_PID" USR1
	plain=$(tail -n 1 "$(out plain)")
	[[ $plain == "caught 40 in_bulk, 40 alone, 40 in_custom, 40 in_python, 40 in_store" ]]
	start_ready thrower "$PYTHON" "$REPO/tests/inside/custom.py" --throw 40
	start_mxbpf --pid "$READY_PID" "${@:2}" --layers --trace t.json --format json
	end_ready
	[[ $(tail -n 1 "$(out thrower)") == "$plain" ]]
	[[ $(jq '.loss.dropped' "$(out mxbpf)") == 0 ]]
	# The naive engine charges operators after a failed custom operator to it, and failed ones among them have no row,
	# as in dumps(). The trace has all of them.
	jq -e '[.traceEvents[] | select(.name // "" | test("^([a-z_]+::)?_random_normal$"))] | length >= 80' t.json
	# The store call catches the exception itself and ends normally.
	jq -e '.tables.KVStore[] | select(.name == "pull" and .count == 40)' "$(out mxbpf)"
}

@test "Operator failures reach the program as without mxbpf" { throws_as_without ThreadedEnginePerDevice; }
@test "Operator failures reach the program as without mxbpf with every probe attached" {
	throws_as_without ThreadedEnginePerDevice --life --memory --shapes
}
@test "Operator failures reach the program as without mxbpf on the naive engine, which throws at the call" {
	throws_as_without NaiveEngine --life --memory --shapes
}

@test "Operator failures reach the program as without mxbpf in MXNet 2.0" {
	need_mxnet_2
	throws_as_without ThreadedEnginePerDevice
}

@test "An operator in a bulk that was pushed before the window is in flight without a name, and no alarm" {
	start_ready pushed "$PYTHON" "$REPO/tests/inside/custom.py" --pushed
	start_mxbpf --pid "$READY_PID" --format json
	end_ready
	jq -c '.loss, (.tables.operator[] | [.name, .count])' "$(out mxbpf)"
	jq -e '.loss | .dropped + .truncated + .unreadable == 0 and .unmatched >= 2' "$(out mxbpf)"
	jq -e '.tables.operator | map({(.name): .count}) | add | .Dropout == 2' "$(out mxbpf)"
}
