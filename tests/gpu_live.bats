#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf --gpu on real PyTorch and MXNet jobs whose kernels run on the mock of a GPU (tests/gpu/double). The job's own account
# and that of the mock are the ground truth.

load helpers

setup() {
	root_setup
	export MXBPF_DOUBLE_ACCOUNT=$PWD/double.json
}

start_gpu_torch() {
	torch_setup
	start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --account "$PWD/job.json" "$@" >/dev/null
}

# The job ends and writes both accounts.
end_job() {
	stop_pid "$READY_PID"
	wait_exit "$READY_PID"
}

# Each record that CUPTI delivered has one place in the account of mxbpf.
balanced() { # JSON
	jq -e '.gpu.records[0] | .records == .activities + .calls + .nested + .overheads + .outside + .queries + .unmeasured + .unsent' "$1"
}

nothing_lost() { # JSON
	balanced "$1"
	jq -e '.gpu.records[0] | .dropped + .scrapped + .unreadable + .unsent + .unmeasured + .early + .threadless + .unknown + .unnamed == 0' "$1"
}

# Kernels of an operator are a fixed number for each of its calls. A call at an edge of the window may be cut.
per_call() { # JSON OPERATOR TABLE KERNELS COPIES
	jq -e --arg name "$2" --arg table "$3" --argjson kernels "$4" --argjson copies "$5" '
		([.tables[$table][] | select(.name == $name) | .count] | add) as $calls
		| .gpu.operators[] | select(.name == $name)
		| $calls > 20 and ((.self_kernels - $kernels * $calls) | fabs) <= 2 * $kernels and ((.copies - $copies * $calls) | fabs) <= 2 * $copies' "$1"
}

@test "Kernels and copies of a PyTorch job are joined to the operators that launched them, live and in a report" {
	export MXBPF_DOUBLE_VERSION=130101 # earlier ones have wrong ids of graphs in the second window
	start_gpu_torch
	"$MXBPF" record --pid "$READY_PID" --gpu -d 2s -q -o job.mxd
	"$MXBPF" --pid "$READY_PID" --gpu -d 1500ms --format json -o live.json
	"$MXBPF" report job.mxd --format json -o report.json
	end_job
	for file in live.json report.json; do
		nothing_lost "$file"
		per_call "$file" gpuops::gemm operator 2 0
		per_call "$file" gpuops::gemm_backward operator 2 0
		per_call "$file" gpuops::load operator 0 2
		per_call "$file" gpuops::replay operator 3 0
		per_call "$file" gpuops::step operator 2 0
		jq -e '.findings | length >= 1 and any(.[]; .finding == "gpu_idle")' "$file" # the job sleeps
		# Every activity but waits has an operator.
		jq -e '([.gpu.operators[] | .gpu_self_ns] | add) == ([.gpu.kernels, .gpu.copies, .gpu.sets] | map(.[].total_ns) | add)' "$file"
		jq -e '[.gpu.kernels[], .gpu.copies[], .gpu.sets[] | .unlaunched] | add <= 1' "$file" # a call that was open at the end
		# An operator that was open when the window began is not known, nor is its step.
		jq -e '([.gpu.operators[] | select(.kind != "operator") | .launches] | add // 0) <= 15' "$file"
		jq -e '[.gpu.operators[] | select(.name == "GemmBackward") | .gpu_self_ns == 0 and .gpu_total_ns > 0] == [true]' "$file"
	done
	# Both sessions have read all that the mock has made for them.
	jq -e --slurpfile l live.json --slurpfile r report.json '[.delivered | to_entries[] | select(.key != "device") | .value] | add ==
		($l[0].gpu.records[0].records + $r[0].gpu.records[0].records)' double.json
}

@test "From the second window on, CUPTI below 13.1 U1 names launches of graphs wrongly: no operator gets their kernels" {
	start_gpu_torch
	local window
	for window in 1 2 3; do
		"$MXBPF" --pid "$READY_PID" --gpu -d 500ms --format json -o $window.json 2>$window.err
		balanced $window.json
	done
	end_job
	jq -e '.gpu.records[0].unjoined == 0 and ([.gpu.operators[] | select(.name == "gpuops::replay") | .self_kernels > 0] == [true])' 1.json
	run ! grep -q 'of CUDA graphs' 1.err
	for window in 2 3; do
		jq -e '.gpu.records[0].unjoined > 0 and ([.gpu.operators[] | select(.name == "gpuops::replay") | .self_kernels] | add // 0) == 0' $window.json
		grep -q 'activities of CUDA graphs are not joined to their launches: CUPTI 130001' $window.err
	done
}

