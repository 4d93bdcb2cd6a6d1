#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf's trace of a PyTorch job follows Kineto's conventions. torch.profiler's trace of the same program and the tools that
# read such traces are the reference.

load helpers

PERFETTO=$REPO/tests/perfetto

READERS=$O/deps/readers/bin/python

# Counts of operators and annotations in the table.
OPERATORS='([.[1].tables.operator[] | {(.name): .count}] | add)'

setup() { torch_setup; }

# Records a real job once, with its tables and its trace.
recorded() {
	REAL=$BATS_TEST_TMPDIR
	recording sgd
	mv mxbpf.json report.json
	"$MXBPF" export job.mxd -f chrome -o job_1.pt.trace.json
}

# Compares names and categories of slices, the allocator's reports, and arrows with the exact start of their slices.
same_trace() { # PROGRAM
	reference "$1"
	session "$1"
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json --trace trace.json
}

@test "The trace of a CNN has the slices, arrows and allocations of torch.profiler's trace" { same_trace sgd; }
@test "The trace of a transformer has the slices, arrows and allocations of torch.profiler's trace" { same_trace transformer; }
@test "The trace of double backward with custom Functions has the slices, arrows and allocations of torch.profiler's trace" {
	same_trace custom
}
@test "The trace of TorchScript has the slices, arrows and allocations of torch.profiler's trace" { same_trace script; }
@test "The trace of two Python threads has the slices, arrows and allocations of torch.profiler's trace" { same_trace threads; }
@test "The trace of a program with exceptions has the slices, arrows and allocations of torch.profiler's trace" { same_trace exceptions; }

# record_shapes keeps tensors alive and delays their frees, so sizes need a run of their own.
same_shapes() { # PROGRAM
	reference_shapes "$1"
	reference "$1"
	recording_shapes "$1"
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json --trace trace.json --shapes shaped.json
}

@test "The trace of a CNN has torch's sizes and types of tensors, in lists too" { same_shapes adam-foreach; }
@test "The trace of a transformer has torch's sizes and types of tensors" { same_shapes transformer; }

@test "HolisticTraceAnalysis and TensorBoard's plugin read the sizes of --shapes" {
	need_readers
	recording_shapes sgd
	mkdir -p logs/run
	cp trace.json logs/run/job_1.pt.trace.json
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0].errors == [] and (.[0].shapes | any(.name == "aten::conv2d" and (.input_shape | test("^\\[\\[[0-9]+, 3, "))))' tb.json
	"$READERS" "$REPO/tests/readers/read_hta.py" trace.json >hta.json
	expect '.[0].shapes > 500 and .[1].record_shapes == 1' hta.json trace.json
}

# expect JQ-CONDITION FILE...: prints the compared values if the condition is false.
expect() {
	local condition=$1
	shift
	jq -e -s "$condition" "$@" >/dev/null && return 0
	printf 'does not hold: %s\n' "$condition" >&2
	jq -c 'del(.operators, .other_data)?' "$@" | cut -c-2000 >&2
	return 1
}

