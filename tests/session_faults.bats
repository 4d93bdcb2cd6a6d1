#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Faults within sessions: short forms of tests/faults/faults.py, which docs/testing.md describes. Each run tries others.

load helpers

setup() {
	torch_setup
	torch_server
	make -s -C "$REPO" O="$O" static
	cc -O2 -Wall -Wextra -Werror -o nth_call "$REPO/tests/faults/nth_call.c"
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o fail_nth.so "$REPO/tests/faults/fail_nth.c"
	LINKS=$(probe_links)
}

faults() { # call|kill|alloc|nofile|as OPTIONS...
	local seed=$RANDOM
	echo "--random $seed $*"
	python3 "$REPO/tests/faults/faults.py" "$1" --mxbpf "$O/mxbpf-static" --toy "$O/toy" --nth "$PWD/nth_call" --dir "$PWD" \
		--ranges "$PWD" --library "$PWD/fail_nth.so" --socket "${SERVED[3]}" --random "$seed" "${@:2}"
	no_new_links "$LINKS"
}

@test "Whichever system call of a session fails, the process goes on, and the numbers are right or the failure is told" {
	faults call --points 1 --sample 8 --modes tables,record,measure,counters
	faults call --points 2 --sample 4 --modes perf --calls bpf:ENOMEM,perf_event_open:EMFILE,ioctl:EINVAL
	faults call --points 6 --sample 8 --modes agent --calls ptrace:ESRCH,process_vm_writev:EPERM,bpf:ENOMEM,openat:EMFILE
}

@test "Whenever mxbpf is killed, the process goes on with its own code, no file is left, and the next session works" {
	local nvtx
	faults kill --points 2 --modes tables,perf,measure,counters,files,pieces,record,serve,now,top,agent,gpu-record
	faults kill --points 1 --modes omp,no-bpf
	nvtx=$(echo "$O"/deps/nvtx/lib/python3*/site-packages/nvidia/nvtx)
	[[ -d $nvtx ]] || skip "no NVTX at $nvtx: run tests/setup.sh"
	cc -O1 -shared -fPIC -I"$nvtx/include" -D_GNU_SOURCE -o header.so "$REPO/tests/nvtx/ranges.c" -ldl
	cc -O1 -shared -fPIC -DEXPORTED -I"$nvtx/include" -D_GNU_SOURCE -o exported.so "$REPO/tests/nvtx/ranges.c" \
		"$nvtx/lib/libnvToolsExt.so.1" -Wl,-rpath,"$nvtx/lib"
	faults kill --points 1 --modes nvtx,nvtx-agent
}

@test "Whichever write to a disk fails, the old file stays or the new one is complete, and the failure is told" {
	faults call --calls disk --points 1 --sample 7 --modes files,record,pieces,serve
}

@test "Where BPF, ptrace or files are forbidden from some moment on, the process goes on, and the numbers are right or the failure is told" {
	faults call --onward --calls bpf:EPERM,openat:EACCES --points 2 --sample 3 --modes tables,serve
	faults call --onward --calls bpf:EPERM,ptrace:EPERM,process_vm_readv:EPERM,perf_event_open:EPERM --points 4 --sample 6 --modes agent
}

@test "With too little memory or too few descriptors a session says so, and the process goes on" {
	faults alloc --mxbpf "$MXBPF" --points 2 --modes serve,top,agent,files,now
	faults as --mxbpf "$MXBPF" --points 3 --modes serve,agent
	faults nofile --mxbpf "$MXBPF" --points 3 --modes follow,serve,agent
	faults nofile --mxbpf "$MXBPF" --points 6 --modes children,children-shared
}

@test "A session that is stopped while the process works counts each event as stored or dropped, and the process goes on" {
	faults stop --rounds 1000 --also '--ring-size 64K' --modes tables,perf,pieces,record
	faults stop --modes agent,gpu
	faults stop --rounds 600 --also '--max-overhead 100%' --modes serve
}

@test "When the kernel kills mxbpf for want of memory, or gives it none, the process goes on" {
	[[ -e /sys/fs/cgroup/memory/cgroup.procs || $(cat /sys/fs/cgroup/cgroup.subtree_control) == *memory* ]] ||
		skip "no control groups with a limit of memory"
	faults oom --mxbpf "$MXBPF" --points 4 --modes record,agent
}

@test "When the wall clock jumps by a day, forth and back, a session counts each event, and its windows are as long as they were" {
	cc -shared -fPIC -O2 -o clock.so "$REPO/tests/day/clock.c"
	faults clock --mxbpf "$MXBPF" --library "$PWD/clock.so" --modes tables,pieces,record,timed,top
}
