#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Several runtimes and builds of them in one session. Ground truth is what each process says that it did.

load helpers

setup() {
	root_setup mxnet torch
	[[ -x $O/deps/torch-debian/bin/python ]] || skip "no Debian PyTorch: $(tail -n 1 "$O/deps/torch-debian.log" 2>/dev/null)"
}

# SIGUSR1: calls an operator CALLS times, and LOADED times in a child that it forks; prints the sum so far.
JOB='
import os, signal, sys
runtime, calls, loaded = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
if runtime == "mxnet":
    import mxnet as mx
    one = mx.nd.ones((1,))
    def call(): mx.nd.sinh(one).wait_to_read()
else:
    import torch
    torch.set_num_threads(1)
    one = torch.ones(1)
    def call(): one.sinh()
call()
print("ready", os.getpid(), flush=True)
did = 0
while signal.sigwait({signal.SIGUSR1, signal.SIGTERM}) == signal.SIGUSR1:
    for _ in range(calls):
        call()
    if loaded and not os.fork():
        for _ in range(loaded):
            call()
        os._exit(0)
    if loaded:
        os.wait()
    did += calls
    print("did", os.getpid(), did, flush=True)
'

start_job() { # NAME PYTHON ARGUMENTS...; sets READY_PID
	start_ready "$1" "$2" "$PWD/job.py" "${@:3}" >/dev/null
}

call() { # NAME PID SUM: until it has called the operator SUM times in all
	kill -s USR1 "$2"
	wait_line "$(out "$1")" "^did $2 $3$"
}

# Calls of the operator by one process.
calls_of() { # PID FILE
	jq --argjson pid "$1" '[.tables.operator[] | select(.pid == $pid and (.name | test("sinh"))).count] | add // 0' "$2"
}

@test "Two MXNet jobs, two builds of PyTorch and a stripped one, ranks of torchrun with loaders and another process that hits the probes have their own counts, with restarts" {
	local a b again old stripped ranks first second stranger report
	echo "$JOB" >job.py
	start_job a "$PYTHON" mxnet 30 0 && a=$READY_PID
	start_job b "$PYTHON" mxnet 20 0 && b=$READY_PID
	start_job old "$O/deps/torch-debian/bin/python" torch 50 0 && old=$READY_PID
	LD_LIBRARY_PATH=$O/deps/torch-stripped start_job stripped "$PYTHON_TORCH" torch 10 0 && stripped=$READY_PID
	start_job stranger "$PYTHON_TORCH" torch 3 0 && stranger=$READY_PID
	OMP_NUM_THREADS=1 start_bg ranks "$PYTHON_TORCH" -m torch.distributed.run --nproc-per-node 2 --rdzv-backend c10d \
		--rdzv-endpoint localhost:0 "$PWD/job.py" torch 100 7
	ranks=$BG_PID
	wait_lines 2 "$(out ranks)" ^ready
	read -r first second < <(sed -n 's/^ready //p' "$(out ranks)" | xargs)
	start_bg mxbpf "$MXBPF" record --pid "$a,$b,$old,$stripped,$ranks" --probes op --ops '*sinh*' -o r.mxd
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" 'attached: [0-9]+ probes' "$MXBPF_PID"
	call a "$a" 30
	call b "$b" 20
	call old "$old" 50
	call stripped "$stripped" 10
	call ranks "$first" 100
	call ranks "$second" 100
	call stranger "$stranger" 3
	stop_pid "$a"
	call ranks "$first" 200
	call b "$b" 40
	end_pid "$MXBPF_PID"
	call stranger "$stranger" 6
	report=report.json
	"$MXBPF" report r.mxd -f json >"$report"
	jq -e '.loss | del(.attempted, .stored) | add == 0' "$report"
	jq -e '.window.unfollowed == 0' "$report"
	[[ "$(calls_of "$a" "$report") $(calls_of "$b" "$report") $(calls_of "$old" "$report")" == '30 40 50' ]]
	[[ $(calls_of "$stripped" "$report") == 10 ]]
	[[ "$(calls_of "$first" "$report") $(calls_of "$second" "$report") $(calls_of "$stranger" "$report")" == '200 100 0' ]]
	# Each process has its runtime, and each runtime its own rows: three loaders were forked.
	jq -r '[.labels[] | .runtime] | unique | .[]' "$report" | tee runtimes
	[[ $(wc -l <runtimes) == 4 ]]
	[[ $(jq '[.labels as $l | .tables.operator[] | .pid as $p | select([$l[] | select(.pid == $p).runtime][0] | test("2[.]13"))
		| select(.name == "aten::sinh").count] | add' "$report") == 331 ]]
	"$MXBPF" report r.mxd >tables
	expect_re '^MXNet 1[.]9[.]1: process [0-9]+, [0-9]+$' "$(<tables)"
	expect_re '^aten::sinh +50 ' "$(<tables)"
	expect_re '^aten::sinh +10 ' "$(<tables)"
	expect_re '^aten::sinh +321 ' "$(<tables)"
	expect_re '^sinh +70 ' "$(<tables)"
}
