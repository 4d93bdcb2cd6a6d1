#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Accounts of real jobs: each call's time on CPU, in the run queue and blocked. tests/unit/test_account_kernel.c compares single
# calls with the kernel's own account.

load helpers

setup() { root_setup; }

start_rivals() { # N
	local i
	for ((i = 0; i < $1; i++)); do
		start_bg "rival$i" taskset -c 0 bash -c 'while :; do :; done'
	done
}

# Runs a command with tracefs mounted: perf reads tracepoints from there.
TRACED=(unshare -m sh -c '{ mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; } && exec "$@"' -)

@test "The on-CPU, run-queue and blocked times of a real job equal those of perf's scheduler tracepoints" {
	need_mxnet
	start_ready workload "$PYTHON" "$REPO/tests/workload/mxnet_train.py" --tiny
	start_rivals 1
	start_bg perf "${TRACED[@]}" perf record -a -k CLOCK_MONOTONIC -m 1024 -e sched:sched_switch,sched:sched_wakeup -o perf.data
	local perf=$BG_PID
	timeout "$WAIT_SECONDS" bash -c 'until [[ -s perf.data ]]; do sleep 0.02; done'
	"$MXBPF" record --pid "$READY_PID" -d 2s -o r.mxd
	kill -s INT "$perf"
	wait_exit "$perf" || true
	"${TRACED[@]}" perf script --ns -i perf.data >switches 2>/dev/null
	"$MXBPF" export r.mxd -f chrome -o t.json
	python3 "$REPO/tests/judge/account.py" t.json switches
}

# Records one job alone on its CPU and then with two rivals. Its operators must take the same CPU time and also wait for the CPU.
contended() {
	"$MXBPF" record --pid "$READY_PID" -d 2s -o alone.mxd
	start_rivals 2
	"$MXBPF" record --pid "$READY_PID" -d 3s -o rivals.mxd
	"$MXBPF" report --all rivals.mxd >rivals.txt
	"$MXBPF" report alone.mxd --raw --by event --format json >alone.json
	"$MXBPF" report rivals.mxd --raw --by event --format json >rivals.json
	cat rivals.txt
	python3 - alone.json rivals.json <<-'END'
		import json, statistics, sys
		def operators(path):
		    of = {}
		    for e in json.load(open(path))['tables']['operator']:
		        of.setdefault(e['name'], []).append((e['total_ns'], e['account']['on_cpu_ns'], e['account']['runq_ns']))
		    return of
		alone, rivals = [operators(path) for path in sys.argv[1:]]
		names = [n for n in alone if min(len(alone[n]), len(rivals.get(n, []))) >= 20]
		def median(of, n, i): return statistics.median(e[i] for e in of[n])
		def mean(of, i): return sum(statistics.mean(e[i] for e in of[n]) for n in names)
		cpu = statistics.median(median(rivals, n, 1) / median(alone, n, 1) for n in names)
		wall = mean(rivals, 0) / mean(alone, 0)
		late = [mean(of, 2) / mean(of, 0) for of in (alone, rivals)]
		print(f'{len(names)} operators: on a CPU {cpu:.2f} times as long, from start to end {wall:.2f} times; '
		      f'waiting for a CPU {late[0]:.2f} of their time alone, {late[1]:.2f} with rivals')
		assert len(names) >= 5
		assert 0.7 < cpu < 1.4, cpu
		assert wall > 1.1 and late[1] > max(late[0], 0.3), (wall, late) # the CPU may have rivals in the first recording, too
	END
	expect_re '^name +calls .* runq' "$(sed -n '/^operator/,/^$/p' rivals.txt)"
}

# bats test_tags=alone
@test "MXNet operators beside two busy loops take as much CPU time as alone, and the tables name what they wait for" {
	measured
	need_mxnet
	start_ready workload taskset -c 0 "$PYTHON" "$REPO/tests/workload/mxnet_train.py"
	contended
}

# bats test_tags=alone
@test "PyTorch operators beside two busy loops take as much CPU time as alone, and the tables name what they wait for" {
	measured
	need_torch
	start_torch --threads 1
	taskset -a -c -p 0 "$WORKLOAD_PID"
	contended
}

# Records the toy. Some of its operators end on another thread.
record_toy() { # MXBPF_ARGS...
	start_toy 60 3
	start_bg mxbpf "$MXBPF" record --pid "$READY_PID" -o r.mxd "$@"
	wait_line "$(err mxbpf)" '^attached'
	end_pid "$READY_PID" USR1
	wait_exit "$BG_PID"
}

toy_recording() { BATS_TEST_TMPDIR=$PWD record_toy; }

