#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --sample shows what each CPU runs, by operator. The programs' own measurements (tests/toy/burn.c), perf and the readers of
# the files are the reference.

load helpers

setup() { root_setup; }

# Records all work of burn into burn.mxd. The CPU time that it used is in burn.out.
record_burn() { # MS MXBPF_ARGS...
	start_ready burn "$O/toy/burn/libtorch_cpu.so" "$1" >/dev/null
	start_mxbpf record --probes op --pid "$READY_PID" -o burn.mxd "${@:2}"
	end_ready
}

shared_burn() {
	BATS_TEST_TMPDIR=$PWD record_burn 1000 --sample 250
}

# The number of samples is within four standard deviations.
near() { # SAMPLES EXPECTED
	python3 -c 'import sys; n, m = map(float, sys.argv[1:]); sys.exit(f"{n} samples, expected {m}" if abs(n - m) > 4 * max(m, 1) ** .5 else 0)' "$@"
}

# Counts the samples in burn.folded that match.
folded() { # REGEX
	RE=$1 awk '$0 ~ ENVIRON["RE"] { n += $NF } END { print n + 0 }' burn.folded
}

@test "Samples by operator equal the CPU time that the program measures, with and without probe hits" {
	record_burn 2000 --sample 997
	"$MXBPF" report burn.mxd -f json >burn.json
	cat "$(out burn)" burn.json >&2
	local row
	for row in 'aten::heavy heavy' 'aten::light light' '[no operator] beside'; do
		near "$(jq --arg name "${row% *}" '[.samples.ran_in[] | select(.name == $name).count] | add' burn.json)" \
			"$(tail -n 1 "$(out burn)" | jq ".${row##* } * 997 / 1e9")"
	done
	near "$(jq .samples.count burn.json)" "$(tail -n 1 "$(out burn)" | jq '.process * 997 / 1e9')"
	jq -e '.loss | .attempted == .stored and .unreadable == 0' burn.json
}

@test "A sample has its operator first and then the whole chain of frame pointers" {
	record_burn 1000 --sample 499
	"$MXBPF" export burn.mxd -f folded >burn.folded
	cat burn.folded >&2
	local all heavy
	all=$(folded .) heavy=$(folded '^aten::heavy;')
	((all == $("$MXBPF" report burn.mxd -f json | jq .samples.count)))
	# The other samples are in the first instructions of a function, before it sets its frame pointer, or in the loader.
	(($(folded '^aten::heavy;.*main;at::_ops::heavy::call\(\);burn_heavy;(spin|burn)[; ]') >= heavy * 95 / 100))
	(($(folded '^\[no operator\];.*burn_beside;(spin|burn)[; ]') > 0))
	(($(folded '^aten::(heavy;.*light|light;.*heavy)') == 0))
}

@test "perf finds the same functions with the same shares" {
	command -v perf >/dev/null || skip "no perf"
	start_ready burn "$O/toy/burn/libtorch_cpu.so" 1500 >/dev/null
	start_mxbpf record --probes op --pid "$READY_PID" -o burn.mxd --sample 499
	start_bg perf perf record -q -e cpu-clock -F 499 -g -o perf.data -p "$READY_PID"
	local burn=$READY_PID perf=$BG_PID
	timeout 20 bash -c 'until ls -l "/proc/$0/fd" | grep -q perf_event; do sleep 0.02; done' "$perf"
	end_pid "$burn" USR1
	wait_exit "$MXBPF_PID"
	wait_exit "$perf" || true
	perf script -i perf.data -F ip,sym 2>/dev/null >script
	"$MXBPF" export burn.mxd -f folded >burn.folded
	# Counts the samples with the operator's function in their stack.
	local op theirs
	for op in heavy light; do
		theirs=$(awk -v RS= -v op="burn_$op" 'index($0, op) { n++ } END { print n + 0 }' script)
		near "$(folded "burn_$op")" "$theirs"
	done
	((theirs > 50))
}

@test "go tool pprof reads the profile with its samples, CPU time and the operators as roots" {
	command -v go >/dev/null || skip "no go"
	take_shared burn-250 shared_burn
	READY_PID=$(sed -n 's/^ready //p' burn.out)
	"$MXBPF" export burn.mxd -o burn.pb.gz
	"$MXBPF" export burn.mxd -o burn.folded
	gzip -t burn.pb.gz
	go tool pprof -raw burn.pb.gz >raw
	cat raw >&2
	expect_re '^PeriodType: cpu nanoseconds$' "$(<raw)"
	expect_re '^Period: 4000000$' "$(<raw)"
	expect_re '^samples/count cpu/nanoseconds$' "$(<raw)"
	local n
	n=$(awk '/^Samples:/ { on = 1 } /^Locations/ { on = 0 } on && /^ +[0-9]+ +[0-9]+: / { n += $1; ns += $2 } END { print n, ns }' raw)
	[[ $n == "$(folded .) $(($(folded .) * 4000000))" ]]
	go tool pprof -sample_index=samples -top burn.pb.gz >top
	expect_re " $(folded '^aten::heavy') +[0-9.]+%  aten::heavy$" "$(<top)"
	go tool pprof -traces burn.pb.gz | awk '/^-----/ { if (last != "") print last; on = 1; next } on { last = $NF }' | sort -u >roots
	expect_same $'aten::heavy\naten::light\noperator]' "$(<roots)"
	expect_re "tid:\[$READY_PID\]" "$(<raw)"
}

@test "speedscope shows the operators of both files with their shares" {
	[[ -d $O/deps/speedscope ]] || skip "no speedscope: run tests/setup.sh"
	take_shared burn-250 shared_burn
	"$MXBPF" export burn.mxd -o burn.pb.gz
	"$MXBPF" export burn.mxd -o burn.folded
	local file
	for file in burn.folded burn.pb.gz; do
		node "$REPO/tests/readers/speedscope.mjs" "$O/deps" "$file" >rows.json
		cat rows.json >&2
		# Rows of the sandwich view have the total share in percent.
		python3 - rows.json "$(folded '^aten::heavy')" "$(folded .)" <<-'END'
			import json, sys
			rows, heavy, n = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
			assert abs(rows['aten::heavy'] - 100 * heavy / n) < 1, rows['aten::heavy']
			assert rows['burn_heavy'] > 0 and rows['[no operator]'] > 0
		END
	done
}

# Computes the share of samples below a root at a given function and line of the program.
@test "A PyTorch job's samples have the program's file and line" {
	need_torch
	cat >prog.py <<-'END'
		import os, sys, torch
		torch.set_num_threads(1)
		a = torch.randn(256, 256)
		def product():
		    return torch.mm(a, a)
		def curve(b):
		    return torch.tanh(b)
		def count():
		    return sum(i for i in range(20000))
		print('ready', os.getpid(), flush=True)
		while True:
		    curve(product())
		    count()
	END
	start_ready prog "$PYTHON_TORCH" prog.py >/dev/null
	"$MXBPF" record --pid "$READY_PID" -d 2s --sample 499 -o burn.mxd
	"$MXBPF" export burn.mxd -f folded >burn.folded
	cat burn.folded >&2
	local at=${BATS_TEST_TMPDIR}/prog.py
	(($(folded "^aten::mm;<module> \($at:12\);product \($at:5\)") >= $(folded '^aten::mm;') * 9 / 10))
	(($(folded "^aten::tanh;<module> \($at:12\);curve \($at:7\)") >= $(folded '^aten::tanh;') * 9 / 10))
	(($(folded "^\[no operator\];<module> \($at:13\);count \($at:9\);<genexpr> \($at:9\)") > 0))
}

@test "A forked child's samples have its own pid, names and lines" {
	need_torch
	cat >prog.py <<-'END'
		import os, torch
		torch.set_num_threads(1)
		a = torch.randn(256, 256)
		torch.mm(a, a)
		def in_parent():
		    return torch.mm(a, a)
		def in_child():
		    return torch.tanh(a)
		if os.fork():
		    print('ready', os.getpid(), flush=True)
		    while True: in_parent()
		while True: in_child()
	END
	start_ready prog "$PYTHON_TORCH" prog.py >/dev/null
	local child
	child=$(pgrep -P "$READY_PID")
	"$MXBPF" record --pid "$READY_PID" -d 2s --sample 499 -o burn.mxd
	kill "$child"
	"$MXBPF" export burn.mxd -f folded >burn.folded
	cat burn.folded >&2
	"$MXBPF" report burn.mxd -f json >burn.json
	jq .samples burn.json >&2
	jq -e --argjson p "$READY_PID" --argjson c "$child" '.samples.ran_in | [(.[] | select(.name == "aten::mm").pid),
		(.[] | select(.name == "aten::tanh").pid)] == [$p, $c]' burn.json
	(($(folded '^aten::tanh;.*in_child \(.*prog.py:8\)') > 0))
	(($(folded '^aten::mm;.*in_parent \(.*prog.py:6\)') > 0))
}

