#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --agent records PyTorch's operators by code inside the process. These tests compare it with torch.profiler and repeat the
# promises that probes keep. test_inject_kernel tests injection by itself.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" --calls --all-names "$@"; }

# The first session injects the agent while the program is busy. The session that is judged finds it there.
agent_session() { # [OPTIONS=... PROGRAM=...] ARGS...
	torch_server
	python3 "$REPO/tests/judge/drive.py" --before "'$MXBPF' --agent --pid {pid} --format json" \
		--tool "'$MXBPF' --agent ${OPTIONS---backward --trace trace.json} --format json --pid {pid}" --stdout mxbpf.json -- "${SERVED[@]}" "${PROGRAM:-$JUDGE/prog.py}" \
		"$@" --busy
}

judged() { # PROGRAM
	reference "$1"
	agent_session "$1" --bare --result mxbpf.result
	if [[ ${BUILD:-} == debian ]]; then
		compare builtin.json mxbpf.json # PyTorch 1.13's profiler records no arrows
	else
		compare builtin.json mxbpf.json --trace trace.json
	fi
	# torch.profiler needs a run for each of two threads, so compare.py has compared their arrows.
	[[ $1 == threads ]] || "$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json mxbpf.json --all-names
	cmp builtin.result mxbpf.result
	jq -e '.loss | .dropped == 0 and .attempted == .stored' mxbpf.json
}

# bats test_tags=smoke
@test "The agent counts a CNN trained with SGD as torch.profiler does" { judged sgd; }
@test "The agent counts a CNN trained with foreach Adam as torch.profiler does" { judged adam-foreach; }
@test "The agent counts a transformer encoder, in mixed precision and on its fused path, as torch.profiler does" { judged transformer; }
@test "The agent counts a compiled net as torch.profiler does" { judged compiled; }
@test "The agent counts TorchScript as torch.profiler does" { judged script; }
@test "The agent counts custom autograd Functions, differentiated twice, as torch.profiler does" { judged custom; }
@test "The agent counts operators that raise caught exceptions as torch.profiler does" { judged exceptions; }
@test "The agent counts backward passes 70 deep and annotations 500 deep as torch.profiler does" { judged deep; }
@test "The agent counts two Python threads as torch.profiler does" { judged threads; }

@test "The agent counts correctly in builds it was not made for: without symbols, and Debian's PyTorch 1.13" {
	local BUILD=stripped
	judged exceptions
	[[ -x $O/deps/torch-debian/bin/python ]] || skip "no Debian PyTorch: $(tail -n 1 "$O/deps/torch-debian.log" 2>/dev/null)"
	BUILD=debian
	judged exceptions
}

@test "The objects that the agent passes to PyTorch have the layout of PyTorch's headers" {
	"$JUDGE/agent_headers.sh" "$("$PYTHON_TORCH" -c 'import torch; print(torch.__path__[0])')/include"
}

@test "The agent and torch.profiler in the same run have the same counts and sequence numbers" {
	agent_session exceptions --builtin builtin.json --gates
	compare builtin.json mxbpf.json
	"$PYTHON_TORCH" "$JUDGE/backward.py" builtin.json trace.json --numbers --all-names
}

# OPTIONS=... Runs mxbpf --agent until the program has printed a line twice. The second one is in the window.
agent_window() { # NAME LINE
	start_mxbpf --pid "$READY_PID" --agent ${OPTIONS:-} --format json
	wait_new_line "$(out "$1")" "$2" 2
	end_pid "$MXBPF_PID"
}

calls() { # NAME
	jq --arg name "$1" '[.tables.operator[] | select(.name == $name).count] | add // 0' "$(out mxbpf)"
}

@test "A forked child process runs on, and the agent records nothing of it with --no-follow" {
	start_code forks '
import os, time, torch
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
        time.sleep(0.01)
'
	local OPTIONS=--no-follow
	agent_window forks '^at '
	(($(calls aten::add_) >= 20 && $(calls aten::mul_) == 0))
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
	wait_new_line "$(out forks)" '^at '
}

