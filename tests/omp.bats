#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --omp: the work of OpenMP teams for the operators that open their regions. The threads' own measurements are the reference
# (CLOCK_THREAD_CPUTIME_ID, tests/toy/omp.c), in libgomp, in libomp and on the real runtimes.

load helpers

setup_file() {
	stolen_ns >"$BATS_FILE_TMPDIR/stolen"
	echo "${EPOCHREALTIME/./}" >"$BATS_FILE_TMPDIR/since"
}

setup() { need_root; }

# Runs the toy under mxbpf. Its own account is in toy.out, and the report in mxbpf.out.
run_toy() { # THREADS ROUNDS MXBPF_ARGS...
	local threads=$1 rounds=$2
	shift 2
	start_ready toy "${TOY:-$O/toy/omp/libtorch_cpu.so}" "$threads" "$rounds" >/dev/null
	start_mxbpf --pid "$READY_PID" --all --omp --probes op "$@"
	end_ready
}

# Several tests share a session of two threads and forty rounds.
make_session() { BATS_TEST_TMPDIR=$PWD run_toy 2 40 --format json; }
session() {
	cd "$BATS_TEST_TMPDIR"
	take_shared omp-session make_session
}

# Tests a jq filter on the rows by name.
teams() { # JSON FILTER
	jq -e --argjson toy "$(tail -n 1 "$(out toy)")" "(.teams.operators | map({(.name): .}) | add) as \$t | $2" "$1" >/dev/null &&
		return 0
	jq -c '.teams' "$1" >&2
	tail -n 1 "$(out toy)" >&2
	return 1
}

# No row has less time than its threads measured. Half of them have at most 2 % more, plus stolen time, which is in the time
# on CPU, but not in the threads' clock.
cpu_as_measured() {
	local stolen=$(($(stolen_ns) - $(<"$BATS_FILE_TMPDIR/stolen"))) lasted=$((${EPOCHREALTIME/./} - $(<"$BATS_FILE_TMPDIR/since")))
	local share
	share=$(awk "BEGIN { print 3 * $stolen / (1000 * $lasted * $(nproc)) }") # steals come in bursts
	teams "$(out mxbpf)" '[$toy | del(.nested) | keys[] | $t["aten::" + .].cpu_ns / $toy[.].cpu_ns] | sort |
		.[0] > 0.99 and .[length / 2 | floor] < 1.02 + '"$share"' and .[-1] < 1.5 + '"$share"
}

@test "Every region belongs to its operator, with the CPU time that the threads measure" {
	session
	teams "$(out mxbpf)" '[$toy | keys[] | $t["aten::" + .].regions == $toy[.].regions] | all'
	cpu_as_measured
	teams "$(out mxbpf)" '.loss.dropped == 0 and .loss.unmatched == 0'
}

@test "A thread's time is split completely into start, work and barrier, and a thread with less work waits longer" {
	session
	teams "$(out mxbpf)" '[$t[] | .late_ns + .work_ns + .barrier_ns == .threads_ns and .cpu_ns + .runq_ns <= .work_ns and .late_runq_ns <= .late_ns] | all'
	# The other thread ends 3 ms before the master, which works 4 ms, or starts later because it had no CPU.
	teams "$(out mxbpf)" '$t["aten::skewed"] | .barrier_ns > 0 and .late_ns + .barrier_ns > 0.25 * .threads_ns and .threads == 2'
}

# The first test's conditions, for any OpenMP library.
expect_as_measured() {
	teams "$(out mxbpf)" '[$toy | keys[] | $t["aten::" + .].regions == $toy[.].regions] | all'
	cpu_as_measured
	teams "$(out mxbpf)" '$t["aten::nested"] | .threads == 2 and .cpu_ns >= 0.99 * $toy.nested.cpu_ns'
	teams "$(out mxbpf)" '[$t[] | .late_ns + .work_ns + .barrier_ns == .threads_ns and .cpu_ns + .runq_ns <= .work_ns and .late_runq_ns <= .late_ns] | all'
	teams "$(out mxbpf)" '$t["aten::skewed"] | .barrier_ns > 0 and .late_ns + .barrier_ns > 0.25 * .threads_ns and .threads == 2'
	teams "$(out mxbpf)" '.loss.dropped == 0 and .loss.unmatched == 0'
}

@test "libomp regions belong to their operators, with the CPU time that the threads measure" {
	TOY=$O/toy/kmp/libtorch_cpu.so run_toy 2 40 --format json
	expect_as_measured
}

