#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Builds of PyTorch other than the tests' wheel: without symbols, Debian's 1.13, the newest of PyPI and the version before it (with
# fewer programs), and any build if only few probes can be attached.
# Each build's own profiler is the reference (tests/judge_torch), and the table of docs/pytorch.md must equal the results.

load helpers

DEBIAN=$O/deps/torch-debian/bin/python

setup() { torch_setup; }

need_debian() {
	[[ -x $DEBIAN ]] || skip "no Debian PyTorch at $DEBIAN: $(tail -n 1 "$O/deps/torch-debian.log" 2>/dev/null)"
}

# The stripped library is found first through the environment, because the wheel's RUNPATH comes later.
need_stripped() {
	[[ -f $O/deps/torch-stripped/libtorch_cpu.so ]] && return 0
	echo "no stripped PyTorch at $O/deps/torch-stripped: run tests/setup.sh" >&2
	return 1
}

# Runs PROGRAM on that BUILD of PyTorch under mxbpf with ARGS. The report is in mxbpf.json.
traced_on() { # BUILD PROGRAM ARGS...
	local BUILD=$1
	traced_prog "--format json ${*:3}" "$2" --bare --result mxbpf.result
}

judged() { # BUILD PROGRAM COMPARE_ARGS [-- ARGS...]
	local build=$1 program=$2 how=()
	shift 2
	while (($#)) && [[ $1 != -- ]]; do
		how+=("$1")
		shift
	done
	# A stripped library has the same results and counts, so the wheel's reference serves for both.
	BUILD=${build/stripped/wheel} reference "$program"
	traced_on "$build" "$program" "${@:2}"
	"$PYTHON_TORCH" "$JUDGE/compare.py" builtin.json mxbpf.json "${how[@]}"
	cmp builtin.result mxbpf.result
}

probes() { # STATUS
	jq -r --arg status "$1" '.probes[] | select(.status == $status) | .name' mxbpf.json
}

# Functions of torch.distributed have only local symbols, and there are more of them than few probes.
refused() {
	probes refused | grep -v '^collective\.' || true
}

@test "A stripped PyTorch has the counts, allocations and bytes of TorchScript, custom Functions and exceptions" {
	need_stripped
	local program
	for program in script custom exceptions; do
		judged stripped "$program"
		[[ -z $(refused) ]]
		expect_re '^operator.call_boxed_unnamed$' "$(probes attached)"
		expect_re '^autograd.node_unnamed$' "$(probes attached)"
	done
}

few_probes() { # PROGRAM...
	local program
	for program in "$@"; do
		judged wheel "$program" --calls -- --backend perf
		[[ -z $(refused) ]]
		expect_re '^operator.step$' "$(probes attached)"
	done
}

@test "perf with 32 probes sees every operator, backward node, annotation and allocation of training and inference" {
	few_probes sgd transformer
}

@test "perf with 32 probes sees TorchScript, custom Functions and failing operators" {
	few_probes script custom exceptions
}

@test "perf can probe only operators of all threads, or only memory" {
	judged wheel threads --calls -- --backend perf --probes op,mem
	mv mxbpf.json with.json
	traced_on wheel threads --backend perf --probes op
	jq -s -e '.[0].tables.operator as $with | .[1].tables | .memory == null and
		(.operator | map({(.name): .count}) | add) == ($with | map({(.name): .count}) | add)' with.json mxbpf.json
	traced_on wheel threads --backend perf --probes mem
	jq -e '.tables.operator == null and .tables.memory[0].allocs > 0 and ([.loss | .dropped, .unreadable] | add) == 0' mxbpf.json
}

@test "perf reports that the times of operators are upper bounds" {
	traced_prog '--backend perf --all' sgd --bare
	expect_re '^note +probe operator\.step: .* upper bounds' "$(<mxbpf.json)"
	recording sgd
	"$MXBPF" report --all job.mxd >tables
	expect_re '^aten::conv2d ' "$(<tables)"
	[[ $(<tables) != *"upper bounds"* ]]
}

@test "perf gives a few selected operators end probes of their own" {
	traced_on wheel sgd --backend perf --probes op --ops conv2d,nll_loss_nd
	jq -e '(.probes | map({(.name): .}) | add) as $p | $p["operator.call"].status == "attached" and
		$p["operator.call"].reason == "" and $p["operator.step"].status == "off" and
		(.tables.operator | map(.name) | sort) == ["aten::conv2d", "aten::nll_loss_nd"]' mxbpf.json
}

@test "perf lets the job survive every exception that it catches" {
	torch_server
	start_ready thrower "${SERVED[@]}" "$REPO/tests/workload/torch_throw.py"
	start_mxbpf --pid "$READY_PID" --backend perf --format json
	end_pid "$READY_PID" USR1 100
	wait_exit "$MXBPF_PID" 60
	expect_re '^caught 1275 of 1275$' "$(<"$(out thrower)")"
	jq -e '.loss | .dropped + .unreadable == 0' "$(out mxbpf)"
}

@test "Debian's PyTorch 1.13 has exact counts of a CNN's operators, nodes, annotations, allocations and bytes" {
	need_debian
	judged debian sgd
	[[ -z $(refused) ]]
	expect_re '^annotation.enter_boxed$' "$(probes attached)"
}

@test "Debian's PyTorch 1.13 has exact counts of TorchScript, threads and exceptions" {
	need_debian
	local program
	for program in script threads exceptions; do
		judged debian "$program" --calls
	done
}

@test "Debian's PyTorch 1.13 with few probes names the refused ones and counts the rest exactly" {
	need_debian
	judged debian script --calls -- --backend perf
	[[ $(refused | sort | paste -sd ' ') == "annotation.enter_boxed" ]]
}

@test "Debian's PyTorch 1.13 survives every exception that the job catches, with a complete trace" {
	need_debian
	BUILD=debian torch_server
	start_ready thrower "${SERVED[@]}" "$REPO/tests/workload/torch_throw.py"
	start_mxbpf --pid "$READY_PID" --trace t.json --format json
	end_pid "$READY_PID" USR1 100
	wait_exit "$MXBPF_PID" 60
	expect_re '^caught ([1-9][0-9]+) of \1$' "$(<"$(out thrower)")"
	jq -e '.loss | del(.attempted, .stored) | add == 0' "$(out mxbpf)"
	jq -e '[.traceEvents[] | select(.cat == "cpu_op")] | length > 1000' t.json
}

exact() { # BUILD PROGRAM...
	local program
	for program in "${@:2}"; do
		judged "$1" "$program"
		[[ -z $(refused) ]]
	done
}

shaped() { # BUILD PROGRAM...
	local program how
	for program in "${@:2}"; do
		BUILD=$1 reference_shapes "$program"
		for how in '' --agent; do
			# shellcheck disable=SC2086 # no option, or one
			traced_on "$1" "$program" --shapes --by shape $how
			"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json mxbpf.json
		done
	done
}

# Both profilers record the same run, so that they have the same numbers.
numbered() { # BUILD PROGRAM
	local BUILD=$1 how names
	for how in '' --agent; do
		names=${how:+--all-names}
		# shellcheck disable=SC2086 # no option, or one
		traced_prog "--format json --backward --trace trace.json $how" "$2" --builtin builtin.json --gates
		# shellcheck disable=SC2086
		"$PYTHON_TORCH" "$JUDGE/compare.py" --calls $names builtin.json mxbpf.json --trace trace.json
		# shellcheck disable=SC2086
		"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json mxbpf.json $names
		"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json trace.json --numbers $names
	done
}

stacked() { # BUILD PROGRAM
	local BUILD=$1 how
	torch_server
	"${SERVED[@]}" "$REPO/tests/stacks/torch_builtin.py" "$2" stacks.json
	for how in '' --agent; do
		traced_prog "record --force -o job.mxd --py-stacks $how" "$2" --bare --result mxbpf.result
		python3 "$REPO/tests/stacks/compare_torch.py" stacks.json job.mxd \
			"$("$MXBPF" report job.mxd --format json | jq .loss.unreadable)"
	done
}

exchanged() { # PYTHON
	workers "$1"
	same_as_workers
	workers "$1" --agent
	same_as_workers
}

# bats test_tags=next
@test "The newest PyTorch has exact counts, allocations and bytes of a CNN, TorchScript, custom Functions and caught exceptions" {
	need_next
	exact next sgd script custom exceptions
}

# bats test_tags=next
@test "The newest PyTorch has the shapes that torch.profiler has, with probes and with the agent" {
	need_next
	shaped next sgd transformer
}

# bats test_tags=next
@test "The newest PyTorch has the backward nodes and sequence numbers that torch.profiler has, with probes and with the agent" {
	need_next
	numbered next transformer
}

# bats test_tags=next
@test "The newest PyTorch has the Python stacks that torch.profiler has, with probes and with the agent" {
	need_next
	stacked next sgd
}

# bats test_tags=next
@test "The newest PyTorch has exact counts of two workers' collectives on gloo, with probes and with the agent, and sizes of sends" {
	need_next
	exchanged "$NEXT/bin/python"
	export OMP_NUM_THREADS=1
	sends_and_receives "$NEXT/bin/python"
}

@test "PyTorch 2.14 has exact counts, allocations and bytes of TorchScript and custom Functions" {
	need_previous
	exact previous script,custom
}

@test "PyTorch 2.14 has the shapes, stacks, backward nodes and sequence numbers that torch.profiler has, with probes and with the agent" {
	need_previous
	shaped previous sgd
	stacked previous sgd
	numbered previous exceptions
}

@test "PyTorch 2.14 has exact counts of two workers' collectives on gloo, with probes and with the agent" {
	need_previous
	exchanged "$PREVIOUS/bin/python"
}

# The cells of a row in the table of docs/pytorch.md, from `check`: the number of probed functions, and those without an end probe.
row_of() { # PID
	"$MXBPF" check --pid "$1" | awk '
		$1 == "ok" && $4 == "functions," { n[$2] = $3; without[$2] = $5 }
		$1 == "ok" && $3 ~ /^\+0x/ { n[$2] = 1; without[$2] = 0 }
		function cell(names, i, k, sum) {
			k = split(names, name, " ")
			for (i = 1; i <= k; i++)
				if (name[i] in n)
					return n[name[i]] (without[name[i]] ? " (" without[name[i]] " without)" : "")
			return "none"
		}
		END {
			print " | " cell("operator.call") " | " cell("operator.call_boxed operator.call_boxed_clone operator.call_boxed_unnamed") \
				" | " cell("autograd.node autograd.node_unnamed") " | " \
				(cell("annotation.exit") == "none" ? "no" : "yes") " | " \
				(cell("memory.alloc") == "none" ? "no" : "yes") " |"
		}'
}

expect_row() { # TITLE BUILD
	local row BUILD=$2
	torch_server
	row="| $1$(row_of "$SERVER_PID")"
	echo "$row"
	grep -qF "$row" "$REPO/docs/pytorch.md"
}

@test "The row of docs/pytorch.md for PyTorch's wheel, with and without symbols, equals what these tests measured" {
	need_stripped
	expect_row "2.13.0 (CPU) of PyPI" wheel
	expect_row "the same, stripped" stripped
}

@test "The row of docs/pytorch.md for the newest PyTorch equals what these tests measured" {
	need_next
	expect_row "2.15.0 of PyPI (CUDA)" next
}

@test "The row of docs/pytorch.md for PyTorch 2.14 equals what these tests measured" {
	need_previous
	expect_row "2.14.1 of PyPI (CUDA)" previous
}

@test "The row of docs/pytorch.md for Debian's PyTorch equals what these tests measured" {
	need_debian
	expect_row "1.13.1 of Debian 12, which is stripped" debian
}