@test "The four times of a call add up, and a call that ends on another thread keeps both parts in tables and traces" {
	take_shared account-toy toy_recording
	"$MXBPF" report r.mxd --raw --by event --format json >events.json
	"$MXBPF" report r.mxd --raw --format json >rows.json
	"$MXBPF" report r.mxd --by event --format json >events-less.json
	"$MXBPF" report r.mxd --format json >rows-less.json
	"$MXBPF" export r.mxd -f chrome -o t.json
	"$PYTHON" -m jsonschema -i events.json "$O/report.schema.json"
	"$PYTHON" -m jsonschema -i rows.json "$O/report.schema.json"
	python3 - <<-'END'
		import collections, json
		TIMES = ('on_cpu_ns', 'runq_ns', 'blocked_ns', 'elsewhere_ns')
		sums = collections.defaultdict(collections.Counter)
		elsewhere = 0
		for table, events in json.load(open('events.json'))['tables'].items():
		    for e in events:
		        if 'account' not in e:
		            continue
		        assert sum(e['account'][t] for t in TIMES) == e['total_ns'], e
		        sums[table, e['name']].update(e['account'])
		        elsewhere += e['account']['elsewhere_ns'] > 0
		n = 0
		for table, rows in json.load(open('rows.json'))['tables'].items():
		    for r in rows:
		        if 'account' in r:
		            assert sum(r['account'][t] for t in TIMES) == r['total_ns'], r
		            assert r['account'] == dict(sums[table, r['name']]), r
		            n += 1
		# Profiling overhead is time on CPU.
		for name in 'events-less.json', 'rows-less.json':
		    for rows in json.load(open(name))['tables'].values():
		        for r in rows:
		            assert 'account' not in r or sum(r['account'][t] for t in TIMES) == r['total_ns'], r
		spans = [e for e in json.load(open('t.json'))['traceEvents'] if e['ph'] == 'X']
		ended = [e['args'] for e in spans if 'end_thread' in e['args']]
		print(n, 'rows;', len(spans), 'spans, of which', len(ended), 'ended elsewhere, and were there a while:', elsewhere)
		# A thread may take a call over and end it in less than the clock tells apart.
		assert n >= 8 and ended and elsewhere >= 0.9 * len(ended)
		assert all('cpu' in e['args'] for e in spans)
		assert any(a.get('on_cpu_us') for a in ended)
	END
}

@test "CSV has the accounts of JSON for rows and calls, and the trace of a plain call has only its CPU time" {
	take_shared account-toy toy_recording
	local by
	for by in name event; do
		"$MXBPF" report r.mxd --by $by --format json >r.json
		"$MXBPF" report r.mxd --by $by --format csv >r.csv
		python3 - $by <<-'END'
			import csv, json, sys
			rows = list(csv.DictReader(open('r.csv', newline=''), strict=True, restkey='surplus'))
			n = 0
			for title, table in json.load(open('r.json'))['tables'].items():
			    mine = [r for r in rows if r['table'] == title]
			    assert len(mine) == len(table)
			    for row, other in zip(mine, table):
			        want = dict(other.get('account', {}), **{k: other[k] for k in ('cpu', 'end_cpu') if k in other})
			        for key, value in want.items():
			            assert row[key] == str(value), (key, row, other)
			            n += 1
			assert n > 50 and ('cpu' in rows[0]) == (sys.argv[1] == 'event')
		END
	done
	"$MXBPF" export r.mxd -f chrome -o t.json
	jq -e '[.traceEvents[] | select(.ph == "X") | .args | select(has("runq_us") or has("blocked_us") or has("minflt") | not)] |
		length > 100 and all(has("on_cpu_us") | not)' <(jq '.traceEvents |= map(select(.args.end_thread == null))' t.json)
}

@test "--sort cpu, runq and blocked put the largest first, for rows and for calls" {
	take_shared account-toy toy_recording
	local key
	for key in cpu runq blocked; do
		"$MXBPF" report r.mxd --sort $key --format json | jq -e --arg k "${key/cpu/on_cpu}_ns" \
			'[.tables[] | select(.[0].account) | [.[].account[$k]] | . == (sort | reverse)] | length > 2 and all'
		"$MXBPF" report r.mxd --by event --sort $key --format json | jq -e --arg k "${key/cpu/on_cpu}_ns" \
			'[.tables[] | select(.[0].account) | [.[].account[$k]] | . == (sort | reverse)] | length > 2 and all'
	done
}

@test "--no-account records no accounts, shows no column of them and refuses to sort by them" {
	record_toy --no-account
	"$MXBPF" report r.mxd --format json | jq -e '[.tables[][] | has("account")] | any | not'
	"$MXBPF" report r.mxd --by event --format csv >r.csv
	[[ ,$(head -n 1 r.csv), != *,runq_ns,* ]]
	run "$MXBPF" report --all r.mxd
	[[ $output != *runq* && $output != *blocked* ]]
	"$MXBPF" export r.mxd -f chrome -o t.json
	jq -e '[.traceEvents[] | select(.ph == "X") | .args | has("cpu")] | any | not' t.json
	expect_error 2 '^mxbpf: error: --sort runq needs .*times, which --no-account' --separate-stderr "$MXBPF" --pid 1 --no-account --sort runq
	expect_error 2 '^mxbpf: error: --sort cpu needs .* old recordings' --separate-stderr "$MXBPF" report "$REPO/tests/golden/real.mxd" --sort cpu
}
