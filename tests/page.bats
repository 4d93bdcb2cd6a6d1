#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The page, opened in Chromium and used as a person would. Ground truth is the JSON of the same recording.

load helpers

setup() {
	root_setup torch
	[[ -d $O/deps/perfetto/node_modules/axe-core ]] || skip "no axe-core; run tests/setup.sh"
	take_shared page make_page
}

HOSTILE='</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;"'\'

# The name of the program, whose marks would turn around what follows them, and of its process.
HOSTILE_PROGRAM=$'train <b>\u202e\u200f.py'
HOSTILE_PROCESS=$'"><u id=e>\u202e\e'

HOSTILE_FILE='"><img src=x onerror=alert(3)>.mxd'

# A small training loop in a process and a function with hostile names. It ends an iteration each 10 ms.
TRAINING='
import os, sys, time, torch
open("/proc/self/comm", "w").write(sys.argv[2])
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.ones(32, 64)
def step():
    with torch.profiler.record_function(sys.argv[1]):
        optimizer.zero_grad()
        model(data).sum().backward()
    optimizer.step()
step()
print("ready", os.getpid(), flush=True)
while True:
    step()
    time.sleep(0.01)
'

make_page() {
	local address
	echo "$TRAINING" >"$HOSTILE_PROGRAM"
	start_ready training env "MXBPF_JOB_NAME=$HOSTILE_PROCESS" "$PYTHON_TORCH" -u "$PWD/$HOSTILE_PROGRAM" "$HOSTILE" "$HOSTILE_PROCESS" >/dev/null
	"$MXBPF" record --pid "$READY_PID" --memory -d 2s -o job.mxd
	"$MXBPF" record --pid "$READY_PID" -d 1s -o second.mxd
	start_bg serve "$MXBPF" serve --pid "$READY_PID" --interval 2s --max-overhead 100% --listen 127.0.0.1:0
	wait_line "$(err serve)" 'info: attached: [0-9]+ probes' "$BG_PID"
	address=$(sed -n 's|.* info: listening on ||p' "$(err serve)")
	curl -sS --max-time 60 "$address/" -o serve.html "$address/report.json" -o serve.json
	curl -sS --max-time 60 "$address/metrics" -o serve.metrics
	cp "$(err serve)" serve.log
	stop_pid "$BG_PID" INT
	stop_pid "$READY_PID" KILL
	"$MXBPF" report job.mxd --format json -o job.json --html job.html
	cp second.mxd "$HOSTILE_FILE"
	"$MXBPF" diff job.mxd "$HOSTILE_FILE" -f json -o diff.json --html diff.html
	node "$REPO/tests/readers/page.mjs" "$O/deps" diff.html >diff.found
	node "$REPO/tests/readers/page.mjs" "$O/deps" job.html >found.json
	node "$REPO/tests/readers/page.mjs" "$O/deps" serve.html >serve.found
}

@test "A page asks nothing of any network, and no browser has an error with it" {
	jq -e '.requests == [] and .errors == [] and .scripts == 1' found.json
	[[ $(stat -c %s job.html) -lt 1000000 ]]
}

@test "Texts of the target are no markup in a page" {
	jq -r '.tables | to_entries[].value.rows[][0]' found.json >names
	grep -qF "$HOSTILE" names
	grep -qF 'train <b>\xe2\x80\xae\xe2\x80\x8f.py' <(jq -r '.frames[]' found.json)
	jq -e '.planted == [] and .unsafe == []' found.json
	run ! grep -qF '</script><script>alert' job.html
	grep -qF "default-src 'none'; script-src 'nonce-" job.html
	run ! grep -qF unsafe-eval job.html
}

@test "Texts of the target are no markup in the page of serve, and nothing else in its other answers" {
	jq -r '.tables | to_entries[].value.rows[][0]' serve.found | grep -qF "$HOSTILE"
	grep -qF '"><u id=e>\xe2\x80\xae\x1b (' <(jq -r .title serve.found)
	grep -qF 'train <b>\xe2\x80\xae\xe2\x80\x8f.py' <(jq -r '.frames[]' serve.found)
	jq -e '.planted == [] and .unsafe == [] and .errors == [] and .requests == [] and .scripts == 1' serve.found
	jq -e --arg name "$HOSTILE" --arg comm "$HOSTILE_PROCESS" '(.tables | any(.[][]; .name? == $name)) and ([.. | strings] | index($comm))' serve.json
	grep -F 'job_name="\"><u id=e>\\xe2\\x80\\xae\\x1b"' serve.metrics | grep -cF 'operator="</script>'
	run ! env LC_ALL=C grep -n -P '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80[\x8e\x8f\xa8-\xae]' serve.html serve.json serve.metrics serve.log
}

@test "Without JavaScript, findings, tables and loss can be read" {
	jq -r .plain found.json >plain
	"$MXBPF" report job.mxd --all >all.txt
	grep -E '^[1-9]\. |iterations per second' all.txt >findings
	[[ -s findings ]]
	while read -r line; do
		grep -qF -- "$line" plain
	done <findings
	grep -qF aten::addmm plain
	grep -qF -- "$(grep '^events ' all.txt)" plain
}

