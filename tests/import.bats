#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces of torch.profiler, which report and all other commands read as recordings. docs/import.md describes them.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR"
	gpu=$REPO/tests/import/gpu.json
}

json() { "$MXBPF" report "$1" -f json; }

# fails REGEX COMMAND...: mxbpf ends with 1 and one line that says why.
fails() {
	run --separate-stderr timeout 60 "$MXBPF" "${@:2}"
	# shellcheck disable=SC2154 # set by run
	[[ $status == 1 && -z $output && ${#stderr_lines[@]} == 1 && $stderr =~ $1 ]] || { echo "$status: $output$stderr" >&2; return 1; }
}

# same_tables THEIRS OURS: each row, each digit. The profiler adds us up as floating point, so its last digit may differ by one where
# a sum ends in a half. It makes self times of functions in which others overlap smaller than they are, even below 0: at most 6.
same_tables() {
	python3 - "$@" <<-'END'
		import re, sys
		def rows(path):
		    lines = [line.split('  ') for line in open(path) if line.strip() and line[0] != '#']
		    return sorted([cell.strip() for cell in line if cell.strip()] for line in lines)
		a, b = (rows(path) for path in sys.argv[1:])
		number = re.compile(r'(-?[0-9]+)[.]([0-9]+)(.*)')
		def same(x, y):
		    m, n = number.fullmatch(x), number.fullmatch(y)
		    return x == y or bool(m and n and m[3] == n[3] and abs(int(m[1] + m[2]) - int(n[1] + n[2])) <= 1)
		def differ(x, y):
		    return len(x) != len(y) or not all(map(same, x, y))
		overlap = [x for x, y in zip(a, b) if differ(x, y) and '.py(' in x[0] and not differ(x[:1] + x[3:], y[:1] + y[3:])]
		wrong = [(x, y) for x, y in zip(a, b) if differ(x, y) and x not in overlap]
		assert len(a) == len(b) > 30 and not wrong and len(overlap) <= 6, (len(a), len(b), wrong, overlap)
	END
}

@test "A trace of torch.profiler gives the table that this profiler prints: each row, each digit, with Python stacks too" {
	need_torch
	"$PYTHON_TORCH" "$REPO/tests/import/job.py" job.json >table
	"$MXBPF" report --layout torch --top 0 job.json >ours
	same_tables table ours
	gzip -k job.json
	"$MXBPF" report --layout torch --top 0 job.json.gz | cmp - ours
	"$PYTHON_TORCH" "$REPO/tests/import/job.py" stacks.json with >table
	"$MXBPF" report --layout torch --top 0 stacks.json >ours
	same_tables table ours
	"$MXBPF" report --by stack --top 0 stacks.json | grep -q 'linear.py([0-9]*): forward'
	"$MXBPF" export stacks.json -o back.json
	json stacks.json | jq -S '[.tables[][] | {name, count} | select(.name != "ProfilerStep*")] | sort' >there
	json back.json | jq -S '[.tables[][] | {name, count} | select(.name != "ProfilerStep*")] | sort' | diff there - >/dev/null
}

# tests/import/gpu.json has four iterations of 900 us. Each launches two kernels, a copy and a memset.
@test "Kernels, launches, copies, waits, memory, ranks and iterations of a trace are those of its events" {
	json "$gpu" >got.json
	jq -e '.gpu.kernels | map({name, count, total_ns, registers}) == [
		{name: "sgemm_32x32", count: 4, total_ns: 800500, registers: 64},
		{name: "void bias<float>", count: 4, total_ns: 200000, registers: 16}]' got.json
	jq -e '.gpu.operators | map(select(.name == "aten::addmm")) | .[0] | .launches == 8 and .kernels == 8 and .gpu_self_ns == 1000500' got.json
	jq -e '.gpu.copies | .[0] | .count == 4 and .bytes == 16384 and .from == "device" and .to == "pageable"' got.json
	jq -e '.gpu.waits | .[0] | .count == 4 and .total_ns == 556000' got.json
	jq -e '.tables.memory | .[0] | .device == "cuda/0" and .allocs == 4 and .alloc_bytes == 4096' got.json
	jq -e '.iterations.loops | .[0] | .count == 4 and .avg_ns == 900000' got.json
	jq -e '.window | .profiler == "torch.profiler" and .start_unix_ns == 1700000000000900500' got.json
	jq -e '.loss.dropped == 0' got.json
	jq -e '.findings | .[0].finding == "own_code"' got.json
}

@test "What a trace does not say is said once, and is no zero" {
	"$MXBPF" report "$gpu" >text
	grep -q 'Iterations: each ends with a step of the profiler' text
	grep -q 'next: sudo mxbpf .*--pid PID' text
	[[ $(grep -c 'does not say when threads waited' text) == 1 ]]
	run ! grep -Eq 'on cpu|run queue|0 context switches|--no-bpf' text
	json "$gpu" | jq -e '.tables.operator | .[0] | (.on_cpu_ns // null) == null'
}

@test "Two traces are compared, merged as the ranks of a job, exported, and put on a page" {
	sed 's/"rank": 1/"rank": 0/; s/"dur": 80,/"dur": 60,/' "$gpu" >other.json
	"$MXBPF" diff other.json "$gpu" -f json >diff.json
	jq -e '.rows | map(select(.name == "aten::addmm")) | length == 1' diff.json
	run ! jq -e '.differs[]? | select(.key == "host" or .key == "boot" or .key == "command")' diff.json
	json "$gpu" | jq '.gpu.kernels' >alone
	"$MXBPF" report other.json "$gpu" -f json >merged.json
	jq -e '[.gpu.kernels[].count] | add == 16' merged.json
	"$MXBPF" export "$gpu" -o back.json
	"$MXBPF" report back.json -f json | jq '.gpu.kernels' | diff alone -
	"$MXBPF" report "$gpu" -f html -o page.html
	grep -q 'sgemm_32x32' page.html
	"$MXBPF" export "$gpu" -f arrow -o data
	[[ -n $(find data -name '*.arrow') ]]
}

@test "A trace that is cut, or is no JSON in places, gives what can be read, and says so" {
	head -c 9000 "$gpu" >cut.json
	"$MXBPF" report cut.json | grep -q 'only a part of the file could be read: it ends in the middle, after [1-9][0-9]* events'
	gzip -c "$gpu" | head -c 1000 >cut.json.gz
	"$MXBPF" report cut.json.gz | grep -q 'only a part of the file could be read'
	sed 's/"dur": 50,/"dur": NaN,/; s/sgemm/\xff\xfe\\x/' "$gpu" >odd.json
	json odd.json | jq -e '[.gpu.kernels[].count] | add == 8'
	sed 's/"ts": 1060.5/"ts": -Infinity/' "$gpu" >untimed.json
	json untimed.json | jq -e '.loss.dropped == 1 and ([.gpu.kernels[].count] | add == 7)'
}

@test "JSON that is no trace is refused with what it lacks" {
	echo '{"traceEvents": []}' >other.json
	fails 'other.json: .*no events of a profiler' report other.json
	echo '[1, 2' >list.json
	fails 'list.json: ' report list.json
	gzip -c "$MXBPF" | head -c 100000 >program.gz
	fails 'program.gz: not an mxbpf recording' report program.gz
	echo '{"a": 1}' >plain.json
	fails 'plain.json: not an mxbpf recording' report plain.json
	fails 'other.json: .*no events' export other.json -o out.json
	[[ ! -e out.json ]]
}

@test "A trace that is larger than memory allows is read in bounded memory" {
	python3 - "$gpu" <<-'END'
		import json, sys
		events = json.load(open(sys.argv[1]))['traceEvents']
		with open('large.json', 'w') as f:
		    f.write('{"traceEvents": [')
		    for i in range(4000):
		        for k, e in enumerate(events):
		            args = dict(e.get('args', {}))
		            if 'correlation' in args:
		                args['correlation'] += i * 100
		            f.write((',\n' if i or k else '') + json.dumps({**e, 'ts': e['ts'] + i * 5000, 'args': args}))
		    f.write(']}')
	END
	python3 - "$MXBPF" <<-'END'
		import json, resource, subprocess, sys
		out = subprocess.run([sys.argv[1], 'report', 'large.json', '-f', 'json'], check=True, capture_output=True).stdout
		report = json.loads(out)
		assert sum(k['count'] for k in report['gpu']['kernels']) == 32000
		work = [w for w in report['gpu']['operators'] if w['name'] == 'aten::addmm']
		assert work[0]['launches'] == work[0]['kernels'] == 32000, work
		peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
		assert peak < 256 << 10, peak
	END
}

@test "A trace and a recording of one job differ in nothing that only the profilers do differently" {
	need_root
	need_torch
	start_ready both "$PYTHON_TORCH" "$REPO/tests/import/both.py" >/dev/null
	"$MXBPF" record -q --pid "$READY_PID" -d 2s -o both.mxd
	: >go
	wait_exit "$READY_PID"
	"$MXBPF" diff both.mxd both.json -f json >diff.json
	jq -e '[.differences[].key] - ["method", "duration", "lost"] == []' diff.json
	jq -e '(.rows | length > 20) and ([.rows[] | select(.verdict == "new" or .verdict == "gone" or .calls_changed)] | length == 0)' diff.json
	jq -e '.findings == []' diff.json
}

@test "Kernels of NCCL have the size, type and group that PyTorch says, and of several ranks it is known who came last" {
	python3 - <<-'END'
		import json
		for rank in range(2):
		    events = [{'ph': 'X', 'cat': 'user_annotation', 'name': f'ProfilerStep#{n}', 'pid': 100 + rank, 'tid': 7, 'ts': 10000 * n,
		               'dur': 10000} for n in range(9)]
		    events += [{'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaStreamSynchronize', 'pid': 100 + rank, 'tid': 7, 'ts': at,
		                'dur': 500, 'args': {'correlation': 100 + at}} for n in range(9) for at in range(10000 * n + 5500, 10000 * n + 8500, 600)]
		    for n in range(9):
		        at, late = 10000 * n, 3000 * rank
		        events += [{'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 100 + rank, 'tid': 7, 'ts': at + late,
		                    'dur': 10, 'args': {'correlation': n + 1}},
		                   {'ph': 'X', 'cat': 'kernel', 'name': 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)',
		                    'pid': 0, 'tid': 20, 'ts': at + late + 20, 'dur': 5000 - late, 'args': {'device': 0, 'context': 1, 'stream': 20,
		                    'correlation': n + 1, 'Collective name': 'allreduce', 'In msg nelems': 1000 if n else 'many', 'Out msg nelems': 1000,
		                    'Group size': 2, 'dtype': 'BFloat16', 'Process Group Name': '0', 'Process Group Ranks': '[0, 1]'}}]
		    json.dump({'schemaVersion': 1, 'distributedInfo': {'backend': 'nccl', 'rank': rank, 'world_size': 2},
		               'baseTimeNanoseconds': 1790000000000000000, 'traceEvents': events}, open(f'rank{rank}.json', 'w'))
	END
	"$MXBPF" report rank0.json rank1.json -f json >got.json
	jq -e '.collectives.operations | map({name, bytes, source, calls, communicator_size, last, parts_matched}) == [
		{name: "all_reduce", bytes: 2000, source: "arguments", calls: 8, communicator_size: 2, last: "rank 1", parts_matched: 16},
		{name: "all_reduce", bytes: null, source: null, calls: 1, communicator_size: 2, last: "rank 1", parts_matched: 2}]' got.json ||
		{ jq -c .collectives.operations got.json >&2; return 1; }
	jq -e '.collectives.operations[0].bus_bytes_per_second > 0' got.json
	# Threads of two processes have the same number, and the loop waits no more than one of them does.
	jq -e '.findings | map(select(.finding == "gpu_sync"))[0].text | test("waits for the GPU 5 times in an iteration, 28% of")' got.json ||
		{ jq -c .findings got.json >&2; return 1; }
	"$MXBPF" report rank0.json -f json | jq -e '.collectives.operations | map(.bytes) == [2000, null]'
	# Two of eight ranks may be only a part of the group, whose size nothing says.
	for rank in 0 1; do
		jq 'del(.traceEvents[].args["Group size"]?) | .distributedInfo.world_size = 8' rank$rank.json >part$rank.json
	done
	"$MXBPF" report part0.json part1.json -f json >part.json
	jq -e '.collectives.operations[0] | .bytes == 2000 and .algorithm_bytes_per_second > 0 and .bus_bytes_per_second == null' part.json
}
