#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Findings on jobs with a planted fault, and on healthy ones. tests/planted/run.py all --runs 3 does it for all of them.

load helpers

setup() {
	measured
	cd "$BATS_TEST_TMPDIR"
}

judge() { python3 "$REPO/tests/planted/run.py" "$@"; }

# bats test_tags=alone
@test "The first or second finding names a slow DataLoader worker with the line on which it sleeps, a leak and an evaluation of PyTorch jobs" {
	expect_run 0 judge torch/loader-sleeps torch/leak torch/evaluation
	line=$(grep -n 'time.sleep(0.002)  # a slow remote store' "$REPO/tests/planted/torch_job.py" | cut -d: -f1)
	expect_re "its workers are at .*torch_job.py\\($line\\): __getitem__" "$output"
}

# bats test_tags=alone
@test "The first or second finding names tiny operators and a checkpoint of MXNet jobs" {
	judge mxnet/tiny mxnet/checkpoint
}

# bats test_tags=alone
@test "Healthy jobs have no findings but the load of the machine" {
	judge torch/healthy mxnet/healthy
}

@test "The first or second finding names single results, a rank that is late and a queue of the program" {
	judge mxnet/sync mxnet/straggler torch/straggler torch/queued
}

# Prints the number of the first line of a planted program that has the text.
line_with() { grep -nF "$2" "$REPO/tests/planted/$1" | cut -d: -f1 | head -1; }

# bats test_tags=alone
@test "A server whose threads wait for a lock, and one that keeps its requests, are found with their lines; a healthy one is not" {
	expect_run 0 judge server/lock server/keep server/healthy
	expect_re "lock that your Python code holds, .* wait at .*torch_server.py\($(line_with torch_server.py 'with LOCK:')\): do_POST" "$output"
	expect_re "the thread that has it is at .*torch_server.py\([0-9]+\): (preprocess|do_POST)" "$output"
	expect_re 'Memory grows by [0-9.]+ MiB a second, [0-9.]+ MiB in this window: process [0-9]+ keeps it .*; process [0-9]+ has [0-9.]+ MiB resident' "$output"
}

# bats test_tags=alone
@test "A job that compiles anew for each length is found with the line of the program; one of a constant length is healthy" {
	expect_run 0 judge torch/recompiles torch/healthy-compiled
	expect_re "PyTorch compiles in [0-9]+% of the time, called by .*torch_job.py\([0-9]+\): compiled" "$output"
	[[ $output != *torchinductor_* ]]
	# The compiler is deeper than 32 frames in most samples, and the program is outside of them.
	expect_re 'your code is at .*: compiled, ([2-9][0-9]|100)% of' "$output"
}

# Rank 0 of a job with a late rank is RANK, rank 1 is LATE.
late_rank() {
	start_ready straggler "$PYTHON_TORCH" -u "$REPO/tests/planted/torch_job.py" straggler --seconds 120
	read -r RANK LATE < <(pgrep -P "$READY_PID" | sort -n | xargs)
}

# bats test_tags=alone
@test "A rank that waits says so in its first line, and names the late rank, which mxbpf has not probed" {
	late_rank
	run -0 "$MXBPF" --exact --pid "$RANK" -d 3s
	expect_re "^1\\. Process $LATE lags: the loop waits in [0-9]+% of its time for the exchange with other processes" "$output"
	[[ $output =~ waits\ in\ ([0-9]+)% ]]
	expect_re "each: ${BASH_REMATCH[1]}% waiting for other processes(,|$)" "$output"
	line=$(grep -n 'time.sleep(0.06)  # its samples are longer' "$REPO/tests/planted/torch_job.py" | cut -d: -f1)
	expect_re "seen: process $LATE arrives last: .*torch_job.py\\($line\\): rank, .* and is not probed" "$output"
	run -0 "$MXBPF" --exact --pid "$LATE" -d 3s
	expect_re 'each: [0-9]+% in your Python code, ' "$output"
}

# Sets READY_PID to a torchrun of four ranks.
start_ranks() { start_ready ranks env OMP_NUM_THREADS=1 "$PYTHON_TORCH" -u "$REPO/tests/planted/torch_job.py" "$1" --seconds 120; }

rank_pid() { # RANK: the process with it
	local pid
	for pid in $(pgrep -P "$READY_PID"); do
		! grep -qzx "RANK=$1" "/proc/$pid/environ" || echo "$pid"
	done
}

