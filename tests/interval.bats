#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --interval and --reset print tables during the session, each with its own window and loss.

load helpers

setup() { root_setup mxnet; }

# dumps N ARGS...: runs a session until $(out mxbpf) has N dumps, and then ends it.
dumps() {
	local n=$1
	shift
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --interval 300ms "$@"
	timeout 60 bash -c 'until [[ $(grep -c "$0" "$1") -ge $2 ]]; do [[ -d /proc/$3 ]] || exit 1; done' \
		"${MARK:-schema_version}" "$(out mxbpf)" "$n" "$MXBPF_PID"
	end_pid "$MXBPF_PID"
}

rows_of() { # prints `NAME DEVICE COUNT` of each row, summed over all documents
	jq -s '[.[].tables | to_entries[] | .key as $t | .value[] | {k: "\($t) \(.name) \(.device)", n: (.count // (.allocs + .frees))}] |
		group_by(.k) | map({(.[0].k): map(.n) | add}) | add'
}

@test "JSON has one valid document per line, with adjacent windows and the loss of each" {
	dumps 3 --format json --reset
	(($(wc -l <"$(out mxbpf)") >= 4))
	while read -r line; do
		"$PYTHON" -m jsonschema -i <(echo "$line") "$O/report.schema.json" 2>"$BATS_TEST_TMPDIR/warnings"
	done < <(head -n 4 "$(out mxbpf)")
	# jq's doubles are not exact enough for nanoseconds.
	python3 - "$(out mxbpf)" <<-'END'
		import json, sys
		dumps = [json.loads(line) for line in open(sys.argv[1])]
		windows = [d['window'] for d in dumps]
		for before, after in zip(windows, windows[1:]):
		    assert after['start_unix_ns'] == before['start_unix_ns'] + before['duration_ns']
		for n in range(1, len(windows)):
		    assert sum(w['duration_ns'] for w in windows[:n]) >= n * 300000000
		for d in dumps:
		    assert d['loss']['attempted'] == d['loss']['stored'] + d['loss']['dropped'] and d['loss']['unmatched'] < 100
		    rows = [r for table in d['tables'].values() for r in table]
		    assert sum(r['count'] if 'count' in r else r['allocs'] + r['frees'] for r in rows) + d.get('moments', 0) == d['loss']['stored']
		assert all(d['loss']['stored'] > 0 for d in dumps[:-1])
	END
}

@test "The intervals of --reset add up to the whole, which the trace has" {
	dumps 3 --format json --reset --trace "$BATS_TEST_TMPDIR/t.json"
	jq -s '[(map(.loss.stored) | add), ([.[].tables[][] | .count // 0] | add), ([.[].tables[][] | .allocs + .frees] | add)]' \
		"$(out mxbpf)" >"$BATS_TEST_TMPDIR/sums"
	jq '.otherData | [.loss.stored, .spans, .allocations]' "$BATS_TEST_TMPDIR/t.json" | diff "$BATS_TEST_TMPDIR/sums" -
	jq -s -e 'all(.[]; [.tables[][] | .name // "" | select(startswith("[0x"))] == [])' "$(out mxbpf)"
}

@test "Each dump without --reset covers the whole session so far" {
	dumps 3 --format json
	jq -s -e '(map(.window.start_unix_ns) | unique | length) == 1 and (map(.window.duration_ns) | . == sort) and
		(map(.loss.stored) | . == sort and .[0] > 0 and .[-1] > .[0])' "$(out mxbpf)"
	jq -s -c '.[0], .[-1]' "$(out mxbpf)" | jq -s '[.[].tables | to_entries[] | .key as $t | .value[] | select(.count) |
		{k: "\($t) \(.name) \(.device)", n: .count}] | group_by(.k) | all(length == 1 or .[0].n <= .[1].n)' | grep -qx true
}

@test "A line separates the tables of a series, and CSV has one heading" {
	MARK='^window' dumps 2 --all --reset
	(($(grep -c '^-\{70,\}$' "$(out mxbpf)") == $(grep -c '^window ' "$(out mxbpf)") - 1))
	(($(grep -c -E '^(loss|LOST) ' "$(out mxbpf)") == $(grep -c '^window ' "$(out mxbpf)")))
	kill_started
	MARK='"loss","dropped"' dumps 2 --format csv
	[[ $(grep -c '^table,name,' "$(out mxbpf)") == 1 && $(head -c 6 "$(out mxbpf)") == table, ]]
	python3 - "$(out mxbpf)" <<-'END'
		import csv, sys
		rows = list(csv.DictReader(open(sys.argv[1], newline=''), strict=True, restkey='surplus'))
		assert all(None not in r.values() and 'surplus' not in r for r in rows)
		assert len({r['window_ns'] for r in rows}) == sum(r['name'] == 'dropped' for r in rows) >= 3
	END
}

@test "--interval prints the text of mxnet.profiler.dumps() each time, and its JSON as a line" {
	MARK='^Profile Statistics' dumps 2 --layout mxnet --reset
	kill_started
	MARK='"mxbpf"' dumps 2 --layout mxnet --format json
	jq -s -e 'length >= 3 and all(.[]; .Time.operator | length > 0)' "$(out mxbpf)"
	(($(wc -l <"$(out mxbpf)") == $(jq -s length "$(out mxbpf)")))
}

