#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tables for people are short wherever they go, and name what they leave out.

load helpers

REAL=$REPO/tests/golden/real.mxd

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# A short output begins with the iterations and the findings, and says how many rows it leaves out.
expect_short() { # FILE
	cat "$1"
	(($(wc -l <"$1") <= 50))
	expect_re '^[0-9.]+ iterations per second, .* each: ' "$(sed -n 1p "$1")"
	expect_re '^(1\. |No finding: )' "$(sed -n 2p "$1")"
	(($(grep -n -m 1 '^Iterations: ' "$1" | cut -d : -f 1) < $(grep -n -m 1 '^operator' "$1" | cut -d : -f 1)))
	expect_re '^operator.* in [0-9]+ rows, of which ([4-9]|10) are shown \(--top 0 shows all\)$' "$(<"$1")"
	expect_re '^more     .*slowest iterations.*: --all$' "$(<"$1")"
	[[ -z $(grep -E 'nothing seen|^where their time went|^slowest iterations' "$1") ]]
}

# --all has every table, and each has as many rows as its heading says.
expect_all() { # FILE TABLE...
	local title
	for title in 'where their time went' 'slowest iterations' 'why slow: ' "${@:2}"; do
		expect_re "^$title" "$(<"$1")"
	done
	[[ -z $(grep -E '^more  |are shown' "$1") ]]
	expect_re '^events   [0-9,]+ attempted, [0-9,]+ stored' "$(<"$1")"
	expect_re '^loss     0 dropped' "$(<"$1")"
	awk '/^[^ ].* in [0-9]+ rows?(;|$)/ { match($0, / in [0-9]+ row/); want = substr($0, RSTART + 4) + 0; n = -1; next }
		want && !NF { if (n != want) { print "the heading says", want, "rows, not", n; bad = 1 } want = 0; seen++; next }
		want && !/^    / { n++ } END { exit bad || !seen }' "$1"
}

# whole TABLE...: the job's output in a pipe, in a file, in a series and with --all.
whole() {
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 3s -q | cat >pipe
	expect_short pipe
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 3s -q -o file.txt
	expect_short file.txt
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 2500ms -q --interval 1s >series
	csplit -s -f part series '/^-\{70,\}$/-1' # without the rule and the blank line before it
	expect_short part00
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 3s -q --all >all
	expect_all all "$@"
	(($(wc -l <all) > $(wc -l <pipe) + 15))
}

@test "The output for an MXNet training fits on 50 lines, and --all has every table" {
	need_root
	need_mxnet
	start_workload --tiny
	whole 'operator' 'MXNET_C_API' 'Engine wait' 'Device Storage'
	expect_re '^more     .*Engine wait' "$(<pipe)"
}

@test "The output for a PyTorch training fits on 50 lines, and --all has every table" {
	need_root
	need_torch
	start_torch --tiny
	whole 'operator' 'memory'
}

@test "A terminal, a pipe and a file get the same, and --top and --all more" {
	local n rows
	rows=$("$MXBPF" report "$REAL" --format json | jq '.tables.operator | length')
	((rows > 10))
	"$MXBPF" report "$REAL" | cat >pipe
	"$MXBPF" report "$REAL" -q -o file.txt
	cmp pipe file.txt
	script -qec "'$MXBPF' report '$REAL'" /dev/null | tr -d '\r' | cmp - pipe
	expect_re "^operator .* in $rows rows, of which 10 are shown \(--top 0 shows all\)$" "$(<pipe)"
	for n in 3 12; do
		"$MXBPF" report "$REAL" --top $n >top
		expect_re "^operator .* in $rows rows, of which $n are shown$" "$(<top)"
		[[ $(sed -n '3,/^$/p' top | grep -c .) == "$n" ]]
		expect_re '^more     Engine wait: --all$' "$(<top)"
	done
	"$MXBPF" report "$REAL" --all >all
	"$MXBPF" report "$REAL" --top 0 | cmp - all
	expect_re "^operator .* in $rows rows$" "$(<all)"
	expect_re '^Engine wait' "$(<all)"
	# The largest rows by self time are those that the short output has.
	expect_same "$(sed -n '3,/^$/p' all | awk 'NF {print $1, $4}' | sort)" \
		"$("$MXBPF" report "$REAL" --sort self --top 1000 | sed -n '3,/^$/p' | awk 'NF {print $1, $4}' | sort)"
	expect_same "$("$MXBPF" report "$REAL" --sort self --top 10 | sed -n '3,/^$/p')" "$(sed -n '3,/^$/p' pipe)"
}

@test "Tables of options say how many rows they leave out, too" {
	need_root
	need_mxnet
	start_workload --tiny
	"$MXBPF" record --pid "$WORKLOAD_PID" -d 2s -q --memory --life --sample 499 -o job.mxd
	"$MXBPF" report job.mxd >short
	"$MXBPF" report job.mxd --all >all
	"$MXBPF" report job.mxd --format json >json
	local table sizes memory life shown left
	sizes=$(jq -r '[(.memory.holders | length), (.life.operators | length)] | @tsv' json)
	read -r memory life <<<"$sizes"
	((memory > 10 && life > 10))
	for table in 'Memory held' 'made by' 'life of operators: medians, in ' 'samples at '; do
		expect_re "^$table" "$(<short)"
	done
	expect_re "^life of operators: .* in $life rows, of which ([4-9]|10) are shown \(--top 0 shows all\)\$" "$(<short)"
	left=$(sed -nE 's/^([0-9]+) more rows are not shown \(--top 0 shows all\)$/\1/p' short)
	shown=$(sed -n '/^made by/,/more rows/p' short | grep -vc -E '^made by|more rows')
	((shown + left == memory))
	left=$(sed -n '/^ran in/,/more row/p' short | sed -nE 's/^([0-9]+) more rows? \(--top 0 shows all\)$/\1/p')
	shown=$(sed -n '/^ran in/,/more row/p' short | grep -vc -E '^ran in|more row')
	((left && shown + left == $(jq '.samples.ran_in | length' json)))
	[[ -z $(grep -E 'more rows|more row|are shown' all) ]]
}

@test "Data, single calls and other layouts are whole" {
	local words
	for words in '--format json' '--format csv' '--layout mxnet' '--layout torch'; do
		# shellcheck disable=SC2086 # words
		cmp <("$MXBPF" report "$REAL" $words) <("$MXBPF" report "$REAL" $words --all)
	done
	cmp <("$MXBPF" report "$REAL" --by event) <("$MXBPF" report "$REAL" --by event --all)
}