@test "Operators excluded by --ops are in no sample, and their time is kept" {
	start_ready burn "$O/toy/toy" 30000 2 >/dev/null
	start_mxbpf --pid "$READY_PID" --sample 997 --ops 'd*' --trace burn.folded -f json
	end_ready
	(($(folded '^(relu|sum)') == 0))
	(($(folded '^dot|^MX') > 0))
	(($(folded .) == $(jq .samples.count "$(out mxbpf)")))
	"$PYTHON" -m jsonschema -i "$(out mxbpf)" "$O/report.schema.json" 2>warnings
}

@test "Samples of OpenMP threads belong to the operator with --omp" {
	start_ready burn "$O/toy/omp/libtorch_cpu.so" 2 80 >/dev/null
	start_mxbpf --pid "$READY_PID" --probes op --omp --sample 997 -f json
	end_ready
	jq -c .samples "$(out mxbpf)" >&2
	tail -n 1 "$(out burn)" >&2
	# The lower bound is the threads' CPU time, because the master also waits inside the region.
	jq -e --argjson used "$(tail -n 1 "$(out burn)")" '(.samples.ran_in | map({(.name): .count}) | add) as $n
		| [("even", "left", "right") | ($used[.].cpu_ns * 997 / 1e9) as $m | $n["aten::" + .] > $m - 4 * ($m | sqrt)] | all' "$(out mxbpf)"
}

