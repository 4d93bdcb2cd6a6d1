#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The live view, on terminals that tmux plays, and as text. Ground truth is what the job says that it did.

load helpers

setup() {
	root_setup torch
	command -v tmux >/dev/null || skip "no tmux; run tests/setup.sh"
	export LC_ALL=C.UTF-8
}

# A training loop with one operator that is called seven times in each iteration. It prints the iterations so far.
LOOP='
import os, signal, time, torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.1)
done = 0
signal.signal(signal.SIGTERM, lambda *_: (print("did", done, flush=True), os._exit(0)))
def step():
    global done
    for _ in range(7):
        torch.sinh(weight)
    weight.sum().backward()
    optimizer.step()
    done += 1
step()
print("ready", os.getpid(), flush=True)
while True:
    step()
    time.sleep(0.005)
'

start_loop() {
	echo "$LOOP" >loop.py
	start_ready loop "$PYTHON_TORCH" -u "$PWD/loop.py" >/dev/null
}

# ---- terminals

terminal() { # COLUMNS ROWS COMMAND...: until it ends, its screen is that of tmux
	tmux -S "$BATS_TEST_TMPDIR/tmux" -f /dev/null new-session -d -x "$1" -y "$2" "$(printf '%q ' "${@:3}"); echo \"exit \$?\" >${PWD@Q}/ended; sleep 600" 3>&-
}

screen() { tmux -S "$BATS_TEST_TMPDIR/tmux" capture-pane -p; }
keys() { tmux -S "$BATS_TEST_TMPDIR/tmux" send-keys "$@"; }

shows() { # REGEX: waits until the screen has such a line
	timeout "$WAIT_SECONDS" bash -c 'until tmux -S "$0" capture-pane -p | grep -qE -- "$1"; do read -rt 0.05 <> <(:) || :; done' \
		"$BATS_TEST_TMPDIR/tmux" "$1" || { screen; return 1; }
}

hides() { # REGEX: waits until the screen has no such line
	timeout "$WAIT_SECONDS" bash -c 'while tmux -S "$0" capture-pane -p | grep -qE -- "$1"; do read -rt 0.05 <> <(:) || :; done' \
		"$BATS_TEST_TMPDIR/tmux" "$1" || { screen; return 1; }
}

ends() { timeout "$WAIT_SECONDS" bash -c 'until [[ -s $0 ]]; do read -rt 0.05 <> <(:) || :; done' ended; }

top_of_loop() {
	start_loop
	terminal 80 24 "$MXBPF" top --exact --pid "$READY_PID" --probes op
}

quits() {
	keys q
	ends
	expect_same 'exit 0' "$(<ended)"
}

teardown() {
	tmux -S "$BATS_TEST_TMPDIR/tmux" kill-server 2>/dev/null || true
	kill_started
	park_jobs
}

@test "The rates of each second add up to the calls and iterations that the job says it made" {
	start_loop
	"$MXBPF" top --exact --pid "$READY_PID" --batch --probes op >frames 3>&- &
	local top=$!
	wait_frames 3
	stop_pid "$READY_PID" TERM
	wait "$top" || true
	local did
	did=$(sed -n 's/^did //p' "$(out loop)")
	python3 - "$did" <<-'END'
		import re, sys
		did, calls, iterations, frames = int(sys.argv[1]), 0, 0, 0
		for frame in open('frames', encoding='utf-8').read().split('\n\n'):
		    row = re.search(r'^ *([0-9.]+) +[0-9.]+% .* aten::sinh$', frame, re.M)
		    rate = re.search(r'^([0-9.e+]+) iterations/s now', frame, re.M)
		    if row and rate:
		        calls, iterations, frames = calls + float(row[1]), iterations + float(rate[1]), frames + 1
		print(did, calls, iterations, frames)
		# A frame is a second; the job ran before it was watched and after the last whole second.
		assert frames >= 3 and 0.9 * 7 * iterations < calls < 1.1 * 7 * iterations and iterations < 1.1 * did
		assert iterations > 10 * frames
	END
}

