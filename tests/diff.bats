#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf diff finds what was planted in a real loop, names the right row, and calls nothing certain where nothing changed.

load helpers

setup() {
	measured
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	recorded
}

teardown() {
	kill_started
	park_jobs
}

# Makes a.mxd, same.mxd (the same job again), busy.mxd (again, beside two busy neighbours) and op.mxd (one operator takes three
# times as long) once. One job is stopped while the other is recorded, so that neither makes the other slower.
recorded() {
	local a b i neighbours=()
	DIR=$BATS_FILE_TMPDIR
	[[ -f $DIR/done && $BATS_TEST_TRY_NUMBER == 1 ]] && return 0
	start_bg op "$PYTHON_TORCH" "$REPO/tests/diff/job.py" 600 op 200
	b=$BG_PID
	start_ready a "$PYTHON_TORCH" "$REPO/tests/diff/job.py" 600
	a=$READY_PID
	wait_line "$(out op)" '^ready' "$b"
	kill -s STOP "$b"
	"$MXBPF" record -q --pid "$a" -d 3s -o "$DIR/a.mxd"
	"$MXBPF" record -q --pid "$a" -d 3s -o "$DIR/same.mxd"
	for i in 1 2; do
		start_bg "neighbour$i" bash -c 'while :; do :; done'
		neighbours+=("$BG_PID")
	done
	"$MXBPF" record -q --pid "$a" -d 3s -o "$DIR/busy.mxd"
	kill -s KILL "${neighbours[@]}"
	kill -s STOP "$a"
	kill -s CONT "$b"
	"$MXBPF" record -q --pid "$b" -d 3s -o "$DIR/op.mxd"
	kill -s KILL "$a" "$b"
	touch "$DIR/done"
}

# bats test_tags=alone
@test "A planted change of one operator is certain, its row is named, and the other side of it is as certain" {
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" >text
	expect_re '^aten::bmm .* changed ' "$(<text)"
	expect_re '^differs    command: .*job.py 600 -> .*job.py 600 op 200$' "$(head -1 text)"
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" -f json >json
	jq -e '[.rows[] | select(.certain and .kind == "operator") | .name] == ["aten::bmm"]' json
	jq -e '.rows[] | select(.name == "aten::bmm") | .own_change > 0.8 and .calls.a == .calls.b' json
	"$MXBPF" diff "$DIR/op.mxd" "$DIR/a.mxd" -f json >back
	jq -e '.rows[] | select(.name == "aten::bmm") | .certain and .own_change < -0.4' back
}

# bats test_tags=alone
@test "Two recordings of one job have no certain change, and a recording against itself has none at all" {
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/same.mxd" -f json >json
	jq -e '[.rows[] | select(.certain)] == []' json
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/a.mxd" -f json >self
	jq -e 'all(.rows[]; .change == 0 and (.certain | not)) and .differences == [] and .findings == [] and .shapes == []' self
	jq -e '.a.iterations == .b.iterations and .a.iterations > 16 and .per == "iteration"' self
}

# bats test_tags=alone
@test "A busy neighbour of one recording makes nothing certain" {
	local sides
	for sides in 'a busy' 'busy same'; do
		# shellcheck disable=SC2086 # two words
		set -- $sides
		"$MXBPF" diff "$DIR/$1.mxd" "$DIR/$2.mxd" -f json >json
		jq -c '.rows[] | select(.certain) | {name, change, own_change, noise, p}' json
		jq -e '[.rows[] | select(.certain)] == []' json
	done
}

@test "Text, JSON and page say the same of what operators have in common: within what they do themselves, or not known" {
	local a b
	cp "$REPO/tests/golden/real.mxd" few.mxd
	for a in few.mxd "$DIR/a.mxd"; do
		b=${a/%\/a.mxd/\/busy.mxd}
		"$MXBPF" diff "$a" "$b" >text
		"$MXBPF" diff "$a" "$b" -f json >json
		"$MXBPF" diff "$a" "$b" -o page.html
		python3 - <<-'END'
			import json, re
			said, text, page = json.load(open('json')), open('text').read(), open('page.html').read()
			common, number = said['common_change'], said['common_of']
			line = re.search(r'^(Changes of operators are without|What the operators have in common).*$', text, re.M)[0]
			assert line in page.replace('&#x27;', "'"), line
			changes = [r['change'] for r in said['rows'] if r['kind'] == 'operator' and all(r['calls'].values())]
			if number:
			    told = re.search(rf'without the ([+-][0-9.]+)% that {number} operators', line) # JSON has rounded it before
			    assert abs(float(told[1]) - 100 * common) < 0.06, (line, common, number)
			    assert min(changes) - 1e-3 <= common <= max(changes) + 1e-3, (common, changes)
			else:
			    assert common is None and 'is not known' in line, (common, line)
			assert number or not any(s.startswith('All operators changed alike') for s in said['summary'])
		END
	done
}

