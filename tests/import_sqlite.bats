#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Databases of Nsight Systems and nvprof, of old and new versions. docs/import.md describes what they become.

load helpers

setup_file() {
	local version
	cd "$BATS_FILE_TMPDIR"
	for version in old new; do
		python3 "$REPO/tests/import/make_nsys.py" $version $version.sqlite
		python3 "$REPO/tests/import/make_nvprof.py" $version $version.nvvp
	done
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	d=$BATS_FILE_TMPDIR
}

json() { "$MXBPF" report "$1" -f json; }

# fails REGEX FILE: mxbpf ends with 1 and one line that says why.
fails() {
	run --separate-stderr timeout 60 "$MXBPF" report "$2"
	# shellcheck disable=SC2154 # set by run
	[[ $status == 1 && -z $output && ${#stderr_lines[@]} == 1 && $stderr =~ $1 ]] || { echo "$status: $output$stderr" >&2; return 1; }
}

@test "Kernels, launches, copies, operators, ranges and devices of Nsight Systems are those of its tables" {
	local version
	for version in old new; do
		json "$d/$version.sqlite" >got.json
		jq -e '.gpu.kernels | map({name, count, total_ns}) == [{name: "gemm(float*)", count: 3, total_ns: 60000},
			{name: "add(float*)", count: 3, total_ns: 30000}]' got.json
		# Each kernel has its launch, and each launch its operator.
		jq -e '.gpu.operators | map(select(.launches)) | map({name, self: .gpu_self_ns, kernels}) | sort_by(.name) | map(select(.self > 9000)) ==
			[{name: "AddmmBackward0", self: 30000, kernels: 3}, {name: "aten::addmm", self: 60000, kernels: 3}]' got.json
		jq -e '.gpu.copies | .[0] | .count == 3 and .bytes == 12288 and .from == "pageable" and .to == "device"' got.json
		jq -e '.gpu.waits | .[0] | .count == 3 and .total_ns == 30000' got.json
		jq -e '.tables.operator | map({name, count, total_ns, self_ns}) | sort_by(.name) == [
			{name: "AddmmBackward0", count: 3, total_ns: 18000, self_ns: 12000},
			{name: "aten::addmm", count: 3, total_ns: 18000, self_ns: 12000},
			{name: "aten::linear", count: 3, total_ns: 24000, self_ns: 6000}]' got.json
		jq -e '.window.profiler == "Nsight Systems" and .loss.dropped == 0' got.json
	done
	jq -e '.window.start_unix_ns == 1790000000000100000' got.json
	"$MXBPF" report "$d/new.sqlite" >text
	grep -q '^train: step 1 ' text
	grep -q '^overlap .* 200us ' text
	grep -q '^saved ' text
	grep -q '^GPU 0 NVIDIA H200 ' text
	grep -q '^trace .*Not all NVTX events' text
	grep -q '(python3), from a trace of Nsight Systems' text
}

@test "Processes of one database use the same correlation numbers, and keep their own kernels" {
	python3 - <<-'END'
		import sqlite3
		db = sqlite3.connect('two.sqlite')
		db.execute('CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER)')
		db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)')
		db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER)')
		db.execute('CREATE TABLE StringIds (id INTEGER, value TEXT)') # without a key, as tools write that copy tables
		db.executemany('INSERT INTO StringIds VALUES (?, ?)', [(1, 'cudaLaunchKernel_v7000'), (100, 'k100'), (200, 'k200')])
		for pid in (100, 200):
		    for i in range(3):
		        at, thread = 1000 + i * 10000, pid << 24 | pid + 1
		        db.execute('INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?)', (at, at + 5000, 'aten::mm%d' % pid, thread))
		        db.execute('INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)', (at + 1000, at + 2000, thread, i + 1))
		        db.execute('INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?)', (at + 3000, at + 3000 + pid, i + 1, pid << 24, pid))
		db.commit()
		db.execute('PRAGMA journal_mode = WAL')
	END
	json two.sqlite | jq -e '.gpu.operators | map([.name, .kernels, .gpu_self_ns]) | sort == [["aten::mm100", 3, 300], ["aten::mm200", 3, 600]]'
	json two.sqlite | jq -e '.gpu.kernels | map([.name, .count, .unlaunched]) | sort == [["k100", 3, 0], ["k200", 3, 0]]'
}

@test "Backward nodes of Nsight Systems are joined with the operators that created them" {
	"$MXBPF" report --backward "$d/old.sqlite" >text
	grep -qE '^aten::addmm +3 18.0 us +18.0 us ' text
}

