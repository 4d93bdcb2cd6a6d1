#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf measures the profiling overhead, says it and takes it out. Ground truth is the program's own account of its iterations.

load helpers

setup() {
	measured
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
}

# A loop of tiny operators. About ten times a second it prints the time, the mean duration of an iteration, and that of a
# piece of Python without operators, all in ns. A CPU that shares its core with another one's work runs at half its speed
# for seconds, so durations are compared as multiples of that piece.
LOOP='
import os, signal, sys, time, torch
torch.set_num_threads(1)
calm = []
signal.signal(signal.SIGUSR1, lambda *_: calm.append(1))
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.01)
ones = torch.ones(8)
def iteration():
    x = ones
    for _ in range(200):
        x = x + ones
    (weight * x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
def reference():
    begin, table = time.monotonic_ns(), {}
    for i in range(2000):
        table[i & 255] = (i, str(i))
    return time.monotonic_ns() - begin
for _ in range(20):
    iteration()
print("ready", os.getpid(), flush=True)
while True:
    before = reference()
    begin, n = time.monotonic_ns(), 0
    while time.monotonic_ns() - begin < 100000000:
        iteration()
        n += 1
        if calm:
            time.sleep(0.4)
    mean = (time.monotonic_ns() - begin) // n
    print("iterations", begin, mean, min(before, reference()), flush=True)
'

lines_between() { # FROM TO
	awk -v from="$1" -v to="$2" '$1 == "iterations" && $2 > from && $2 + 1e8 < to' "$(out loop)"
}

# median_between FROM TO: the median iteration of that time, in thousandths of the piece of Python.
median_between() {
	lines_between "$1" "$2" | awk '{ printf "%d\n", $3 / $4 * 1000 }' | sort -n |
		awk '{ ratio[NR] = $1 } END { if (NR < 3) exit 1; print ratio[int((NR + 1) / 2)] }'
}

# relative NS: a mean duration of iterations of the time that was watched, in thousandths of the piece of Python, too.
relative() {
	lines_between "$watched_from" "$watched_to" |
		awk -v ns="$1" '{ n += 1 / $3; piece += $4 / $3 } END { printf "%d\n", ns / (piece / n) * 1000 }'
}

now_ns() { awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime; }

lines() { grep -c ^iterations "$(out loop)"; }

# await_lines N: waits until the program has printed N more lines.
await_lines() {
	local until=$(($(lines) + $1))
	while (($(lines) < until)); do wait_new_line "$(out loop)" '^iterations'; done
}

piece_between() { # FROM TO: the median duration of the piece of Python
	lines_between "$1" "$2" | cut -d ' ' -f 4 | sort -n | awk '{ ns[NR] = $1 } END { print ns[int((NR + 1) / 2)] }'
}

# watch_loop ARGS...: lets the loop run, watches it, and lets it run again. alone: its iteration when it is not watched.
watch_loop() {
	local began ended
	[[ -s $(out loop 2>/dev/null) ]] || start_code loop "$LOOP" >/dev/null
	began=$(now_ns)
	await_lines 8
	watched_from=$(now_ns)
	"$MXBPF" --pid "$READY_PID" -d 3s "$@" -f json >live.json 2>warnings
	watched_to=$(now_ns)
	await_lines 8
	ended=$(now_ns)
	{ median_between "$began" "$watched_from" && median_between "$watched_to" "$ended"; } >both || return 1
	alone=$(sort -n both | head -n 1) # another session may hit the library's probes in one of the two
}

# Repeats watch_loop until the CPU ran at the same speed in the window and in the comparison that follows it, and the loop alone
# takes as long before as after it. The comparison measures the job only at the speed that the CPU has then.
watch_steady_loop() {
	local try to
	for try in {1..8}; do
		watch_loop --exact "$@" -d 2s
		to=$(($(jq '.window | .start_unix_ns + .duration_ns' live.json) - $(date +%s%N) + $(now_ns)))
		within 15 "$(piece_between "$watched_from" "$to")" "$(piece_between $((to - 100000000)) $((to + 500000000)))" &&
			within 15 "$(head -n 1 both)" "$(tail -n 1 both)" && return 0
	done
	skip "the speed of the CPU changed in each of $try sessions"
}

# within PERCENT A B
within() { awk -v p="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(a > b * (1 - p / 100) && a < b * (1 + p / 100)) }'; }

# most_windows LEAST PERCENT ARGS...: watches three windows. In two of them mxbpf must say what an iteration takes alone, within
# PERCENT of it and the uncertainty that mxbpf states; the third may fall together with a change of the CPU's speed. A watched
# iteration must take at least LEAST/10 of one alone, or there is nothing to show.
most_windows() {
	local said watched of good=0
	for of in 1 2 3; do
		watch_steady_loop "${@:3}"
		said=$(relative "$(jq .cost.iteration_unwatched_ns live.json)")
		watched=$(relative "$(jq .cost.iteration_watched_ns live.json)")
		echo "alone $alone, said $said of $watched; $(jq -c .cost live.json)"
		((watched * 10 > alone * $1)) || return 1
		jq -e --argjson alone "$alone" --argjson said "$said" --argjson watched "$watched" --argjson percent "$2" \
			'($said - $alone | fabs) < $percent / 100 * $alone +
				.cost.uncertainty_permille / 1000 * ([$watched - $said, $said] | min)' live.json && good=$((good + 1))
	done
	((good >= 2))
}

# bats test_tags=alone
@test "An iteration of tiny PyTorch operators without the cost takes as long as when nobody profiles it" {
	most_windows 20 25 # docs/overhead.md has what was measured
	# The first line has it, and the sum of the parts; operators have both times, and the first finding says so.
	jq -e '(.cost.taken_out) and .cost.uncertainty_permille < 300 and .cost.compared.intervals > 10 and
		.findings[0].finding == "watching" and .findings[0].next == "--pid PID --agent" and
		(.tables.operator[] | select(.name == "aten::add") | .raw_total_ns > 2 * .total_ns and .total_ns > 0 and
			.avg_ns >= .min_ns and .max_ns >= .p99_ns)' live.json
	# What it would cost was said before, for probes and for the agent, with the command for that.
	foretold='.*: with every call recorded this job will run about ([0-9.]+) times as long; the agent makes it about ([0-9.]+): .* --pid [0-9]+ .*--agent$'
	cat warnings
	sed -nE "s/$foretold/\1 \2/p" warnings | jq -s -e --slurpfile of live.json \
		'.[0] / ($of[0].cost | .iteration_watched_ns / .iteration_unwatched_ns) | . > 0.4 and . < 2.5' && [[ $(head -n 1 warnings) =~ $foretold ]]
	sed -nE "s/$foretold/\1 \2/p" warnings | jq -s -e '.[1] < 0.6 * .[0]'
}

# bats test_tags=alone
@test "With the agent, an iteration without the cost takes as long as when nobody profiles it" {
	most_windows 0 30 --agent # the cost of its calls is an estimate
	# The cost is small, so that an iteration from which nothing was taken would be within 30 % as well. How much it is depends
	# on the machine: from 2 % to 20 % were seen.
	jq -e '.cost | .taken_out and .iteration_unwatched_ns < .iteration_watched_ns and .busiest_thread_ns > 0' live.json
}

@test "Tables say what profiling cost, a recording has what its report needs, and --raw keeps the cost in all times" {
	start_code loop "$LOOP" >/dev/null
	"$MXBPF" record --pid "$READY_PID" -d 2s -o job.mxd
	"$MXBPF" report job.mxd >tables
	expect_re '^cost     profiling added [0-9.]* m?s of CPU time, and [0-9.]* [mu]s to an iteration of .*; all times here are without it$' "$(<tables)"
	"$MXBPF" report --raw job.mxd >raw
	expect_re '^cost     profiling added .*; all times here are with it$' "$(<raw)"
	run ! grep 'mxbpf makes the job' raw
	"$MXBPF" report job.mxd -f json >report.json
	"$MXBPF" report --raw job.mxd -f json >raw.json
	"$MXBPF" report job.mxd -f csv >report.csv
	# Each row of --raw has the times that the other report calls raw, and a sum of recordings has both.
	jq -n -e --slurpfile a report.json --slurpfile b raw.json '
		([$a[0].tables.operator[] | {name, total_ns: .raw_total_ns, self_ns: .raw_self_ns}] | sort) ==
		([$b[0].tables.operator[] | {name, total_ns, self_ns}] | sort) and
		($b[0].tables.operator | all(has("raw_total_ns") | not)) and ($b[0].cost.taken_out | not)'
	jq -e 'all(.tables.operator[]; .total_ns <= .raw_total_ns and .self_ns <= .raw_self_ns and .self_ns >= 0)' report.json
	grep -q '"cost","iteration_unwatched",' report.csv
	"$MXBPF" export job.mxd -o t.json
	jq -e '.otherData.cost.taken_out == false' t.json
	"$MXBPF" report job.mxd --layout mxnet -f json | jq -e '.mxbpf.cost.taken_out'
	"$MXBPF" report job.mxd --raw --layout mxnet -f json | jq -e '.mxbpf.cost.taken_out == false'
}

@test "Single calls are without the cost, too" {
	start_code loop "$LOOP" >/dev/null
	"$MXBPF" record --pid "$READY_PID" -d 1s -o job.mxd
	"$MXBPF" report job.mxd --by event -f json >events.json
	"$MXBPF" report job.mxd --by event --raw -f json >raw.json
	# About a half of the cost of this thread is in its operators, the rest in other calls.
	jq -n -e --slurpfile a events.json --slurpfile b raw.json '
		([$b[0].tables.operator[].self_ns] | add) - ([$a[0].tables.operator[].self_ns] | add)
			> 0.2 * $a[0].cost.busiest_thread_ns'
}

# bats test_tags=alone
@test "Calls in slices are told for each iteration, as many as the job makes, with how exact they are" {
	# In iterations that are so long, what is recorded all the time costs a fifth of what is left for it.
	start_code loop "${LOOP/range(200)/range(800)}" >/dev/null
	"$MXBPF" --pid "$READY_PID" -d 6s --all --sample 499 --sched -f json >live.json
	"$PYTHON" -m jsonschema -i live.json "$O/report.schema.json"
	# What was seen between slices is of no call, and not of the time outside of all calls.
	jq -e '.samples | (.ran_in[] | select(.name == "[between slices]").count) > 0.5 * .count and
		([.ran_in[] | select(.name == "[no operator]").count] | add // 0) <
			3 * ([.ran_in[] | select(.table == "operator").count] | add)' live.json
	jq -e '[.off_cpu.calls[] | select(.between_slices).off_cpu_ns] | add > 0' live.json
	# The loop adds 800 times in each iteration. What was recorded is a small part of that.
	jq -e '.tables.operator[] | select(.name == "aten::add") |
		.count < 0.5 * .estimate.count and .estimate.count_error < 1 and
		(.estimate.calls_per_iteration / 800 | . > 0.8 and . < 1.2)' live.json
	# An annotation is recorded all the time, so its row has no estimate, and as many calls as there are iterations.
	jq -e '.iterations.loops[0].count as $n | .tables.operator[] | select(.name == "Optimizer.step#SGD.step") |
		(has("estimate") | not) and .count / $n > 0.9' live.json
	# Iterations in slices alone say where their time went.
	jq -e '.iterations.loops[0] | .parts.count < .count and .parts.inline.total_ns > 0.1 * .parts.total_ns' live.json
	"$MXBPF" --pid "$READY_PID" -d 3s --all >tables
	grep -q '^name .* calls/it self/it' tables
	grep -qE '^slices   all calls of [0-9,]+ of [0-9,]+ iterations were recorded, in [0-9,]+ slices?; .* are estimates; --exact records every call$' tables
	"$MXBPF" --pid "$READY_PID" -d 1s --exact --all >tables
	run ! grep -E '^slices|calls/it' tables
}

# kernel_share LOOP WATCHED ARGS...: the share of the loop's CPU time in the kernel while a process is watched, in thousandths.
# Alone it makes no system calls; a probe is a trap. So this tells what probes take, however fast the CPU is.
kernel_share() {
	local was now
	start_bg mxbpf "$MXBPF" --pid "$2" -d 60s "${@:3}"
	wait_line "$(err mxbpf)" '^attached: ' "$BG_PID"
	was=$(<"/proc/$1/stat")
	await_lines 40
	now=$(<"/proc/$1/stat")
	kill -s INT "$BG_PID"
	wait_exit "$BG_PID" >/dev/null
	awk '{ user[NR] = $12; kernel[NR] = $13 }
		END { print int(1000 * (kernel[2] - kernel[1]) / (user[2] - user[1] + kernel[2] - kernel[1])) }' \
		<<<"${was##*) }"$'\n'"${now##*) }"
}

# Alone, because a session of several processes hits the probes of the library in others as well.
# bats test_tags=alone
@test "Nobody is slowed by more than a tenth unless he asks: what would cost more is recorded in slices" {
	local all slices
	start_code loop "$LOOP" >/dev/null
	all=$(kernel_share "$READY_PID" "$READY_PID" --exact)
	slices=$(kernel_share "$READY_PID" "$READY_PID")
	echo "in the kernel: $slices of 1000, with --exact $all"
	((all > 300 && slices < 120))
}

# bats test_tags=alone
@test "Processes that are not watched are slowed by no more than that either, and --exact says before that they will be" {
	local loop limited exact
	start_code loop "$LOOP" >/dev/null
	loop=$READY_PID
	# It calls little. It has a child, so its probes are in every process that maps the library.
	start_code job 'import os, time, torch
os.fork() or os.execlp("sleep", "sleep", "300")
print("ready", os.getpid(), flush=True)
while True: torch.cosh(torch.ones(8)); time.sleep(0.01)' >/dev/null
	exact=$(kernel_share "$loop" "$READY_PID" --exact)
	grep -q "warning: process $loop is not watched" "$(err mxbpf)"
	limited=$(kernel_share "$loop" "$READY_PID" --format json)
	echo "in the kernel: $limited of 1000, with --exact $exact"
	((exact > 300 && limited < 120))
	jq -e '.window.notes | any(.text | contains("profiling all of them cost other processes that map the library more than 10"))' \
		"$(out mxbpf)"
}

# bats test_tags=alone
@test "What it will cost a job to record every call is said before, with a command that works and costs less than that" {
	local command program=$MXBPF
	[[ $program != *' '* ]] || program="'$program'" # as a shell needs it
	# Larger tensors: a fast machine makes two million events a second of the small ones, which is more than mxbpf can read.
	start_code loop "${LOOP//ones(8)/ones(10000)}" >/dev/null
	start_bg mxbpf "$MXBPF" --pid "$READY_PID" --exact --interval 2s -d 20s --memory --raised --ops 'add*,a b' --format json
	wait_line "$(out mxbpf)" schema_version "$BG_PID"
	grep -q 'with every call recorded this job will run about' <(sed '/attached: /q' "$(err mxbpf)")
	end_pid "$BG_PID"
	# It has all options but the one that needs probes, and says which that is.
	command=$(sed -n 's/.* the agent makes it about [0-9.]*, without --raised: //p' "$(err mxbpf)")
	[[ $command == "$program --pid $READY_PID --exact --interval 2s --duration 20s --memory --ops 'add*,a b' --format json --agent" ]]
	# As printed, but for a shorter window.
	eval "${command/20s/3s}" >last 2>warnings
	tail -n 1 last >live.json
	jq -e '(.tables.operator[] | select(.name == "aten::add").count > 1000) and (.memory.holders | length > 0)' live.json
	head -n 1 "$(out mxbpf)" | jq -e --slurpfile agent live.json 'def each: .cost.busiest_thread_ns / .loss.attempted;
		each > 2 * ($agent[0] | each)'
	run ! grep -E 'profiling takes|will run about' warnings
}