@test "Perfetto's engine accepts the trace of a PyTorch job without errors and counts what the tables count" {
	recorded
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" "$REAL/job_1.pt.trace.json" --json >engine.json ||
		{ jq .errors engine.json; return 1; }
	# The trace also has two iterations, which are in no table.
	expect '.[0] as $e | .[1].tables as $t | ([$t.operator[].count] | add) + 2 == $e.slices.cpu_op + $e.slices.user_annotation' \
		engine.json "$REAL/report.json"
	expect '.[0] as $e | ([.[1].tables.memory[] | .allocs + .frees] | add) as $n |
		$e.slices.cpu_instant_event == $n and $e.counters == $n and $n > 100' engine.json "$REAL/report.json"
	expect '.[0] | .flows == .flow_pairs_ok and .flows == .other_data.arrows and .flows == 48 and .other_data.loss.dropped == 0' engine.json
	# Allocations are on a track of their own, not among the operators of their thread.
	expect '.[0].thread_instants == 0' engine.json
	# The engine's sums by name equal the table's, to the ns.
	expect '([.[0].operators[] | {name, n, total_ns}] | sort) as $e | [.[1].tables.operator[] |
		{name, n: .count, total_ns: (.raw_total_ns // .total_ns)}] as $t | ($e | length) > 50 and all($e[]; . as $row | any($t[]; . == $row))' \
		engine.json "$REAL/report.json"
}

@test "Perfetto's user interface shows iterations, arrows and memory of a PyTorch job" {
	recorded
	mkdir -p "$O/test" # kept there for inspection
	node "$PERFETTO/ui.mjs" "$O/deps/perfetto" "$REAL/job_1.pt.trace.json" "$O/test/torch_trace.png" \
		--select ConvolutionBackward0 --operators 30 >ui.json || { cat ui.json; return 1; }
	expect '.[0] | .errors == [] and .import_errors == 0 and .problems == [] and .selected and
		any(.tracks[]; startswith("memory cpu/0"))' ui.json
}

@test "The classic form has every span of the tables by name, and Perfetto accepts it" {
	recorded
	"$MXBPF" export "$REAL/job.mxd" -f chrome-classic -o classic.json
	expect ".[0] | map(select(.ph == \"X\")) | all(.pid == \"CPU functions\" and .tid == 0 and .args == {})" classic.json
	expect "([.[0][] | select(.ph == \"X\") | .name] | group_by(.) | map({(.[0]): length}) | add) == $OPERATORS" \
		classic.json "$REAL/report.json"
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" classic.json --json >engine.json
}

need_readers() {
	[[ -x $READERS ]] && return 0
	echo "no readers of traces at $READERS: run tests/setup.sh" >&2
	return 1
}

@test "HolisticTraceAnalysis reads the operators and iterations of a PyTorch job's trace, and its analyses work as on torch's" {
	need_readers
	recorded
	"$READERS" "$REPO/tests/readers/read_hta.py" "$REAL/job_1.pt.trace.json" >hta.json
	expect "(.[0].slices.cpu_op + .[0].slices.user_annotation | with_entries(select(.key | startswith(\"ProfilerStep#\") | not)))
		== $OPERATORS" hta.json "$REAL/report.json"
	# A step lasts from one optimizer step's end to the next. Both complete ones have the same operators.
	expect '.[0] | .profiler_steps == [0, 1] and (.steps | keys == ["0", "1"] and .["0"] == .["1"] and (.["0"] | length) > 50)' \
		hta.json
	prog sgd --builtin builtin.json --keep kineto.json
	"$READERS" "$REPO/tests/readers/read_hta.py" kineto.json >torch.json
	expect '.[0].analyses == .[1].analyses and .[0].analyses.steps == "ok"' hta.json torch.json
}

@test "HolisticTraceAnalysis finds the rank of a process of a distributed job" {
	need_readers
	mkdir ranks
	# An interpreter of its own, because a child of the fork server starts with the server's environment.
	RANK=3 WORLD_SIZE=8 traced '--format json --trace trace.json' mxbpf.json "$PYTHON_TORCH" "$JUDGE/prog.py" sgd --bare
	mv trace.json ranks
	"$READERS" "$REPO/tests/readers/read_hta.py" ranks >hta.json
	expect '.[0].rank == 3 and (.[0].slices.cpu_op | length) > 50 and .[1].distributedInfo.world_size == 8 and
		any(.[1].traceEvents[]; .name == "process_name" and (.args.name | test("^rank 3 of 8: python.* sgd --bare")))' \
		hta.json ranks/trace.json
}

@test "TensorBoard's plugin answers every view of a PyTorch job's trace, with the operators and iterations of the tables" {
	need_readers
	recorded
	mkdir -p logs/run
	cp "$REAL/job_1.pt.trace.json" logs/run
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0] | .views == ["Overview", "Operator", "Trace", "Memory"] and all(.status[]; . == 200) and .errors == []' tb.json
	expect '.[0] | .steps == ["0", "1"]' tb.json
	# The plugin does not count annotations as operators.
	expect ".[0].operators as \$tb | $OPERATORS as \$t | [.[2].traceEvents[] | select(.cat == \"user_annotation\") | .name] as \$own |
		\$tb == (\$t | with_entries(select(.key | IN(\$own[]) | not)))" tb.json "$REAL/report.json" "$REAL/job_1.pt.trace.json"
	# The plugin needs the thread of each allocation to find the operator.
	expect '.[0].memory_events > 100 and (.[0].memory_operators | length > 5 and any(test("\\(aten::empty")))' tb.json
}

# Spans left by one exception end at the same time. A plugin that adds doubles could see them crossing and drop them.
@test "TensorBoard's plugin counts every operator of a job full of exceptions" {
	need_readers
	session exceptions
	mkdir -p logs/run
	cp trace.json logs/run/job_1.pt.trace.json
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0].errors == [] and any(.[1].traceEvents[]; .args.unwound?)' tb.json trace.json
	expect ".[0].operators as \$tb | $OPERATORS as \$t | [.[2].traceEvents[] | select(.cat == \"user_annotation\") | .name] as \$own |
		\$tb == (\$t | with_entries(select(.key | IN(\$own[]) | not)))" tb.json mxbpf.json trace.json
}

