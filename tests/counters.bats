#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --counters: a call's counts agree with the kernel's own accounts of its thread, and events that cannot be counted are reported.

load helpers

setup() { root_setup; }

# Runs torch_counts.py under mxbpf with ARGS, from its first call to its end. Its output is in counts.out.
watch_counts() { # SECONDS ARGS...
	local seconds=$1
	shift
	need_torch
	torch_server
	start_ready counts "${SERVED[@]}" "$REPO/tests/workload/torch_counts.py" "$seconds"
	start_mxbpf "$@" --pid "$READY_PID"
	end_ready
}

# The program has read its own task clock and the kernel's counts inside each call and around it.
as_accounted() { # JSON
	python3 - "$(tail -n 1 "$(out counts)")" "$1" <<-'END'
		import json, sys
		known, report = json.loads(sys.argv[1]), json.load(open(sys.argv[2]))
		rows = {row['name']: row for row in report['tables']['operator']}
		for call, events in known.items():
		    counted = rows[call]['counters']
		    assert counted['calls'] == rows[call]['count'] == 1 and not counted['scaled'], (call, counted)
		    for event, (least, most) in events.items():
		        assert least <= counted[event] <= most, (call, event, least, counted[event], most)
	END
}

@test "Time, page faults and context switches of a call lie between the kernel's own readings inside and around it" {
	watch_counts 0 --counters task-clock,page-faults,minor-faults,context-switches --format json
	as_accounted "$(out mxbpf)"
}

@test "A recording has the same performance counters in tables, single calls, CSV and trace" {
	watch_counts 0.5 record -o counts.mxd --counters task-clock,page-faults,minor-faults,context-switches
	"$MXBPF" report counts.mxd --format json >table.json
	as_accounted table.json
	"$MXBPF" report counts.mxd --format json --by event --top 1000000 >events.json
	"$MXBPF" report counts.mxd --format csv >table.csv
	"$MXBPF" export counts.mxd -o trace.json
	python3 - <<-'END'
		import collections, csv, json
		NAMES = ('task-clock', 'page-faults', 'minor-faults', 'context-switches')
		def summed(calls):
		    sums = collections.Counter()
		    for name, values in calls:
		        for event in NAMES:
		            sums[name, event] += int(values.get(event) or 0)
		    return {key: n for key, n in sums.items() if n}
		rows = json.load(open('table.json'))['tables']['operator']
		table = summed((row['name'], row['counters']) for row in rows)
		assert len(table) > 10
		events = json.load(open('events.json'))['tables']['operator']
		assert table == summed((e['name'], e['counters']) for e in events)
		assert table == summed((r['name'], r) for r in csv.DictReader(open('table.csv')) if r['table'] == 'operator')
		spans = [e for e in json.load(open('trace.json'))['traceEvents'] if e['ph'] == 'X' and 'synthesised' not in e['args']]
		assert table == summed((e['name'], e['args']) for e in spans)
	END
}

@test "A thread that starts during the session is counted" {
	watch_counts 1 --counters page-faults,task-clock --format json
	jq -e '.tables.operator | any(.name == "aten::relu" and .count > 1000 and .counters.calls > .count / 2)' "$(out mxbpf)"
}

# Adds up the outermost calls of each thread. Nothing outside of them is counted.
within_process() { # JSON BEFORE AFTER
	python3 - "$@" <<-'END'
		import json, sys
		report, before, after = json.load(open(sys.argv[1])), json.loads(sys.argv[2]), json.loads(sys.argv[3])
		threads = {}
		for table in report['tables'].values():
		    for call in table:
		        if 'thread' in call:
		            threads.setdefault(call['thread'], []).append(call)
		sums, outermost = {event: 0 for event in before if event != 'stolen'}, 0
		for calls in threads.values():
		    end = 0
		    for call in sorted(calls, key=lambda c: (c['start_unix_ns'], -c['total_ns'])):
		        if call['start_unix_ns'] >= end and call['counters']['calls']:
		            end = call['start_unix_ns'] + call['total_ns']
		            outermost += 1
		            for event in sums:
		                sums[event] += call['counters'][event]
		print(outermost, sums, before, after)
		assert outermost > 20 and sums['task-clock'] > 0
		# perf's clock includes interrupts and stolen time, which the process's CPU time omits.
		for known in before, after:
		    known['task-clock'] += known.pop('stolen')
		assert all(sums[event] <= after[event] - before[event] for event in sums)
	END
}

