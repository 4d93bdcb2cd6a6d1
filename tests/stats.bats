#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --stats: what the kernel adds up without sending events is what events would have told.

load helpers

setup() {
	need_root
}

# The two documents of --stats-check, of the same spans: to the nanosecond and the byte.
same_tables() { # JSON
	python3 - "$1" <<-'END'
		import json, sys
		events, stats = [json.loads(line) for line in open(sys.argv[1])]
		assert (events['mode'], stats['mode']) == ('events', 'stats')
		assert events['loss']['attempted'] == events['loss']['stored'] > 1000, events['loss']
		def rows(d):
		    return {(table, r.get('name'), r['device'], r.get('pid')): r for table, t in d['tables'].items() for r in t}
		a, b = rows(events), rows(stats)
		assert a.keys() == b.keys(), a.keys() ^ b.keys()
		differ = [(a[k], b[k]) for k in a if a[k] != b[k]]
		assert not differ, differ
		assert events['unwound'] == stats['unwound']
	END
}

toy() { # MXBPF_ARGS...
	start_toy 200 3
	start_mxbpf --pid "$READY_PID" --format json "$@"
	kill -s USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
}

@test "every call, operator and byte is counted in the kernel: uprobe_multi" {
	toy --stats --backend uprobe_multi
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "every call, operator and byte is counted in the kernel: perf" {
	toy --stats --backend perf
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "the kernel's tables equal those of events, of the same calls" {
	toy --stats-check
	same_tables "$(out mxbpf)"
	same_counts "$(out toy)" <(tail -n 1 "$(out mxbpf)")
}

@test "what is about events does not go with --stats" {
	local option
	for option in '--trace t.json' '--ring-size 1M' '--max-size 1G'; do
		# shellcheck disable=SC2086 # two words
		run --separate-stderr "$MXBPF" --pid 1 --stats $option
		expect_status 2
		expect_re "^mxbpf: error: --stats keeps no events, and ${option%% *} is about events" "$stderr"
	done
}