@test "A database of nvprof gives the table of load_nvprof: each range, its calls, its times, and its kernels" {
	need_torch
	local version
	for version in old new; do
		"$MXBPF" report --layout torch-classic --top 0 "$d/$version.nvvp" >ours
		"$PYTHON_TORCH" - "$d/$version.nvvp" ours <<-'END'
			import re, sys
			from torch.autograd.profiler import load_nvprof
			told, ours = {}, {}
			for e in load_nvprof(sys.argv[1]): # in ns: load_nvprof() does not convert them, and its table calls them us
			    row = told.setdefault(e.name, [0, 0, 0])
			    for i, n in enumerate((1, e.time_range.elapsed_us(), sum(k.duration for k in e.kernels))):
			        row[i] += n
			for line in open(sys.argv[2]):
			    m = re.match(r'(.+?)  +[0-9.]+us +[0-9.]+us +(\d+) +([0-9.]+)us +([0-9.]+)us$', line)
			    if m:
			        ours[m[1]] = [int(m[2]), round(float(m[3]) * 1000), round(float(m[4]) * 1000)]
			assert ours == told and len(told) == 10, (ours, told)
		END
	done
	json "$d/new.nvvp" | jq -e '.gpu.kernels | map({name, count}) | sort_by(.name) ==
		[{name: "add(float*, int)", count: 8}, {name: "mul(float*, int)", count: 8}, {name: "outside()", count: 1}]'
	json "$d/new.nvvp" | jq -e '.tables.cuda // [] | map({name, count}) | sort_by(.name) | length == 0 or . ==
		[{name: "cudaLaunchKernel", count: 17}, {name: "cudaMemcpy", count: 1}]'
}

@test "Databases that are foreign, cut or forged end with one line that says why" {
	python3 - <<-'END'
		import sqlite3
		db = sqlite3.connect('foreign.sqlite')
		db.execute('CREATE TABLE pets (name TEXT)')
		db.commit()
		# A view and a virtual table are no table; a view that never ends does not run.
		db = sqlite3.connect('view.sqlite')
		db.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start, end) AS (SELECT 1, 2 UNION ALL SELECT start, end FROM r) SELECT * FROM r")
		db.execute('CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)')
		db.commit()
		db = sqlite3.connect('empty.sqlite')
		db.execute('CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)')
		db.commit()
		# A computed column is not computed.
		db = sqlite3.connect('computed.sqlite')
		db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER AS (length(hex(zeroblob(1000)))))')
		db.executemany('INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end) VALUES (?, ?)', [(i, i + 1) for i in range(1, 4)])
		db.commit()
		data = open('empty.sqlite', 'rb').read()
		open('zero.sqlite', 'wb').write(data[:100] + bytes(len(data) - 100))
	END
	head -c 20000 "$d/new.sqlite" >cut.sqlite
	head -c 20000 "$d/new.nvvp" >cut.nvvp
	fails 'not of Nsight Systems or nvprof' foreign.sqlite
	fails 'no events' view.sqlite
	fails 'no events' empty.sqlite
	fails 'truncated: it has 20000 of' cut.sqlite
	fails 'truncated: it has 20000 of' cut.nvvp
	json computed.sqlite | jq -e '.gpu.kernels | map([.count, .gpu]) == [[3, 0]]'
	fails '.' zero.sqlite
	python3 - "$d/new.sqlite" <<-'END'
		import random, sys
		whole, random = open(sys.argv[1], 'rb').read(), random.Random(7)
		for i in range(40):
		    data = bytearray(whole)
		    for n in range(random.choice((1, 4, 40))):
		        data[random.randrange(len(data))] = random.randrange(256)
		    open('bad-%d.sqlite' % i, 'wb').write(data)
	END
	for f in bad-*.sqlite; do
		run timeout 20 "$MXBPF" report "$f"
		[[ $status -le 1 ]]
	done
}

@test "A range whose name has no list of sizes where one should be has none, and the others have theirs" {
	cp "$d/old.sqlite" odd.sqlite
	python3 - <<-'END'
		import sqlite3
		db = sqlite3.connect('odd.sqlite')
		names = [n for n, in db.execute("SELECT DISTINCT text FROM NVTX_EVENTS WHERE text LIKE 'aten::%sizes%'")]
		assert names, names
		db.execute("""UPDATE NVTX_EVENTS SET text = 'aten::addmm, seq = 1, sizes = [</script>"x, {]' WHERE text = ?""", names[:1])
		db.commit()
	END
	"$MXBPF" report --by shape odd.sqlite -f json >odd.json
	jq -e '[.tables.operator[] | select(.name == "aten::addmm")] | map(.shapes) | sort == [[], [[2, 3], [3, 4]]]' odd.json
}