wait_frames() { timeout "$WAIT_SECONDS" bash -c 'until [[ $(grep -c "iterations/s now" frames) -ge $0 ]]; do read -rt 0.05 <> <(:) || :; done' "$1"; }

@test "On a terminal of 80x24, top shows the job, sorts, filters, explains its keys, and gives the terminal back" {
	top_of_loop
	shows '^[0-9.]+ iterations/s now'
	shows '^>? +[0-9.]+ +[0-9.]+% .* aten::sinh'
	keys S
	shows '^OPERATORS threads processes by calls; \? lists the keys'
	keys '?'
	shows '^  space +freeze the screen'
	keys '?' / sinh Enter
	shows '^OPERATORS threads processes by calls; only names with sinh;'
	[[ $(screen | grep -cE '[0-9]% ') -ge 1 && $(screen | grep -E '[0-9]%  ' | grep -vc sinh) == 0 ]]
	keys Escape
	shows 'optim|Optimizer'
	quits
}

@test "A screen follows its terminal to another size, and can be frozen" {
	start_loop
	terminal 200 50 "$MXBPF" top --exact --pid "$READY_PID" --probes op
	shows '^[0-9.]+ iterations/s now'
	keys Space
	shows 'FROZEN'
	keys Space
	tmux -S "$BATS_TEST_TMPDIR/tmux" resize-window -x 60 -y 12
	shows '^[0-9.]+ iterations/s now'
	[[ $(screen | wc -l) == 12 && $(screen | wc -L) -le 60 ]]
	keys C-c
	ends
	expect_same 'exit 0' "$(<ended)"
}

@test "When the job ends or is killed, top gives the terminal back and says so" {
	top_of_loop
	shows '^[0-9.]+ iterations/s now'
	stop_pid "$READY_PID" KILL
	ends
	shows "^process $READY_PID has ended"
}

# bats test_tags=place
@test "Without a terminal, or on an unknown one, top says to add --batch" {
	start_loop
	expect_error 2 'top needs a terminal; add --batch' "$MXBPF" top --exact --pid "$READY_PID"
	terminal 80 24 env TERM=nonsense "$MXBPF" top --exact --pid "$READY_PID"
	ends
	expect_same 'exit 1' "$(<ended)"
	shows "the terminal 'nonsense' is not known; set TERM, or add --batch"
}

