#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The program's own tasks, frames, events, user counters and markers, with and without a running profiler.

load helpers

MARKS=$REPO/tests/marks

setup() { root_setup mxnet; }

compare() { "$PYTHON" "$MARKS/compare.py" told.json "$@"; }

valid() { "$PYTHON" -W ignore -m jsonschema -i "$1" "$O/report.schema.json"; }

@test "User annotations have the categories, rows, counts and values of dumps() in the same run" {
	traced '--layout mxnet --format json' mxnet.json "$PYTHON" "$MARKS/prog.py" --gates --builtin builtin
	traced '--raw --format json' mxbpf.json "$PYTHON" "$MARKS/prog.py" --gates
	valid mxbpf.json
	compare mxbpf.json --builtin builtin.json --mxnet mxnet.json
	# A task lasts from its start to its stop, and a frame as long as its contents.
	jq -e '.tables | (.Task[] | select(.domain == "load") | .min_ns >= 400000 and .max_ns < 100 * 1000000000) and
		(.Frame[0] | .min_ns >= 400000 and .total_ns >= 20 * 400000 and .per_second > 0 and
		(.count * 1e9 / (.last_end_unix_ns - .first_start_unix_ns) / .per_second | . > 0.99 and . < 1.01))' mxbpf.json
	jq -e '[.instants[] | [.name, .domain, .what, .scope, .count]] | sort ==
		[["here", "train", "marker", "process", 10], ["here", "train", "marker", "thread", 10]]' mxbpf.json
}

@test "Tasks that end on another thread, a counter moved by all threads and hostile names are recorded in every format" {
	"$PYTHON" -c 'print()' # loads the interpreter into the page cache, so that its start is not in the recorded time
	traced 'record -o r.mxd' none "$PYTHON" "$MARKS/prog.py" --gates --threads 4 --hostile
	"$MXBPF" report r.mxd --format json >mxbpf.json
	valid mxbpf.json
	compare mxbpf.json
	"$MXBPF" export r.mxd -o t.json
	jq -e '[.traceEvents[] | select(.cat == "task" and .name == "across")] | length == 80 and
		all(.args.domain == "load" and .args.end_thread and .args.end_thread != (.args.thread // .tid))' t.json
	jq -e '([.traceEvents[] | select(.cat == "marker" and .name == "here") | .s] | sort | unique) == ["p", "t"] and
		([.traceEvents[] | select(.cat == "marker" and .args.scope == "global") | .s] | unique) == ["g"]' t.json
	# Values of a track are ordered by time: all increments come before all decrements.
	jq -e '[.traceEvents[] | select(.ph == "C" and .name == "load: shared")] | sort_by(.ts) | map(.args.value) |
		length == 161 and .[0] == 100 and .[-1] == 180 and max == 260 and .[80] == 260 and
		.[:81] == (.[:81] | sort)' t.json
	"$MXBPF" report --all r.mxd >table.txt
	"$MXBPF" report r.mxd --layout mxnet >mxnet.txt
	"$MXBPF" report r.mxd --format csv >t.csv
	expect_run 1 grep -lP '[\x00-\x08\x0b-\x1f\x7f]' table.txt mxnet.txt t.csv
	# Each line of the CSV has as many cells as the heading.
	"$PYTHON" -c 'import csv, sys
rows = list(csv.reader(open("t.csv", newline="")))
assert len({len(r) for r in rows}) == 1
at = {name: i for i, name in enumerate(rows[0])}
row = [r for r in rows if r[at["table"]] == "counter" and r[at["name"]] == "shared"]
assert [(r[at["domain"]], r[at["count"]], r[at["last_value"]], r[at["max_value"]]) for r in row] == [("load", "161", "180", "260")], row'
}

@test "A program without user annotations has no table of them, and --probes can leave them out" {
	take_shared mxnet-session traced '--api all --format json' mxbpf.json "$PYTHON" "$REPO/tests/judge/prog.py" --bare
	jq -e '(.tables | has("Task") or has("Frame") or has("Event") | not) and (has("values") or has("instants") | not) and
		(.probes[] | select(.name == "mark.start") | .status == "attached")' mxbpf.json
	traced '--probes op,api --api all --format json' mxbpf.json "$PYTHON" "$MARKS/prog.py" --gates
	jq -e '(.tables | has("Task") | not) and (has("values") | not) and
		([.tables.MXNET_C_API[] | select(.name == "MXProfileDurationStart") | .count] == [80])' mxbpf.json
}

@test "User counter changes by several threads are recorded in their order, or counted as lost" {
	local lib
	lib=$("$PYTHON" -c 'import mxnet.libinfo as l; print(l.find_lib_path()[0])')
	start_ready adds "$O/prog/adjusts" "$lib" 4 20000
	start_mxbpf --pid "$READY_PID" --probes mark --trace t.json --format json
	kill -USR1 "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
	jq -c '.loss' "$(out mxbpf)"
	jq -e '.loss.attempted == 80000 and .loss.stored + .loss.dropped == 80000' "$(out mxbpf)"
	jq -e --slurpfile m "$(out mxbpf)" '[.traceEvents[] | select(.ph == "C" and .name == "load: shared")] | sort_by(.ts) |
		map(.args.value) | length == $m[0].loss.stored and . == unique' t.json
}