# The kernel's own counts for the whole process.
process() { # PID
	python3 - "$1" <<-'END'
		import glob, json, os, re, sys
		fields = open('/proc/%s/stat' % sys.argv[1]).read().rpartition(')')[2].split()
		switches = sum(int(n) for path in glob.glob('/proc/%s/task/*/status' % sys.argv[1])
		               for n in re.findall(r'voluntary_ctxt_switches:\s*(\d+)', open(path).read()))
		tick_ns = 10**9 // os.sysconf('SC_CLK_TCK')
		irq, softirq, steal = map(int, open('/proc/stat').readline().split()[6:9])
		print(json.dumps({'task-clock': (int(fields[11]) + int(fields[12]) + 2) * tick_ns,
		                  'stolen': (irq + softirq + steal) * tick_ns,
		                  'page-faults': int(fields[7]) + int(fields[9]), 'context-switches': switches}))
	END
}

watch_job() { # after start_workload or start_torch
	local before after
	before=$(process "$WORKLOAD_PID")
	start_mxbpf record --pid "$WORKLOAD_PID" -o job.mxd --counters task-clock,page-faults,context-switches
	wait_new_line "$(out workload)" '^step' 2
	end_pid "$MXBPF_PID"
	after=$(process "$WORKLOAD_PID")
	"$MXBPF" report job.mxd --format json --by event --top 1000000 >events.json
	within_process events.json "$before" "$after"
}

@test "An MXNet training job's calls count no more than its process" {
	need_mxnet
	start_workload --tiny
	watch_job
}

@test "A PyTorch training job's calls on two threads count no more than its process" {
	start_torch --tiny --threads 2
	watch_job
}

@test "Workers forked during the session are counted in rows of their own" {
	need_mxnet
	mkfifo in
	start_bg forks bash -c 'exec <in; exec "$@"' - "$PYTHON" "$REPO/tests/workload/mxnet_forks.py" --calls 50
	local forks=$BG_PID
	exec 9>in
	wait_line "$(out forks)" '^ready' "$forks"
	start_mxbpf -v --pid "$forks" --api all --format json --counters task-clock,page-faults
	echo 2 >&9
	timeout "$WAIT_SECONDS" bash -c 'until (($(grep -c "^mxbpf: following process" "$0") == 2)); do sleep 0.02; done' "$(err mxbpf)"
	printf '\n0\n' >&9
	wait_exit "$forks"
	wait_exit "$MXBPF_PID"
	jq -e '[.tables.MXNET_C_API[] | select(.name == "MXRandomSeed")] |
		length == 2 and all(.count == 50 and .counters.calls == 50 and .counters["task-clock"] > 0)' "$(out mxbpf)"
}

@test "Events that the machine cannot count are left out and named in every output, and nothing is attached if none is left" {
	[[ ! -e /sys/bus/event_source/devices/cpu ]] || skip "this machine has hardware counters"
	watch_counts 0 --counters cycles,page-faults,instructions
	expect_re '^mxbpf: warning: --counters: this machine cannot count cycles, instructions$' "$(<"$(err mxbpf)")"
	expect_re '^counters this machine cannot count cycles, instructions$' "$(<"$(out mxbpf)")"
	expect_re '^touch +1 +3\.0' "$(<"$(out mxbpf)")"
	start_toy 1 1
	expect_run 4 "$MXBPF" --exact --pid "$READY_PID" --counters cycles,instructions
	expect_re '^mxbpf: error: --counters: cycles, instructions: this machine has no such counters' "$output"
}

@test "Wrong names for --counters give suggestions" {
	expect_run 2 "$MXBPF" --pid 1 --counters page-fault
	expect_re "'page-fault' is not one of cycles, instructions, .*alignment-faults; did you mean 'page-faults'" "$output"
	expect_error 2 'at most 4 counters can be read at once' "$MXBPF" --pid 1 --counters task-clock,page-faults,minor-faults,major-faults,cycles
	expect_run 2 "$MXBPF" report x.mxd --counters cycles
}