@test "The text has the rows, times and verdicts of the JSON" {
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --top 0 -o text.txt
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" -f json -o all.json
	python3 - <<-'END'
		import json, re
		said, text = json.load(open('all.json')), open('text.txt').read()
		for sentence in said['summary']:
		    assert sentence + '.' in text, sentence
		shown = {line.split()[0]: line for line in text.splitlines() if line.startswith('aten::') and len(line.split()[0]) < 36}
		rows = {r['name']: r for r in said['rows'] if r['kind'] == 'operator' and len(r['name']) < 36 and r['name'].startswith('aten::')}
		assert len(rows) > 20 and sorted(rows) == sorted(shown), sorted(set(rows) ^ set(shown))
		units = {'ns': 1, 'us': 1e3, 'ms': 1e6, 's': 1e9}
		for name, row in rows.items():
		    for side, field in zip('ab', shown[name].split()[1:3]):
		        number, unit = re.fullmatch(r'([0-9.]+)([a-z]+)', field).groups() if field != '-' else ('0', 'ns')
		        assert abs(float(number) * units[unit] - row['ns'][side]) <= 0.01 * row['ns'][side] + 1, (row, shown[name])
		    assert ('changed' in shown[name]) == (row['verdict'] == 'changed'), (row, shown[name])
	END
}

# bats test_tags=alone
@test "--fail-on exits with 10 for a certain change beyond the limit, and says which; with 0 for others" {
	run "$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --fail-on 'iteration < -90%' --fail-on 'operator(aten::bmm) > +50%' -o x.json
	expect_status 10
	expect_re "^mxbpf: --fail-on 'operator.aten::bmm. > .50%' is broken: aten::bmm changed by .[0-9]+%$" "$output"
	run "$MXBPF" diff "$DIR/a.mxd" "$DIR/same.mxd" --fail-on 'operator(aten::bmm) > 0%' --fail-on 'memory.peak > +10%' \
		--fail-on 'iteration > +5%'
	expect_status 0
}

@test "A wrong limit, file or number of recordings is an error that says what to do" {
	run "$MXBPF" diff a b --fail-on 'iteration > 5'
	expect_status 2
	expect_re "'iteration > 5', at character 14: expected %" "$output"
	run "$MXBPF" diff "$DIR/a.mxd"
	expect_status 2
	run "$MXBPF" diff "$DIR/a.mxd" none.mxd
	expect_status 1
	expect_re 'cannot open none.mxd: No such file' "$output"
	"$MXBPF" report "$DIR/a.mxd" -f json -o a.json
	run "$MXBPF" diff "$DIR/a.mxd" a.json
	expect_status 1
	expect_re 'a.json: recordings cannot be compared with JSON results; mxbpf report RECORDING -f json makes' "$output"
	echo '{"tables": {}}' >odd.json
	run "$MXBPF" diff a.json odd.json
	expect_status 1
	expect_re 'odd.json is no recording, and no JSON result of mxbpf' "$output"
	echo text >other
	run "$MXBPF" diff "$DIR/a.mxd" other
	expect_status 1
	cp other other.txt
	run "$MXBPF" diff "$DIR/a.mxd" "$DIR/same.mxd" -o other.txt
	expect_status 1
	expect_same text "$(<other.txt)"
	run "$MXBPF" diff "$DIR/a.mxd" "$DIR/same.mxd" --fail-on 'operator(none) > 5%'
	expect_status 1
	expect_re "'operator.none. > 5%': the recordings have nothing of that kind" "$output"
}