@test "A child process forked from a process with the agent gets an agent of its own" {
	start_code parent '
import os, signal, time, torch
torch.set_num_threads(1)
def work(what):
    for i in range(10 ** 9):
        torch.ones(3).add_(1)
        if i % 100 == 0:
            print(what, os.getpid(), flush=True)
            time.sleep(0.01)
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

@test "Annotations that end out of order or on another thread count once each" {
	start_code marks '
import os, threading, time, torch
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
        time.sleep(0.01)
'
	agent_window marks '^at '
	local n
	n=$(calls aten::add_)
	# At each end of the window an annotation may be open whose operator is counted.
	echo "$n: $(calls first) $(calls second) $(calls there)"; jq -c .sources "$(out mxbpf)"
	for name in first second there; do
		(($(calls $name) >= 100 - 2 && $(calls $name) - n <= 2 && n - $(calls $name) <= 2))
	done
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
}

# bats test_tags=smoke
@test "SIGKILL of mxbpf leaves a silent agent, the next session reuses it, and the job's result is unchanged" {
	start_torch --tiny --steps 50 --repeat # exits with an error if a result differs
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
	grep -c 'memfd:mxbpf-agent' "/proc/$WORKLOAD_PID/maps" | grep -x '[1-9]' # one object with several mappings
	stop_pid "$WORKLOAD_PID"
	wait_exit "$WORKLOAD_PID"
	expect_re '^equal [1-9][0-9]*$' "$(<"$(out workload)")"
}

@test "An agent of another version is left alone, and the process survives" {
	start_code other '
import ctypes, os, sys, time, torch
fd = os.memfd_create("mxbpf-agent")
os.write(fd, open(sys.argv[1], "rb").read())
ctypes.CDLL("/proc/self/fd/%d" % fd)
print("ready", os.getpid(), flush=True)
for i in range(10 ** 9):
    torch.ones(3).add_(1)
    if i % 1000 == 0:
        print("at", i, flush=True)
        time.sleep(0.01)
' "$O/toy/inject_agent.so"
	expect_error 3 'an agent of another version' --separate-stderr "$MXBPF" --pid "$READY_PID" --agent -d 100ms
	wait_new_line "$(out other)" '^at ' 2
}

# Makes the agent of a process read sequence numbers from a wrong offset.
misplace_numbers() { # PID
	python3 - "$1" "$(nm -D "$O/gen/agent.so" | sed -n 's/ [A-Z] mxbpf_agent_config$//p')" <<'END'
import re, sys
pid, config = sys.argv[1], int(sys.argv[2], 16)
with open('/proc/%s/maps' % pid) as f:
    base = min(int(m[1], 16) for m in re.finditer(r'^(\w+)-.*memfd:mxbpf-agent', f.read(), re.M))
with open('/proc/%s/mem' % pid, 'r+b', buffering=0) as f:
    f.seek(base + config + 6 * 8)
    offsets = f.read(8)
    f.seek(base + config + 6 * 8)
    f.write(offsets[4:] + offsets[4:])
END
}

@test "Options that --agent does not support are refused with the reason, a second mxbpf is refused and the first one goes on, and impossible sequence numbers are discarded" {
	local option
	start_torch --tiny
	for option in --layers --follow-app '--counters page-faults'; do
		# shellcheck disable=SC2086
		expect_run 2 --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" --agent $option
		expect_re "${option%% *}.*(--agent|cannot|PyTorch)|--agent.*${option%% *}" "$stderr"
	done
	run ! grep -q mxbpf-agent "/proc/$WORKLOAD_PID/maps"
	run --separate-stderr "$MXBPF" check --pid "$WORKLOAD_PID"
	expect_re '^  ok +agent +can be loaded' "$output"
	start_mxbpf record --pid "$WORKLOAD_PID" --agent -o first.mxd
	expect_run 3 --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" --agent -d 100ms
	expect_re 'cannot attach to the agent in process [0-9]+: another mxbpf is attached to it' "$stderr"
	local refused_us
	refused_us=$(python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1000)')
	wait_new_line "$(out workload)" .
	stop_pid "$MXBPF_PID" INT
	"$MXBPF" export first.mxd -f chrome -o first.json
	jq -e --argjson at "$refused_us" '(.otherData.window.start_mono_ns / 1000) as $start | any(.traceEvents[]; .cat == "cpu_op" and $start + .ts > $at)' first.json
	misplace_numbers "$WORKLOAD_PID"
	run --separate-stderr "$MXBPF" --pid "$WORKLOAD_PID" --agent --backward -d 2s --format json
	expect_re 'an impossible sequence number' "$stderr"
	# A node before the first impossible number may stand there alone.
	jq -e 'all(.backward.operators[]; .count == 0) and any(.window.notes[]; .text | test("impossible sequence number"))' <<<"$output"
}

@test "Thread ids are those of the outer pid namespace when the target has its own" {
	local inner tids tid
	start_bg inner unshare --pid --mount-proc --fork --kill-child "$PYTHON_TORCH" -c '
import threading, time, torch
torch.set_num_threads(1)
def work(tensor):
    while True:
        for _ in range(100):
            tensor.add_(1)
        print("at", threading.get_native_id(), flush=True)
        time.sleep(0.001)  # without it, a busy machine has no CPU left for mxbpf, and calls are dropped
threading.Thread(target=work, args=(torch.ones(3),)).start()
work(torch.ones(3))
'
	wait_line "$(out inner)" '^at'
	inner=$(pgrep -P "$BG_PID")
	start_mxbpf --pid "$inner" --agent --format json --trace trace.json
	wait_new_line "$(out inner)" '^at 1$'
	wait_new_line "$(out inner)" '^at [^1]'
	wait_new_line "$(out inner)" '^at 1$'
	stop_pid "$MXBPF_PID" INT
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
	tids=$(jq '[.traceEvents[] | select(.name == "aten::add_" and .ph == "X").tid] | unique[]' trace.json)
	[[ $(wc -w <<<"$tids") == 2 ]]
	for tid in $tids; do [[ -d /proc/$inner/task/$tid ]]; done
	# The scheduler identifies threads by these ids, so a wrong id would have no CPU time.
	jq -e '.tables.operator[] | select(.name == "aten::add_") | .account.on_cpu_ns > 0' "$(out mxbpf)"
}

@test "A program whose threads all wait gets the agent in a waiting thread, which then waits on" {
	start_ready waits env OPENBLAS_NUM_THREADS=1 "$PYTHON_TORCH" -c '
import ctypes, os, select, signal, torch
torch.set_num_threads(1)
torch.ones(3)
libc = ctypes.CDLL(None, use_errno=True)
ends = os.pipe()
epoll = select.epoll()
epoll.register(ends[0], select.EPOLLIN)
signal.signal(signal.SIGUSR1, lambda *_: (os.write(ends[1], b"x"), os._exit(0)))
if not os.fork():
    signal.pause()
print("ready", os.getpid(), flush=True)
# Python would retry after EINTR, so this calls epoll_wait itself.
print("woken", libc.epoll_wait(epoll.fileno(), ctypes.create_string_buffer(12), 1, -1), ctypes.get_errno(), flush=True)
for _ in range(100):
    torch.ones(3).add_(1)
print("done", flush=True)
signal.pause()
'
	start_mxbpf --pid "$READY_PID" --agent --format json
	kill -s USR1 "$(pgrep -P "$READY_PID")"
	wait_line "$(out waits)" '^done'
	stop_pid "$MXBPF_PID" INT
	expect_re '^woken 1 0$' "$(<"$(out waits)")"
	(($(calls aten::add_) == 100))
	jq -e '.loss | .dropped == 0 and .attempted == .stored' "$(out mxbpf)"
}

@test "A program with one thread gets the agent while it reads a pipe; if it waits elsewhere, mxbpf says so and waits for an operator" {
	local status=0
	mkfifo in
	exec 9<>in
	# The program reads lines, waits for a signal where nothing may interrupt it, or calls operators until a signal.
	start_code reads '
import os, signal, sys, torch
torch.set_num_threads(1)
torch.ones(3)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
lines = open(sys.argv[1])
print("ready", os.getpid(), flush=True)
while line := lines.readline():
    if line.strip().isdigit():
        for _ in range(int(line)):
            torch.ones(3).add_(1)
    else:
        print("waits", flush=True)
        signal.sigwait([signal.SIGUSR1])
        while signal.SIGUSR1 not in signal.sigpending():
            torch.ones(3).add_(1)
        signal.sigwait([signal.SIGUSR1])
    print("did", line, end="", flush=True)
' "$PWD/in"
	start_mxbpf --pid "$READY_PID" --agent --format json
	expect_re 'loaded the agent .* in a thread that waited' "$(<"$(err mxbpf)")"
	echo 100 >&9
	wait_line "$(out reads)" '^did 100$'
	stop_pid "$MXBPF_PID" INT
	(($(calls aten::add_) == 100))
	echo 10 >&9 # without a reader the agent removes its callbacks, so that it has to be started again
	wait_line "$(out reads)" '^did 10$'
	echo wait >&9
	wait_line "$(out reads)" '^waits$'
	start_bg mxbpf "$MXBPF" --pid "$READY_PID" --agent
	wait_line "$(err mxbpf)" '^waiting until process [0-9]+ \(.*\) calls operators, to load the agent there: no thread of process [0-9]+ waits where it is known to hold no lock.*; Ctrl-C ends$' "$BG_PID"
	kill -s INT "$BG_PID"
	wait_exit "$BG_PID" || status=$?
	((status == 5))
	expect_re 'interrupted before recording began' "$(<"$(err mxbpf)")"
	start_bg mxbpf "$MXBPF" --pid "$READY_PID" --agent -d 100ms --format json
	wait_line "$(err mxbpf)" '^waiting until' "$BG_PID"
	kill -s USR1 "$READY_PID"
	wait_exit "$BG_PID"
	jq -e '.loss.dropped == 0 and .window.duration_ns >= 1e8 and .target.agent == "ptrace, at the entry of an operator"' "$(out mxbpf)"
	(($(calls aten::add_) > 0))
	kill -s USR1 "$READY_PID"
	wait_line "$(out reads)" '^did wait$'
	exec 9>&-
}

# bats test_tags=alone
@test "The agent's on-CPU, run-queue and blocked times equal those of probes on the same calls" {
	measured
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

@test "Operators have the same bytes with the agent as with probes" {
	agent_session sgd --bare
	jq -e '[.sources[] | select(.source == "probes").attempted] == [0]' mxbpf.json # memory needs no probe
	torch_server
	traced '--format json' probes.json "${SERVED[@]}" "$JUDGE/prog.py" sgd --bare
	# Rows are compared only if both sessions tell their calls apart in the same way.
	jq -n -e --slurpfile a mxbpf.json --slurpfile p probes.json '
		def rows($of): $of[0].tables.operator | map({key: "\(.name) \(.count)", value: [.alloc_bytes, .self_alloc_bytes]}) | from_entries;
		rows($a) as $a | rows($p) as $p | [$a | keys[] | select($p[.])] |
		length > 30 and all(.[]; $a[.] == $p[.]) and any(.[]; $a[.][1] > 0)' || { jq -c '.tables.operator[]|[.name,.count,.alloc_bytes,.self_alloc_bytes]' mxbpf.json probes.json|sort; return 1; }
}

@test "Memory attribution, the peak and what is left equal the program's own account with the agent" {
	OPTIONS=--memory PROGRAM=$REPO/tests/memory/held.py agent_session torch books.json
	python3 "$REPO/tests/memory/compare.py" books.json mxbpf.json
	jq -e '.memory.devices[0].unsized_frees == 5' mxbpf.json
}

@test "Memory, OpenMP teams and off-CPU times belong to the same operators with the agent as with probes" {
	cc -shared -fPIC -o "$BATS_TEST_TMPDIR/count.so" "$REPO/tests/toy/count_gomp.c" -ldl
	LD_PRELOAD=$BATS_TEST_TMPDIR/count.so start_ready job "$PYTHON_TORCH" -c '
import ctypes, os, signal, threading, time, torch
from torch.profiler import record_function
torch.set_num_threads(2)
regions = ctypes.c_ulong.in_dll(ctypes.CDLL(None), "gomp_regions")
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(7200, 10))
x = torch.randn(16, 3, 32, 32)
go, kept = [], []
signal.signal(signal.SIGUSR1, lambda *_: go.append(1))
print("ready", os.getpid(), flush=True)
one = torch.ones(1)
while not go:
    one.zero_()
before = regions.value
for i in range(10):
    with record_function("step"):
        model(x).sum().backward()
        with record_function("nap"):
            time.sleep(0.003)
        kept.append(torch.UntypedStorage(4096))
    kept.append(x + i)
    kept.append(torch.UntypedStorage(512))
other = threading.Thread(target=lambda: kept.__delitem__(slice(0, 12)))
other.start()
other.join()
with record_function("unfinished"):
    kept.append(torch.UntypedStorage(1 << 20))
    print("regions", regions.value - before, flush=True)
    signal.pause()
'
	start_bg probes "$MXBPF" --exact --pid "$READY_PID" --probes op,mem --memory --omp --sched --format json
	local probes=$BG_PID
	wait_line "$(err probes)" '^attached: [0-9]+ probes' "$probes"
	start_mxbpf --pid "$READY_PID" --agent --memory --omp --sched --format json --trace agent.json
	kill -s USR1 "$READY_PID"
	wait_line "$(out job)" '^regions' "$READY_PID"
	stop_pid "$MXBPF_PID" INT
	stop_pid "$probes" INT
	both() { # JQ-CONDITION on the agent's report $a and the probes' report $p
		jq -n -e --slurpfile agent "$(out mxbpf)" --slurpfile probes "$(out probes)" --argjson n "$(sed -n 's/^regions //p' "$(out job)")" \
			'$agent[0] as $a | $probes[0] as $p | '"$1" >/dev/null && return 0
		jq -c '.memory.holders[], .teams.operators[], (.off_cpu.calls[] | del(.kept_by, .woken_by)), .loss, .window.notes' "$(out mxbpf)" "$(out probes)"
		echo "does not hold: $1"
		return 1
	}
	# The two windows contain the loop before the work for different times. The loop allocates nothing.
	both '[$a, $p | .memory.holders | map(select(.name != "[before]")) | sort_by(.name)] | .[0] == .[1] and (.[0] | length) > 10'
	both '$a.memory.holders | map({(.name): .live_bytes}) | add |
		.unfinished == 1048576 and .["[no operator]"] == 6 * 512 and .step == 6 * 4096'
	both '[$a, $p | .teams.operators | map({name, regions, threads}) | sort_by(.name)] | .[0] == .[1] and (.[0] | map(.regions) | add) == $n'
	jq -e --argjson n "$(sed -n 's/^regions //p' "$(out job)")" '[.traceEvents[] | .args.team_regions // 0] | add == $n' agent.json
	both '[$a, $p | .off_cpu.calls[] | select(.name == "nap").sleep_ns] | .[0] > 20000000 and (.[0] - .[1] | fabs) < 1000000'
	both '$a.off_cpu.calls[] | select(.name == "unfinished") | .other_ns > 0'
	both '$a.loss | .dropped == 0 and .attempted == .stored'
	both '$a.window.notes | map(select(.text | test("came before|were open beside"))) == []'
}

@test "An --iterations window has the operators of whole iterations with the agent, as with probes" {
	start_ready train "$PYTHON_TORCH" -c '
import os, signal, torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
x, asked = torch.randn(16, 8), []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
print("ready", os.getpid(), flush=True)
while not asked:
    optimizer.zero_grad()
    net(x).pow(2).sum().backward()
    optimizer.step()
'
	"$MXBPF" --pid "$READY_PID" --probes op --iterations 7 --format json >probes.json
	"$MXBPF" --pid "$READY_PID" --agent --iterations 7 --raw --format json >agent.json
	jq -n -e --slurpfile a agent.json --slurpfile p probes.json '
		def rows($of): $of[0].tables.operator | map({key: .name, value: .count}) | from_entries;
		rows($a) as $a | rows($p) as $p | $p["Optimizer.step#SGD.step"] == 7 and ($a | del(.detach)) == $p' || { jq -c '.tables.operator[] | [.name, .count]' agent.json probes.json | sort; return 1; }
	jq -e '.window.sampled_iterations == 7 and (.iterations.loops[0] | .count == 7 and .total_ns > 0 and .parts.count == 7 and (.parts.inline | .total_ns > .max_ns)) and
		.iterations.loops[0].total_ns == .window.duration_ns and (.loss | .dropped == 0 and .attempted == .stored)' agent.json
	start_mxbpf --pid "$READY_PID" --agent --iterations 5/20 --format json -v
	wait_line "$(err mxbpf)" 'all but one detached.*' "$MXBPF_PID"
	wait_new_line "$(err mxbpf)" 'all but one detached.*'
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID"
	# A window that is open when the program ends has one more step than ended iterations.
	jq -e '.window.sampled_iterations as $n | .tables.operator[] | select(.name == "Optimizer.step#SGD.step") |
		$n >= 10 and (.count == $n or .count == $n + 1)' "$(out mxbpf)"
}

@test "Where records are lost, no iteration is made of two, and the loss is the first finding" {
	local options
	start_ready train "$PYTHON_TORCH" -c '
import os, signal, time, torch
torch.set_num_threads(1)
net, x, asked, longest, n = torch.nn.Linear(8, 1), torch.randn(16, 8), [], 0, 0
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
print("ready", os.getpid(), flush=True)
end = time.monotonic_ns()
while not asked:
    optimizer.zero_grad()
    y = x
    for _ in range(100):
        y = y + 1
    net(y).pow(2).sum().backward()
    optimizer.step()
    now, n = time.monotonic_ns(), n + 1
    longest, end = max(longest, now - end), now
    if n % 100 == 0:
        print("at", n, flush=True)
print("longest", longest, flush=True)
'
	for options in --agent --no-account; do
		start_mxbpf --pid "$READY_PID" "$options" --raw --ring-size 64K --format json
		wait_new_line "$(out train)" '^at '
		kill -s STOP "$MXBPF_PID" # what is recorded now fills the ring many times
		wait_new_line "$(out train)" '^at ' 3
		kill -s CONT "$MXBPF_PID"
		stop_pid "$MXBPF_PID" INT
		cp "$(out mxbpf)" "lost$options.json"
	done
	kill -s USR1 "$READY_PID"
	wait_line "$(out train)" '^longest ' "$READY_PID"
	for options in --agent --no-account; do
		jq -e --argjson longest "$(sed -n 's/^longest //p' "$(out train)")" '
			(.loss.dropped / .loss.attempted > 0.05) and .findings[0].finding == "lost_records" and
			(.findings[0].text | test("lost [0-9]+% of the records of ")) and .findings[0].next != null and
			all(.iterations.loops[]?; .max_ns < 2 * $longest)' "lost$options.json" || { jq -c '.loss, .iterations.loops, .findings' "lost$options.json"; return 1; }
	done
}

@test "A program that removes all callbacks is reported, and the next session sees its operators again" {
	start_code clears '
import ctypes, os, signal, time, torch
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
        time.sleep(0.01)
'
	start_mxbpf --pid "$READY_PID" --agent --format json
	wait_new_line "$(out clears)" '^at ' 2
	kill -s USR1 "$READY_PID"
	wait_line "$(out clears)" '^cleared'
	wait_new_line "$(out clears)" '^at '
	stop_pid "$MXBPF_PID" INT
	(($(calls aten::add_) >= 99))
	expect_re 'removed all callbacks.*are not recorded' "$(<"$(err mxbpf)")"
	jq -e 'any(.window.notes[]; .name == "agent" and (.text | test("removed all callbacks")))' "$(out mxbpf)"
	agent_window clears '^at '
	(($(calls aten::add_) >= 99))
	run ! grep -q 'removed all callbacks' "$(err mxbpf)"
}

@test "Events that a session leaves in the agent do not appear in the next session" {
	start_code stops '
import os, signal, torch
torch.set_num_threads(1)
go_on = [1]
signal.signal(signal.SIGUSR1, lambda *_: go_on.clear())
print("ready", os.getpid(), flush=True)
while go_on:
    torch.ones(3).add_(1)
for _ in range(100): # the signal may arrive before the first loop
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
	# No operator runs any more. The agent still has part of a batch that the previous session has read.
	expect_run 5 --separate-stderr "$MXBPF" --pid "$READY_PID" --agent -d 300ms --format json
	jq -e '.loss.attempted == 0 and .tables.operator == []' <<<"$output" || { echo "$output" | jq -c .loss,.sources,.tables; return 1; }
	run ! grep 'do not agree' <<<"$stderr"
}