@test "libomp in place of libgomp is seen by programs compiled for libgomp" {
	start_ready toy env LD_PRELOAD=/usr/lib/llvm-14/lib/libomp.so.5 "$O/toy/omp/libtorch_cpu.so" 2 40 >/dev/null
	start_mxbpf --pid "$READY_PID" --omp --probes op --format json
	end_ready
	expect_as_measured
}

@test "libomp regions of one thread count as such" {
	TOY=$O/toy/kmp/libtorch_cpu.so run_toy 1 20 --format json
	teams "$(out mxbpf)" '$t["aten::even"] | .regions == $toy.even.regions and .threads == 1 and .cpu_ns / $toy.even.cpu_ns < 1.5'
	teams "$(out mxbpf)" '.loss.unmatched == 0'
}

@test "An unsupported OpenMP library is named, and the others are seen" {
	echo 'int nothing;' | cc -shared -fPIC -o "$BATS_TEST_TMPDIR/libiomp5.so" -x c -
	start_ready toy env LD_PRELOAD="$BATS_TEST_TMPDIR/libiomp5.so" "$O/toy/omp/libtorch_cpu.so" 2 10 >/dev/null
	start_mxbpf --pid "$READY_PID" --all --omp --probes op
	end_ready
	expect_re 'libiomp5\.so is not understood; its OpenMP teams are not recorded' "$(<"$(out mxbpf)")"
	expect_re '^aten::even +20 +2 ' "$(<"$(out mxbpf)")"
}

@test "Two masters that run the same code at the same time are kept apart" {
	session
	teams "$(out mxbpf)" '$t["aten::right"].regions == 40 and $t["aten::left"].regions == 40'
	teams "$(out mxbpf)" '$t["aten::right"].cpu_ns / $t["aten::left"].cpu_ns | . > 1.7 and . < 2.3'
}

@test "Nested regions count one by one, and no thread's time counts twice" {
	session
	# The outer region has two threads, and each of them opens one of two threads, of which one is new.
	teams "$(out mxbpf)" '$t["aten::nested"] | .regions == 120 and .threads == 2'
	teams "$(out mxbpf)" '$t["aten::nested"].cpu_ns >= 0.99 * $toy.nested.cpu_ns'
}

@test "A team with more threads than CPUs is reported to wait for a CPU, with a remedy" {
	run_toy "$((4 * $(nproc)))" 20 # the toy's left and right regions have two threads each
	expect_re '^team waits for a CPU [0-9]+ % of its threads'\'' time.*up to [0-9]+ threads share [0-9]+ CPUs?; OMP_NUM_THREADS=[0-9]+ gives each its own$' "$(<"$(out mxbpf)")"
}

@test "A process that may use fewer CPUs than the machine has gets the same report" {
	start_ready toy taskset -c 0 "$O/toy/omp/libtorch_cpu.so" 2 20 >/dev/null
	start_mxbpf --pid "$READY_PID" --all --omp --probes op
	end_ready
	expect_re '^team waits for a CPU .*up to 2 threads share 1 CPU;' "$(<"$(out mxbpf)")"
}

@test "A recording has the tables of its session" {
	start_ready toy "$O/toy/omp/libtorch_cpu.so" 2 20 >/dev/null
	start_bg mxbpf "$MXBPF" record --pid "$READY_PID" --omp --probes op -o "$BATS_TEST_TMPDIR/r.mxd"
	wait_line "$(err mxbpf)" 'attached: [0-9]+ probes' "$BG_PID"
	end_pid "$READY_PID" USR1
	wait_exit "$BG_PID"
	"$MXBPF" report --format json "$BATS_TEST_TMPDIR/r.mxd" >"$(out report)"
	teams "$(out report)" '[$toy | keys[] | $t["aten::" + .].regions == $toy[.].regions] | all'
	# Without its end record the recording is folded again from its events.
	head -c -100 "$BATS_TEST_TMPDIR/r.mxd" >"$BATS_TEST_TMPDIR/cut.mxd"
	"$MXBPF" report --format json "$BATS_TEST_TMPDIR/cut.mxd" >"$(out cut)"
	[[ $(jq -cS '.teams' "$(out cut)") == "$(jq -cS '.teams' "$(out report)")" ]]
}

@test "--ops leaves out the teams of other operators" {
	run_toy 2 10 --format json --ops even
	teams "$(out mxbpf)" '($t | keys) == ["aten::even"] and $t["aten::even"].regions == 20'
}

