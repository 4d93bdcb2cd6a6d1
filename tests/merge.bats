#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Recordings of several hosts become one report and one timeline. No event is lost, doubled or charged to another host, and
# the report says what an input lacks.
load helpers

READERS=$O/deps/readers/bin/python

setup() { root_setup mxnet; }

# recorded NAME RANK: records one of two workers on a host named NAME, with RANK + 1 rounds. All tests share the recordings,
# of which alpha comes before beta.
recorded() { take_shared "merge-$1" record_worker "$@"; }
record_worker() {
	DMLC_ROLE=worker DMLC_WORKER_ID=$2 DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=1 DMLC_PS_ROOT_URI=127.0.0.1 \
		DMLC_PS_ROOT_PORT=9 unshare --uts sh -c 'hostname $0; exec "$@"' "$1" "$MXBPF" record -q -o "$1.mxd" -- \
		"$PYTHON" "$REPO/tests/workload/mxnet_kv.py" device $(($2 + 1)) >"$1.out"
}

@test "merge adds up rows, bytes, events and loss of its inputs, and tells hosts and ranks apart" {
	recorded alpha 0
	recorded beta 1
	for f in alpha beta; do
		"$MXBPF" report $f.mxd -f json >$f.json
	done
	"$MXBPF" report alpha.mxd beta.mxd -f json >both.json
	python3 - alpha.json beta.json both.json <<'END'
import json, sys
a, b, both = (json.load(open(f)) for f in sys.argv[1:])
for k in ("attempted", "stored", "dropped", "unmatched"):
    assert both["loss"][k] == a["loss"][k] + b["loss"][k], k
host = {p["pid"]: (p["hostname"], p["rank"]) for p in both["processes"]}
assert sorted(host.values()) == [("alpha", 0), ("beta", 1)], host
for one, name in ((a, "alpha"), (b, "beta")):
    for table, rows in one["tables"].items():
        mine = {(r.get("name"), str(r["device"])): r.get("count") for r in rows}
        merged = {(r.get("name"), str(r["device"])): r.get("count") for r in both["tables"][table]
                  if host[r["pid"]][0] == name}
        assert mine == merged, (table, mine, merged)
    mine = {(r["operation"], r["key"]): (r["calls"], r["sent_bytes"]) for r in one["kvstore"]}
    merged = {(r["operation"], r["key"]): (r["calls"], r["sent_bytes"]) for r in both["kvstore"]
              if host[r["pid"]][0] == name}
    assert mine == merged
END
	"$MXBPF" report --by host -f json alpha.mxd beta.mxd >hosts.json
	python3 - alpha.json beta.json hosts.json <<'END'
import json, sys
a, b, hosts = (json.load(open(f)) for f in sys.argv[1:])
rows = {r["name"]: r["count"] for r in hosts["tables"]["operator"]}
assert rows == {n: sum(r["count"] for r in one["tables"]["operator"]) for n, one in (("alpha", a), ("beta", b))}, rows
END
	"$MXBPF" report --all alpha.mxd beta.mxd >text
	grep -q "^input    alpha, pid .* 0 dropped; its clock: " text
	grep -q "^input    beta, pid " text
	"$MXBPF" export alpha.mxd beta.mxd -o both.trace.json
	python3 - both.trace.json beta.json <<'END'
import json, sys
t, b = (json.load(open(f)) for f in sys.argv[1:])
names = {e["pid"]: e["args"]["name"] for e in t["traceEvents"] if e["name"] == "process_name"}
names = {pid: name for pid, name in names.items() if name != "machine"}
assert sorted(n.split(" (")[0] for n in names.values()) == ["worker 0", "worker 1"], names
spans = {pid: [e for e in t["traceEvents"] if e["ph"] == "X" and e["pid"] == pid] for pid in names}
second = next(pid for pid, n in names.items() if n.startswith("worker 1"))
# The second one ran later, and the trace has its real time of day.
(first,) = set(names) - {second}
assert max(e["ts"] + e["dur"] for e in spans[first]) < min(e["ts"] for e in spans[second])
at = t["baseTimeNanoseconds"] + min(e["ts"] for e in spans[second]) * 1000
window = b["window"]
assert window["start_unix_ns"] - 1e8 < at < window["start_unix_ns"] + window["duration_ns"] + 1e8, (at, window)
END
}

@test "merge writes a trace for each rank into a directory, which HolisticTraceAnalysis reads" {
	recorded alpha 0
	recorded beta 1
	"$MXBPF" export alpha.mxd beta.mxd -o ranks/
	[ "$(ls ranks | tr '\n' ' ')" = "rank-0.json.gz rank-1.json.gz " ]
	gzip -cd ranks/rank-1.json.gz | jq -e '.distributedInfo == {backend: "ps-lite", rank: 1, world_size: 2}'
	mkdir one
	cp ranks/rank-1.json.gz one
	"$READERS" "$REPO/tests/readers/read_hta.py" one >hta.json
	jq -e '.rank == 1 and .slices.kvstore.push == 14' hta.json
	expect_error 2 "have the same rank" "$MXBPF" export beta.mxd beta.mxd -o twice/
}

@test "merge reports a truncated input and counts what is left of it" {
	recorded alpha 0
	recorded beta 1
	truncate -s $(($(stat -c %s beta.mxd) - 100)) beta.mxd
	"$MXBPF" report --all alpha.mxd beta.mxd >text 2>warnings
	grep -q "beta.mxd is incomplete" warnings
	grep -q "^input    beta, .*INCOMPLETE" text
	grep -q "^PARTIAL" text
	grep -Eq "^fc1_weight +pushpull +3 " text
}

@test "merge refuses recordings with different options" {
	recorded alpha 0
	"$MXBPF" record -q --sample 99 -o sampled.mxd -- "$PYTHON" "$REPO/tests/workload/mxnet_kv.py" local 1 >out
	expect_error 1 "recorded with different options" "$MXBPF" report alpha.mxd sampled.mxd
}
