#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Data sets of Arrow files (export -o DIR.arrow), read by the engines that they are for. Most of these tests need neither root nor a job.

load helpers

READER=$O/deps/dataset/bin/python
REAL=$REPO/tests/golden/real.mxd

setup() {
	[[ -x $READER ]] || skip "no pyarrow at $READER: run tests/setup.sh"
	cd "$BATS_TEST_TMPDIR"
}

later() { python3 "$REPO/tests/dataset/later.py" "$@"; }
files() { (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2); }

# Two hosts, each before and after a Tuesday; on one of them Convolution takes half as long again since then.
fleet() {
	later "$REAL" a1.mxd --host vm1
	later "$REAL" a2.mxd --host vm1 --days 5 --slower Convolution=1.5
	later "$REAL" b1.mxd --host vm2 --days 3
	later "$REAL" b2.mxd --host vm2 --days 5
}

# The n-th block of a language on the page.
block() { # LANGUAGE N
	awk -v start="\`\`\`$1" -v nth="$2" '$0 == "```" { on = 0 } on; $0 == start && ++n == nth { on = 1 }' "$REPO/docs/dataset.md" | grep .
}

@test "Every engine reads the calls of the recording, and every value of a data set is that of the JSON" {
	"$MXBPF" export "$REAL" -o one.arrow
	expect_run 0 "$READER" "$REPO/tests/dataset/readers.py" one.arrow "$REPO/tests/golden/real.json"
	expect_same "607 spans, 4 tables" "$output"
}

@test "Kernels and copies of a GPU are those of the tables, and each one knows its launch" {
	"$O/unit/test_gpu_trace" loop.mxd 20
	"$MXBPF" export loop.mxd -o loop.arrow
	"$MXBPF" report loop.mxd -f json >report.json
	expect_run 0 "$READER" "$REPO/tests/dataset/readers.py" loop.arrow report.json
	expect_same "320 spans, 21 tables" "$output"
}

@test "A PyTorch job with costs, memory, stacks, counters and times off the CPU has all of its JSON in a data set" {
	need_root
	need_torch
	torch_server
	start_ready torch "${SERVED[@]}" "$REPO/tests/workload/torch_train.py"
	"$MXBPF" record -q --pid "$READY_PID" -d 1s --memory --py-stacks --shapes --sched \
		--counters task-clock,page-faults -o job.mxd
	"$MXBPF" export job.mxd -o job.arrow
	"$MXBPF" report job.mxd -f json >report.json
	jq -e '.cost.taken_out and .memory.holders and .off_cpu.calls and .tables.operator[0].counters' report.json >/dev/null
	expect_run 0 "$READER" "$REPO/tests/dataset/readers.py" job.arrow report.json
	expect_re '^[0-9]{4,} spans, [0-9]{2} tables$' "$output"
	# With another recording, which has other options: engines that want the same columns in all files read both.
	"$MXBPF" export "$REAL" -o job.arrow
	"$READER" - <<-'END'
		import os, polars
		for table in os.listdir('job.arrow'):
		    if not table.startswith('_'):
		        n = len(polars.scan_ipc('job.arrow/%s/**/*.arrow' % table, hive_partitioning=True).collect())
		        assert n and (table != 'recordings' or n == 2), table
	END
}

@test "The documented query names the operator that became slower, its host and its loss, and no other" {
	fleet
	"$MXBPF" export a?.mxd b?.mxd -o fleet.arrow
	block sql 1 >slower.sql
	block python 1 >slower.py
	expect_run 0 "$READER" slower.py
	expect_same 'vm1 Convolution 62.8 94.2 1.5 1 1 0.0 NULL' "$(sed -n 's/^│ \(vm.*\)$/\1/p' <<<"$output" | tr -d '│' | tr -s ' ' | sed 's/ $//')"
	grep -qF "$(grep -o 'vm1 *│ Convolution.*' <<<"$output")" "$REPO/docs/dataset.md"
}