# nsys_reports FILE: the sums that reports of nsys stats make of a database, by their queries: cuda_gpu_kern_sum, cuda_api_sum,
# cuda_gpu_mem_time_sum, nvtx_sum, and how many kernels have their launch.
nsys_reports() {
	python3 - "$1" <<-'END'
		import json, sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
		def sums(of, name, label):
		    return dict((n, [c, t]) for n, c, t in db.execute(
		        f'WITH x AS ({of}) SELECT {label} AS name, count(*), sum(dur) FROM x LEFT JOIN {name} GROUP BY 1'))
		strings = 'StringIds s ON s.id = x.name'
		copies = 'SELECT end - start AS dur, copyKind AS name FROM CUPTI_ACTIVITY_KIND_MEMCPY'
		print(json.dumps({
		    'kernels': sums('SELECT end - start AS dur, demangledName AS name FROM CUPTI_ACTIVITY_KIND_KERNEL', strings, 's.value'),
		    'calls': sums('SELECT end - start AS dur, nameId AS name FROM CUPTI_ACTIVITY_KIND_RUNTIME', strings, 's.value'),
		    'copies': sums(copies, 'ENUM_CUDA_MEMCPY_OPER s ON s.id = x.name', 's.label'),
		    'devices': db.execute('SELECT count(*) FROM TARGET_INFO_GPU').fetchone()[0],
		    'ranges': sums("""SELECT end - start AS dur, textId AS name FROM NVTX_EVENTS e JOIN (SELECT domainId AS d, s.value AS domain,
		        globalTid AS process FROM NVTX_EVENTS JOIN StringIds s ON s.id = textId WHERE eventType = 75)
		        ON d = domainId AND process >> 24 = globalTid >> 24 WHERE eventType IN (59, 60, 70, 71) AND domain = 'mxbpf'""", strings, 's.value'),
		    'joined': db.execute('SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON '
		                         'r.correlationId = k.correlationId AND r.start <= k.start').fetchone()[0]}))
	END
}

@test "A database that export writes has what nsys stats reports: the sums of our own tables, and each kernel's launch; read back, it is the same" {
	"$MXBPF" export "$REPO/tests/import/gpu.json" -o out.sqlite
	json "$REPO/tests/import/gpu.json" >ours.json
	nsys_reports out.sqlite >theirs.json
	jq -en --slurpfile t theirs.json --slurpfile o ours.json '
		def sums: map({(.name): [.count, .total_ns]}) | add;
		$t[0] as $t | $o[0] as $o | $t.kernels == ($o.gpu.kernels | sums) and $t.joined == 8 and
		$t.calls == ($o.tables["CUDA call"] | sums) and $t.copies == {"Device-to-Host": [4, 80000]} and
		$t.ranges == ($o.tables.operator | map(select(.annotation | not)) | sums)' || { cat theirs.json >&2; return 1; }
	json out.sqlite >back.json
	jq -en --slurpfile b back.json --slurpfile o ours.json '$b[0] as $b | $o[0] as $o |
		$b.gpu.kernels == $o.gpu.kernels and $b.gpu.copies == $o.gpu.copies and ($b.gpu.waits | map(del(.name))) == ($o.gpu.waits | map(del(.name))) and
		$b.tables["CUDA call"] == $o.tables["CUDA call"] and $b.window.start_unix_ns == $o.window.start_unix_ns and
		($b.tables.operator | map({name, count, total_ns})) == ($o.tables.operator | map(select(.annotation | not) | {name, count, total_ns}))'
	# A recording of mxbpf, with calls that end on other threads.
	"$MXBPF" export "$REPO/tests/golden/real.mxd" -o real.sqlite
	"$MXBPF" report "$REPO/tests/golden/real.mxd" -f json >real.json
	nsys_reports real.sqlite | jq -e --slurpfile o real.json '.ranges == ($o[0].tables.operator | map({name, count, total_ns}) |
		group_by(.name) | map({(.[0].name): [(map(.count) | add), (map(.total_ns) | add)]}) | add)'
	# Processes of a merge, also with one number on two hosts, have their own domains and devices.
	sed 's/"rank": 1/"rank": 0/' "$REPO/tests/import/gpu.json" >other.json
	"$MXBPF" export "$REPO/tests/import/gpu.json" other.json -o two.sqlite
	nsys_reports two.sqlite >two.json
	jq -en --slurpfile t theirs.json --slurpfile two two.json '$t[0] as $t | $two[0] as $two | $two.devices == 2 * $t.devices and
		$two.ranges == ($t.ranges | map_values(map(2 * .))) and $two.kernels == ($t.kernels | map_values(map(2 * .)))' || { cat two.json >&2; return 1; }
	# What stood there before is replaced whole, or stays.
	"$MXBPF" export "$d/new.sqlite" -o real.sqlite
	nsys_reports real.sqlite | jq -e '.joined == 6 and .kernels["gemm(float*)"] == [3, 60000]'
}
