#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --memory equals, to the byte, the accounts that programs keep of their own allocations.

load helpers

PROGS=$REPO/tests/memory

setup() { root_setup mxnet torch; }

held() { # MXBPF_ARGS RUNTIME ARGS...
	local python=("$PYTHON")
	if [[ $2 != mxnet ]]; then
		torch_server
		python=("${SERVED[@]}")
	fi
	traced "$1" mxbpf.out "${python[@]}" "$PROGS/held.py" "$2" books.json "${@:3}"
}

compare() { python3 "$PROGS/compare.py" books.json "$@"; }

@test "MXNet's peak, its moment, its owners, what is left and what was there before equal the program's own account" {
	held '--memory --format json' mxnet
	compare mxbpf.out
	jq -e '.memory.holders | map(select(.name == "[before]")) | .[0].frees == 5' mxbpf.out
}

@test "PyTorch's peak, its moment, its owners and what is left equal the program's own account" {
	held '--memory --format json' torch
	compare mxbpf.out
	jq -e '.memory.devices[0].unsized_frees == 5' mxbpf.out
}

@test "A recording's report, timeline and CSV equal the program's account" {
	held 'record --memory -o held.mxd' mxnet
	"$MXBPF" report -f json held.mxd >report.json
	compare report.json
	"$MXBPF" export -f chrome -o trace.json held.mxd
	# The peak is on the track "memory events" of its process.
	jq -e --slurpfile m report.json '.traceEvents |
		map(select(.name == "thread_name" and .args.name == "memory events") | {pid, tid}) as $track |
		map(select(.ph == "i" and .name == "memory peak cpu/0")) |
		length == 1 and (.[0] | {pid, tid}) == $track[0] and ($track | length) == 1 and .[0].args.bytes == $m[0].memory.devices[0].peak_bytes and
		(.[0].args["held by"] | map(.bytes)) == ($m[0].memory.holders | map(.peak_bytes | select(. > 0)) | sort | reverse)' trace.json
	"$MXBPF" report -f csv held.mxd >held.csv
	python3 - held.csv books.json <<-'EOF'
		import csv, json, sys
		rows = [r for r in csv.DictReader(open(sys.argv[1])) if r['table'] == 'held']
		books = json.load(open(sys.argv[2]))['holders']
		assert {r['name']: int(r['peak_bytes']) for r in rows} == {op: b['peak_bytes'] for op, b in books.items()}, rows
		assert sum(int(r['live_bytes']) for r in rows) == sum(b['live_bytes'] for b in books.values())
	EOF
	"$MXBPF" report --all held.mxd >report.txt
	expect_re '^Memory held, beyond what was there when the window began$' "$(<report.txt)"
	expect_re '^cpu/0: peak [0-9.]+ MiB at [0-9.]+ s, mean [0-9.]+ MiB, [0-9.]+ MiB at the end$' "$(<report.txt)"
	expect_re '^_ones +[0-9]+ ' "$(<report.txt)"
	# The end record is cut off, so the report folds the allocations again.
	head -c $(($(stat -c %s held.mxd) - 4096)) held.mxd >cut.mxd
	"$MXBPF" report -f json cut.mxd >cut.json
	jq -e '.window.incomplete' cut.json
	compare cut.json --totals
}