# bats test_tags=alone
@test "With the agent, samples by operator equal the CPU time that the program measures, in the calls around it, and in OpenMP threads" {
	measured
	need_torch
	start_code burn '
import json, os, signal, time, torch
from torch.profiler import record_function
torch.set_num_threads(1)
x, y, go, used = torch.rand(1 << 20), torch.empty(1 << 20), [], {}
signal.signal(signal.SIGUSR1, lambda *_: go.append(1))
print("ready", os.getpid(), flush=True)
one = torch.ones(1)
while not go:
    one.zero_()
def spin():
    end = time.thread_time() + 0.004
    while time.thread_time() < end:
        pass
def measured(name, work):
    before = time.thread_time()
    work()
    used[name] = used.get(name, 0) + time.thread_time() - before
for _ in range(150):
    with record_function("outer"):
        measured("aten::exp", lambda: [torch.exp(x, out=y) for _ in range(5)])
        with record_function("spun"):
            measured("spun", spin)
    measured("[no operator]", spin)
    time.sleep(0.001)
torch.set_num_threads(2)
with record_function("team"):
    for _ in range(300):
        x.sin()
print(json.dumps(used), flush=True)
time.sleep(1)
' >/dev/null
	start_mxbpf record --pid "$READY_PID" --agent --sample 997 --omp -o burn.mxd
	end_ready
	"$MXBPF" report burn.mxd -f json >burn.json
	"$MXBPF" export burn.mxd -f folded >burn.folded
	jq -c '.samples, .sources' burn.json >&2
	tail -n 1 "$(out burn)" >&2
	local name
	for name in aten::exp spun; do
		near "$(folded "^outer;$name;")" "$(tail -n 1 "$(out burn)" | jq --arg name "$name" '.[$name] * 997')"
	done
	(($(folded '^\[no operator\];') >= $(tail -n 1 "$(out burn)" | jq '.["[no operator]"] * 997 * 0.8 | floor')))
	(($(folded '^outer;team|^team;outer') == 0))
	# The other thread of the team has the operator of the thread that opened the region.
	(($(folded '^team;aten::sin;') > 0 && $(folded '^aten::sin;') > 0))
	jq -e '.loss | .attempted == .stored and .dropped == 0' burn.json
}

@test "A paused session takes no samples" {
	start_ready burn "$O/toy/burn/libtorch_cpu.so" 1000 >/dev/null
	start_mxbpf --probes op --pid "$READY_PID" --sample 499 -f json
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" paused
	end_pid "$READY_PID" USR1
	wait_exit "$MXBPF_PID" || true
	jq -e '.samples.count == 0' "$(out mxbpf)"
}

@test "An MXNet job's samples are in its operators and calls, below its source lines" {
	start_workload >/dev/null
	"$MXBPF" record --pid "$WORKLOAD_PID" -d 2s --sample 499 -o burn.mxd
	"$MXBPF" export burn.mxd -f folded >burn.folded
	head -c 20000 burn.folded >&2
	(($(folded '^(FullyConnected|Convolution|ImperativeBulk)[; ]') > 0))
	(($(folded '^MX[A-Za-z]+;.*mxnet_train.py:[0-9]+\)') > 0))
	(($(folded '^\[no operator\];.*mxnet_train.py:[0-9]+\)') > 0))
}

@test "Live tables have the samples of the recording" {
	start_ready burn "$O/toy/burn/libtorch_cpu.so" 500 >/dev/null
	start_mxbpf --probes op --pid "$READY_PID" --sample 499 --trace burn.folded -f csv
	end_ready
	cat "$(out mxbpf)" >&2
	(($(folded '^aten::heavy') == $(sed -n 's/^"samples","aten::heavy",,\([0-9]*\),.*/\1/p' "$(out mxbpf)")))
	(($(folded '^\[no operator\]') == $(sed -n 's/^"samples","\[no operator\]",,\([0-9]*\),.*/\1/p' "$(out mxbpf)")))
}

@test "Rates that are missing or too high and profiles without samples are refused" {
	local args
	for args in '--sample 0' '--sample 1001' '--sample often' '--trace t.folded' '--trace t.pb.gz'; do
		# shellcheck disable=SC2086 # words
		expect_error 2 '--(sample|trace)' "$MXBPF" --pid $$ $args
	done
	expect_error 2 'record with --sample' "$MXBPF" export "$REPO/tests/golden/real.mxd" -f folded
}