@test "Options that --omp does not support are refused, and without OpenMP a session goes on" {
	expect_run 2 --separate-stderr "$MXBPF" --pid $$ --omp --layout mxnet
	expect_re '^mxbpf: error: --layout mxnet has no table for --omp; remove one of them$' "$stderr"
	start_ready toy "$O/toy/libtorch_cpu.so" >/dev/null
	run --separate-stderr "$MXBPF" --exact --pid "$READY_PID" --omp --probes op -d 1ms
	((status == 5)) || expect_status 0 # it may call an operator in that moment
	expect_re '^mxbpf: warning: --omp: no OpenMP library is mapped \(libgomp, libomp, libiomp5\); mxbpf goes on without it$' "$stderr"
}

@test "MXNet operators own their regions in libgomp" {
	need_mxnet
	start_ready job env OMP_NUM_THREADS=2 "$PYTHON" -c '
import os, signal, mxnet as mx
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
m = mx.nd.random.uniform(shape=(500, 500)); mx.nd.waitall()
print("ready", os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
for i in range(30):
    c = mx.nd.softmax(m, axis=1)
mx.nd.waitall()' >/dev/null
	start_mxbpf --pid "$READY_PID" --omp --probes op --format json
	end_ready
	jq -e '(.tables.operator[] | select(.name == "softmax") | .count) == 30' "$(out mxbpf)"
	jq -e '.teams.operators[] | select(.name == "softmax") | .regions == 30 and .threads == 2 and .cpu_ns > 0' "$(out mxbpf)"
}

@test "A launched command is attached only when the OpenMP libraries of its runtime are mapped" {
	need_mxnet
	OMP_NUM_THREADS=2 "$MXBPF" --exact --omp --probes op --format json -- "$PYTHON" -c '
import mxnet as mx
m = mx.nd.random.uniform(shape=(500, 500))
for i in range(10):
    c = mx.nd.softmax(m, axis=1)
mx.nd.waitall()' >"$(out mxbpf)"
	jq -e '.teams.operators[] | select(.name == "softmax") | .regions == 10 and .threads == 2' "$(out mxbpf)"
}

@test "PyTorch operators own their regions in the wheel's libgomp, and none is missed by a count of the calls" {
	need_torch
	WAIT_SECONDS=120
	cc -shared -fPIC -o "$BATS_TEST_TMPDIR/count.so" "$REPO/tests/toy/count_gomp.c" -ldl
	LD_PRELOAD=$BATS_TEST_TMPDIR/count.so start_ready job "$PYTHON_TORCH" -c '
import ctypes, os, signal, torch
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
torch.set_num_threads(2)
regions = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "gomp_regions")
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(7200, 10))
x = torch.randn(16, 3, 32, 32)
print("ready", os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
before = regions.value
for i in range(10):
    model(x).sum().backward()
print("regions", regions.value - before)' >/dev/null
	start_mxbpf --pid "$READY_PID" --omp --probes op --format json
	end_ready
	jq -e --argjson n "$(sed -n 's/^regions //p' "$(out job)")" '.teams.operators | (map(.regions) | add) == $n and $n >= 50' \
		"$(out mxbpf)"
	jq -e '.teams.operators[] | select(.name == "aten::addmm") | .regions >= 10 and .threads == 2 and .cpu_ns > 0' "$(out mxbpf)"
	jq -e '[.teams.operators[].name] | all' "$(out mxbpf)" # every region belongs to an operator
}

@test "A trace has teams as arguments of the spans that opened their regions, and CSV has them as rows" {
	run_toy 2 10 --format csv --trace "$BATS_TEST_TMPDIR/t.json"
	jq -e '[.traceEvents[] | select(.name == "aten::skewed" and .ph == "X") | .args | .team_regions == 1 and
		.team_threads == 2 and .team_cpu_ns > 4500000] | length == 10 and all' "$BATS_TEST_TMPDIR/t.json"
	# No region counts twice, and none counts for a span that only encloses the span that opened it.
	jq -e '[.traceEvents[] | .args.team_regions // 0] | add == 90' "$BATS_TEST_TMPDIR/t.json"
	"$PYTHON" - "$(out mxbpf)" <<-'END'
		import csv, sys
		rows = {r["name"]: r for r in csv.DictReader(open(sys.argv[1])) if r["table"] == "teams"}
		assert rows["aten::even"]["count"] == "20" and int(rows["aten::even"]["team_cpu_ns"]) > 39e6, rows
	END
}
