#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --agent: PyTorch's operators seen by code inside the process, against torch.profiler and against the promises that hold for
# probes. Injection by itself is tested by test_inject_kernel.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" --calls --all-names "$@"; }

# The agent comes in while the program is busy, and is found there by the session that is judged.
agent_session() { # PROGRAM ARGS...
	torch_server
	python3 "$REPO/tests/judge/drive.py" --before "$MXBPF --agent --pid {pid} --format json" \
		--tool "$MXBPF --agent --format json --pid {pid}" --stdout mxbpf.json -- "${SERVED[@]}" "$JUDGE/prog.py" "$@" --busy
}

judged() { # PROGRAM
	reference "$1"
	agent_session "$1" --bare --result mxbpf.result
	compare builtin.json mxbpf.json
	cmp builtin.result mxbpf.result
	jq -e '.loss | .dropped == 0 and .attempted == .stored' mxbpf.json
}

@test "a CNN trained with SGD counts the same under both" { judged sgd; }
@test "a CNN trained with Adam over all parameters at once counts the same under both" { judged adam-foreach; }
@test "a transformer encoder, in mixed precision and on its fused path, counts the same under both" { judged transformer; }
@test "a compiled net counts the same under both" { judged compiled; }
@test "TorchScript counts the same under both" { judged script; }
@test "custom autograd Functions, twice differentiated, count the same under both" { judged custom; }
@test "operators that fail and are caught count the same under both" { judged exceptions; }
@test "backward passes 70 deep and annotations 500 deep count the same" { judged deep; }
@test "two Python threads count the same" { judged threads; }

@test "builds that the agent was not made for count the same: without symbols, and Debian's PyTorch 1.13" {
	local BUILD=stripped
	judged exceptions
	[[ -x $O/deps/torch-debian/bin/python ]] || skip "no Debian PyTorch: $(tail -n 1 "$O/deps/torch-debian.log" 2>/dev/null)"
	BUILD=debian
	judged exceptions
}

@test "what the agent hands to PyTorch is what its headers say" {
	"$JUDGE/agent_headers.sh" "$("$PYTHON_TORCH" -c 'import torch; print(torch.__path__[0])')/include"
}

@test "torch.profiler beside the agent, in one run, counts the same" {
	agent_session exceptions --builtin builtin.json --gates
	compare builtin.json mxbpf.json
}

# Runs mxbpf --agent until the program has said a line twice, the second time in the window.
agent_window() { # NAME LINE
	start_mxbpf --pid "$READY_PID" --agent --format json
	wait_new_line "$(out "$1")" "$2"
	wait_new_line "$(out "$1")" "$2"
	kill -s INT "$MXBPF_PID"
	wait_exit "$MXBPF_PID"
}

calls() { # NAME
	jq --arg name "$1" '[.tables.operator[] | select(.name == $name).count] | add // 0' "$(out mxbpf)"
}

