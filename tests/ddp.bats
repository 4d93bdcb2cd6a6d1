#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Two workers of a real torchrun, new interpreters both, against torch.profiler in each of them.

load helpers

export BATS_TEST_TIMEOUT=300

# One job, recorded once: r.mxd, what each worker says of itself in 0.json and 1.json, and the job's tables in report.json.
setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR torch_setup
	workers "$PYTHON_TORCH"
}

setup() { cd "$BATS_FILE_TMPDIR" || return 1; }

report() { "$MXBPF" report r.mxd "$@"; }

@test "Both torchrun workers have torch.profiler's counts of collectives, operators and backward nodes" {
	torch_setup
	cd "$BATS_FILE_TMPDIR"
	same_as_workers
}

@test "The target of a launched job is the command, whichever child process has the runtime first" {
	local first
	jq -e '.target | (.cmdline | test("torch.distributed.run")) and .pid > 0' report.json
	jq -e --slurpfile a 0.json --slurpfile b 1.json '.target.pid | . != $a[0].pid and . != $b[0].pid' report.json
	first=$(jq .target.pid report.json)
	expect_re "^window .* pid $first \(" "$(report)"
}

@test "Each process has rows of its own calls, time and memory, which add up to the job's" {
	local rank pid
	report --by process --format json >processes.json
	report --by process --all >processes.txt
	for rank in 0 1; do
		pid=$(jq .pid "$rank.json")
		expect_same "$(jq --argjson p "$pid" '[.tables.operator[] | select(.pid == $p) | .count] | add' report.json)" \
			"$(jq --argjson p "$pid" '.tables.operator[] | select(.pid == $p) | .count' processes.json)"
		expect_same "$(jq --argjson p "$pid" '[.tables.operator[] | select(.pid == $p) | .self_ns] | add' report.json)" \
			"$(jq --argjson p "$pid" '.tables.operator[] | select(.pid == $p) | .total_ns' processes.json)"
		# In the tables of calls and of memory.
		[[ $(grep -c -E "^$pid [a-z]" processes.txt) -ge 2 ]]
	done
	jq -e '[.tables.operator[].name] | all(test("^[0-9]+ [a-z]"))' processes.json
}

@test "Each torchrun worker has its rank, and rows by rank are those of the worker" {
	local rank pid
	report --by rank --format json >ranks.json
	for rank in 0 1; do
		pid=$(jq .pid "$rank.json")
		jq -e --argjson p "$pid" --argjson r "$rank" '[.labels[] | select(.pid == $p)] | length == 1 and (.[0] |
			.rank == $r and .local_rank == $r and .world_size == 2 and .group_rank == 0 and (.job | length > 0))' report.json
		expect_same "$(jq --argjson p "$pid" '[.tables.operator[] | select(.pid == $p) | .count] | add' report.json)" \
			"$(jq --arg r "rank $rank" '.tables.operator[] | select(.name == $r).count' ranks.json)"
	done
	jq -e '[.labels[] | select(.rank) | .job] | unique | length == 1' report.json
	jq -e '[.tables.operator[].name] - ["no rank", "rank 0", "rank 1"] == []' ranks.json
}

@test "CSV has the process of each row, with the numbers of JSON" {
	report --format csv | python3 -c '
import csv, json, sys
rows = {(r["table"], r["name"], r["pid"]): int(r["count"]) for r in csv.DictReader(sys.stdin) if r["table"] == "operator"}
report = json.load(open("report.json"))
want = {("operator", r["name"], str(r["pid"])): r["count"] for r in report["tables"]["operator"]}
assert rows == want and len({k[2] for k in rows}) >= 2, (rows, want)'
}

@test "Each thread names its process if there are several" {
	expect_re "^[0-9]+ [^ ]+ of $(jq .pid 0.json) " "$(report --by thread)"
	expect_re "^[0-9]+ [^ ]+ of $(jq .pid 1.json) " "$(report --by thread)"
}

@test "A timeline names each worker by its rank, whichever process of the job it is" {
	local rank
	"$MXBPF" export r.mxd -o ranks.json.gz
	zcat ranks.json.gz | jq '[.traceEvents[] | select(.name == "process_name") | {pid, name: .args.name}]' >names.json
	for rank in 0 1; do
		jq -e --argjson p "$(jq .pid "$rank.json")" --arg rank "^rank $rank of 2: " \
			'any(.[]; .pid == $p and (.name | test($rank)))' names.json || { cat names.json; return 1; }
	done
	# A worker is no role, so tables and CSV have the same rows as without ranks.
	[[ $(report --format csv | grep -c '^"rank ') == 0 ]]
}
