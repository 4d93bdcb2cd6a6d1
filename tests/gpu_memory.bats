#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Memory of a GPU: a caching allocator that works as PyTorch's on the mock of a GPU (tests/gpu/double), and a program that leaks
# and runs out of memory. The program's own account is the truth, to the byte.

load helpers

setup() {
	torch_setup
	cd "$BATS_TEST_TMPDIR"
	export MXBPF_DOUBLE=memory=64 LD_LIBRARY_PATH=$O/gpu/nvml MXBPF_DOUBLE_NVML=$PWD/driver
}

build_allocator() {
	local torch
	torch=$("$PYTHON_TORCH" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
	g++ -std=c++20 -O1 -shared -fPIC -I"$torch/include" -o gpumem.so "$REPO/tests/gpu/allocator.cpp" -L"$torch/lib" -lc10 \
		-L"$O/gpu" -l:libcudart.so.12 -Wl,-rpath,"$O/gpu"
}

job() { # MXBPF_ARGS STDOUT ARGS...: the account goes to books.json
	take_shared gpu-memory-allocator build_allocator
	traced "$1" "$2" "$PYTHON_TORCH" "$REPO/tests/gpu/memory_job.py" "$PWD/gpumem.so" books.json "${@:3}"
}

compare() { python3 "$REPO/tests/gpu/memory_compare.py" books.json "$@"; }

@test "Memory of a GPU is that of its allocator to the byte, with what was there before, and with who held it when there was none left" {
	job '--memory --py-stacks --format json' probes.json
	compare probes.json lines
	jq -e '.memory.gpus[0] | .gpu == null and .libraries_bytes == null and .allocator_bytes > 0' probes.json
	job '--memory --agent --format json' agent.json
	compare agent.json
	jq -e '[.sources[] | select(.source == "agent") | .attempted] | add > 100' agent.json
}

@test "A recording tells who held the memory of a GPU when there was none left, also if it was cut off" {
	job 'record --memory --py-stacks -o job.mxd' /dev/null
	"$MXBPF" report --format json job.mxd >report.json
	compare report.json lines
	head -c $(($(stat -c %s job.mxd) - 4096)) job.mxd >cut.mxd
	"$MXBPF" report --format json cut.mxd >cut.json
	jq -e '.window.incomplete' cut.json
	compare cut.json lines
	"$MXBPF" report --top 0 job.mxd >report.txt
	grep -q '^Out of memory: 1 allocation failed' report.txt
	grep -Eq '^ +768 KiB held by gpumem::log at' report.txt
	grep -Eq '^ +reserved and not allocated: 21.4 MiB \(82%\) at the end' report.txt
	# The counters of a timeline are those of the allocator, also of memory from before the window.
	"$MXBPF" export -f chrome -o trace.json job.mxd
	jq -e --slurpfile b books.json '[.traceEvents[] | select(.ph == "C" and .name == "memory cuda/0") | .args] |
		([.[].allocated // empty] | .[-1]) == $b[0].allocated and ([.[].reserved // empty] | .[-1]) == $b[0].reserved' trace.json
}

@test "The finding says what there was no memory for, who held it, and whether it was reserved in pieces" {
	job '--memory --agent --format json' pieces.json
	jq -e '.findings[0] | .finding == "out_of_memory" and (.text | test("no 40.0 MiB on cuda/0 for gpumem::attention")) and
		(.evidence | test("gpumem::linear had 6.00 MiB \\(53%\\)"))' pieces.json
	MXBPF_DOUBLE=memory=32 job '--memory --agent --format json' pieces.json --pieces
	compare pieces.json
	jq -c '[.findings[] | [.finding, .text]], [.memory.failures[] | del(.holders)]' pieces.json
	jq -e '.findings[0] | .finding == "memory_in_pieces" and (.advice | test("expandable_segments:True"))' pieces.json
}

@test "Calls of CUDA that allocate, map and free memory have their bytes, times, failures, operators and lines" {
	job '--gpu --memory --agent --py-stacks --format json' calls.json --cupti "$O/gpu/libcupti.so.12"
	compare calls.json
	jq -e --slurpfile b books.json '$b[0] as $b | .gpu.memory_calls as $c |
		([$c[] | select(.name == "cudaMalloc")] | (map(.count) | add) == $b.mallocs and (map(.alloc_bytes) | add) == $b.malloc_bytes and
			(map(.failed) | add) == 2 and all(.[]; .operator != null and .total_ns >= .max_ns and .max_ns > 0)) and
		any($c[]; .name == "cudaMalloc" and .operator == "gpumem::attention" and .failed == 2 and .memory == "unknown") and
		any($c[]; .name == "cudaMalloc" and .operator == "gpumem::linear" and .memory == "device" and (.line | endswith(": forward"))) and
		([$c[] | select(.name == "cudaMallocAsync" or .name == "cudaFreeAsync")] | length == 2 and
			all(.[]; .count == 12 and .operator == "gpumem::workspace" and .alloc_bytes + .free_bytes == 12 * 1048576)) and
		([$c[] | select(.name | test("^cuMem(Create|Map|Unmap|Release)$"))] | [.[].name] | sort == ["cuMemCreate", "cuMemMap", "cuMemRelease",
			"cuMemUnmap"]) and all($c[] | select(.name | startswith("cuMem")); .operator == "gpumem::workspace" and .total_ns > 0 and
			if .name == "cuMemCreate" then .count == 2 and .failed == 1 else .count == 1 and .failed == 0 end) and
		(.gpu.records[0] | .memory > 0 and .records == .activities + .calls + .nested + .overheads + .outside + .queries + .memory + .unmeasured + .unsent)' calls.json
}

@test "--by module tells which module holds the memory of a GPU" {
	job '--memory --agent --py-stacks --by module --format json' modules.json
	jq -e --slurpfile b books.json '[.memory.holders[] | select(.device == "cuda/0" and .alloc_bytes > 0) | {(.name): .stack}] | add ==
		{"gpumem::linear": ["nn.Module: Linear"], "gpumem::relu": ["nn.Module: Model"], "gpumem::log": []}' modules.json
}

@test "Without --memory a failed allocation is told, without those who held the memory" {
	job '--format json' plain.json
	jq -e --slurpfile b books.json '$b[0].failed[0] as $f | .memory.failures | length == 1 and (.[0] | .name == $f.op and
		.wanted_bytes == $f.wanted and .allocated_bytes == $f.allocated and .before_bytes == null and .holders == [])' plain.json
}

# Compares the rows of mxbpf with what the job has told the mock of NVML, which is told no calls of CUDA without --gpu.
divided() { # JSON
	jq -e --slurpfile b books.json '.memory.gpus | length == 1 and (.[0] | .device == "cuda/0" and .gpu == 0 and .others == 1 and
		{total: .total_bytes, driver: .driver_bytes, used: .used_bytes, free: .free_bytes, process: .process_bytes,
			allocator: .allocator_bytes, calls: (.calls_bytes // 0), libraries: .libraries_bytes, others: .others_bytes,
			unlisted: .unlisted_bytes} == $b[0].gpu and
		.total_bytes == .driver_bytes + .used_bytes + .free_bytes and .used_bytes == .process_bytes + .others_bytes + .unlisted_bytes and
		.process_bytes == .allocator_bytes + (.calls_bytes // 0) + .libraries_bytes)' "$1"
}

@test "The memory of a GPU is divided among allocator, libraries and other processes, so that the sum is what the driver counts" {
	job 'record --memory --agent -o gpus.mxd' /dev/null --nvml driver
	"$MXBPF" report --format json gpus.mxd >gpus.json
	divided gpus.json
	jq -e '(.memory.failures[0] | .others_bytes == 20971520 and .others == 1) and
		(.findings[0].text | test("and 1 other process held 20.0 MiB of this GPU"))' gpus.json
	"$MXBPF" report gpus.mxd >gpus.txt
	grep -q '^    20.0 MiB of the GPU held by 1 other process$' gpus.txt
	grep -Eq '^cuda/0 96.0 MiB 35.0 MiB 57.0 MiB 35.0 MiB  26.0 MiB  9.00 MiB 20.0 MiB 2.00 MiB$' gpus.txt
}

@test "Calls of CUDA outside of the allocator are told apart from its segments, whose largest free piece is that of its own account" {
	job 'record --gpu --memory --agent -o calls.mxd' /dev/null --nvml driver --cupti "$O/gpu/libcupti.so.12" --fresh
	"$MXBPF" report --format json calls.mxd >calls.json
	divided calls.json
	jq -e --slurpfile b books.json '.memory.gpus[0].calls_bytes == 5242880 and
		([.memory.devices[] | select(.device == "cuda/0") | .allocator.largest_free_bytes] == [$b[0].largest_free])' calls.json
	# Segments from before the window may have larger ones.
	job '--gpu --memory --agent --format json' older.json --nvml driver --cupti "$O/gpu/libcupti.so.12"
	divided older.json
	jq -e '[.memory.devices[] | select(.device == "cuda/0") | .allocator.largest_free_bytes] == [null]' older.json
}

@test "A driver of GPUs that hangs holds neither a session with --memory nor its end up" {
	echo hang=1 >driver
	start_toy 1 1
	timeout 60 "$MXBPF" --exact --pid "$READY_PID" --memory --duration 200ms --format json >hang.json || (($? == 5)) # a toy that waits has no events
	jq -e '.memory | has("gpus") | not' hang.json
}
