#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every output for a recording of a real job (tests/golden/make.sh). These tests need neither root nor MXNet.

load helpers

GOLDEN=$REPO/tests/golden

same() { # GOLDEN-FILE COMMAND...
	local want=$GOLDEN/$1
	shift
	diff "$want" <("$@")
}

report() { "$MXBPF" report "$GOLDEN/real.mxd" "$@"; }

# bats test_tags=smoke
@test "The modern tables of a real job equal the reviewed ones, in 100 columns" {
	same real.modern.txt report --all
	same real.modern-avg-top3.txt report --all --sort avg --ascending --top 3
	same real.short.txt report
	cat "$GOLDEN"/real.{modern,short}.txt | python3 -c 'import sys; sys.exit(any(len(l.rstrip("\n")) > 100 for l in sys.stdin))'
}

# bats test_tags=smoke
@test "MXNet's layouts of a real job equal the reviewed ones" {
	same real.mxnet.txt report --layout mxnet
	same real.mxnet.json report --layout mxnet --format json
}

# bats test_tags=smoke
@test "PyTorch's layouts of a real job equal the reviewed ones" {
	same real.torch.txt report --layout torch
	same real.torch-classic.txt report --layout torch-classic --sort cuda_time_total --top 5
}

# bats test_tags=smoke
@test "The JSON of a real job equals the reviewed one and is valid by the schema" {
	need_mxnet
	same real.json report --format json
	report --format json >"$BATS_TEST_TMPDIR/r.json"
	"$PYTHON" -m jsonschema -i "$BATS_TEST_TMPDIR/r.json" "$O/report.schema.json"
	# A schema that accepts everything would accept this, too.
	jq '.tables.operator[0].count = "1"' "$BATS_TEST_TMPDIR/r.json" >"$BATS_TEST_TMPDIR/bad.json"
	run "$PYTHON" -m jsonschema -i "$BATS_TEST_TMPDIR/bad.json" "$O/report.schema.json"
	[[ $status != 0 ]]
}

# bats test_tags=smoke
@test "The trace of a real job equals the reviewed one byte for byte" {
	"$MXBPF" export "$GOLDEN/real.mxd" -o "$BATS_TEST_TMPDIR/t.json"
	cmp "$BATS_TEST_TMPDIR/t.json" <(gunzip -c "$GOLDEN/real.trace.json.gz")
}

# bats test_tags=smoke
@test "A truncated recording says so, and its tables cover what is left" {
	local size
	size=$(stat -c %s "$GOLDEN/real.mxd")
	head -c $((size - 1)) "$GOLDEN/real.mxd" >"$BATS_TEST_TMPDIR/cut.mxd"
	expect_run 0 --separate-stderr "$MXBPF" report "$BATS_TEST_TMPDIR/cut.mxd" --format json
	expect_re incomplete "$stderr"
	# Only the end record is missing. All spans are there, so folding them gives the rows of the aggregates.
	expect_same "$(jq .tables "$GOLDEN/real.json")" "$(jq .tables <<<"$output")"
}

# stats.mxd.gz is of the toy, by a version that had --stats: it has sums of calls and no events.
@test "A recording of an earlier version that has sums and no events is shown, and what needs events is refused with the reason" {
	cd "$BATS_TEST_TMPDIR"
	gunzip -c "$GOLDEN/stats.mxd.gz" >stats.mxd
	"$MXBPF" report stats.mxd --format json >stats.json
	jq -e '.mode == "stats" and .loss.attempted == .loss.stored and .loss.dropped == 0 and
		(.tables | (.operator | map({(.name): .count}) | add | .dot == 2 and .sum == 6) and
			(.MXNET_C_API | map({(.name): .count}) | add | .MXNDArrayCreate == 18 and .MXNDArrayWaitToRead == 6) and
			(.["Device Storage"][0] | .allocs == 18 and .alloc_bytes == 6786))' stats.json
	"$MXBPF" report stats.mxd --all | grep '^mode  *sums were computed in the kernel'
	expect_run 0 "$MXBPF" report --layout mxnet stats.mxd
	[[ $output != *Concurrency* ]] # it was not counted
	expect_error 2 '--by event needs events, and the recording has none' "$MXBPF" report --by event stats.mxd
	expect_error 1 'recorded it with --stats, so it has no events' "$MXBPF" export stats.mxd -o t.json
}