@test "JSON results are compared by their sums, and the first sentence says that nobody knows whether a change is certain" {
	"$MXBPF" report "$DIR/a.mxd" -f json -o a.json
	"$MXBPF" report "$DIR/op.mxd" -f json -o op.json
	"$MXBPF" diff a.json op.json >text
	expect_re 'JSON results have sums and no single iterations, so nobody knows whether this is certain' "$(<text)"
	expect_re '^differs    command: .*job.py 600 -> .*job.py 600 op 200$' "$(head -1 text)"
	"$MXBPF" diff a.json op.json -f json >json
	jq -e '.sums and all(.rows[]; .verdict != "changed" and .noise == null or .verdict != "noise")' json
	jq -e --slurpfile a a.json --slurpfile op op.json '
		def took: (.tables.operator[] | select(.name == "aten::bmm") | .self_ns) / .iterations.loops[0].count | round;
		def same(ns): (. - ns | fabs) <= 1 + ns / 1000000;
		.rows[] | select(.name == "aten::bmm") | .ns | (.a | same($a[0] | took)) and (.b | same($op[0] | took))' json
	jq -e --slurpfile a a.json '.a.iterations == $a[0].iterations.loops[0].count' json
	"$MXBPF" diff --base a.json --base a.json op.json op.json -f json >several
	jq -e '.sums and .several' several
}

@test "Several recordings of a side are one side, and other runtimes are said first" {
	"$MXBPF" diff --base "$DIR/a.mxd" --base "$DIR/same.mxd" "$DIR/same.mxd" "$DIR/a.mxd" -f json >json
	jq -e '.several and (.a.recordings | length) == 2 and (.b.recordings | length) == 2 and ([.rows[] | select(.certain)] == [])' json
	"$MXBPF" diff "$DIR/a.mxd" "$REPO/tests/golden/real.mxd" >text
	expect_re 'runtime: PyTorch .* -> MXNet' "$(<text)"
	expect_re 'no operator is on both sides' "$(<text)"
	expect_re 'rows are per slice of time' "$(<text)"
}

@test "A table is compared as the reports of both recordings have it; of several recordings its changes can be certain" {
	local side
	for side in a op; do
		"$MXBPF" report "$DIR/$side.mxd" -f json --top 0 -o "$side.json"
	done
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --table threads -f json -o diff.json
	"$REPO/tests/diff/tables.py" diff.json a.json op.json threads name cpu_ns,runq_ns,runs
	jq -e '.per == "iteration" and all(.table_rows[]; .certain | not)' diff.json
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --table threads --top 1 >text
	expect_re '^threads, per iteration .* A .* B +change$' "$(grep '^threads' text)"
	expect_re '^[0-9]+ more rows' "$(grep more text)"
	"$MXBPF" diff --base "$DIR/a.mxd" --base "$DIR/a.mxd" "$DIR/op.mxd" "$DIR/op.mxd" --table threads -f json |
		jq -e 'all(.table_rows[]; .verdict and .p >= 0)'
	run "$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --table thread
	expect_status 2
	expect_re "'thread' is not one of .*, gpu\.kernels, .*\.idle, .*, threads" "$output"
	run "$MXBPF" diff a.json op.json --table threads
	expect_status 1
	expect_re 'a.json is a JSON result, and tables of recordings alone compare' "$output"
}

@test "In Markdown a renderer shows the rows of the text and the verdict first, whatever characters names have" {
	local rendered=("$O/deps/ci/bin/python" "$REPO/tests/diff/rendered.py")
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --top 0 -o all.md
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --top 0 -f json >all.json
	"${rendered[@]}" all.md >cells
	jq -e --slurpfile said all.json '(map(.[0]) | unique) as $shown | $said[0].rows
		| all(.[] | select(.kind == "operator"); .name as $name | $shown | index($name))' cells
	jq -e '.[] | select(.[0] == "aten::bmm") | .[5] == "changed"' cells
	"$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" --table threads -f markdown | sed -n '2p; $p' >fence
	expect_same "$(<fence)" $'```text\n```'
	(($("$MXBPF" diff "$DIR/a.mxd" "$DIR/op.mxd" -f markdown | grep -c '^| `') == 11)) # ten rows and the peak

	# JSON results take any name.
	local odd='<b>@me</b> a|b `c` \d *e* _f_ [g](h) http://h.org www.h.org &lt; #1 ~~i~~ \| $x$' side
	for side in a op; do
		"$MXBPF" report "$DIR/$side.mxd" -f json |
			jq --arg odd "$odd" '(.tables.operator[] | select(.name == "aten::bmm")).name = $odd | .target.cmdline = $odd + .target.cmdline' >"$side.json"
	done
	"$MXBPF" diff --base a.json --base a.json op.json op.json -o odd.md
	"${rendered[@]}" odd.md >cells
	jq -e --arg odd "$odd" 'any(.[]; .[0] == $odd)' cells
	expect_re '^### mxbpf: ' "$(sed -n 2p odd.md)"
	run ! grep '@me' odd.md
}
