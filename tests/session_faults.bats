#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Faults within sessions: short forms of tests/faults/faults.py, which docs/testing.md describes. Each run tries others.

load helpers

setup() {
	torch_setup
	torch_server
	make -s -C "$REPO" O="$O" static
	cc -O2 -Wall -Wextra -Werror -o nth_call "$REPO/tests/faults/nth_call.c"
	LINKS=$(probe_links)
}

faults() { # call|kill OPTIONS...
	local seed=$RANDOM
	echo "--random $seed $*"
	python3 "$REPO/tests/faults/faults.py" "$1" --mxbpf "$O/mxbpf-static" --toy "$O/toy" --nth "$PWD/nth_call" --dir "$PWD" \
		--socket "${SERVED[3]}" --random "$seed" "${@:2}"
	no_new_links "$LINKS"
}

@test "Whichever system call of a session fails, the process goes on, and the numbers are right or the failure is told" {
	faults call --points 1 --sample 8 --modes tables,record,measure,counters,stats
	faults call --points 2 --sample 4 --modes perf --calls bpf:ENOMEM,perf_event_open:EMFILE,ioctl:EINVAL
	faults call --points 6 --sample 8 --modes agent --calls ptrace:ESRCH,process_vm_writev:EPERM,bpf:ENOMEM,openat:EMFILE
}

@test "Whenever mxbpf is killed, the process goes on with its own code, no file is left, and the next session works" {
	faults kill --points 2 --modes tables,perf,stats,measure,counters,files,pieces,record,serve,now,top,agent,gpu-record
}

@test "Whichever write to a disk fails, the old file stays or the new one is complete, and the failure is told" {
	faults call --calls disk --points 1 --sample 7 --modes files,record,pieces,serve
}