# bats test_tags=alone
@test "The late one of four ranks is named with its number, its operator and its line, from the job and from one rank" {
	start_ranks ranks-late
	late=$(rank_pid 2)
	first=$(rank_pid 0)
	line=$(grep -n 'large.mm(large)  # its samples are longer' "$REPO/tests/planted/torch_job.py" | cut -d: -f1)
	"$MXBPF" record --pid "$READY_PID" -d 4s -o late.mxd
	"$MXBPF" report late.mxd | tee late
	expect_re "^1\\. Rank 2 \\(process $late\\) lags: the loop waits in [0-9]+% of its time .*, [0-9.]+ ms in each iteration; it runs " "$(<late)"
	expect_re "seen: it spends [0-9.]+ ms more in aten::mm in each iteration than the other ranks; process $late arrives last: .*torch_job.py\\($line\\): ranks" "$(<late)"
	# The widest difference is that of the operator, and of the wait for it.
	"$MXBPF" report late.mxd -f json >late.json
	jq -e '.ranks | map(select(.name == "aten::mm"))[0] | .ranks == 4 and .max_rank == 2 and .max_ns > 2 * .median_ns' late.json
	jq -e '.ranks | map(select(.name | test("^gloo:")))[0] | .min_rank == 2' late.json
	jq -e '(.ranks[0].name | . == "aten::mm" or test("^gloo:"))' late.json
	# From one rank, which sees no more of the others than where they stand.
	"$MXBPF" --exact --pid "$first" --no-follow -d 4s | tee one
	expect_re "process $late arrives last: .*torch_job.py\\($line\\): ranks" "$(<one)"
}

# bats test_tags=alone
@test "Four ranks that do the same have no straggler, and their times are those of the rows by rank" {
	start_ranks ranks-even
	"$MXBPF" record --pid "$READY_PID" -d 3s -o even.mxd
	"$MXBPF" report even.mxd -f json >even.json
	jq -e '.findings | all(.finding != "straggler" and .finding != "late_rank")' even.json
	jq -e '. as $r | [.labels[] | {key: "\(.pid)", value: .rank}] | from_entries as $rank |
		[$r.tables.operator[] | select($rank["\(.pid)"] != null)] | group_by(.name) | all(.[]; . as $rows |
		[$rows | group_by($rank["\(.pid)"])[] | map(.total_ns) | add] as $ns | ($r.ranks | map(select(.name == $rows[0].name))[0]) |
		.max_ns == ($ns | max) and (.ranks > ($ns | length) or .min_ns == ($ns | min)))' even.json
}

@test "Findings are the same in JSON and where tables add the ranks of a job up" {
	late_rank
	"$MXBPF" record --pid "$READY_PID" -d 3s -o r.mxd
	"$MXBPF" report r.mxd -f json >report.json
	jq -r '.findings | to_entries[] | "\(.key + 1). \(.value.text).", (.value.evidence | values | "   seen: \(.)"),
		(.value.next | values | "   next: sudo mxbpf \(.)")' report.json >told
	expect_same "$(<told)" "$("$MXBPF" report r.mxd | grep -E '^[0-9]+\. |^   (seen|next): ' | sed -E '/^   next/s/--pid [0-9]+/--pid PID/')"
	jq -e '[.iterations.loops[].pid] | unique | length == 2' report.json
}

# bats test_tags=alone
@test "A job whose allocator keeps memory gains what the finding about page faults promises" {
	local faults kept
	start_ready faults "$PYTHON_TORCH" -u "$REPO/tests/planted/torch_job.py" faults --seconds 120
	faults=$READY_PID
	start_ready kept env MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=1073741824 "$PYTHON_TORCH" -u \
		"$REPO/tests/planted/torch_job.py" faults --seconds 120
	kept=$READY_PID
	# Both in one window, so that what else the machine does takes as much of both.
	"$MXBPF" --exact --pid "$faults,$kept" -d 4s -o both.json
	jq -e --argjson kept "$kept" '.findings | all(.finding != "page_faults" or .pid != $kept)' both.json
	python3 - "$faults" "$kept" <<-'END'
		import json, sys
		both = json.load(open('both.json'))
		faults, kept = (int(pid) for pid in sys.argv[1:])
		loop, other = (next(l for l in both['iterations']['loops'] if l['pid'] == pid) for pid in (faults, kept))
		promised = next(f for f in both['findings'] if f['finding'] == 'page_faults' and f['pid'] == faults)['share_permille'] / 1000
		promised *= loop['parts']['inline']['total_ns'] / loop['parts']['total_ns']
		gained = 1 - other['p50_ns'] / loop['p50_ns']
		# What the allocator saves when it gives nothing back is gained as well, and not promised.
		assert promised > 0.2 and -0.1 < gained - promised < 0.5, (promised, gained)
		print(promised, gained)
	END
}

# bats test_tags=alone
@test "The first or second finding names the CPU limit of a control group" {
	run judge torch/throttled
	[[ $status != 77 ]] || skip "no control group for CPU time"
	expect_status 0
}

# bats test_tags=alone
@test "A recording has the findings of live tables, with the line of slow iterations" {
	expect_run 0 judge --recorded torch/evaluation
	expect_re 'iterations.*torch_job.py\([0-9]+\): evaluate' "$output"
}

