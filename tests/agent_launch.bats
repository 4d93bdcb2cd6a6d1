#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --agent with a command that mxbpf launches: mxbpf injects the agent at the first operator, before the operator runs.

load helpers

setup() { torch_setup; }

# Both profilers record the same run, from the first operator.
judged() { # PROGRAMS
	"$MXBPF" --agent --backward --trace trace.json -o mxbpf.json --format json -- "$PYTHON_TORCH" "$JUDGE/prog.py" "$1" --whole --builtin builtin.json
	"$PYTHON_TORCH" "$JUDGE/compare.py" --calls --all-names --launched builtin.json mxbpf.json
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json mxbpf.json --all-names
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json trace.json --numbers --all-names
}

@test "The agent counts launched CNNs, a transformer encoder and TorchScript as torch.profiler does" { judged sgd,adam-foreach,transformer,script; }
@test "The agent counts launched programs with compiled code, custom Functions, exceptions or deep backward as torch.profiler does" {
	judged compiled,custom,exceptions,deep
	jq -e '(.tables["compiled kernel"] | length >= 1) and (.window | .late_libraries >= 1 and .late_refused == 0 and (has("fallbacks") | not))' mxbpf.json
}

# The program maps libtorch at its start, but calls nothing in it before go_on.
start_gated() { # [ARGS... of mxbpf] [-- ARGS... of the program]
	local args=()
	while (($#)) && [[ $1 != -- ]]; do
		args+=("$1")
		shift
	done
	cat >gated.py <<-'EOF2'
		import ctypes, importlib.util, os, signal, sys, threading
		before = dict(os.environ)
		ctypes.CDLL(importlib.util.find_spec("torch").submodule_search_locations[0] + "/lib/libtorch_cpu.so")
		if "--blocks" in sys.argv:
		    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT})
		print("ready", os.getpid(), flush=True)
		open("in").read()
		import torch
		torch.set_num_threads(1)
		def work():
		    x = torch.zeros(3)
		    for _ in range(500):
		        x.add_(1)
		    sys.stdout.write("sum %d\n" % x.sum()) # one write, so that lines of threads do not mix
		for at_once in (3,) if "--at-once" in sys.argv else (1, 1, 1):
		    threads = [threading.Thread(target=work) for _ in range(at_once)]
		    for thread in threads:
		        thread.start()
		    for thread in threads:
		        thread.join()
		assert dict(os.environ) == before
		print("has", "an agent" if "mxbpf-agent" in open("/proc/self/maps").read() else "no agent", flush=True)
	EOF2
	mkfifo in
	# shellcheck disable=SC2016 # for that shell, which is a wrapper without a runtime
	start_ready mxbpf "$MXBPF" -o mxbpf.json --format json --agent "${args[@]}" -- sh -c '"$@"; exit $?' - "$PYTHON_TORCH" gated.py "${@:2}"
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" '^attached: [0-9]+ probes' "$MXBPF_PID"
}

go_on() { : >in; }

@test "Every operator of a launched program is recorded, and its environment is unchanged" {
	start_gated
	go_on
	wait_exit "$MXBPF_PID"
	expect_re 'loaded the agent into process [0-9]+: one thread was stopped for' "$(<"$(err mxbpf)")"
	expect_re '^has an agent' "$(<"$(out mxbpf)")"
	[[ $(grep -c '^sum 1500$' "$(out mxbpf)") == 3 ]]
	jq -e '[.tables.operator[] | {(.name): .count}] | add | ."aten::add_" == 1500 and ."aten::zeros" == 3 and ."aten::sum" == 3' mxbpf.json
	jq -e '.loss | .dropped == 0 and .attempted == .stored' mxbpf.json
}

# The threads make 7,524 calls. A call that another thread starts during injection may count as both lost and recorded.
@test "Only calls that other threads make while the agent is injected are counted as lost" {
	start_gated -- --at-once
	go_on
	wait_exit "$MXBPF_PID"
	[[ $(grep -c '^sum 1500$' "$(out mxbpf)") == 3 ]]
	jq -c .sources mxbpf.json
	jq -e '.sources[] | select(.source == "agent") | .attempted >= 7524 and .attempted <= 7526 and .stored + .dropped == .attempted' mxbpf.json
	[[ $(jq '.loss.dropped' mxbpf.json) == 0 ]] || grep 'operators are not recorded: they were called while the agent was being loaded' "$(err mxbpf)"
}

@test "SIGKILL of mxbpf while the program is stopped at its first operator leaves the program running" {
	start_gated
	kill -s STOP "$MXBPF_PID"
	go_on
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(ps -o stat= -p "$0") == T* ]]; do sleep 0.02; done' "$READY_PID"
	kill -s KILL "$MXBPF_PID"
	wait_line "$(out mxbpf)" '^has no agent$'
	wait_gone "$READY_PID"
}

@test "A program whose window ends before its first operator goes on without the agent" {
	start_gated -v -d 100ms
	wait_line "$(err mxbpf)" '^mxbpf: detached in' "$MXBPF_PID"
	go_on
	wait_exit "$MXBPF_PID" || [[ $? == 5 ]] # no events
	expect_re '^has no agent' "$(<"$(out mxbpf)")"
}

@test "A program that the agent cannot enter runs on, and every output says that its operators are not recorded" {
	start_gated -- --blocks
	go_on
	wait_exit "$MXBPF_PID" || [[ $? == 5 ]]
	expect_re 'operators are not recorded: .*blocks every signal' "$(<"$(err mxbpf)")"
	[[ $(grep -c '^sum 1500$' "$(out mxbpf)") == 3 ]]
	expect_re '^has no agent' "$(<"$(out mxbpf)")"
	jq -e 'any(.window.notes[]; .name == "agent" and (.text | test("operators are not recorded: .*blocks every signal")))' mxbpf.json
}

@test "A process that imports torch after --wait gets the agent at its first operator" {
	mkfifo in
	start_bg later "$PYTHON_TORCH" -c '
import os, signal
print("here", flush=True)
open("in").read()
import torch
torch.set_num_threads(1)
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
x = torch.ones(3)
while not asked:
    x.add_(1)
for _ in range(100):
    x.mul_(1)
'
	local later=$BG_PID
	wait_line "$(out later)" '^here'
	start_bg mxbpf "$MXBPF" --wait --pid "$later" --agent --format json
	wait_line "$(err mxbpf)" '^waiting until'
	: >in
	wait_line "$(err mxbpf)" 'loaded the agent into process [0-9]+: one thread was stopped for' "$BG_PID"
	wait_line "$(err mxbpf)" '^(mxbpf: )?attached' "$BG_PID" # the window begins
	kill -s USR1 "$later"
	wait_exit "$BG_PID"
	jq -e '[.tables.operator[] | select(.name == "aten::mul_").count] == [100]' "$(out mxbpf)"
	# Operators that were called until the agent was there count as dropped.
	jq -e '.loss | .attempted == .stored + .dropped' "$(out mxbpf)"
}