# Cheap ranks: 64 toys, which work when SIGUSR1 comes. Prints "ready PID" of their parent.
RANKS='
import os, signal, subprocess, sys
def start(rank):
    env = {"RANK": str(rank), "WORLD_SIZE": "64", "MASTER_ADDR": "here", "MASTER_PORT": "1%d" % (rank // 32)}
    return subprocess.Popen([sys.argv[1], "20", "1", "hold"], env=env, stdout=subprocess.PIPE)
ranks = [start(i) for i in range(64)]
for r in ranks:
    assert r.stdout.readline().startswith(b"ready")
signal.signal(signal.SIGUSR1, lambda *_: [r.send_signal(signal.SIGUSR1) for r in ranks])
signal.signal(signal.SIGTERM, lambda *_: [r.kill() for r in ranks] and sys.exit())
print("ready", os.getpid(), flush=True)
print("pids", *(r.pid for r in ranks), flush=True)
while True:
    signal.pause()
'

start_ranks() {
	mkdir -p bin
	ln -sf "$O/toy/toy" "bin/toy$$"
	ln -sf "$O/toy/libmxnet.so" bin/libmxnet.so
	start_ready ranks python3 -c "$RANKS" "$PWD/bin/toy$$" >/dev/null
}

@test "Each of 64 ranks has a row with its pid, two jobs have one each, and their calls are what they made" {
	start_ranks
	"$MXBPF" top --exact --comm "toy$$" --batch >frames 3>&- &
	local top=$!
	wait_frames 2
	kill -s USR1 "$READY_PID"
	wait_frames $(($(grep -c "iterations/s now" frames) + 3))
	kill -s INT "$top"
	wait "$top"
	python3 - "$(out ranks)" <<-'END'
		import re, sys
		pids = re.search(r'^pids (.*)', open(sys.argv[1]).read(), re.M)[1].split()
		frames = open('frames', encoding='utf-8').read().split('\n\n')
		table = re.findall(r'^ +[0-9.e+]+ +[0-9.]+% +[0-9]+% +\S+ [KM]iB .* +(\d+) +(\d+)  here:(1\d) +toy', frames[-2], re.M)
		assert sorted(table) == sorted((str(i), pid, '1%d' % (i // 32)) for i, pid in enumerate(pids)), table
		jobs = re.findall(r'^ .* (\d+)  here:(1\d)$', frames[-2], re.M)
		assert sorted(jobs) == [('32', '10'), ('32', '11')], frames[-2]
		calls = sum(float(n) for n in re.findall(r'^ *([0-9.]+) +[0-9.]+% .* here:1\d +sum$', '\n'.join(frames), re.M))
		print(calls)
		assert 0.9 * 64 * 20 < calls < 1.1 * 64 * 20 and 'LOSS' not in frames[-2]
	END
	kill -s TERM "$READY_PID"
	# On a small screen all of them can be reached, and one job chosen.
	start_ranks
	terminal 80 24 "$MXBPF" top --exact --comm "toy$$"
	shows 'OPERATORS threads processes jobs'
	keys v v s s s
	shows 'PROCESSES jobs by rank'
	shows '^> .* 63 +[0-9]+  here:11 +toy'
	keys End
	shows '^> .* 0 +[0-9]+  here:10 +toy'
	keys j
	shows '^here:10 '
	shows '^CPU [0-9]+% of 32 processes'
	keys Home
	shows '^> .* 31 +[0-9]+  toy'
	keys q
	ends
	kill -s TERM "$READY_PID"
}

# The loop under a name of its own, so that a session by name has nothing else. With STEPS it ends after so many.
start_named() { # NAME [STEPS]
	echo "$LOOP" | sed "s/^while True:/for _ in range(${2:-1 << 60}):/" >loop.py
	mkdir -p bin
	ln -sf "$(readlink -f "$PYTHON_TORCH")" "bin/live$$"
	start_ready "$1" env PYTHONPATH="$(echo "$(dirname "$(dirname "$PYTHON_TORCH")")"/lib/python3.*/site-packages)" \
		"bin/live$$" -u "$PWD/loop.py" >/dev/null
}

@test "Enter shows what there is about a row, p the Python stacks of all threads, and Escape closes both" {
	top_of_loop
	shows '^>? +[0-9.]+ +[0-9.]+% .* aten::sinh'
	keys / sinh Enter Enter
	shows '^ +operator: [0-9,]+ calls in the second, each [0-9.]+ [mun]s with calls in it, p50 '
	shows "^ +[0-9.]+/s +[0-9.]+%  p50 .* $READY_PID python"
	keys Escape
	hides ' p50 '
	shows '^ +calls/s' # the table
	keys Escape v
	shows '^operators THREADS processes by share'
	shows "^> .* $READY_PID +$READY_PID  python"
	keys p
	shows "^process $READY_PID \(python"
	shows "^  thread $READY_PID \(python.*\), the main thread"
	shows '/loop\.py\([0-9]+\): <module>'
	keys Escape
	shows '^operators THREADS processes by share'
	quits
}

window_of() { grep -ao '"duration_ns":[0-9]*' "$1" | sed 's/.*://;q'; }

@test "t writes a trace of the next five seconds, which has the calls of these seconds, and so does leaving before they are over" {
	top_of_loop
	shows 'aten::sinh'
	keys t
	shows "the next five seconds go to mxbpf-$READY_PID-.*.pftrace"
	shows "wrote mxbpf-$READY_PID-.*.pftrace"
	mv mxbpf-"$READY_PID"-*.pftrace whole.pftrace
	keys t
	shows "the next five seconds go to mxbpf-$READY_PID-.*.pftrace"
	quits
	screen | grep -q "^wrote mxbpf-$READY_PID-.*.pftrace"
	mv mxbpf-"$READY_PID"-*.pftrace short.pftrace
	(($(window_of whole.pftrace) >= 5000000000 && $(window_of short.pftrace) < 5000000000))
	[[ -f $O/deps/perfetto/stamp ]] || "$REPO/tests/perfetto/setup.sh" "$O/deps/perfetto"
	node "$REPO/tests/perfetto/answers.mjs" "$O/deps/perfetto" whole.pftrace >answers # an import error is exit 1
	(($(sed -n 's/^slices of each.*"name":"aten::sinh","n":\([0-9]*\).*/\1/p' answers) >= 7))
}

@test "A job that ends and starts again stays on the screen" {
	local first
	start_named first
	first=$READY_PID
	terminal 80 24 "$MXBPF" top --exact --comm "live$$" --probes op
	keys v v
	shows "^> .* $first  live$$$"
	stop_pid "$first" KILL
	shows "^> .* ended .* $first  live$$$"
	shows '^0 iterations/s now'
	start_named second
	shows "^.  .* $READY_PID  .*live$$$"
	shows '^[1-9][0-9.]* iterations/s now'
	quits
}

@test "Of 200 rows each can be reached on a screen of 80x24, and 200x50 shows more of them" {
	echo "$LOOP" | sed 's/^step()$/&\nfor i in range(200):\n    with torch.profiler.record_function("part_%03d" % i):\n        torch.cosh(weight)/;
		s/^    step()$/&\n    for i in range(200):\n        with torch.profiler.record_function("part_%03d" % i):\n            torch.cosh(weight)/' >loop.py
	start_ready loop "$PYTHON_TORCH" -u "$PWD/loop.py" >/dev/null
	terminal 80 24 "$MXBPF" top --exact --pid "$READY_PID" --probes op
	shows '% .* part_'
	keys / part_ Enter S S
	shows 'by name; only names with part_;'
	shows '^> .* part_000$'
	keys End
	shows '^> .* part_199$'
	keys PPage
	shows '^> .* part_18[0-9]$'
	keys Up Home
	shows '^> .* part_000$'
	tmux -S "$BATS_TEST_TMPDIR/tmux" resize-window -x 200 -y 50
	shows ' part_039$'
	quits
}

@test "A terminal that takes no output holds up neither the seconds nor processes that come" {
	local seconds columns
	start_named first
	terminal 80 24 "$MXBPF" top --exact --comm "live$$" --probes op
	shows '^[1-9][0-9.]* iterations/s now'
	keys C-s # from now on, who writes to the terminal is blocked
	seconds=$SECONDS
	start_named second 400
	wait_exit "$BG_PID"
	seconds=$((SECONDS - seconds))
	keys C-q v v
	shows "^. .* ended .* $READY_PID  .*live$$$"
	# The line has a column for each second. A busy machine may skip some.
	columns=$(screen | sed -n 's/.* in the minute *//p' | wc -m)
	echo "$seconds s, $columns columns"
	((columns * 2 >= seconds))
	run ! grep LOSS <(screen)
	quits
}

# usage: TEXT HANGUP COMMAND...   Runs a command on a terminal of its own, which is closed when TEXT was shown. HANGUP: "ignored"
# or "default". Prints the status.
CLOSED='
import fcntl, os, pty, signal, sys, termios
master, terminal = pty.openpty()
child = os.fork()
if not child:
    if sys.argv[2] == "ignored":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.close(master)
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for n in range(3):
        os.dup2(terminal, n)
    os.execvp(sys.argv[3], sys.argv[3:])
os.close(terminal)
shown = os.read(master, 4096)
while sys.argv[1].encode() not in shown:
    shown += os.read(master, 4096)
os.close(master)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'

@test "When its terminal is closed, top ends by itself, whether SIGHUP is ignored or not, and neither a probe nor a thread of the job is held up" {
	local before hangup
	before=$(probe_links)
	start_loop
	for hangup in default ignored; do
		run --separate-stderr timeout "$WAIT_SECONDS" python3 -c "$CLOSED" 'iterations/s now' "$hangup" \
			env TERM=xterm "$MXBPF" top --exact --pid "$READY_PID" --probes op
		echo "$hangup: $output"
		[[ $output == 0 ]]
	done
	run timeout "$WAIT_SECONDS" python3 -c "$CLOSED" '' default env TERM=xterm "$MXBPF" top --exact --pid "$READY_PID" --probes op
	echo "as it begins: $output"
	[[ $output == [05] ]]
	no_new_links "$before"
	stop_pid "$READY_PID" TERM
	(($(sed -n 's/^did //p' "$(out loop)") > 10))
}

@test "A table shows the rates of the second: kernels take as long as the job's account says, as often as their operators ran" {
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --gpu "$O/gpu" --account "$PWD/job.json" >/dev/null
	"$MXBPF" top --pid "$READY_PID" --gpu --batch --table gpu.kernels >frames 3>&- &
	local top=$!
	wait_frames 5
	stop_pid "$READY_PID" TERM
	wait "$top" || true
	wait_exit "$READY_PID"
	python3 - <<-'END'
		import json, re
		account = json.load(open('job.json', encoding='utf-8'))
		calls, seen = {}, 0
		for rate, share, name in re.findall(r'^ +([0-9.]+) +([0-9.]+)%  (\S.{20,39}?)  ', open('frames', encoding='utf-8').read(), re.M):
		    calls[name] = calls.get(name, 0) + float(rate)
		    # Each name of the job has one duration, but for that of two instances, whose names are cut.
		    each = {'gpuops::gemm_k<128, 64>': 20e-6, 'triton_poi_fused_add_mul_0': 10e-6}.get(name)
		    if each:
		        assert abs(float(share) / 100 - float(rate) * each) <= 0.0006, (rate, share, name)
		        seen += 1
		print(calls)
		most, least = max(calls.values()), min(calls.values())
		assert seen >= 4 and len(calls) >= 7 and account['total']['kernels'] >= sum(calls.values()) > 0
		# relu's name is that of three launches in a step, as the account says; each other kernel has one or two.
		assert 2.8 * least < most < 3.2 * least
	END
}

@test "Keys go through the tables that have rows and back, and --table begins with one" {
	start_loop
	terminal 80 24 "$MXBPF" top --exact --pid "$READY_PID" --probes op --table threads
	shows 'TABLE threads by CPU time; '
	shows '^> +[0-9.]+% +[0-9.]+%  python.* [0-9]+ '
	keys Enter
	shows '^ +run queue: [0-9.]+%$'
	keys n
	shows 'TABLE (findings|lines|iterations\.slowest|machine\.gauges|slow) by '
	keys v
	shows '^OPERATORS threads processes by share'
	keys n
	shows 'TABLE (findings|lines|iterations\.slowest|machine\.gauges|slow) by '
	keys N
	shows 'TABLE (threads|findings|lines) by '
	keys q
	ends
	expect_same 'exit 0' "$(<ended)"
	run "$MXBPF" top --pid "$READY_PID" --table gpu.nothing
	expect_status 2
	expect_re "--table: 'gpu.nothing' is not one of .*, gpu\.kernels, .*\.idle, .*, threads, .*, machine\.gauges$" "$output"
}

@test "With --gpu, the head says how busy the GPU was" {
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --gpu "$O/gpu" --account "$PWD/job.json" >/dev/null
	"$MXBPF" top --pid "$READY_PID" --gpu --batch >frames 3>&- &
	local top=$!
	wait_frames 3
	kill -s INT "$top"
	wait "$top"
	expect_re '^CPU [0-9]+%, GPU busy ([1-9]|[1-9][0-9]|100)%, memory [0-9.]+ [KMG]iB' "$(<frames)"
	expect_re '^ +[0-9.]+ +[0-9.]+% .* gpuops::gemm$' "$(<frames)"
}
