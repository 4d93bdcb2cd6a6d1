#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --stats: the kernel's sums, for which no events are sent, equal those of events.

load helpers

setup() {
	need_root
}

# Both documents of --stats-check are equal, to the nanosecond and the byte.
same_tables() { # JSON
	python3 - "$1" <<-'END'
		import json, sys
		events, stats = [json.loads(line) for line in open(sys.argv[1])]
		assert (events['mode'], stats['mode']) == ('events', 'stats')
		assert events['loss']['attempted'] == events['loss']['stored'] > 1000, events['loss']
		def rows(d):
		    return {(table, r.get('name'), r['device'], r.get('pid'), str(r.get('stack'))): r for table, t in d['tables'].items() for r in t}
		a, b = rows(events), rows(stats)
		assert a.keys() == b.keys(), a.keys() ^ b.keys()
		differ = [(a[k], b[k]) for k in a if a[k] != b[k]]
		assert not differ, differ
		assert events['unwound'] == stats['unwound']
	END
}

toy() { # MXBPF_ARGS...
	start_toy 200 3
	start_mxbpf --pid "$READY_PID" --api all --format json "$@"
	kill -s USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
}

# bats test_tags=smoke
@test "uprobe_multi counts every call, operator and byte in the kernel" {
	toy --stats --backend uprobe_multi
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "perf counts every call, operator and byte in the kernel" {
	toy --stats --backend perf
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "The kernel's tables equal those of events for the same calls" {
	toy --stats-check --raw
	same_tables "$(out mxbpf)"
	same_counts "$(out toy)" <(tail -n 1 "$(out mxbpf)")
}

# Runs mxbpf around exactly the section of a program between its gates. The report is in mxbpf.out.
held() { # MXBPF_ARGS PROGRAM...
	traced "--api all --format json $1" "$(out mxbpf)" "${@:2}"
}

@test "PyTorch operators with exceptions have the tables of events and torch.profiler's counts" {
	torch_setup
	traced_prog '--format json --stats-check --raw' exceptions --bare
	same_tables mxbpf.json
	jq -s -e '.[1].unwound > 0' mxbpf.json
	reference exceptions
	traced_prog '--format json --stats' exceptions --bare
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json
}

@test "PyTorch operators on two threads have the tables of events and torch.profiler's counts" {
	torch_setup
	traced_prog '--format json --stats-check --raw' threads --bare
	same_tables mxbpf.json
	reference threads
	traced_prog '--format json --stats' threads --bare
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json
}

@test "MXNet operators on worker threads have the tables of events and the counts of MXNet's profiler" {
	need_mxnet
	local prog=("$PYTHON" "$REPO/tests/judge/prog.py")
	held "--stats-check --raw" "${prog[@]}" --bare
	same_tables "$(out mxbpf)"
	cd "$BATS_TEST_TMPDIR"
	mxnet_reference "$REPO/tests/judge/prog.py"
	held --stats "${prog[@]}" --bare
	"$PYTHON" "$REPO/tests/judge/compare.py" builtin "$(out mxbpf)" --bytes-of naive
}

@test "Training jobs have the tables of events over seconds" {
	start_torch --tiny --threads 2
	start_mxbpf --pid "$WORKLOAD_PID" --format json --stats-check --raw -d 2s
	wait_exit "$MXBPF_PID"
	same_tables "$(out mxbpf)"
	stop_pid "$WORKLOAD_PID"
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --format json --stats-check --raw -d 2s
	wait_exit "$MXBPF_PID"
	same_tables "$(out mxbpf)"
	jq -s -e '.[1] | [.tables[][].account | values] | length > 20 and (map(.nvcsw) | add > 0)' "$(out mxbpf)" # accounts, too
}

# Rows are compared by name: the kernel does not know that events give a backward node the stack of its forward operator.
@test "PyTorch's Python stacks make rows whose sums are those of events" {
	torch_setup
	traced_prog '--format json --stats-check --raw --py-stacks' threads --bare
	same_tables mxbpf.json
	traced_prog '--format json --stats --py-stacks --by stack' threads --bare
	jq -e '.tables.operator | (map(.stack) | unique | length) > 20' mxbpf.json
}

@test "Every name is known although the program has exited when its rows are read" {
	start_torch --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --stats --format json
	wait_new_line "$(out workload)" '^step'
	wait_new_line "$(out workload)" '^step'
	stop_pid "$WORKLOAD_PID"
	wait_exit "$MXBPF_PID"
	jq -e '.mode == "stats" and .loss.attempted == .loss.stored and .loss.dropped == 0 and
		([.tables.operator[].name] | any(. == "torch::autograd::AccumulateGrad") and all(startswith("[") | not))' "$(out mxbpf)"
}

@test "A launched program is counted from its first call" {
	: >"$(err mxbpf)" # the toy's output; stdout has only the tables
	"$MXBPF" -q --stats --api all --format json -- "$O/toy/toy" 20 2 >"$(out mxbpf)" 2>"$(err mxbpf)" 3>&- &
	local pid=$!
	wait_line "$(err mxbpf)" '^ready'
	kill -s USR1 "$(sed -n 's/^ready //p' "$(err mxbpf)")"
	wait "$pid"
	same_counts "$(err mxbpf)" "$(out mxbpf)"
}

@test "Forked workers have rows of their own, equal to those of events" {
	need_mxnet
	mkfifo "$BATS_TEST_TMPDIR/in"
	start_bg forks bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "$PYTHON" "$REPO/tests/workload/mxnet_forks.py" --calls 50
	local forks=$BG_PID
	exec 9>"$BATS_TEST_TMPDIR/in"
	wait_line "$(out forks)" '^ready' "$forks"
	start_mxbpf -v --pid "$forks" --api all --format json --stats-check --raw
	echo 2 >&9
	wait_line "$(out forks)" '^workers'
	timeout 20 bash -c 'until (($(grep -c "^mxbpf: following process" "$0") == 2)); do sleep 0.02; done' "$(err mxbpf)"
	printf '\n0\n' >&9
	wait_exit "$forks"
	wait_exit "$MXBPF_PID"
	python3 - "$(out mxbpf)" <<-'END'
		import json, sys
		events, stats = [json.loads(line) for line in open(sys.argv[1])]
		assert events['tables'] == stats['tables']
		seeds = [r for r in stats['tables']['MXNET_C_API'] if r['name'] == 'MXRandomSeed']
		assert [r['count'] for r in seeds] == [50, 50] and len({r['pid'] for r in seeds}) == 2
	END
}

@test "A pause is in no row" {
	need_mxnet
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --format json --stats-check --raw
	wait_new_line "$(out workload)" '^step'
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^resumed, ' "$MXBPF_PID"
	wait_new_line "$(out workload)" '^step'
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID"
	same_tables "$(out mxbpf)"
	jq -s -e '.[1] | .window.paused_ns > ([.tables[][] | .max_ns // 0] | max)' "$(out mxbpf)"
}

# Runs a toy to its end. Each dump has its own loss; $(out sum) has the sum of all counts.
intervals() { # TOY_ARGS MXBPF_ARGS...
	# shellcheck disable=SC2086 # words
	start_toy $1
	shift
	start_mxbpf --pid "$READY_PID" --api all --format json --stats --interval 100ms "$@"
	kill -s USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
	(($(wc -l <"$(out mxbpf)") >= 4))
	jq -s -e 'all(.[]; .loss.attempted == .loss.stored and .loss.stored == ([.tables[][] | .count // (.allocs + .frees)] | add // 0))' \
		"$(out mxbpf)"
}

@test "The intervals of --reset add up to the program's calls" {
	intervals '3000 3' --reset
	jq -s '{loss: (map(.loss | to_entries) | add | group_by(.key) | map({key: .[0].key, value: map(.value) | add}) | from_entries),
		tables: (map(.tables | to_entries) | add | group_by(.key) | map({key: .[0].key, value: (map(.value) | add |
			group_by(.name) | map(reduce .[] as $r ({name: .[0].name}; reduce ($r | to_entries[] | select(.value | type == "number")) as $e
				(.; .[$e.key] += $e.value))))}) | from_entries)}' "$(out mxbpf)" >"$(out sum)"
	same_counts "$(out toy)" "$(out sum)"
}

@test "Each interval without --reset covers the whole session so far, memory included" {
	intervals '3000 3'
	same_counts "$(out toy)" <(tail -n 1 "$(out mxbpf)")
	jq -s -e '(map(.loss.stored) | . == sort and .[0] < .[-1]) and (map(.tables["Device Storage"][0].allocs // 0) | . == sort) and
		(map(.tables["Device Storage"][0].peak_bytes // 0) | . == sort)' "$(out mxbpf)"
}

@test "A recording has only tables, report prints them, and export says that there are no events" {
	start_toy 20 2
	start_bg mxbpf "$MXBPF" record --stats --pid "$READY_PID" -o "$BATS_TEST_TMPDIR/r.mxd"
	wait_line "$(err mxbpf)" '^attached'
	kill -s USR1 "$READY_PID"
	wait_exit "$BG_PID"
	"$MXBPF" report --format json "$BATS_TEST_TMPDIR/r.mxd" >"$(out report)"
	same_counts "$(out toy)" "$(out report)"
	jq -e '.mode == "stats"' "$(out report)"
	"$PYTHON" -m jsonschema -i "$(out report)" "$O/report.schema.json"
	run --separate-stderr "$MXBPF" export "$BATS_TEST_TMPDIR/r.mxd"
	expect_status 1
	expect_re 'recorded with --stats and has no events' "$stderr"
	"$MXBPF" report --all "$BATS_TEST_TMPDIR/r.mxd" | grep '^mode  *sums were computed in the kernel'
	run "$MXBPF" report --layout mxnet "$BATS_TEST_TMPDIR/r.mxd"
	[[ $output != *Concurrency* ]] # --stats keeps no such counter
}

@test "Options that require events are refused with --stats" {
	local option
	for option in '--trace t.json' '--ring-size 1M' '--max-size 1G'; do
		# shellcheck disable=SC2086 # two words
		run --separate-stderr "$MXBPF" --pid 1 --stats $option
		expect_status 2
		expect_re "^mxbpf: error: ${option%% *} needs events, and --stats keeps none" "$stderr"
	done
}
