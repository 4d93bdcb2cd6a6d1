#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The page, opened in Chromium and used as a person would. Ground truth is the JSON of the same recording.

load helpers

setup() {
	need_root
	need_torch
	[[ -d $O/deps/perfetto/node_modules/axe-core ]] || skip "no axe-core; run tests/setup.sh"
	cd "$BATS_TEST_TMPDIR"
	take_shared page make_page
}

HOSTILE='</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;"'\'

# A small training loop in a function with a hostile name. It ends an iteration each 10 ms.
TRAINING='
import os, sys, time, torch
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
	echo "$TRAINING" >"train <b>.py"
	start_ready training "$PYTHON_TORCH" -u "$PWD/train <b>.py" "$HOSTILE" >/dev/null
	"$MXBPF" record --pid "$READY_PID" --memory -d 2s -o job.mxd
	stop_pid "$READY_PID" KILL
	"$MXBPF" report job.mxd --format json -o job.json --html job.html
	node "$REPO/tests/readers/page.mjs" "$O/deps" job.html >found.json
}

@test "A page asks nothing of any network, and no browser has an error with it" {
	jq -e '.requests == [] and .errors == [] and .scripts == 1' found.json
	[[ $(stat -c %s job.html) -lt 1000000 ]]
}

@test "Texts of the target are no markup in a page" {
	jq -r '.tables | to_entries[].value.rows[][0]' found.json >names
	grep -qF "$HOSTILE" names
	grep -qF 'train <b>.py' <(jq -r '.frames[]' found.json)
	! grep -qF '</script><script>alert' job.html
	grep -qF "default-src 'none'; script-src 'nonce-" job.html
	! grep -qF unsafe-eval job.html
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
}

@test "Tables of a page sort and search, plots zoom, and the keyboard does it all" {
	jq -e '(.down | map(tonumber)) as $down | $down == ($down | sort | reverse) and (.up | map(tonumber)) == ($down | reverse)' found.json
	jq -e '.searched | length >= 1 and length < 5' found.json
	jq -e '.zoomed and (.iteration | test("^Iteration [0-9]+ at [0-9.]+ s took .* in operators")) and (.plots | length) == 3' found.json
	jq -e '(.flames | length) >= 3' found.json
}

@test "The strip of a thread has as much time in operators as the table" {
	python3 - <<-'END'
		import json, re
		page = open('job.html', encoding='utf-8').read()
		strip = json.loads(re.search(r'class="strip">(.*?)</script>', page, re.S)[1])
		of = strip['states'].index('in operators')
		shown = sum(slice[of] for lane in strip['lanes'] for slice in lane['slices']) * strip['slice_ns'] / 1000
		rows = json.load(open('job.json', encoding='utf-8'))['tables']['operator']
		told = sum(row['raw_self_ns'] for row in rows)
		assert strip['lanes_left_out'] == 0 and 0.9 * told < shown <= 1.01 * told, (shown, told)
		print(shown, told)
	END
}

@test "A page keeps the rules of accessibility, in both themes" {
	jq -e '.violations == []' found.json
}

@test "--open writes the page beside the recording and prints its path" {
	[[ $("$MXBPF" report job.mxd --open --force) == job.html ]]
	echo mine >other.html
	run "$MXBPF" report job.mxd --html other.html
	expect_status 1
	expect_re 'other.html exists and is not a file of format html that mxbpf wrote' "$output"
	run "$MXBPF" report job.mxd --html x.html --open
	expect_status 2
}

@test "The list of the page's libraries has the hash of each file" {
	jq -r '.components[].components[] | "\(.hashes[0].content)  \(.name)"' "$REPO/share/page/sbom.cdx.json" >sums
	(cd "$REPO/share/page/vendor" && sha256sum --quiet -c "$BATS_TEST_TMPDIR/sums")
	[[ $(wc -l <sums) == $(find "$REPO/share/page/vendor" -name '*.js' -o -name '*.css' | wc -l) ]]
}
