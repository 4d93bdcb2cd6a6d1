#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Calls of CUDA's libraries, recorded by probes, in jobs on PyTorch with the mock of a GPU.

load helpers

setup() {
	root_setup torch
	JOB=("$PYTHON_TORCH" "$REPO/tests/gpu/calls.py")
}

# Runs a job that has loaded its libraries before mxbpf attaches; its account is in job.out, mxbpf's JSON in mxbpf.out.
attached() { # DIRECTORY KIND ROUNDS MXBPF_ARGS...
	EARLY=1 start_ready job "${JOB[@]}" "${@:1:3}" >/dev/null
	start_mxbpf --pid "$READY_PID" --format json "${@:4}"
	end_ready
	tail -n 1 "$(out job)" >job.json
	cp "$(out mxbpf)" mxbpf.json
}

calls() { jq -S -c '.tables["CUDA call"] // [] | map({(.name): .count}) | add // {}' mxbpf.json; }
told() { jq -S -c 'map_values(.[0])' job.json; }

same_calls() {
	expect_same "$(told)" "$(calls)"
	# A switch that BPF did not see is no lost call.
	jq -e ".loss.dropped + .loss.unmatched - ([.sources[]? | select(.source == \"scheduler\").unmatched] | add // 0) == 0" mxbpf.json
}

@test "Launches, waits and memory calls of a job are counted exactly, once each, and launches of compiled code, too" {
	: | cc -shared -x c -o libtriton.so -
	TRITON=$PWD/libtriton.so attached "$O/gpu" runtime 20
	same_calls
	# A call of the runtime is a call of the driver as well, but only the outermost has a row.
	[[ $(calls) == *'"cuLaunchKernel":20,'* && $(calls) == *'"cudaLaunchKernel":20,'* ]]
}

# bats test_tags=alone
@test "The time of synchronisation is the time that the job has measured itself" {
	measured
	local sync
	attached "$O/gpu" runtime 20
	# A wait for a kernel of 20 ms. The job's own clock includes the call through ctypes.
	sync=$(jq '.tables["CUDA call"][] | select(.name == "cudaStreamSynchronize") | .total_ns' mxbpf.json)
	jq -e --argjson sync "$sync" '.cudaStreamSynchronize[1] | . >= $sync and . * 0.97 <= $sync' job.json
}

@test "Libraries that a launched command loads later are probed before their first call, several copies of libcudart as well" {
	GO=1 "$MXBPF" --exact -q --format json -o mxbpf.json -- "${JOB[@]}" "$O/gpu" both 10 >job.out
	tail -n 1 job.out >job.json
	same_calls
	[[ $(calls) == *'"cudaMalloc":21,'* ]]
}

@test "A job whose runtime is linked statically has the calls of the driver" {
	attached "$O/gpu" driver 30
	same_calls
	[[ $(calls) == '{"cuCtxSynchronize":30,'* ]]
}

@test "One line says where the calls are from and how to see kernels, and JSON has it as a note" {
	local note='CUDA calls are from probes; --gpu shows the kernels'
	EARLY=1 start_ready job "${JOB[@]}" "$O/gpu" runtime 3 >/dev/null
	start_mxbpf record --pid "$READY_PID" -o job.mxd
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID"
	"$MXBPF" report job.mxd >job.txt
	[[ $(grep -c "$note" job.txt) == 1 ]]
	"$MXBPF" report job.mxd --format json | jq -e --arg note "$note" '[.window.notes[] | select(.name == "cuda").text] == [$note]'
}

@test "A job without CUDA has no table, no note and no probe for it" {
	attached "$O/gpu" none 5 -v
	jq -e '(.tables | has("CUDA call") | not) and ([.window.notes[]? | select(.name == "cuda")] == [])' mxbpf.json
	mv mxbpf.json with.json
	sed -n 's/^attached: \([0-9]* probes\).*/\1/p' "$(err mxbpf)" >with
	attached "$O/gpu" none 5 -v --probes op,api,mem,wait,inside,custom,mark,data,kv
	expect_same "$(jq -S -c '.tables | map_values(length)' mxbpf.json)" "$(jq -S -c '.tables | map_values(length)' with.json)"
	expect_same "$(sed -n 's/^attached: \([0-9]* probes\).*/\1/p' "$(err mxbpf)")" "$(<with)"
}

@test "With --gpu, CUPTI tells the calls, and probes only count launches" {
	attached "$O/gpu" runtime 30 --gpu
	expect_same "$(told)" "$(jq -S -c --argjson told "$(told)" '[.tables["CUDA call"][] | select($told[.name]) | {(.name): .count}] | add' mxbpf.json)"
	[[ $(jq '.gpu.records[0].counted_launches' mxbpf.json) == 30 ]]
	jq -e '[.window.notes[]? | select(.name == "cuda")] == []' mxbpf.json
}

@test "With --gpu, probes tell the calls if another client holds CUPTI" {
	export MXBPF_DOUBLE=busy
	attached "$O/gpu" runtime 30 --gpu
	same_calls
	jq -e '[.window.notes[] | select(.name == "cuda").text] == ["calls of CUDA are from probes while CUPTI did not deliver them"]' mxbpf.json
}

@test "mxbpf now shows a wait for the GPU that began after the attach, with its callers" {
	EARLY=1 start_ready job "${JOB[@]}" "$O/gpu" hang >/dev/null
	start_bg now "$MXBPF" now --pid "$READY_PID" --format json -d 10m
	wait_line "$(err now)" '^attached' "$BG_PID"
	kill -s USR1 "$READY_PID"
	until grep -q gpuops_sync_stream <("$MXBPF" now --pid "$READY_PID" --format json -q -d 100ms); do sleep 0.02; done
	stop_pid "$BG_PID" INT
	jq -e --argjson pid "$READY_PID" '.threads[] | select(.tid == $pid) |
		[.open[].name] == ["cudaStreamSynchronize"] and any(.stack[]; .function == "gpuops_sync_stream")' "$(out now)"
}

@test "--probes without cuda leaves the calls out" {
	attached "$O/gpu" runtime 3 --probes op
	[[ $(calls) == '{}' ]]
}

@test "A library whose functions can throw gets no return probe, and its exceptions reach the program" {
	mkdir throws
	cat >throws/runtime.cpp <<-'EOF'
		extern "C" {
		static void work(void) { throw 1; }
		void cudaStreamSynchronize(void) { work(); }
		int call_and_catch(void)
		{
			try {
				cudaStreamSynchronize();
			} catch (int) {
				return 1;
			}
			return 0;
		}
		}
	EOF
	c++ -O0 -shared -fPIC -o throws/libcudart.so.12 throws/runtime.cpp
	attached "$PWD/throws" throws 10
	jq -e '.caught[0] == 100' job.json
	jq -e '.tables["CUDA call"][0] | .name == "cudaStreamSynchronize" and .count == 1000' mxbpf.json
}
