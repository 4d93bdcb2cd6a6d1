#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --format csv has the numbers of the JSON in one table. These tests need neither root nor MXNet.

load helpers

GOLDEN=$REPO/tests/golden

@test "The CSV of a real job has every number of its JSON, loss included, and the same number of cells in every row" {
	"$MXBPF" report "$GOLDEN/real.mxd" --format csv >"$BATS_TEST_TMPDIR/r.csv"
	python3 - "$BATS_TEST_TMPDIR/r.csv" "$GOLDEN/real.json" <<-'END'
		import csv, json, sys
		rows = list(csv.DictReader(open(sys.argv[1], newline=''), strict=True, restkey='surplus'))
		want = json.load(open(sys.argv[2]))
		assert all(None not in r.values() and 'surplus' not in r for r in rows)
		w = want['window']
		assert all((r['window_start_unix_ns'], r['window_ns']) == (str(w['start_unix_ns']), str(w['duration_ns'])) for r in rows)
		for title, table in want['tables'].items():
		    mine = [r for r in rows if r['table'] == title]
		    assert len(mine) == len(table) > 0
		    for row, other in zip(mine, table):
		        for key, value in other.items():
		            key = key if key in row else key + '_bytes'
		            assert row[key] == ('' if value is None else str(value)), (title, key, row, other)
		loss = {r['name']: int(r['count']) for r in rows if r['table'] == 'loss'}
		assert loss == want['loss'], loss
	END
}

@test "--sort and --top apply to CSV in every layout" {
	expect_run 0 "$MXBPF" report "$GOLDEN/real.mxd" --format csv --layout mxnet --sort count --top 2
	[[ $(grep -c '^"operator"' <<<"$output") == 2 && $(grep -c '^"loss"' <<<"$output") == 6 ]]
	diff <(cut -d, -f4 <<<"$output" | sed -n 2,3p) <(cut -d, -f4 <<<"$output" | sed -n 2,3p | sort -rn)
}