@test "Kernels of an MXNet job are joined to its operators, with the libcupti beside its libcudart" {
	need_mxnet
	start_ready job "$PYTHON" "$REPO/tests/gpu/mxnet_job.py" --account "$PWD/job.json" >/dev/null
	"$MXBPF" --pid "$READY_PID" --gpu -d 1500ms --format json -o live.json
	end_job
	nothing_lost live.json
	per_call live.json gpu_dense::pure_python 'Custom Operator' 2 0
	per_call live.json gpu_load::pure_python 'Custom Operator' 0 2
	jq -e '[.gpu.kernels[], .gpu.copies[] | .unlaunched] | add <= 1' live.json
	jq -e '[.window.notes[]? // empty, .notes[]? // empty] | tostring | test("libcupti.so.11.8")' live.json
}

@test "The job's own profiler gets all its kernels while mxbpf holds CUPTI, and mxbpf comes back after it" {
	start_gpu_torch --kineto each
	start_mxbpf --pid "$READY_PID" --gpu --format json -o live.json
	kill -s USR1 "$READY_PID"
	wait_line "$(out job)" '^kineto '
	wait_line "$(err mxbpf)" 'has let go of it'
	wait_line "$(err mxbpf)" "CUPTI delivers records.*" "$MXBPF_PID"
	stop_pid "$MXBPF_PID" INT
	wait_exit "$MXBPF_PID"
	end_job
	sed -n 's/^kineto //p' "$(out job)" | jq -e '.error == 0 and .kernels == .launched and .kernels > 0 and .foreign == 0 and .absurd == 0'
	balanced live.json
	jq -e '.mixed_versions == 0 and .finalized == 0 and .corrupted == 0' double.json
}

@test "A profiler that holds CUPTI keeps it: mxbpf says who it is, and probes show the calls of CUDA" {
	start_gpu_torch --kineto once
	kill -s USR1 "$READY_PID"
	wait_line "$(out job)" '^kineto '
	expect_run 0 --separate-stderr "$MXBPF" --pid "$READY_PID" --gpu -d 2s --format json -o live.json
	expect_re 'another client.*holds CUPTI' "$stderr"
	end_job
	sed -n 's/^kineto //p' "$(out job)" | jq -e '.error == 0 and .kernels == .launched and .kernels > 0'
	jq -e '[.tables["CUDA call"][] | select(.name == "cudaLaunchKernel") | .count > 0] == [true]' live.json
	jq -e 'has("gpu") | not' live.json || jq -e '[.gpu.kernels[]?] == []' live.json
}

@test "When mxbpf is killed the agent lets go of CUPTI, the job goes on, and the next mxbpf holds it again" {
	local log=$PWD/log
	export MXBPF_DOUBLE_LOG=$log
	start_gpu_torch
	start_mxbpf --pid "$READY_PID" --gpu
	kill -s KILL "$MXBPF_PID"
	wait_line "$log" 'cuptiUnsubscribe'
	"$MXBPF" --pid "$READY_PID" --gpu -d 500ms --format json -o live.json
	nothing_lost live.json
	jq -e '[.gpu.kernels[].count] | add > 0' live.json
	end_job
	jq -e '.subscriptions == 2 and .unsubscriptions == 2' double.json
}

@test "Ctrl-C works while CUPTI takes seconds to accept its client, and the agent lets go as soon as it can" {
	export MXBPF_DOUBLE=slow-subscribe=4 MXBPF_DOUBLE_LOG=$PWD/log
	start_gpu_torch
	start_bg mxbpf "$MXBPF" --pid "$READY_PID" --gpu
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" 'waiting for CUPTI'
	stop_pid "$MXBPF_PID" INT
	run ! grep -q 'cuptiSubscribe(0' log
	wait_line log 'cuptiUnsubscribe'
	end_job
	jq -e '.subscriptions == 1 and .unsubscriptions == 1' double.json
}

