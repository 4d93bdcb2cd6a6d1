#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# KVStore operations, keys and bytes equal the program's own counts, in one process and in a distributed job.
load helpers

setup() {
	root_setup mxnet
	KV=$REPO/tests/workload/mxnet_kv.py
}

# Compares PROGRAM's own rows in OUTPUT with the report's rows.
same_keys() { # OUTPUT JSON
	python3 - "$1" "$2" <<'END'
import json, sys
own, seen = {}, {}
said = open(sys.argv[1]).read()
for line in said.splitlines():
    if "kv " not in line: # MXNet and its network may print text before it on the line
        continue
    for name, row in json.loads(line[line.index("kv "):].split(None, 3)[3]).items():
        into = own.setdefault(name, dict.fromkeys(row, 0))
        for k, v in row.items():
            into[k] += v
for r in json.load(open(sys.argv[2]))["kvstore"]:
    if r["operation"].startswith("serve"):
        continue
    assert not r["values_unknown"], r
    into = seen.setdefault(f'{r["operation"]} {r["key"]}', {"calls": 0, "sent_bytes": 0, "received_bytes": 0})
    for k in into:
        into[k] += r[k]
assert own and own == seen, (own, seen, said)
END
}

record_kind() { # KIND
	"$MXBPF" record -q -o "$1.mxd" -- "$PYTHON" "$KV" "$1" 4 >own
}

@test "KVStore calls and bytes by key equal the program's for stores in one process" {
	for kind in local device; do
		take_shared "kv-$kind" record_kind "$kind"
		"$MXBPF" report $kind.mxd -f json >report.json
		same_keys own report.json
	done
	"$MXBPF" report --all device.mxd >text
	grep -q "^KVStore by key" text
	grep -Eq "^fc1_weight +pushpull +4 +384 B +384 B" text
	"$MXBPF" report device.mxd -f csv >csv
	head -1 csv | grep -q 'sent_bytes,received_bytes.*,key,'
	grep '^"KVStore by key","pushpull"' csv | grep -q '"fc1_weight",'
}

@test "KVStore tables by call, of the C API and by key have the same number of calls, all with an end" {
	take_shared kv-device record_kind device
	"$MXBPF" report device.mxd -f json >report.json
	python3 - report.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["unwound"] == 0 and r["loss"]["unmatched"] == 0, r["loss"]
calls = {x["name"]: x["count"] for x in r["tables"]["KVStore"]}
api = {}
for x in r["tables"]["MXNET_C_API"]:
    api[x["name"]] = x["count"]
assert calls["push"] == api["MXKVStorePush"] + api["MXKVStorePushEx"], (calls, api)
assert calls["pushpull"] == api["MXKVStorePushPull"] + api["MXKVStorePushPullEx"]
END
}

@test "KVStore calls in a timeline have their keys and bytes" {
	"$MXBPF" -q --probes kv --trace t.json -- "$PYTHON" "$KV" local 2 >tables
	python3 - t.json <<'END'
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "kvstore"]
two = [e["args"] for e in events if e["name"] == "push" and e["args"]["keys"] == "0,3"]
assert len(two) == 2 and all(a["sent_bytes"] == 7 * 11 * 4 + 60 * 8 and a["values"] == 2 for a in two), two
both = [e["args"] for e in events if e["name"] == "pushpull" and e["args"]["keys"] == "fc1_weight,fc1_weight"]
assert len(both) == 2 and both[0]["received_bytes"] == both[0]["sent_bytes"] == 96, both
END
}

@test "KVStore jobs of a scheduler, a server and two workers receive the bytes that they send" {
	"$MXBPF" record -q -o job.mxd -- "$PYTHON" "$REPO/tests/workload/mxnet_job.py" 2 "$KV" dist_sync 3 >own
	[ "$(wc -l <own)" = 2 ]
	"$MXBPF" report job.mxd -f json >report.json
	same_keys own report.json
	python3 - report.json <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["kvstore"]
for key, size in ((0, 308), (3, 480), (9, 10)):
    sent = sum(r["sent_bytes"] for r in rows if r["key"] == key and r["operation"] == "push")
    got = sum(r["sent_bytes"] for r in rows if r["key"] == key and r["operation"] == "serve push")
    assert got == sent + size, (key, got, sent)  # the first worker also sends the initial value
END
}

@test "In serve, the bytes of each operation are the program's" {
	start_bg job "$PYTHON" "$KV" local 20 "$PWD/go"
	local job=$BG_PID
	start_bg serve "$MXBPF" serve --pid "$job" --max-overhead 100% --interval 200ms --textfile m.prom --listen none
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$BG_PID"
	: >go
	wait_exit "$job"
	wait_exit "$BG_PID" # its one process has ended
	python3 - "$(out job)" m.prom <<-'END'
		import collections, json, re, sys
		said = open(sys.argv[1]).read()
		own, seen = collections.Counter(), collections.Counter()
		for name, row in json.loads(said[said.index('kv '):].split(None, 3)[3]).items():
		    for way in 'sent', 'received':
		        own[name.split()[0], way] += row[way + '_bytes']
		for way, operation, n in re.findall(r'^mxbpf_kvstore_(\w+)_bytes_total.*operation="(\w+)"} (\d+)$', open(sys.argv[2]).read(), re.M):
		    seen[operation, way] += int(n)
		assert sum(own.values()) and own == seen, (own, seen)
	END
}