@test "Intervals of --reset keep the owners of memory from earlier ones" {
	held '--memory --interval 100ms --reset --format json' mxnet --steps 2000
	(($(wc -l <mxbpf.out) > 1))
	# In each interval the rows add up: bytes at the start, which the previous one ended with, plus allocations minus frees.
	jq -s -e 'all(.[].memory.holders[]; .start_bytes + .alloc_bytes - .free_bytes == .live_bytes) and
		([.[].memory | {start: (.holders | map(.start_bytes) | add // 0), end: (.holders | map(.live_bytes) | add // 0)}] |
			([.[1:][].start] == [.[:-1][].end]) and any(.[]; .start > 0))' mxbpf.out
	# Combines the intervals: counts are sums, and live bytes and the peak continue from one to the next.
	jq -s '(.[-1].memory.devices[0]) as $last | (map(.memory.devices[0] // empty) | max_by(.peak_bytes)) as $top |
		{loss: .[-1].loss, memory: {
			devices: [$last + {peak_bytes: $top.peak_bytes, unsized_frees: 0}],
			holders: [[.[].memory.holders[]] | group_by(.name)[] | .[-1] + {
				allocs: (map(.allocs) | add), frees: (map(.frees) | add),
				alloc_bytes: (map(.alloc_bytes) | add), free_bytes: (map(.free_bytes) | add)}]}}' mxbpf.out >one.json
	compare one.json --totals
	[[ $(jq '.memory.devices[0].peak_bytes' one.json) == "$(jq .peak_bytes books.json)" ]]
}

@test "A leak is reported with the operator that allocated it" {
	"$MXBPF" --exact --memory -q -f json -- "$PYTHON" "$PROGS/leak.py" 25 >mxbpf.out
	jq -e '.memory.holders | map(select(.live_bytes > 0)) | map({name, live_bytes, live_blocks}) |
		map(select(.name == "_mul_scalar")) == [{name: "_mul_scalar", live_bytes: (25 * 4096), live_blocks: 25}]' mxbpf.out
	jq -e '.memory.holders[] | select(.name == "_plus_scalar") | .allocs == 25 and .live_blocks == 0' mxbpf.out
}

@test "An allocation that throws is a failure and no allocation, and the program goes on" {
	"$MXBPF" --exact --memory -q -f json -- "$PYTHON" "$PROGS/throw.py" >mxbpf.out 2>said
	[[ $(<said) == 'caught 5 kept 5' ]]
	jq -e '.loss.unmatched == 0 and (.memory.failures | length) == 5 and (.memory.holders | map(select(.name == "_zeros"))[0] |
		.allocs == 6 and .live_blocks == 5 and .live_bytes == 5 * 4096)' mxbpf.out
}

@test "A layer owns its outputs, also inside bulks" {
	"$MXBPF" --exact --memory --layers -q -f json -- "$PYTHON" "$PROGS/layers.py" books.json >mxbpf.out
	jq -e --slurpfile b books.json '[.memory.holders[] | select(.layer) | {key: .layer, value: .live_bytes}] | from_entries == $b[0]' \
		mxbpf.out || { jq -c '.memory.holders[]' mxbpf.out; cat books.json; return 1; }
	jq -e '.memory.holders | map(select(.layer == "net_one_fwd")) | .[0].name == "FullyConnected"' mxbpf.out
}

need_2() {
	[[ -d $O/deps/versions/2.0.0b1/mxnet ]] || skip "no MXNet 2.0.0b1 at $O/deps/versions: tests/versions/setup.sh"
	export PYTHONPATH=$O/deps/versions/2.0.0b1
}

@test "MXNet 2.0 reserves in pools what the program says, with the same owners" {
	need_2
	export MXNET_CPU_MEM_POOL_TYPE=Round
	held '--memory --format json' mxnet --pool
	compare mxbpf.out
}

@test "MXNet 2.0 scopes name the memory of parameters in the tables and in its CSV" {
	need_2
	export MXNET_CPU_MEM_POOL_TYPE=Unpooled
	"$MXBPF" record --memory -q -o scopes.mxd -- "$PYTHON" "$PROGS/scopes.py" books.json
	"$MXBPF" report -f json scopes.mxd >report.json
	jq -e --slurpfile b books.json '[.memory.holders[] | select(.scope == "net:") | .live_bytes] | add == $b[0].net' report.json || { jq -c .memory report.json; cat books.json; return 1; }
	"$MXBPF" export -f mxnet-memory -o memory.csv scopes.mxd
	"$MXBPF" export -f mxnet-memory -o each/ scopes.mxd
	gzip -cd each/recording-0.memory.csv.gz | cmp - memory.csv
	run -2 "$MXBPF" --trace x.memory.csv --pid $$
	python3 - memory.csv books.json <<-'EOF'
		import csv, json, sys
		rows = list(csv.DictReader(open(sys.argv[1])))
		books = json.load(open(sys.argv[2]))
		assert list(rows[0]) == ['Attribute Name', 'Requested Size', 'Device', 'Actual Size', 'Reuse?'], rows[0]
		net = [int(r['Requested Size']) for r in rows if r['Attribute Name'].startswith('net:')]
		assert sorted(net) == sorted(books['parameters']), (net, books)
		names = [r['Attribute Name'] for r in rows]
		assert names == sorted(names)
	EOF
}

lines() { # MXBPF_ARGS RUNTIME: the tables go to lines.json or where the arguments say
	local python=$PYTHON
	[[ $2 == mxnet ]] || python=$PYTHON_TORCH
	# shellcheck disable=SC2086 # words
	"$MXBPF" $1 --exact --memory --py-stacks -q -- "$python" "$PROGS/lines.py" "$2" books.json
}

same_lines() { # TABLES.json
	python3 "$PROGS/compare_lines.py" books.json "$1"
	jq -e '[.memory.devices[].lineless_allocs] | add == 0' "$1"
}

@test "Each line of a PyTorch program holds the memory that the program says it keeps" {
	lines '-o lines.json' torch
	same_lines lines.json
	lines '--agent -o agent.json' torch
	same_lines agent.json
	# A line that is reached on two ways is one row.
	jq -e '[.memory.holders[] | select(.name == "aten::mul" and (.line // "" | endswith(": doubled")))] | length == 1 and .[0].live_blocks == 80' lines.json
}

@test "Each line of an MXNet program holds the memory that the program says it keeps, although other threads allocate it" {
	lines '-o lines.json' mxnet
	same_lines lines.json
	jq -e '[.memory.holders[] | select(.name == "_mul_scalar" and (.line // "" | endswith(": doubled")))] | length == 1 and .[0].live_blocks == 80' lines.json
	MXNET_ENGINE_TYPE=NaiveEngine lines '-o naive.json' mxnet
	same_lines naive.json
}

@test "A recording has the lines of memory and their stacks, in every output" {
	lines 'record -o lines.mxd' mxnet
	"$MXBPF" report -f json lines.mxd >lines.json
	same_lines lines.json
	# Its lines are those of the stacks, which are more rows with the same bytes.
	"$MXBPF" report -f json --by stack --stack-depth 20 lines.mxd >stacks.json
	jq -e --slurpfile l lines.json '(.memory.holders | length) > ($l[0].memory.holders | length) and
		([.memory.holders[].live_bytes] | add) == ([$l[0].memory.holders[].live_bytes] | add) and
		([.memory.holders[] | select(.line // "" | endswith(": doubled"))] | length == 2 and
			all(.[]; .line as $line | .stack | index([$line])) and .[0].stack != .[1].stack)' stacks.json
	"$MXBPF" report -f csv lines.mxd >lines.csv
	python3 - lines.csv lines.json <<-'EOF'
		import csv, json, sys
		rows = [r for r in csv.DictReader(open(sys.argv[1])) if r['table'] == 'held']
		holders = json.load(open(sys.argv[2]))['memory']['holders']
		assert [(r['name'], r['line'], int(r['live_bytes'])) for r in rows] == [(h['name'], h['line'] or '', h['live_bytes']) for h in holders]
	EOF
	# People read the line below its row.
	"$MXBPF" report --all lines.mxd >lines.txt
	grep -A 1 '^_minus_scalar ' lines.txt | grep -E '^    .*/lines\.py\([0-9]+\): of_mxnet$'
	"$MXBPF" export -f chrome -o trace.json lines.mxd
	jq -e '[.traceEvents[] | select(.name == "memory peak cpu/0") | .args["held by"][0].line] | length == 1 and (.[0] | endswith(": of_mxnet"))' trace.json
	# The end record is cut off, so the report folds the allocations again.
	head -c $(($(stat -c %s lines.mxd) - 4096)) lines.mxd >cut.mxd
	"$MXBPF" report -f json cut.mxd >cut.json
	jq -e '.window.incomplete' cut.json
	same_lines cut.json
}

@test "Allocations whose line is not known are counted, and have no line of another operator" {
	# Without the probes in bulks it is not known which of the pushed operators allocates.
	lines '-o lines.json --probes op,api,mem' mxnet
	jq -e '([.memory.holders[] | select(.line == null) | .allocs] | add) as $n | $n > 5 and .memory.devices[0].lineless_allocs == $n' lines.json
	jq -e '[.memory.holders[] | select(.name == "ImperativeBulk")] | length == 1 and .[0].line == null' lines.json
	lines '-o lines.txt --probes op,api,mem' mxnet
	expect_re '[0-9]+ allocations have no line: their Python stacks are not known' "$(<lines.txt)"
	"$MXBPF" --exact --memory -q -o plain.json -- "$PYTHON" "$PROGS/lines.py" mxnet books.json
	jq -e 'all(.memory.holders[]; has("line") | not) and all(.memory.devices[]; has("lineless_allocs") | not)' plain.json
}

@test "Each line holds its memory on other versions of MXNet" {
	local version
	for version in 1.7.0.post2 1.8.0.post0 2.0.0b1; do
		[[ -d $O/deps/versions/$version/mxnet ]] || skip "no MXNet $version at $O/deps/versions: tests/versions/setup.sh"
		mkdir -p "$version" && ln -s "$O/deps/versions/$version" "$version/site-packages" # where a package lies
		PYTHONPATH=$PWD/$version/site-packages lines "-o $version.json" mxnet
		same_lines "$version.json"
	done
}

# Builds tests/memory/allocators.cpp as NAME.so.
allocators() { # NAME OPTIONS...
	local torch=$("$PYTHON_TORCH" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
	g++ -std=c++20 -O1 -shared -fPIC -I"$torch/include" "${@:2}" -o "$1.so" "$PROGS/allocators.cpp" -L"$torch/lib" -lc10
}

# A storage in shared memory, two records of probes, is in each window. Compares the bytes of every device with the program's account, and with torch.profiler's in the same window.
allocated() { # MXBPF_ARGS JQ-CONDITION LIBRARY ARGS...
	python3 "$REPO/tests/judge/drive.py" --before "'$MXBPF' $1 --exact --pid {pid} --format json" \
		--tool "'$MXBPF' $1 --exact --memory --format json --pid {pid}" --stdout mxbpf.json -- \
		"${SERVED[@]}" "$PROGS/allocators.py" "$PWD/$3.so" books.json --busy "${@:4}"
	jq -e --slurpfile books books.json '$books[0] as $b | (.memory.devices | map({key: .device, value: .}) | from_entries) as $m |
		($b.account | keys | length) == 3 and all($b.account | to_entries[];
			$m[.key].live_bytes == ($b.profiler[.key] // [.value.live, 0] | .[0] - .[1]) and $m[.key].missed_frees == 0 and
			(.key == "cpu/0" or $m[.key].pool.last_bytes == .value.reserved_now)) and
		(.loss | .dropped == 0 and .truncated == 0) and
		([.sources[] | {key: .source, value: .attempted}] | from_entries) as $n | '"$2" mxbpf.json >/dev/null && return 0
	jq -c '.memory.devices[], .sources[], .loss, .window.notes' mxbpf.json
	cat books.json
	return 1
}

@test "Bytes of a GPU's caching allocator and of one that the program registers equal their accounts and torch.profiler's, with the agent and with probes" {
	torch_server
	allocators module -DMODULE=module
	allocators unloadable
	allocators readonly -DMODULE=readonly -Wl,-z,now,-z,relro
	allocated --agent '$n.probes == 2 and $n.agent > 300' module
	# The second library comes in the window, so its reports come to the probe. Nothing counts twice.
	allocated --agent '$n.probes == 56 and $n.agent > 500' module --profiler --late "$PWD/unloadable.so"
	allocated --agent '$n.probes == 236 and any(.window.notes[]; .text | test("cannot: the import table of .*/readonly.so is read-only"))' readonly --profiler
	allocated --agent '$n.probes == 236 and any(.window.notes[]; .text | test("cannot: the process may unload .*/unloadable.so"))' unloadable
	allocated '--probes op,mem' true module --profiler
}

failed() { # MXBPF_ARGS COMMAND...: compares the only failure with the job's account
	traced "--memory --format json $1" mxbpf.out "${@:2}"
	jq -e --slurpfile b books.json '$b[0] as $b | (.memory.failures | length == 1 and (.[0] | .device == $b.device and .name == $b.name and
			.wanted_bytes == $b.wanted and .reserved_bytes == $b.reserved and .allocated_bytes == null and
			([.holders[] | {(.name): [.live_bytes, .live_blocks]}] | add) == $b.holders)) and
		(.findings[0] | .finding == "out_of_memory" and (.text | contains($b.device + " for " + $b.name))) and
		([.sources[] | .unmatched] | add) == 0' mxbpf.out || { jq -c '.memory.failures, .sources, .findings[0].text' mxbpf.out; cat books.json; return 1; }
}

@test "When MXNet is out of memory, who asked and who held what equal the program's account, and other exceptions are no such thing" {
	failed --py-stacks "$PYTHON" "$PROGS/out_of_memory.py" books.json
	jq -e '.memory.failures[0].line | endswith(": on_cpu")' mxbpf.out
}

@test "When the pool of a GPU in MXNet has no more, the failure says what the pool had taken" {
	failed '' python3 "$PROGS/out_of_memory.py" books.json "$O/toy/libmxnet.so"
}