# Watches a job while it launches a million kernels, and ends both. Each record has its place in the account of mxbpf, which equals
# that of the mock.
burst() { # OPTION...
	torch_setup
	cat >burst.py <<-'EOF'
		import ctypes, os, signal, sys, torch
		O = os.environ["O"]
		ops = ctypes.CDLL(O + "/gpu/libgpuops.so")
		ctypes.CDLL(O + "/gpu/libcupti.so.12")
		ops.gpu_burst(1)
		todo = []
		signal.signal(signal.SIGUSR1, lambda *a: todo.append(1))
		signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
		x = torch.ones(3)
		print("ready", os.getpid(), flush=True)
		while True:
		    x.add_(1)
		    if todo:
		        todo.pop()
		        ops.gpu_burst(1000000)
		        ops.gpuops_sync()
		        print("done", flush=True)
	EOF
	start_ready job "$PYTHON_TORCH" burst.py >/dev/null
	start_mxbpf --pid "$READY_PID" --gpu --probes wait --format json -o live.json "$@"
	kill -s USR1 "$READY_PID"
	wait_line "$(out job)" '^done'
	stop_pid "$MXBPF_PID" INT
	wait_exit "$MXBPF_PID"
	end_job
	balanced live.json
	jq -e --slurpfile d double.json '.gpu.records[0] as $r | $d[0] as $d
		| ([$d.delivered | to_entries[] | select(.key != "device") | .value] | add) == $r.records
		and (if $d.dropped | type == "object" then [$d.dropped[]] | add else $d.dropped end) == $r.dropped' live.json
	jq -e '.gpu.records[0] | .unsent + .dropped + .scrapped <= .records and .scrapped == 0' live.json
}

@test "A burst of a million kernels is counted exactly, with its loss" {
	burst
	# Kernels that are in no table are counted as lost. If that is because mxbpf had no memory for them, it says so.
	jq -e '1000000 - ([.gpu.kernels[].count] | add) <= .loss.dropped' live.json
	jq -e '.loss.dropped == .gpu.records[0].unsent' live.json || grep -q 'limit of .* of memory .*events were dropped' "$(err mxbpf)"
}

@test "When there is no memory for kernels, the outputs are written, and the account of what was lost is whole" {
	burst --max-memory 128M
	jq -e '1000000 - ([.gpu.kernels[]?.count] | add // 0) <= .loss.dropped' live.json
	grep -q 'limit of 128 MiB of memory .*events were dropped' "$(err mxbpf)"
}

@test "What a job that is bound by the GPU has queued when the window closes is recorded, and tables meanwhile say how old they are" {
	torch_setup
	cat >bound.py <<-'EOF'
		import ctypes, os, signal, sys, time, torch
		O = os.environ["O"]
		ops = ctypes.CDLL(O + "/gpu/libgpuops.so")
		ctypes.CDLL(O + "/gpu/libcupti.so.12")
		ops.gpuops_launch.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint)
		signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
		x = torch.ones(3)
		until = 0  # when the queue is empty
		print("ready", os.getpid(), flush=True)
		while True:
		    x.add_(1)
		    while until - time.monotonic() < 0.3:
		        ops.gpuops_launch(b"bound", 20000000, 1)
		        until = max(until, time.monotonic()) + 0.02
		    time.sleep(0.005)
	EOF
	start_ready job "$PYTHON_TORCH" bound.py >/dev/null
	start_mxbpf --pid "$READY_PID" --gpu --format json --interval 1200ms
	wait_line "$(out mxbpf)" schema_version
	stop_pid "$MXBPF_PID" INT
	wait_exit "$MXBPF_PID"
	end_job
	head -n 1 "$(out mxbpf)" | jq -e '[.window.notes[].text | select(test("^records of the GPU are up to [1-9][.0-9]* s old: CUPTI holds"))] | length == 1'
	tail -n 1 "$(out mxbpf)" >end.json
	nothing_lost end.json
	jq -e '([.tables["CUDA call"][] | select(.name == "cudaLaunchKernel") | .count] | add) as $launched
		| $launched > 20 and ([.gpu.kernels[] | .count] | add) == $launched and ([.gpu.kernels[] | .unlaunched] | add) == 0' end.json
	jq -e '[.window.notes[].text | test("s old: CUPTI")] | any | not' end.json
}

@test "A launched command has its kernels recorded, and mxbpf passes its exit status on" {
	torch_setup
	expect_run 0 --separate-stderr "$MXBPF" --gpu --format json -o live.json -- "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --steps 60 --init-at 5
	nothing_lost live.json
	per_call live.json gpuops::gemm operator 2 0 || jq -e '[.gpu.operators[] | select(.name == "gpuops::gemm") | .self_kernels > 40] == [true]' live.json
}