# torch.profiler's own trace has no calls that have not ended, so readers of such traces must not count them.
@test "TensorBoard's plugin and HolisticTraceAnalysis leave out a call that has not ended, and Perfetto shows it" {
	need_readers
	start_code open 'import os, time, torch
x = torch.ones(4)
print("ready", os.getpid(), flush=True)
while True:
    with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
        for _ in range(50):
            (x + 1).sum()
            time.sleep(0.005)'
	mkdir -p logs/run
	"$MXBPF" --pid "$READY_PID" -d 2s --format json --trace logs/run/job_1.pt.trace.json >report.json
	stop_pid "$READY_PID"
	expect '.[0].open | map(.name) | index("outer") and index("inner")' report.json
	expect '.[0].traceEvents | map(select(.args.unfinished?)) | length >= 2 and all(.ph == "X" and .cat != "cpu_op")' \
		logs/run/job_1.pt.trace.json
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" logs/run/job_1.pt.trace.json --json >engine.json
	expect '([.[0].open[].name] | sort) == ([.[1].open[].name] | sort) and .[0].endless == []' engine.json report.json
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect ".[0].errors == [] and .[0].operators == ($OPERATORS | del(.outer, .inner))" tb.json report.json
	"$READERS" "$REPO/tests/readers/read_hta.py" logs/run/job_1.pt.trace.json >hta.json
	expect ".[0].slices.cpu_op + .[0].slices.user_annotation == $OPERATORS" hta.json report.json
}

@test "TensorBoard's plugin shows the Python stacks of --py-stacks" {
	need_readers
	recording_stacks sgd
	mkdir -p logs/run
	cp trace.json logs/run/job_1.pt.trace.json
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0].stacks and .[0].errors == [] and .[1].with_stack == 1' tb.json trace.json
	# The stack has the program's line that called the convolution, innermost frame first.
	expect '[.[0].traceEvents[] | select(.name == "aten::conv2d") | .args["Call stack"] | split(";")] | length == 8 and
		all(.[]; (.[0] | test("torch/nn/modules/conv.py\\([0-9]+\\): _conv_forward")) and (.[-1] | test("<module>$")))' trace.json
}

# DataLoader workers are processes with their own threads and allocations.
@test "A job of several processes is one trace that Perfetto and TensorBoard's plugin read" {
	need_readers
	cat >workers.py <<-'EOF'
		import os
		import torch
		from torch.utils.data import DataLoader, Dataset
		class Numbers(Dataset):
		    def __len__(self): return 1 << 30
		    def __getitem__(self, i): return torch.full((16,), i) * 2.0
		net = torch.nn.Linear(16, 4)
		optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
		for i, x in enumerate(DataLoader(Numbers(), batch_size=8, num_workers=2)):
		    with torch.profiler.record_function('iteration'):
		        optimizer.zero_grad()
		        net(x).sum().backward()
		        optimizer.step()
		    if i == 10:
		        print('ready', os.getpid(), flush=True)
		    if i > 10 and i % 10 == 0:
		        print('at', i, flush=True)
	EOF
	torch_server
	start_ready workers "${SERVED[@]}" workers.py
	mkdir -p logs/run
	start_mxbpf --pid "$READY_PID" --trace logs/run/job_1.pt.trace.json
	wait_new_line "$(out workers)" '^at ' # the window lasts as long as the job needs, not a fixed time
	wait_new_line "$(out workers)" '^at '
	stop_pid "$MXBPF_PID" INT
	stop_pid "$READY_PID"
	node "$PERFETTO/engine.mjs" "$O/deps/perfetto" logs/run/job_1.pt.trace.json --json >engine.json ||
		{ jq .errors engine.json; return 1; }
	expect '.[0] | (.processes | length) == 3 and .flows > 0 and .flows == .flow_pairs_ok' engine.json
	"$READERS" "$REPO/tests/readers/read_tensorboard.py" logs >tb.json
	expect '.[0] | .errors == [] and all(.status[]; . == 200) and (.steps | length) > 0' tb.json
	expect '[.[0].traceEvents[] | select(.name == "iteration")] | length > 1' logs/run/job_1.pt.trace.json
}

@test "An annotation's name with quotes, a backslash and a newline gives a valid trace, which torch's does not" {
	cat >annotate.py <<-'EOF'
		import os
		import torch
		torch.ones(1) + 1
		print('ready', os.getpid(), flush=True)
		while True:
		    with torch.profiler.record_function('say "hello" \\ \n twice'):
		        torch.ones(1) + 1
	EOF
	torch_server
	start_ready annotate "${SERVED[@]}" annotate.py
	"$MXBPF" --pid "$READY_PID" -d 200ms --format json --trace trace.json >mxbpf.json
	stop_pid "$READY_PID"
	local name='say "hello" \ 
 twice'
	jq -e --arg name "$name" '[.tables.operator[] | select(.name == $name)] | length == 1' mxbpf.json
	jq -e --arg name "$name" '[.traceEvents[] | select(.name == $name and .cat == "user_annotation")] | length > 0' trace.json
}
