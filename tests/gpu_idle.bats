#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Why a GPU runs nothing: a job with planted causes on the mock of a GPU (tests/gpu/double), whose own clock is the truth.

load helpers

setup() {
	torch_setup
	take_shared gpu_idle planted
}

planted() {
	recorded 25
}

recorded() { # STEPS OPTION...
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/idle_job.py" --steps "$1" --go "$PWD/go" >/dev/null
	start_mxbpf record --pid "$READY_PID" --gpu "${@:2}" -o job.mxd
	: >go
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd --format json --top 100 -o report.json
	tail -n 1 "$(out job)" >planted.json
}

@test "95 % of the idle time of a GPU is at its planted cause, with its operator, and busy time and causes make up the window" {
	# What disturbs the job disturbs the processes and threads that it waits for as much, and moves time from one cause to another.
	jq -e --slurpfile p planted.json '($p[0].disturbed) as $disturbed | ($p[0] | del(.disturbed)) as $p | [.gpu.idle[] | select(.gpu == 0)] as $rows
		| ([$p[]] | add) as $all
		| (($rows | map({(.cause): .total_ns}) | add | .cpu += (.no_cpu // 0)) as $got
			| [$p | to_entries[] | [.value, ($got[.key] // 0)] | min] | add) as $right
		| ($rows | map(.total_ns) | add) as $whole
		| (.gpu.devices[] | select(.gpu == 0) | .busy_ns + .idle_ns) as $seen
		| (([$p[]] | length == 10 and min > 0)) and $right >= 0.95 * $all - 0.5 * $disturbed and (($whole - $seen) | fabs) <= 0.01 * $seen' report.json
	jq -e '[.gpu.idle[] | select(.gpu == 0)] | any(.cause == "cpu" and .name == "gpuops::think") and any(.cause == "blocked" and .name == "gpuops::nap")
		and any(.cause == "data" and (.name | startswith("enumerate(DataLoader)")))
		and any(.cause == "host_waits" and (.name | test("Synchronize"))) and any(.cause == "others" and (.name | startswith("gloo:")))' report.json
	# The program spins in a function, and the thread is looked at ten times a second.
	jq -e '.gpu.idle | any((.cause | startswith("program")) and any(.lines[].line; test("idle_job.py\\([0-9]+\\): spin")))' report.json
	"$MXBPF" report job.mxd >report.txt
	grep -q '^GPU idle time by cause: ' report.txt
	grep -Eq '^waits for data .* enumerate\(DataLoader\)' report.txt
}

# PART is part of what the job says of one of the three.
own_code_is_divided() { # PART
	jq -e --slurpfile p planted.json --argjson part "$1" '[.gpu.idle[] | select(.gpu == 0)] as $rows
		| ($rows | map({(.cause): .total_ns}) | add) as $got | ($p[0] | with_entries(select(.key | startswith("program")))) as $own
		| ($own | length) == 3 and all($own | to_entries[]; $got[.key] >= $part * .value and $part * $got[.key] <= .value)
			and ($got | has("program") | not)' report.json
}

# The numbers of `diff --table` are those of the reports of both recordings.
differ() { # TABLE KEYS NUMBERS
	"$MXBPF" diff ../job.mxd job.mxd --table "$1" -f json -o diff.json
	"$REPO/tests/diff/tables.py" diff.json ../report.json report.json "$@"
}

@test "Python code is divided into time on a CPU, blocked and without a CPU, by the scheduler's account, also with --agent" {
	own_code_is_divided 0.8
	mkdir agent && cd agent || return
	recorded 6 --agent
	own_code_is_divided 0.6 # of few steps, in which one moment without a CPU is much
	"$MXBPF" report job.mxd --top 0 >report.txt
	differ gpu.idle cause,gpu total_ns,count
	differ gpu.operators name,kind launches,kernels,gpu_total_ns,gpu_self_ns,graphs_ns,self_kernels,copies,copied_bytes
	grep -q '^Python code, blocked ' report.txt && ! grep -q 'Python code had a CPU is not known' report.txt
}

@test "Busy time and causes make up each iteration, and the cause that made one of them slow is named" {
	# The first iteration can begin before the first work, and the last one can end after the last.
	jq -e '[.iterations.slowest[] | select(.gpu_time)] | sort_by(.number)[1:-1] | length > 15
		and all(.total_ns as $whole | ([.gpu_time | del(.longer, .longer_ns)[]] | add - $whole | fabs) <= 0.01 * $whole)' report.json
	jq -e 'any(.iterations.slowest[]; .longer == "data" and .gpu_time.longer == "data" and .gpu_time.longer_ns > 150000000)' report.json
	jq -e '.gpu.idle[] | select(.gpu == 0 and .cause == "data") | .p50_ns > 15000000 and .p50_ns < 100000000 and .max_ns > 150000000' report.json
	"$MXBPF" report job.mxd --top 3 | tr -s '\n ' '  ' >report.txt
	grep -Eq 'GPU idle 1[0-9]+ ms longer: waits for data' report.txt
}

@test "A timeline has a track of each GPU with its idle time by cause, the operators, and the lines, for Perfetto and in its format" {
	local form
	[[ -f $O/deps/perfetto/stamp ]] || "$REPO/tests/perfetto/setup.sh" "$O/deps/perfetto"
	for form in json pftrace; do
		"$MXBPF" export job.mxd -o "t.$form"
		node "$REPO/tests/perfetto/answers.mjs" "$O/deps/perfetto" "t.$form" >answers # an import error is exit 1
		sed -n 's/^slices of each track and name, their sums: //p' answers | jq -c '.[] | select(.category == "gpu_idle")' >"sums.$form"
		sed -n 's/^nesting: //p' answers | jq -e '[.[] | select(.tid == 2500000000) | .depth] | unique == [0]'
	done
	expect_same "$(<sums.json)" "$(<sums.pftrace)"
	jq -es --slurpfile report report.json '($report[0].gpu.idle | map(select(.cause != "busy" and .cause != "edges"))) as $rows
		| . as $seen | ($seen | map(.pid) | unique) == [0, 1] and ($seen | length) == ($rows | length)
			and all($rows | group_by(.gpu)[]; .[0].gpu as $gpu | (map(.total_ns) | add) as $all
				| ($seen | map(select(.pid == $gpu).ns) | add - $all | fabs) < 0.0001 * $all)' sums.json
	jq -e '[.traceEvents[] | select(.cat == "gpu_idle")] | any(.name == "operators on the CPU" and .args.operator == "gpuops::think")
		and any(.name == "waits for data" and (.args.line // "" | test("idle_job.py\\([0-9]+\\): __getitem__")))' t.json
}

@test "The page shows what each GPU did, in all and in each iteration, and no browser has an error with it" {
	[[ -d $O/deps/perfetto/node_modules/axe-core ]] || skip "no axe-core; run tests/setup.sh"
	"$MXBPF" report job.mxd --html job.html --format json -o job.json
	node "$REPO/tests/readers/page.mjs" "$O/deps" job.html >found.json
	jq -e '.errors == [] and .requests == [] and .violations == [] and (.plots | index("GPU 0 in each iteration") and index("GPU 1 in each iteration"))' found.json
	# The bar is of the time from the first to the last work.
	jq -e --slurpfile report report.json '[$report[0].gpu.idle[] | select(.gpu == 0 and .cause != "edges")] as $rows
		| (100 * ($rows[] | select(.cause == "data").total_ns) / ($rows | map(.total_ns) | add)) as $percent
		| .bars | length == 2 and (.[0] | capture("^GPU 0, .*waits for data (?<n>[0-9.]+) %").n | tonumber - $percent | fabs <= 0.051)' found.json
}