@test "The other examples of the page run, and Parquet has the same sums" {
	fleet
	"$MXBPF" export a?.mxd b?.mxd -o fleet.arrow
	for n in 2 3 4; do
		block python "$n" >example.py
		"$READER" example.py
	done
	"$READER" - <<-'END'
		import duckdb, pyarrow.dataset as ds
		spans = ds.dataset('fleet.arrow/spans', format='ipc', partitioning='hive')
		query = 'SELECT host, rank, CAST(day AS VARCHAR), count(*), sum(total_ns), max(epoch_ns(start)) FROM %s GROUP BY ALL ORDER BY ALL'
		want = duckdb.sql(query % 'spans').fetchall()
		assert len(want) == 4 and want == duckdb.sql(query % "read_parquet('fleet.parquet/spans/**/*.parquet', hive_partitioning = true)").fetchall()
	END
}

@test "A recording that is exported again replaces its files, and it does not matter which ones are exported together" {
	fleet
	"$MXBPF" export a1.mxd a2.mxd b1.mxd -o together.arrow
	for recording in b1 a2 a1 b1; do "$MXBPF" export "$recording.mxd" -f arrow -o single.arrow/; done
	expect_same "$(files together.arrow)" "$(files single.arrow)"
	[[ $(find together.arrow/spans -name '*.arrow' | wc -l) == 3 && $(find single.arrow -name '.*' | wc -l) == 0 ]]
	[[ $(find single.arrow ! -perm /077 | wc -l) == $(find single.arrow | wc -l) ]]
}

@test "Hostile names and hosts are text in every engine, and part of no path" {
	# An overlong slash, a cut character, a NUL and a newline.
	later "$REAL" bad.mxd --rename Convolution=c0af000ae228 --host '../é%'
	"$MXBPF" export bad.mxd -o bad.arrow
	[[ -z $(find . -name '*.arrow' -type f ! -path './bad.arrow/*/host=..%2F%C3%A9%25/rank=-1/*') ]]
	"$READER" - <<-'END'
		import polars, pyarrow.dataset as ds
		rows = ds.dataset('bad.arrow/spans', format='ipc', partitioning='hive').to_table().to_pylist()
		lazy = polars.scan_ipc('bad.arrow/spans/**/*.arrow', hive_partitioning=True).select('name', 'host').collect()
		for names, hosts in (([r['name'] for r in rows], {r['host'] for r in rows}), (lazy['name'].to_list(), set(lazy['host']))):
		    assert names.count('\\xc0\\xaf\0\n\\xe2(' + 5 * ' ') == 4, sorted(set(names))
		    assert hosts == {'../é%'}, hosts
	END
}

@test "A damaged recording is reported, and the others are in the data set" {
	fleet
	head -c 100000 /dev/zero >b1.mxd
	expect_error 1 '^mxbpf: error: b1.mxd: ' "$MXBPF" export a1.mxd b1.mxd b2.mxd -o fleet.arrow
	[[ $(find fleet.arrow/recordings -name '*.arrow' | wc -l) == 2 ]]
}

@test "What is no place for a data set is refused with the reason, and nothing is written" {
	mkdir theirs.arrow && touch theirs.arrow/file file.arrow && ln -s theirs.arrow link.arrow
	for place in theirs file link; do
		expect_error 1 "^mxbpf: error: .*$place.arrow" "$MXBPF" export "$REAL" -o $place.arrow --force
	done
	[[ $(find . | wc -l) == 5 && ! -s file.arrow ]]
	expect_error 2 'name it with -o DIR.arrow' "$MXBPF" export "$REAL" -f arrow
	expect_error 2 'no Parquet.*DIR.arrow' "$MXBPF" export "$REAL" -o fleet.parquet
	expect_error 2 'mxbpf export RECORDING -o DIR.arrow' "$MXBPF" record --pid 1 --trace t.arrow
}

@test "The library in vendor/ is the one that its list of hashes says" {
	cd "$REPO/vendor/nanoarrow"
	sha256sum --quiet -c SHA256SUMS
	[[ $(wc -l <SHA256SUMS) == $(find . -type f ! -name SHA256SUMS | wc -l) ]]
}
