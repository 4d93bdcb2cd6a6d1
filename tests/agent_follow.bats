#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --agent with several processes: each followed process has an agent of its own. What it cannot record is counted.

load helpers

setup() { torch_setup; }

calls() { # JSON NAME
	jq --arg name "$2" '[.tables.operator[]? | select(.name == $name).count] | add // 0' "$1"
}

# A program whose parent forks N children at a line on its stdin. A child calls cosh_ 1000 times, says so, waits for `end` if
# there is such a fifo, and ends.
start_family() { # NAME
	cat >family.py <<-'END'
		import os, sys, torch
		torch.set_num_threads(1)
		x = torch.ones(3)
		print("ready", os.getpid(), flush=True)
		while True:
		    word, *number = sys.stdin.readline().split() or ["quit"]
		    if word == "quit":
		        break
		    for _ in range(int(number[0])):
		        if not os.fork():
		            for _ in range(1000):
		                x.cosh_()
		            print("called", flush=True)
		            if word == "hold":
		                os.read(os.open("end", os.O_RDONLY), 1)
		            os._exit(0)
		    x.sinh_()
		for _ in range(2000):
		    x.sinh_()
	END
	mkfifo words end
	exec 8<>end
	torch_server
	# shellcheck disable=SC2016 # for that shell
	start_ready "$1" bash -c 'exec <>words; exec "$@"' - "$PYTHON_TORCH" family.py
}

@test "A forked child of a process with the agent starts its own: every call counts in parent and child, and none is lost" {
	start_family family
	start_mxbpf -v --pid "$READY_PID" --agent --probes op --format json
	echo hold 2 >words
	timeout 120 bash -c 'until (($(grep -c "loaded the agent into process" "$0") == 3)); do sleep 0.05; done' "$(err mxbpf)"
	grep 'it started in a forked child' "$(err mxbpf)"
	timeout 120 bash -c 'until (($(grep -c "^called" "$0") == 2)); do sleep 0.05; done' "$(out family)"
	printf xx >&8 # a byte for each
	echo quit >words
	wait_exit "$MXBPF_PID"
	(($(calls "$(out mxbpf)" aten::cosh_) == 2000 && $(calls "$(out mxbpf)" aten::sinh_) == 2001))
	jq -e '(.loss | .dropped == 0 and .attempted == .stored) and .window.followed == 2' "$(out mxbpf)"
	jq -e 'any(.window.notes[]; .text == "the agent was in 3 processes")' "$(out mxbpf)"
}

@test "Calls of forked children that end before mxbpf finds them are counted as lost" {
	start_family family
	start_mxbpf --pid "$READY_PID" --agent --probes op --format json
	kill -s STOP "$MXBPF_PID"
	echo run 5 >words
	timeout 120 bash -c 'until (($(grep -c "^called" "$0") == 5)); do sleep 0.05; done' "$(out family)"
	echo quit >words
	end_pid "$MXBPF_PID" CONT
	local recorded
	recorded=$(($(calls "$(out mxbpf)" aten::cosh_) + $(jq '.loss.dropped' "$(out mxbpf)")))
	echo "recorded or lost: $recorded"; jq -c .sources "$(out mxbpf)"
	((recorded == 5000 && $(calls "$(out mxbpf)" aten::sinh_) == 2001))
}

@test "Children that exist before the session have the agent before the window begins, and one that another program traces is named" {
	cat >family.py <<-'END'
		import os, torch
		torch.set_num_threads(1)
		children = [os.fork()]
		if children[0]:
		    children.append(os.fork())
		x, me = torch.ones(3), children.index(0) if 0 in children else 2
		if me == 2:
		    print("ready", os.getpid(), flush=True)
		    print("traced", children[1], flush=True)
		while not os.path.exists("go"):
		    x.add_(1)
		for _ in range(1000):
		    (x.sub_, x.div_, x.mul_)[me](1)
		if me == 2:
		    print("ended", *(os.waitpid(child, 0)[1] for child in children), flush=True)
	END
	cat >tracer.py <<-'END'
		import ctypes, os, sys
		PTRACE_SEIZE, PTRACE_CONT, __WALL = 0x4206, 7, 0x40000000
		libc = ctypes.CDLL(None)
		assert not libc.ptrace(PTRACE_SEIZE, int(sys.argv[1]), None, None)
		print("ready", os.getpid(), flush=True)
		while True:
		    pid, status = os.waitpid(-1, __WALL)
		    if not os.WIFSTOPPED(status):
		        break
		    libc.ptrace(PTRACE_CONT, pid, None, os.WSTOPSIG(status))
	END
	local family traced
	start_ready family "$PYTHON_TORCH" family.py
	family=$READY_PID
	traced=$(sed -n 's/^traced //p' "$(out family)")
	start_ready tracer python3 tracer.py "$traced"
	start_mxbpf --pid "$family" --agent --probes op --format json
	expect_re '^the agent is in 2 processes; it uses up to' "$(<"$(err mxbpf)")"
	expect_re "operators of process $traced are not recorded: .*: process $traced is traced by process $READY_PID" "$(<"$(err mxbpf)")"
	: >go
	wait_exit "$MXBPF_PID"
	wait_line "$(out family)" '^ended 0 0$'
	[[ $(calls "$(out mxbpf)" aten::mul_) == 1000 && $(calls "$(out mxbpf)" aten::sub_) == 1000 && $(calls "$(out mxbpf)" aten::div_) == 0 ]]
	jq -e --arg traced "process $traced is traced" '(.loss | .dropped == 0 and .attempted == .stored) and
		any(.window.notes[]; .text | contains($traced))' "$(out mxbpf)"
}

# Each rank writes what torch.profiler counted, each worker what it called.
@test "Four ranks of torchrun with eight loader workers count as in torch.profiler there" {
	mkdir told
	"$MXBPF" --agent --format json -o mxbpf.json -- "$PYTHON_TORCH" -m torch.distributed.run --standalone --nproc-per-node 4 \
		"$REPO/tests/workload/torch_ranks.py" told >ranks.out 2>&1
	python3 "$REPO/tests/workload/torch_ranks.py" told mxbpf.json
	jq -e '.loss | .dropped == 0 and .attempted == .stored' mxbpf.json
}
