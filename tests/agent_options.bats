#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every option runs with --agent, or is refused with its reason. The rows are those of `mxbpf --generate agent`.
# tests/unit/test_options.c parses every pair.

load helpers

LANES=4 # jobs that are watched at the same time, because a session mostly waits for the kernel

# Values of options whose rows name none, and what an option needs beside it.
values_of() { # OPTION WORDS
	case $1 in
	pid | help | version) ;;
	job | comm | cgroup | host) ;; # they choose other processes, too: targets.bats
	runtime) echo pytorch ;;
	cupti | kernel-metrics) ;; # need CUDA
	follow) echo ; echo shared ;;
	probes) for word in ${2//,/}; do echo "op,$word"; done ;;
	api) echo all ;;
	ops) echo "*conv*,mm" ;;
	duration) echo 2s ;;
	delay) echo 50ms ;;
	drop-privileges) ;; # refused
	interval) echo 100ms ;;
	reset) echo "--interval 100ms" ;;
	top | row-limit) echo 3 ;;
	stack-depth) ;; # with --by stack
	sort) for word in total count self cpu; do echo "$word"; done ;;
	by) echo 'name device process rank job thread operator' | tr ' ' '\n' ;;
	format | layout) for word in ${2//,/}; do echo "$word"; done ;;
	backend) echo perf ;;
	iterations) printf '%s\n' 3 2/5 ;;
	sample) echo 499 ;;
	trace) printf '%s\n' t.json t.json.gz 't.folded --sample 499' 't.pb.gz --sample 499' 't.memory.csv --memory' ;;
	trace-every) echo '1s --trace t.json' ;;
	keep) echo '2 --trace-every 1s --trace t.json' ;;
	output) echo tables.json ;;
	html) echo page.html ;;
	max-size | max-memory) echo 256M ;;
	ring-size) echo 1M ;;
	max-overhead) echo 5% ;;
	role) echo worker ;;
	counters) echo task-clock ;;
	wait | no-follow | gpu | exact | no-account | ascending | all | advice | raw | backward | force | quiet | verbose | no-seccomp | memory | \
		sched | shapes | py-stacks | omp | life | layers | follow-app | raised | no-bpf) echo ;;
	*) echo "no value for the option $1" >&2 && return 1 ;;
	esac
}

# One line for each option and value: "yes|no OPTION VALUE".
cases() {
	local words option with
	"$MXBPF" --generate agent | sed -n 's/^| `/`/p' >rows
	while IFS='|' read -r words with _; do
		with=${with// /}
		while read -r option; do
			values_of "$option" "${words##*\`}" >values || return 1
			while read -r value; do echo "$with $option $value"; done <values
		done < <(grep -oP '(?<=`--)[a-z-]+' <<<"$words")
	done <rows
}

# Succeeds if a session shows operators and no loss, and what the option asks for.
shows() { # OPTION VALUE
	case "$1 $2" in
	'format table' | 'layout modern') grep -q '^operator: .* in [0-9]* rows' out ;; # the names of ten rows may be cut
	'format html') grep -q 'aten::addmm</th>' out ;;
	'format csv' | layout*) grep -q 'aten::' out ;;
	# What was called before the agent was there counts as dropped.
	wait*) jq -e '([.tables.operator[].count] | add > 20) and (.loss | .attempted == .stored + .dropped)' out ;;
	trace-every* | keep*) jq -e 'any(.traceEvents[]; .name == "aten::addmm")' t-000001.json ;;
	trace*t.json) jq -e 'any(.traceEvents[]; .name == "aten::addmm")' t.json ;;
	trace*t.json.gz) zcat t.json.gz | jq -e 'any(.traceEvents[]; .name == "aten::addmm")' ;;
	trace*t.folded*) grep -q '^aten::\|;aten::' t.folded ;;
	trace*t.pb.gz*) zcat t.pb.gz | grep -aq aten:: ;;
	trace*memory.csv*) (($(wc -l <t.memory.csv) > 3)) ;;
	output*) mv tables.json out && whole ;;
	html*) grep -q 'aten::addmm</th>' page.html && whole ;;
	'top 3' | 'row-limit 3') jq -e '([.tables.operator[].count] | length == 3 and add > 3) and .loss.dropped == 0' out ;;
	interval* | reset*) tail -n 1 out >last && mv last out && whole ;;
	memory*) whole .memory.holders ;;
	backward*) whole .backward.operators ;;
	sched*) whole .off_cpu.calls ;;
	iterations*) whole .iterations ;;
	sample*) whole '[.samples.ran_in[] | select(.table == "operator")]' ;;
	*) whole ;;
	esac >/dev/null
}

whole() { # [JQ-FILTER]: what must not be empty
	jq -e '([.tables.operator[].count] | add > 20) and (.loss | .dropped == 0 and .attempted == .stored) and
		('"${1:-[0]}"' | length > 0)' out
}

run_case() { # PID yes|no OPTION VALUE...
	local pid=$1 option=$3 value="${*:4}" command='' json='-f json' window='-d 800ms' status=0 # a job that waits for a CPU must run in it
	[[ $option != format && $option != layout ]] || json=
	[[ $option != duration ]] || window=
	[[ $option != iterations ]] || window=
	[[ "$option $value" != 'iterations 2/5' ]] || window='-d 4s' # N/M has no end of its own
	[[ $option != no-bpf ]] || command=record json=
	[[ $option != output ]] || json='--force'
	# shellcheck disable=SC2086
	timeout 60 "$MXBPF" $command --pid "$pid" --agent $window $json "--$option" $value >out 2>err || status=$?
	echo "$status"
}

# Runs the cases of a lane one after another. Prints those that fail.
lane() { # PID
	local pid=$1 with option value status
	while read -r with option value; do
		status=$(run_case "$pid" "$with" "$option" "$value")
		if [[ $with == yes ]]; then
			[[ $status == 0 ]] && shows "$option" "$value" && continue
		else
			[[ $status == [23] ]] && grep -qe "--$option" err && continue
		fi
		echo "$with --$option $value: exit code $status: $(tail -n 2 err; head -n 30 out | cut -c -200)"
	done
}

@test "Each option really runs with --agent on a real job and shows operators without loss, or is refused with its reason" {
	need_root
	need_torch
	torch_server
	cd "$BATS_TEST_TMPDIR"
	cases >cases
	(($(wc -l <cases) > 60))
	local i lanes=()
	for ((i = 0; i < LANES; i++)); do
		mkdir "lane$i"
		start_ready "job$i" "${SERVED[@]}" "$REPO/tests/workload/torch_train.py" --tiny >/dev/null
		(cd "lane$i" && awk -v i="$i" -v n="$LANES" 'NR % n == i' ../cases | lane "$READY_PID" >failed 3>&-) &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	cat lane*/failed
	[[ -z $(cat lane*/failed) ]]
}

@test "A recording with --agent has what the tables of the same options show" {
	need_root
	cd "$BATS_TEST_TMPDIR"
	start_torch --tiny >/dev/null
	"$MXBPF" record --pid "$WORKLOAD_PID" --agent --sample 499 --memory --sched --omp --backward -d 300ms -o job.mxd 2>err
	"$MXBPF" report job.mxd -f json >out
	whole
}