@test "Numbers of a page are those of the JSON, and its columns those of the tables" {
	jq -e --slurpfile page found.json '
		($page[0].tables.operator | (.heads | index("calls")) as $calls | (.heads | index("total")) as $total |
			[.rows[] | [.[0], (.[$calls] | tonumber), (.[$total] | tonumber)]] | sort) as $shown |
		$shown == ([.tables.operator[] | [.name, .count, .total_ns]] | sort) and ($shown | length) > 10' job.json
	# Every table for people is there, and each of its headings.
	"$MXBPF" report job.mxd --all >all.txt
	grep -E '^name +calls' all.txt | head -1 | tr -s ' ' '\n' >heads
	jq -r '.tables.operator.heads[]' found.json >page_heads
	[[ $(grep -vxFf page_heads heads) == '' ]]
	# Explanations of columns are there to read, not only for the mouse.
	jq -e '.explained | length > 5 and index("at peak")' found.json
}

@test "Tables of a page sort, search and unfold, plots zoom, and the keyboard does it all" {
	jq -e '(.down | map(tonumber)) as $down | $down == ($down | sort | reverse) and (.up | map(tonumber)) == ($down | reverse)' found.json
	jq -e '.searched | length >= 1 and length < 5' found.json
	jq -e '.folded == 10 and .unfolded > 10' found.json
	jq -e '.zoomed and (.iteration | test("^Iteration [0-9]+ at [0-9.]+ s took .* in (operators|your Python code)")) and (.plots | length) == 3' found.json
	jq -e '(.flames | length) >= 3' found.json
}

@test "The strip of a thread has as much time in operators as the table" {
	python3 - <<-'END'
		import json, re
		page = open('job.html', encoding='utf-8').read()
		strip = json.loads(re.search(r'class="strip">(.*?)</script>', page, re.S)[1])
		of = strip['states'].index('in operators')
		shown = sum(slice[of] for lane in strip['lanes'] for slice in lane['slices'] if len(slice) > of) * strip['slice_ns'] / 1000
		rows = json.load(open('job.json', encoding='utf-8'))['tables']['operator']
		told = sum(row['raw_self_ns'] for row in rows)
		assert strip['lanes_left_out'] == 0 and 0.9 * told < shown <= 1.01 * told, (shown, told)
		print(shown, told)
	END
}

# data CLASS PAGE: the JSON that the page's script reads.
data() {
	python3 -c 'import re, sys; print(re.search("class=\"%s\">(.*?)</script>" % sys.argv[1], open(sys.argv[2]).read(), re.S)[1])' "$@"
}

@test "Memory over time reaches the peak of the table, and its holders at the peak are those of --memory" {
	data memory job.html >memory.json
	jq -e --slurpfile job job.json '.devices[0] as $d | $job[0].memory.devices[0] as $t |
		$d.peak_bytes == $t.peak_bytes and ($d.bytes | max) == $t.peak_bytes and ($d.bytes[-1] | . >= $t.live_bytes)' memory.json
	jq -e --slurpfile job job.json '.holders as $shown | [$job[0].memory.holders[] | select(.peak_bytes > 0) | .name][:10] as $told |
		($told | length) > 0 and [$shown[] | select(. != "others")] == $told' found.json
}

@test "The strip zooms by keyboard and by pointer, and its button says how to get the whole timeline" {
	jq -e '.strip | .whole != .zoomed and .again == .whole and .dragged != .whole and .hidden and (.shown | test("mxbpf export job.mxd"))' found.json
}

@test "Frames of a flame graph can be walked by keyboard" {
	jq .walked found.json
	jq -e '.walked | length == 2 and .[0] != .[1] and all(.[]; test(": .* %$"))' found.json
}

@test "The page shows the machine behind the tables, and the profiling overhead at the end" {
	jq -e '.parts as $p | ["Over time", "Where the time goes", "Memory over time", "Threads and streams", "Machine", "Window, cost and loss"] |
		map(. as $name | $p | index($name)) | (. == sort) and all(.[]; . != null)' found.json
	jq -e '.tables.Machine.rows | any(.[]; .[0] == "CPU pressure")' found.json
}

