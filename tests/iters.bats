#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Iterations found without annotations are as many and as long as the program says, and the slowest is the one it made slow.

load helpers

setup() { root_setup; }

# recorded RUNTIME PYTHON MODE...: makes loops.mxd and the programs' own accounts, once for all tests that need them.
recorded() {
	DIR=$BATS_FILE_TMPDIR/$1
	[[ -d $DIR ]] && return 0
	mkdir "$DIR"
	(cd "$DIR" && "$MXBPF" record -q -o loops.mxd -- "$2" "$REPO/tests/workload/$1_loops.py" "${@:3}" >said)
	"$MXBPF" report --raw "$DIR/loops.mxd" --top 1000 --format json >"$DIR/seen" # the programs measured with the cost, too
}

mxnet_loops() {
	need_mxnet
	recorded mxnet "$PYTHON" eager hybrid static accumulate unfused rivals module module2
}

torch_loops() {
	need_torch
	recorded torch "$PYTHON_TORCH" plain accumulate two rivals beside
}

# agree TOLD: each process has one iteration less than steps, because the first end starts the first iteration. Their sum is the
# time by the program's account, except between an end and reading the clock, and the longest is the one of that account.
agree() {
	python3 - "$DIR" "$1" <<-'END'
		import json, sys
		said = [json.loads(l) for l in open(sys.argv[1] + '/said') if l.startswith('{"steps"')]
		told, seen = json.loads(sys.argv[2]), json.load(open(sys.argv[1] + '/seen'))
		# A process of MXNet has one loop, and says nothing of its thread.
		key = lambda x: (x['pid'], x['thread'] if 'thread' in said[0] else 0)
		loops = {key(l): l for l in seen['iterations']['loops']}
		assert len(said) >= 4 and sorted(loops) == sorted(map(key, said)), (said, loops)
		for s in said:
		    l = loops[key(s)]
		    assert l['count'] == s['steps'] - 1 and l['missing'] == 0, (s, l)
		    assert l['told_by'] == told.get(s['mode'], told['']), (s, l)
		    assert abs(l['total_ns'] - s['ns']) < 0.25 * s['ns'], (s, l)
		    assert l['min_ns'] <= l['p50_ns'] <= l['p99_ns'] <= l['max_ns'] and l['avg_ns'] == l['total_ns'] // l['count']
		    slowest = [i for i in seen['iterations']['slowest'] if key(i) == key(s)]
		    assert slowest[0]['total_ns'] == l['max_ns'], (s, slowest[0])
		    # In the loops beside each other no step sleeps, and which one is the slowest is chance.
		    if s['mode'] != 'beside':
		        assert slowest[0]['number'] == s['slow'] - 1, (s, slowest[0])
		    if s['slow'] == s['planted'] and s['mode'] != 'beside':  # on a busy machine another step can be slower
		        assert slowest[0]['longer'] == 'outside' and slowest[0]['longer_ns'] > slowest[0]['total_ns'] / 2, (s, slowest[0])
		    parts = {k: p['total_ns'] for k, p in l['parts'].items() if isinstance(p, dict)}
		    assert l['parts']['count'] == l['count'] and sum(parts.values()) == l['total_ns'] == l['parts']['total_ns'], (s, l)
		    assert 0 < l['parts']['operators_ns'] < l['total_ns'], (s, l)
		for i in seen['iterations']['slowest']:
		    assert sum(i[k + '_ns'] for k in ('data', 'wait', 'kvstore', 'inline', 'api', 'outside')) == i['total_ns'], i
	END
}

@test "MXNet iterations of Trainers, Modules and a store are as many and as long as the programs say" {
	mxnet_loops
	agree '{"": "update", "unfused": "backward"}'
	jq -e '.loss.dropped == 0' "$DIR/seen"
}

@test "PyTorch iterations, also with two optimizers, accumulated gradients or a loop in each of two threads, are as many and as long as the programs say" {
	torch_loops
	agree '{"": "optimizer_step"}'
}

@test "Every format has the iterations, and Perfetto accepts a trace with a ProfilerStep#N for each" {
	mxnet_loops
	"$PYTHON" -m jsonschema -i "$DIR/seen" "$O/report.schema.json"
	"$MXBPF" report "$DIR/loops.mxd" --layout modern --all >modern
	expect_re '^Iterations: each ends with the optimizer.s last operator before the next backward pass' "$(<modern)"
	expect_re '^slowest iterations +at +took +median' "$(<modern)"
	expect_re 'your Python code: [0-9]+ ms more than the median' "$(<modern)"
	"$MXBPF" report "$DIR/loops.mxd" --format csv >csv
	expect_re '^"iterations","update",.*' "$(<csv)"
	expect_re '^"iterations.slowest.outside","11",' "$(<csv)"
	"$MXBPF" export "$DIR/loops.mxd" -q -f chrome -o t.json
	expect_same "$(jq -c '[.iterations.loops[] | {pid, n: .count}]' "$DIR/seen")" "$(jq -c '[.traceEvents[] |
		select(.ph == "X" and .cat == "step" and (.name | startswith("ProfilerStep#")))] | group_by(.pid) |
		map({pid: .[0].pid, n: length})' t.json)"
	[[ -f $O/deps/perfetto/stamp ]] || "$REPO/tests/perfetto/setup.sh" "$O/deps/perfetto"
	node "$REPO/tests/perfetto/engine.mjs" "$O/deps/perfetto" t.json --json >engine.json
}

@test "A truncated recording has the same iterations" {
	mxnet_loops
	head -c $(($(stat -c %s "$DIR/loops.mxd") - 4096)) "$DIR/loops.mxd" >cut.mxd
	# The file is cut before what the cost was at the end, so the times are compared with it.
	expect_same "$("$MXBPF" report --raw "$DIR/loops.mxd" --format json | jq -c '[.iterations.loops[] | {pid, told_by, count, total_ns, parts}]')" \
		"$("$MXBPF" report --raw cut.mxd --format json | jq -c '[.iterations.loops[] | {pid, told_by, count, total_ns, parts}]')"
}

@test "--iterations N records N of them and ends while the program goes on" {
	need_mxnet
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --iterations 7 --raw --format json
	wait_exit "$MXBPF_PID"
	jq -e '.window.sampled_iterations == 7 and (.iterations.loops[0] | .count == 7 and .told_by == "sampled") and
		.iterations.loops[0].total_ns == .window.duration_ns and
		([.tables.MXNET_C_API[] | select(.name == "MXAutogradBackwardEx").count] == [7])' "$(out mxbpf)"
	"$PYTHON" -m jsonschema -i "$(out mxbpf)" "$O/report.schema.json"
	wait_new_line "$(out workload)" '^step'
}

@test "A pause is in no iteration" {
	need_mxnet
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --format json
	wait_new_line "$(out workload)" '^step'
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^(mxbpf: )?paused, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step' 2
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^(mxbpf: )?resumed, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
	end_pid "$MXBPF_PID"
	jq -e '.iterations.loops[0] as $l | $l.count > 3 and $l.max_ns < .window.paused_ns and $l.total_ns <= .window.duration_ns' \
		"$(out mxbpf)"
}
