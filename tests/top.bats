#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The live view, on terminals that tmux plays, and as text. Ground truth is what the job says that it did.

load helpers

setup() {
	need_root
	need_torch
	command -v tmux >/dev/null || skip "no tmux; run tests/setup.sh"
	cd "$BATS_TEST_TMPDIR"
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
	tmux -S "$BATS_TEST_TMPDIR/tmux" -f /dev/null new-session -d -x "$1" -y "$2" "${*:3}; echo \"exit \$?\" >$PWD/ended; sleep 600" 3>&-
}

screen() { tmux -S "$BATS_TEST_TMPDIR/tmux" capture-pane -p; }
keys() { tmux -S "$BATS_TEST_TMPDIR/tmux" send-keys "$@"; }

shows() { # REGEX: waits until the screen has such a line
	timeout "$WAIT_SECONDS" bash -c 'until tmux -S "$0" capture-pane -p | grep -qE -- "$1"; do read -rt 0.05 <> <(:) || :; done' \
		"$BATS_TEST_TMPDIR/tmux" "$1" || { screen; return 1; }
}

ends() { timeout "$WAIT_SECONDS" bash -c 'until [[ -s $0 ]]; do read -rt 0.05 <> <(:) || :; done' ended; }

teardown() {
	tmux -S "$BATS_TEST_TMPDIR/tmux" kill-server 2>/dev/null || true
	kill_started
	park_jobs
}

@test "The rates of each second add up to the calls and iterations that the job says it made" {
	start_loop
	"$MXBPF" top --pid "$READY_PID" --batch --probes op >frames 3>&- &
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
	start_loop
	terminal 80 24 "$MXBPF" top --pid "$READY_PID" --probes op
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
	keys q
	ends
	expect_same 'exit 0' "$(<ended)"
}

@test "A screen follows its terminal to another size, and can be frozen" {
	start_loop
	terminal 200 50 "$MXBPF" top --pid "$READY_PID" --probes op
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
	start_loop
	terminal 80 24 "$MXBPF" top --pid "$READY_PID" --probes op
	shows '^[0-9.]+ iterations/s now'
	stop_pid "$READY_PID" KILL
	ends
	shows "^process $READY_PID has ended"
}

@test "Without a terminal, or on an unknown one, top says to add --batch" {
	start_loop
	run "$MXBPF" top --pid "$READY_PID"
	expect_status 2
	expect_re 'top needs a terminal; add --batch' "$output"
	terminal 80 24 "TERM=nonsense $MXBPF top --pid $READY_PID"
	ends
	expect_same 'exit 1' "$(<ended)"
	shows "the terminal 'nonsense' is not known; set TERM, or add --batch"
}