@test "The flame graph by GPU time has the time of every kernel and copy, by line of Python and operator" {
	export MXBPF_DOUBLE_VERSION=130101
	start_ready gpu "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --account "$PWD/account.json" >/dev/null
	"$MXBPF" record --pid "$READY_PID" --gpu --py-stacks -d 2s -q -o gpu.mxd
	stop_pid "$READY_PID" KILL
	"$MXBPF" report gpu.mxd --format json -o gpu.json --html gpu.html
	data data gpu.html >gpu.data
	jq -e --slurpfile gpu gpu.json '([.kernels[][2]] | add) as $shown | ([$gpu[0].gpu.operators[].gpu_self_ns] | add) as $told |
		$shown == $told and $told > 0' gpu.data
	jq -e --slurpfile gpu gpu.json '([.kernels[] | select(.[1] == "gpuops::gemm") | .[2]] | add) == ($gpu[0].gpu.operators[] |
		select(.name == "gpuops::gemm") | .gpu_self_ns)' gpu.data
	jq -e '.lines as $lines | [.kernels[] | select(any(.[0][]; $lines[.] | test("torch_job.py")))] | length > 1' gpu.data
	node "$REPO/tests/readers/page.mjs" "$O/deps" gpu.html >gpu.found
	jq -e '.errors == [] and .violations == [] and (.flames | index("operators, by the time of their kernels and copies on GPUs"))' gpu.found
}

@test "A page keeps the rules of accessibility, in both themes" {
	jq -e '.violations == []' found.json
}

@test "The page of a comparison asks nothing of any network, has no error, keeps the rules of accessibility, and no text is markup" {
	jq -e '.requests == [] and .errors == [] and .scripts == 1 and .violations == []' diff.found
	[[ $(stat -c %s diff.html) -lt 1000000 ]]
	grep -qF "default-src 'none'; script-src 'nonce-" diff.html
	jq -r '.title' diff.found | grep -qF "$HOSTILE_FILE"
	jq -r '.tables["Per iteration, side by side"].rows[][0]' diff.found | grep -qF "$HOSTILE"
	run ! grep -qF '</script><script>alert' diff.html
	run ! grep -qF '<img src=x' diff.html
}

@test "The page of a comparison has the sentences, the differences and the rows of the JSON, without JavaScript too" {
	jq -r .plain diff.found >plain
	jq -r '.summary[], .differences[].what' diff.json >sentences
	[[ -s sentences ]]
	while read -r line; do
		grep -qF -- "$line" plain
	done <sentences
	jq -e --slurpfile page diff.found '
		[.rows[] | select(.kind == "operator") | [.name, .ns.a, .ns.b, (if .verdict == "small" then "" elif .verdict == "noise" then "~" else .verdict end)]] as $told |
		[$page[0].tables["Per iteration, side by side"].rows[] | [.[0], (.[1] | tonumber), (.[2] | tonumber), .[5]]] as $shown |
		[$told[] | . as $t | select(any($shown[]; .[0] == $t[0] and .[3] == $t[3] and (.[1] - $t[1] | fabs) <= 1 and
			(.[2] - $t[2] | fabs) <= 1) | not)] as $missing | # both round halves
		{$missing, told: ($told | length), shown: ($shown | length)}' diff.json >missing
	jq . missing
	jq -e '.told > 10 and (.missing | length) <= 1' missing # the JSON has the whole of a long name
	jq -e '.parts | map(select(. == ("What changed", "Per iteration, side by side", "How long iterations took", "Where the difference is", "Recordings, cost and loss"))) |
		length == 5' diff.found
}

@test "The page of a comparison draws the iterations and operators of both sides" {
	data diff diff.html >diff.data
	jq -e --slurpfile json diff.json '[.sides[] | [.side, .runs[0].units, (.iterations | length)]] ==
		[["A", $json[0].a.iterations, $json[0].a.iterations], ["B", $json[0].b.iterations, $json[0].b.iterations]]' diff.data
	jq -e 'all(.sides[].iterations; . == sort)' diff.data
	jq -e '.plots[0] | test("A: half of them take .*; B: half of them take")' diff.found
	jq -e 'all(.walked[]; test(": A .*, B .*, [-+]"))' diff.found
	# A recording does not differ from itself.
	"$MXBPF" diff job.mxd job.mxd -o self.html
	node "$REPO/tests/readers/page.mjs" "$O/deps" self.html | jq -e 'all(.walked[]; test(", .0 ns .*0 %")) and
		all(.tables["Per iteration, side by side"].rows[]; .[1] == .[2])'
	"$MXBPF" diff job.mxd job.mxd -o self.html -q # it may replace its own
	expect_run 2 "$MXBPF" diff job.mxd job.mxd -o x.html --html x.html
}

@test "--open writes the page beside the recording and prints its path" {
	[[ $("$MXBPF" report job.mxd --open --force) == job.html ]]
	echo mine >other.html
	expect_error 1 'other.html exists and is not a file of format html that mxbpf wrote' "$MXBPF" report job.mxd --html other.html
	expect_run 2 "$MXBPF" report job.mxd --html x.html --open
}

@test "The list of the page's libraries has the hash of each file" {
	jq -r '.components[].components[] | "\(.hashes[0].content)  \(.name)"' "$REPO/share/page/sbom.cdx.json" >sums
	(cd "$REPO/share/page/vendor" && sha256sum --quiet -c "$BATS_TEST_TMPDIR/sums")
	[[ $(wc -l <sums) == $(find "$REPO/share/page/vendor" -name '*.js' -o -name '*.css' | wc -l) ]]
}
