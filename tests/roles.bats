#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A distributed job: the role of each process, tables by role, --role, and a launcher that is named by its pid.
load helpers

setup() {
	root_setup mxnet
	JOB=("$PYTHON" "$REPO/tests/workload/mxnet_job.py" 2 "$REPO/tests/workload/mxnet_kv.py" dist_sync 2)
}

@test "Roles and ranks are shown for each process of a launched job, with tables for each role" {
	"$MXBPF" record -q -o job.mxd -- "${JOB[@]}" >own
	"$MXBPF" report job.mxd -f json >report.json
	python3 - report.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
who = sorted((p["role"], p["rank"], p["of"], p["rank_known"]) for p in r["processes"])
assert who == [("scheduler", 0, 1, True), ("server", 0, 1, True), ("worker", 0, 2, True), ("worker", 1, 2, True)], who
role = {p["pid"]: p["role"] for p in r["processes"]}
labels = sorted((l["role"], l.get("rank", 0), l.get("world_size", 1)) for l in r["labels"])
assert labels == [w[:3] for w in who] and len({l["job"] for l in r["labels"]}) == 1, r["labels"]
served = {role[k["pid"]] for k in r["kvstore"] if k["operation"].startswith("serve")}
called = {role[k["pid"]] for k in r["kvstore"] if not k["operation"].startswith("serve")}
assert served == {"server"} and called == {"worker"}, (served, called)
END
	"$MXBPF" report --all job.mxd >all
	grep -Eq '^worker: [01] \(pid [0-9]+\), [01] \(pid [0-9]+\)$' all
	grep -Eq '^server: 0 \(pid [0-9]+\)$' all
	"$MXBPF" report --all job.mxd --role server >server
	grep -q "serve push" server
	run -1 grep -qE "^worker|MXKVStorePush" server
	"$MXBPF" report job.mxd --role server -f json >server.json
	jq -e '[.processes[].role] == ["server"] and ([.tables[][].pid] | unique) == [.processes[].pid]' server.json
	jq -e --slurpfile all report.json '[.tables[][].count] | add == ([$all[0] as $a | ($a.processes[] |
		select(.role == "server").pid) as $p | $a.tables[][] | select(.pid == $p).count] | add)' server.json
	for role in server worker; do
		"$MXBPF" report job.mxd --role $role --by event -f csv >$role.csv
		"$MXBPF" report job.mxd --role $role -f json >$role.json
		jq -e --argjson n "$(grep -c "^\"$role MXNET_C_API\"" $role.csv)" '[.tables.MXNET_C_API[].count] | add == $n' $role.json
	done
	"$MXBPF" report --all job.mxd --role server >server
	run -1 grep -q "rows are sums" server
	run -2 "$MXBPF" report "$REPO/tests/golden/real.mxd" --role worker
	"$MXBPF" report job.mxd -f csv >csv
	grep -Eq '^"server KVStore by key",([0-9]+,)?"serve pull"' csv
	grep -Eq '^"worker KVStore",([0-9]+,)?"push"' csv
	"$MXBPF" export job.mxd -o job.json
	jq -r '.traceEvents[] | select(.name == "process_name").args.name | sub("\\(.*"; "")' job.json | sort >names
	printf '%s\n' machine "scheduler 0 " "server 0 " "worker 0 " "worker 1 " | diff - names
}

@test "--role profiles only processes with that role" {
	"$MXBPF" record -q --role server -o job.mxd -- "${JOB[@]}" >own
	[ "$(grep -c ^kv own)" = 2 ]
	"$MXBPF" report job.mxd -f json >report.json
	jq -e '[.processes[].role] == ["server"] and ([.kvstore[].operation] | unique == ["serve pull", "serve push"])' report.json
}

@test "Child processes of a launcher named by its pid are profiled with their roles" {
	start_bg job "$PYTHON" "$REPO/tests/workload/mxnet_job.py" 2 "$REPO/tests/workload/mxnet_kv.py" dist_sync 2 \
		"$BATS_TEST_TMPDIR/go"
	wait_line "$(out job)" '^ready' "$BG_PID"
	start_mxbpf record -o job.mxd --pid "$BG_PID"
	touch go
	wait_exit "$MXBPF_PID" 60
	"$MXBPF" report job.mxd -f json >report.json
	jq -e '[.processes[].role] | sort == ["scheduler", "server", "worker", "worker"]' report.json
	jq -e '[.kvstore[] | select(.operation == "push" and .key == 0) | .calls] | add == 8' report.json
}
