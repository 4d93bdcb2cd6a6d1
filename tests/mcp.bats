#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `mxbpf mcp`: assistants ask. The official client of the protocol, and lines that no client sends.

load helpers

setup() { cd "$BATS_TEST_TMPDIR"; }

lines() { timeout 100 python3 "$REPO/tests/mcp/lines.py" "$@"; }

need_client() {
	need_torch
	[[ -x $O/deps/mcp/bin/python ]] && return 0
	echo "no client at $O/deps/mcp: run tests/setup.sh" >&2
	return 1
}

job() {
	start_code job '
import itertools, os, torch
torch.set_num_threads(1)
net = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(64, 256)
print("ready", os.getpid(), flush=True)
for i in itertools.cycle(range(500)):
    with torch.profiler.record_function(f"planted {i}"):
        pass
    net(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
' >/dev/null
}

@test "The official client calls every tool, with the handshake and without it; what the command line refuses has its words" {
	need_root
	need_client
	job
	"$O/deps/mcp/bin/python" "$REPO/tests/mcp/client.py" auto "$READY_PID"
	"$O/deps/mcp/bin/python" "$REPO/tests/mcp/client.py" legacy "$READY_PID"
}

@test "Errors have the codes of the protocol, and what expects no answer gets none" {
	lines errors
}

@test "Damaged requests get messages, and the server lives on" {
	lines hostile
}

@test "Answers about a recording with many rows are short, and the rest can be had" {
	need_root
	job
	"$MXBPF" record -q --pid "$READY_PID" -d 1s -o many.mxd
	lines long many.mxd
}

# Ends a look in one of three ways. The job goes on, and neither a probe nor a child nor a file stays.
end_look() { # HOW
	local links child
	links=$(probe_links)
	mkdir -p tmp
	mkfifo go
	TMPDIR=$PWD/tmp start_bg look python3 "$REPO/tests/mcp/lines.py" "$1" "$READY_PID" go
	wait_line "$(out look)" '^looking [0-9]+$' "$BG_PID"
	child=$(pgrep -P "$(sed -n 's/^looking //p' "$(out look)")")
	[[ -n $child ]]
	echo >go
	wait_exit "$BG_PID"
	wait_gone "$child"
	no_new_links "$links"
	[[ $1 == kill || -z $(ls tmp) ]]
	rm -r go tmp
}

@test "A cancelled look, the end of the input and the death of the server leave no probe and no child" {
	need_root
	job
	end_look cancel
	end_look eof
	end_look kill
	kill -0 "$READY_PID"
}

@test "The server opens no socket and loads no BPF" {
	strace -o calls -e trace=network,bpf,perf_event_open,process_vm_readv,ptrace "$MXBPF" mcp <<-'END' >answers
		{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
		{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jobs"}}
	END
	[[ $(jq -r .id answers | sort) == 1* ]]
	[[ -z $(grep -v '^+++\|^---' calls) ]]
}

@test "Without rights a look is refused with the words of the command line" {
	need_root
	need_client
	local mxbpf
	mxbpf=$(for_others "$MXBPF")
	job
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
		echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"look\",\"arguments\":{\"pid\":$READY_PID}}}"
		wait_line answers '"id":2'
	} | setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR=/tmp "$mxbpf" mcp >answers
	run -4 --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$mxbpf" --pid "$READY_PID"
	jq -e --arg said "${stderr##*$'\n'}" 'select(.id == 2) | .result.isError and (.result.content[0].text | rtrimstr("\n")) == $said' answers
}

# bats test_tags=alone
@test "A script that only follows the hints has the planted cause after at most five calls" {
	need_root
	need_client
	measured
	timeout 150 "$O/deps/mcp/bin/python" "$REPO/tests/mcp/judge.py" collector retries rank_dead
}