@test "a child that was forked runs on, and nothing of it is recorded" {
	start_ready forks "$PYTHON_TORCH" -c '
import os, torch
torch.set_num_threads(1)
torch.ones(3).add_(1).mul_(2)
print("ready", os.getpid(), flush=True)
for i in range(100000):
    torch.ones(3).add_(1)
    child = os.fork()
    if not child:
        for _ in range(50):
            torch.ones(3).mul_(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    if i % 20 == 0:
        print("at", i, flush=True)
'
	agent_window forks '^at '
	(($(calls aten::add_) >= 20 && $(calls aten::mul_) == 0))
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
	wait_new_line "$(out forks)" '^at '
}

@test "a child that was forked from a process with the agent gets its own" {
	start_ready parent "$PYTHON_TORCH" -c '
import os, signal, torch
torch.set_num_threads(1)
def work(what):
    for i in range(10 ** 9):
        torch.ones(3).add_(1)
        if i % 100 == 0:
            print(what, os.getpid(), flush=True)
def fork(*_):
    if not os.fork():
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        work("child")
signal.signal(signal.SIGUSR1, fork)
torch.ones(3)
print("ready", os.getpid(), flush=True)
work("at")
'
	local parent=$READY_PID
	agent_window parent '^at '
	(($(calls aten::add_) >= 99))
	kill -s USR1 "$parent"
	wait_line "$(out parent)" '^child '
	READY_PID=$(sed -n 's/^child //p;T;q' "$(out parent)")
	agent_window parent '^child '
	(($(calls aten::add_) >= 99))
	jq -e --argjson pid "$READY_PID" '.target.pid == $pid and (.loss | .dropped == 0 and .attempted == .stored)' "$(out mxbpf)"
	kill -s KILL "$READY_PID"
	READY_PID=$parent
	agent_window parent '^at '
	(($(calls aten::add_) >= 99))
}

@test "annotations that end out of order, or on another thread, count once each" {
	start_ready marks "$PYTHON_TORCH" -c '
import os, threading, torch
from torch.profiler import record_function
torch.ones(3)
print("ready", os.getpid(), flush=True)
for i in range(100000):
    first, second, there = record_function("first"), record_function("second"), record_function("there")
    first.__enter__()
    second.__enter__()
    there.__enter__()
    torch.ones(3).add_(1)
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    other = threading.Thread(target=lambda: there.__exit__(None, None, None))
    other.start()
    other.join()
    if i % 100 == 0:
        print("at", i, flush=True)
'
	agent_window marks '^at '
	local n
	n=$(calls aten::add_)
	# At each end of the window one of each may be open while the operator in it is counted.
	for name in first second there; do
		(($(calls $name) >= 100 - 2 && $(calls $name) - n <= 2 && n - $(calls $name) <= 2))
	done
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
}

@test "SIGKILL of mxbpf leaves a silent agent, which the next session finds; the job computes what it does unwatched" {
	start_torch --tiny --steps 50 --repeat # fails when a result is another one
	local i
	for i in 1 2 3; do
		start_mxbpf --pid "$WORKLOAD_PID" --agent
		kill -s KILL "$MXBPF_PID"
		wait "$MXBPF_PID" || true
		wait_new_line "$(out workload)" '^equal '
	done
	READY_PID=$WORKLOAD_PID
	agent_window workload '^equal '
	(($(calls Optimizer.step#SGD.step) >= 50))
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
	grep -c 'memfd:mxbpf-agent' "/proc/$WORKLOAD_PID/maps" | grep -x '[1-9]' # one object, in a few mappings
	stop_pid "$WORKLOAD_PID"
	wait_exit "$WORKLOAD_PID"
	expect_re '^equal [1-9][0-9]*$' "$(<"$(out workload)")"
}

@test "an agent of another version is left alone, and the process lives" {
	start_ready other "$PYTHON_TORCH" -c '
import ctypes, os, sys, torch
fd = os.memfd_create("mxbpf-agent")
os.write(fd, open(sys.argv[1], "rb").read())
ctypes.CDLL("/proc/self/fd/%d" % fd)
print("ready", os.getpid(), flush=True)
for i in range(10 ** 9):
    torch.ones(3).add_(1)
    if i % 1000 == 0:
        print("at", i, flush=True)
' "$O/toy/inject_agent.so"
	run --separate-stderr "$MXBPF" --pid "$READY_PID" --agent -d 100ms
	expect_status 3
	expect_re 'an agent of another version' "$stderr"
	wait_new_line "$(out other)" '^at '
	wait_new_line "$(out other)" '^at '
}

@test "what the agent cannot do is refused with the reason" {
	local option
	start_torch --tiny
	for option in --shapes --py-stacks --backward --stats '--sample 99' --sched --memory --omp '--iterations 3' '--counters page-faults'; do
		# shellcheck disable=SC2086
		run --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" --agent $option
		expect_status 2
		expect_re "${option%% *}.*(--agent|cannot)" "$stderr"
	done
	! grep -q mxbpf-agent "/proc/$WORKLOAD_PID/maps"
	run --separate-stderr "$MXBPF" --agent -- "$PYTHON_TORCH" -c 'import torch'
	expect_status 2
	expect_re '--agent needs a process that runs: --pid' "$stderr"
	run --separate-stderr "$MXBPF" check --pid "$WORKLOAD_PID"
	expect_re '^  ok +agent +can be loaded' "$output"
	start_mxbpf --pid "$WORKLOAD_PID" --agent
	run --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" --agent -d 100ms
	expect_status 3
	expect_re 'another mxbpf listens to the agent' "$stderr"
	stop_pid "$MXBPF_PID" INT
	start_bg inner unshare --pid --fork --kill-child "$PYTHON_TORCH" -c 'import torch; import signal; print("inside", flush=True); signal.pause()'
	wait_line "$(out inner)" '^inside'
	run --separate-stderr "$MXBPF" --pid "$(pgrep -P "$BG_PID")" --agent -d 100ms
	expect_status 3
	expect_re 'pid namespace of its own' "$stderr"
	start_ready idle "$PYTHON_TORCH" -c 'import os, signal, torch; torch.ones(1); print("ready", os.getpid(), flush=True); signal.pause()'
	run --separate-stderr "$MXBPF" --pid "$READY_PID" --agent -d 100ms
	expect_status 3
	expect_re 'called no operator within 2000 ms' "$stderr"
}

@test "on the CPU, waiting for it and blocked: the agent's calls have of each what probes on the same calls have" {
	start_ready mixed taskset -c 0 "$PYTHON_TORCH" -c '
import os, time, torch
from torch.profiler import record_function
torch.set_num_threads(1)
a = torch.ones(300, 300)
print("ready", os.getpid(), flush=True)
while True:
    with record_function("work"):
        for _ in range(3):
            a @ a
    with record_function("nap"):
        time.sleep(0.003)
    print("at", flush=True)
'
	start_bg rival taskset -c 0 "$O/prog/hog"
	local stolen
	stolen=$(stolen_ns)
	start_bg probes "$MXBPF" --pid "$READY_PID" --probes op --trace probes.json
	local probes=$BG_PID i
	wait_line "$(err probes)" '^attached: [0-9]+ probes' "$probes"
	start_mxbpf --pid "$READY_PID" --probes op --agent --trace agent.json
	for ((i = 0; i < 20; i++)); do wait_new_line "$(out mixed)" '^at'; done
	stop_pid "$MXBPF_PID" INT
	stop_pid "$probes" INT
	"$PYTHON_TORCH" "$JUDGE/accounts.py" agent.json probes.json 40 $(($(stolen_ns) - stolen))
}

@test "bytes of operators are those that probes give them" {
	agent_session sgd --bare
	traced '--format json' probes.json "$PYTHON_TORCH" "$JUDGE/prog.py" sgd --bare
	# Calls that the agent tells apart and probes do not, and the other way round, are in other rows.
	jq -n -e --slurpfile a mxbpf.json --slurpfile p probes.json '
		def rows($of): $of[0].tables.operator | map({key: "\(.name) \(.count)", value: [.alloc_bytes, .self_alloc_bytes]}) | from_entries;
		rows($a) as $a | rows($p) as $p | [$a | keys[] | select($p[.])] |
		length > 30 and all(.[]; $a[.] == $p[.]) and any(.[]; $a[.][1] > 0)' || { jq -c '.tables.operator[]|[.name,.count,.alloc_bytes,.self_alloc_bytes]' mxbpf.json probes.json|sort; return 1; }
}

@test "a program that removes all callbacks is reported, and the next session sees its operators again" {
	start_ready clears "$PYTHON_TORCH" -c '
import ctypes, os, signal, torch
torch.set_num_threads(1)
library = ctypes.CDLL(torch.__path__[0] + "/lib/libtorch_cpu.so")
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
torch.ones(3)
print("ready", os.getpid(), flush=True)
for i in range(10 ** 9):
    torch.ones(3).add_(1)
    if asked:
        asked.clear()
        library._ZN2at14clearCallbacksEv()
        print("cleared", flush=True)
    if i % 100 == 0:
        print("at", i, flush=True)
'
	start_mxbpf --pid "$READY_PID" --agent --format json
	wait_new_line "$(out clears)" '^at '
	wait_new_line "$(out clears)" '^at '
	kill -s USR1 "$READY_PID"
	wait_line "$(out clears)" '^cleared'
	wait_new_line "$(out clears)" '^at '
	stop_pid "$MXBPF_PID" INT
	(($(calls aten::add_) >= 99))
	expect_re 'removed all callbacks.*are not recorded' "$(<"$(err mxbpf)")"
	jq -e 'any(.window.notes[]; .name == "agent" and (.text | test("removed the agent")))' "$(out mxbpf)"
	agent_window clears '^at '
	(($(calls aten::add_) >= 99))
	! grep -q 'removed all callbacks' "$(err mxbpf)"
}

@test "what a session has left in the agent is none of the next session's" {
	start_ready stops "$PYTHON_TORCH" -c '
import os, signal, torch
torch.set_num_threads(1)
go_on = [1]
signal.signal(signal.SIGUSR1, lambda *_: go_on.clear())
print("ready", os.getpid(), flush=True)
while go_on:
    torch.ones(3).add_(1)
print("idle", flush=True)
while True:
    signal.pause()
'
	start_mxbpf --pid "$READY_PID" --agent --format json
	kill -s USR1 "$READY_PID"
	wait_line "$(out stops)" '^idle'
	stop_pid "$MXBPF_PID" INT
	(($(calls aten::add_) > 0))
	# Nothing is called any more. A part of a batch still lies there, which the session before has taken.
	run --separate-stderr "$MXBPF" --pid "$READY_PID" --agent -d 300ms --format json
	expect_status 5
	jq -e '.loss.attempted == 0 and .tables.operator == []' <<<"$output" || { echo "$output" | jq -c .loss,.sources,.tables; return 1; }
	! grep 'do not agree' <<<"$stderr"
}
