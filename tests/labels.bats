#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Labels of processes: what their environment and their control group say, in JSON and in rows by rank and by job.
# tests/unit/test_labels.c has every form of a control group.

load helpers

# Three jobs, recorded once: r.mxd, what /proc and the processes say of themselves in seen.json, and the tables.
setup_file() {
	[[ $(id -u) == 0 ]] || return 0
	cd "$BATS_FILE_TMPDIR" || return 1
	local root=/sys/fs/cgroup
	[[ -e $root/cgroup.procs ]] || root=$root/pids # version 1
	CGROUP=$root/mxbpf_test_slurm_$$/job_13
	[[ -e $root/cgroup.procs ]] && mkdir -p "$CGROUP" 2>/dev/null || CGROUP=
	export CGROUP
	"$MXBPF" record -q -o r.mxd -- python3 "$REPO/tests/workload/toy_jobs.py" "$O/toy/toy" "$CGROUP" >&2
	"$MXBPF" report r.mxd --format json >report.json
	"$MXBPF" report r.mxd --by process --format json >processes.json
}

teardown_file() {
	[[ -z $CGROUP ]] || rmdir "$CGROUP" "${CGROUP%/*}"
}

setup() {
	need_root
	cd "$BATS_FILE_TMPDIR" || return 1
}

report() { "$MXBPF" report r.mxd "$@"; }

# Writes {label: {table: count}} of rows by KEY to sums.json. The rows by process must have the same sums, if the jq
# filter gives the label of a process of seen.json.
same_sums() { # KEY FILTER
	report --by "$1" --format json >by.json
	jq 'def sums: group_by(.l) | map({key: .[0].l, value: (group_by(.t) | map({key: .[0].t, value: (map(.n) | add)}) |
		from_entries)}) | from_entries;
		[.tables | to_entries[] | .key as $t | .value[] | select(.count) | {l: .name, t: $t, n: .count}] | sums' by.json >sums.json
	jq --slurpfile seen seen.json 'def sums: group_by(.l) | map({key: .[0].l, value: (group_by(.t) |
		map({key: .[0].t, value: (map(.n) | add)}) | from_entries)}) | from_entries;
		[.tables | to_entries[] | .key as $t | .value[] | select(.count) | .pid as $pid | {n: .count, t: $t, l: ($seen[0][] |
		select(.pid == $pid) | '"$2"')}] | sums' processes.json >want.json
	expect_same "$(cat want.json)" "$(cat sums.json)"
	jq -e 'all(.tables[]; map(select(.count).name) | length == (unique | length))' by.json
}

@test "Each process has exactly the labels of its environment, its control group and its user" {
	python3 - <<'END'
import json, pwd, re, socket

labels = {l["pid"]: l for l in json.load(open("report.json"))["labels"]}
seen = json.load(open("seen.json"))
assert len(seen) == 4 and set(labels) == {p["pid"] for p in seen}, labels
words = {"rank": "RANK", "local_rank": "LOCAL_RANK", "world_size": "WORLD_SIZE", "group_rank": "GROUP_RANK"}
texts = {"pod_name": "POD_NAME", "pod_namespace": "POD_NAMESPACE", "own_hostname": "HOSTNAME", "slurm_job": "SLURM_JOB_ID"}
for p in seen:
    env = p["env"]
    want = {"pid": p["pid"], "hostname": socket.gethostname(), "user": pwd.getpwuid(p["uid"]).pw_name, "runtime": "MXNet 1.9.1"}
    want.update({k: int(env[v]) for k, v in words.items() if env.get(v, "x").isdigit()})
    want.update({k: env[v][:127] for k, v in texts.items() if v in env})
    job = re.search("slurm.*/job_([0-9]+)", p["cgroup"])
    if job:
        want["slurm_job"] = job[1]
    if "slurm_job" in want:
        want["job"] = "slurm " + want["slurm_job"]
    mine = dict(labels[p["pid"]])
    if "container" in mine or "pod_uid" in mine:  # of the machine on which the tests run
        for key in ("container", "pod_uid") + (() if "slurm_job" in want else ("job",)):
            mine.pop(key, None)
    assert mine == want, (mine, want)
END
}

@test "A Slurm job is known by its control group alone" {
	[[ -n $CGROUP ]] || skip "cannot make a control group"
	jq -e --slurpfile seen seen.json '[.labels[] | select(.pid == $seen[0][3].pid)] | length == 1 and
		.[0].job == "slurm 13" and (.[0] | has("rank") | not)' report.json
}

@test "Rows by rank are the sums of the processes with that rank, which count their calls themselves" {
	same_sums rank 'if .env.RANK then "rank \(.env.RANK)" else "no rank" end'
	jq -e 'keys == ["no rank", "rank 10", "rank 2"]' sums.json
	expect_same "$(jq '[.[] | select(.env.RANK == "2").counts.operator | add] | add' seen.json)" \
		"$(jq '."rank 2".operator' sums.json)"
	jq -e '[.tables[][] | select(.count) | has("pid")] | any | not' by.json
	report --by rank --sort name --ascending --format json >by.json
	jq -e '[.tables.operator[].name] == ["no rank", "rank 2", "rank 10"]' by.json
	report --by rank >by.txt
	expect_re '^rank 2  ' "$(cat by.txt)"
	report --by rank --format csv >by.csv
	expect_re "^\"operator\",\"rank 2\",[^,]*,$(jq '."rank 2".operator' sums.json)," "$(cat by.csv)"
}

@test "Rows by job are the sums of its processes" {
	same_sums job 'if .env.SLURM_JOB_ID then "slurm \(.env.SLURM_JOB_ID)" else "'"$(jq -r --slurpfile seen seen.json \
		'[.labels[] | select(.pid == $seen[0][3].pid).job] | .[0] // "no job"' report.json)"'" end'
	jq -e 'length == 3 and has("slurm 11") and has("slurm 12")' sums.json
}

@test "Rows by process have the rank, and JSON with labels is valid by the schema" {
	need_mxnet
	report --by process >by.txt
	# A process has a name if its main thread has records.
	expect_re "^$(jq '.[0].pid' seen.json) rank 10( toy)?  *[0-9]" "$(cat by.txt)"
	expect_re "^$(jq '.[3].pid' seen.json)( toy)?  *[0-9]" "$(cat by.txt)"
	"$PYTHON" -m jsonschema -i report.json "$O/report.schema.json"
	report --by rank --format json >by.json
	"$PYTHON" -m jsonschema -i by.json "$O/report.schema.json"
}