# Each step is that of the finding about the planted line, and is typed as it is printed.
# bats test_tags=alone
@test "Next steps in a row differ and look closer, until nothing is left; jobs of one session have their own; a stopped process is named" {
	local step=(--pid PID) i
	start_ready own "$PYTHON_TORCH" -u "$REPO/tests/planted/torch_job.py" own --seconds 120
	for i in 1 2 3; do
		"$MXBPF" "${step[@]/PID/$READY_PID}" -d 4s -o "$i.json"
		jq -c '.findings[] | select(.finding == "own_code") | {evidence, next, pid}' "$i.json" | tee step
		[[ -s step ]]
		jq -e --argjson pid "$READY_PID" '(.evidence | test("common.py\\([0-9]+\\): own")) and .pid == $pid' step
		read -ra step < <(jq -r '.next // empty' step) || break
		echo "${step[*]}" >>steps
	done
	((i < 3)) && [[ -s steps && -z $(sort steps | uniq -d) ]]
	"$MXBPF" --exact --pid "$READY_PID" --sample 99 -d 4s >told
	grep -A 2 'seen: .*common.py([0-9]*): own' told | grep "The loop.s thread runs your own code"
	# Of two jobs, each has findings of its own, whose next step is about its process.
	local own=$READY_PID loader
	start_ready loader "$PYTHON_TORCH" -u "$REPO/tests/planted/torch_job.py" loader-sleeps --seconds 120
	loader=$READY_PID
	"$MXBPF" record --pid "$own,$loader" -d 3s -o two.mxd
	"$MXBPF" report two.mxd | tee two
	"$MXBPF" report two.mxd -f json | jq -e --argjson own "$own" --argjson loader "$loader" '.findings |
		(map(select(.finding == "own_code") | .pid) | unique) == [$own] and
		(map(select(.finding == "data_wait") | .pid) | unique) == [$loader]'
	[[ $(sed -n 's/^Job of process \([0-9]*\) (.*/\1/p' two | sort) == "$(printf '%s\n' "$own" "$loader" | sort)" ]]
	sed -n "/^Job of process $loader /,/^\$/p" two | grep -q "^[0-9]\. The loop waits for data"
	kill -s STOP "$own"
	run -5 "$MXBPF" --exact --pid "$own" -d 1s
	kill -s CONT "$own"
	expect_re "^1\. Process $own is stopped by a signal or a debugger in 100% of the samples" "$output"
}

@test "Every command that a finding says to type next is one that mxbpf accepts" {
	local next
	start_torch # its operators run, so commands with the agent need not wait for one
	grep -ohE '"(now |record )?--pid PID[^"]*"' "$REPO"/user/feature/findings/{rules,next,facts_loss}.c | tr -d '"' | sort -u >commands
	[[ $(wc -l <commands) -ge 12 ]]
	while read -r next; do
		[[ $next == now* || $next == record* ]] || next+=" -d 100ms"
		[[ $next != record* ]] || next+=" -d 100ms -o r.mxd"
		# shellcheck disable=SC2086 # words
		run "$MXBPF" ${next/PID/$WORKLOAD_PID}
		[[ $status != 2 ]] || expect_status "never, it is refused: $next"
	done <commands
}

# The line keeps one array in each iteration, and its text says how many bytes that is.
leaking_line() { # FILE TEXT BYTES TABLES.json
	local line
	line=$(grep -n "$2" "$REPO/tests/planted/$1" | cut -d: -f1)
	jq -r '.findings[] | select(.finding == "memory_growth") | .evidence' "$4" | tee evidence
	expect_re " at .*/$1\\($line\\): leak has .* alive" "$(<evidence)"
	jq -e --arg line "/$1($line): leak" --argjson bytes "$3" '([.iterations.loops[].count] | max) as $n |
		[.memory.holders[] | select(.live_bytes > 0 and (.line // "" | endswith($line)))] | sort_by(-.live_blocks) |
		all(.[1:][]; .live_blocks == 1) and # the window can end within the line, when it has the result of the layer, too
		(.[0] | .live_bytes == .live_blocks * $bytes and .live_blocks >= $n - 1 and .live_blocks <= $n + 2)' "$4"
}

leaking() { # FILE TEXT BYTES PYTHON
	cd "$BATS_TEST_TMPDIR"
	start_ready job "$4" -u "$REPO/tests/planted/$1" leak --seconds 120
	"$MXBPF" --exact --pid "$READY_PID" -d 4s --memory --py-stacks -o live.json
	leaking_line "$1" "$2" "$3" live.json
	"$MXBPF" record --pid "$READY_PID" -d 4s --memory --py-stacks -o leak.mxd
	"$MXBPF" report -f json leak.mxd >recorded.json
	leaking_line "$1" "$2" "$3" recorded.json
}

# bats test_tags=alone
@test "A leak of a PyTorch job is found with the line that leaks, live and in a recording" {
	leaking torch_job.py 'KEPT.append(model\[0\](x)' $((256 * 512 * 4)) "$PYTHON_TORCH"
}

# bats test_tags=alone
@test "A leak of an MXNet job is found with the line that leaks, live and in a recording" {
	leaking mxnet_job.py 'KEPT.append(x \* 2)' $((256 * 512 * 4)) "$PYTHON"
}