@test "A pause belongs to its interval, and nothing is dumped during it" {
	shared_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --interval 300ms --reset --format json
	wait_line "$(out mxbpf)" schema_version "$MXBPF_PID"
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	local before
	before=$(wc -l <"$(out mxbpf)")
	wait_new_line "$(out workload)" '^step' 2
	[[ $(wc -l <"$(out mxbpf)") == "$before" ]]
	kill -s USR2 "$MXBPF_PID"
	wait_new_line "$(out mxbpf)" schema_version
	end_pid "$MXBPF_PID"
	jq -s -e 'map(.window.paused_ns // 0) | map(select(. > 0)) | length == 1 and .[0] > 900000000' "$(out mxbpf)"
}

@test "A closed pipe on stdout ends the session with one line, exit code 1 and no leftover probe" {
	local links status=0
	links=$(probe_links)
	shared_workload --tiny
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	start_bg reader head -n 1 "$BATS_TEST_TMPDIR/pipe"
	start_bg mxbpf bash -c 'exec "$0" --exact --pid "$1" --interval 200ms --format json >"$2"' \
		"$MXBPF" "$WORKLOAD_PID" "$BATS_TEST_TMPDIR/pipe"
	wait_exit "$BG_PID" || status=$?
	[[ $status == 1 && $(grep -vc '^attached' "$(err mxbpf)") == 1 ]]
	expect_re 'standard output.*Broken pipe' "$(<"$(err mxbpf)")"
	no_new_links "$links"
}

@test "Traces of --trace-every follow each other, and no event is missing or in two of them" {
	local t=$BATS_TEST_TMPDIR
	shared_workload --tiny
	"$MXBPF" --pid "$WORKLOAD_PID" -d 2500ms --trace "$t/t.json" --trace-every 1s --format json >"$t/whole.json" 2>"$t/err"
	expect_re "wrote 3 traces; .*/t-000001.json to .*/t-000003.json" "$(<"$t/err")"
	jq -s -e '.[0] as $whole | .[1:] | length == 3 and
		(map(.otherData.loss.stored) | add == $whole.loss.stored and min > 100) and
		(map(.otherData.window.duration_ns) | add == $whole.window.duration_ns) and
		([.[].traceEvents[] | select(.ph == "X" and .cat == "cpu_op")] | length) == ([$whole.tables.operator[].count] | add)' \
		"$t/whole.json" "$t"/t-*.json
}

@test "--keep deletes the oldest traces, and no file of somebody else, which is not replaced either and makes the exit code 1" {
	local t=$BATS_TEST_TMPDIR
	shared_workload --tiny
	echo mine >"$t/k-000002.pftrace"
	expect_run 1 "$MXBPF" --pid "$WORKLOAD_PID" -d 3500ms --trace "$t/k.pftrace" --trace-every 1s --keep 2
	expect_re "k-000002.pftrace exists and is not a file of format pftrace that mxbpf wrote" "$output"
	expect_re 'wrote 3 traces' "$output" # the session goes on
	[[ $(cd "$t" && echo k-*) == 'k-000002.pftrace k-000003.pftrace k-000004.pftrace' ]]
	expect_same mine "$(<"$t/k-000002.pftrace")"
}

@test "A slow reader of stdout loses dumps, not events" {
	shared_workload --tiny
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	start_bg mxbpf bash -c 'exec "$0" --exact --pid "$1" --interval 100ms --reset --format json >"$2"' \
		"$MXBPF" "$WORKLOAD_PID" "$BATS_TEST_TMPDIR/pipe"
	local pid=$BG_PID
	exec {slow}<"$BATS_TEST_TMPDIR/pipe"
	wait_line "$(err mxbpf)" '^attached' "$pid"
	# mxbpf writes until the pipe is full and then blocks in write(), while the job goes on.
	timeout 60 bash -c 'until [[ $(cat "/proc/$0/wchan") == *pipe_write* ]]; do sleep 0.02; done' "$pid"
	wait_new_line "$(out workload)" '^step' 2
	kill -s INT "$pid"
	cat <&"$slow" >"$BATS_TEST_TMPDIR/all"
	wait_exit "$pid"
	# All events of that time are in one window, which is as long.
	jq -s -e '(map(.loss.dropped) | add) == 0 and (max_by(.window.duration_ns) |
		.window.duration_ns > 900000000 and .loss.stored > 0)' "$BATS_TEST_TMPDIR/all"
}

@test "Each interval of --reset has its own iterations, whose numbers go on" {
	MARK='"loops": \[{' dumps 4 --format json --reset
	# Records of a busy machine arrive late and count in the next interval, so the times are judged over all intervals.
	jq -s -e '[.[].iterations.loops[]?] as $loops | ($loops | length) >= 4 and all($loops[]; .missing == 0 and .count > 0) and
		($loops | map(.total_ns) | add) <= (map(.window.duration_ns) | add)' "$(out mxbpf)"
	jq -s -e '[.[].iterations.slowest[]?.number] | length > 3 and (unique | length) == length' "$(out mxbpf)"
}
