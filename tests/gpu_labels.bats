#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What GPUs are called, and what is said of those that are divided, shared, virtual or secret, on the mock of a GPU
# (tests/gpu/double).

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	cat >job.py <<-EOF
		import ctypes
		ops = ctypes.CDLL("$O/gpu/libgpuops.so")
		cupti = ctypes.CDLL("$O/gpu/libcupti.so.12")
		ops.gpuops_launch.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint)
		for _ in range(10):
		    ops.gpuops_launch(b"my_kernel", 1000000, 0)
		ops.gpuops_sync()
	EOF
}

# Records job.py on a GPU that misbehaves so.
record() { # WORDS
	MXBPF_DOUBLE=$1 run --separate-stderr timeout 60 "$MXBPF" record --gpu --no-bpf -o job.mxd -- /usr/bin/python3 job.py
	expect_status 0
	"$MXBPF" report job.mxd -f json >report.json
}

@test "A GPU has its UUID and its place on the PCI bus in JSON and in traces" {
	CUDA_VISIBLE_DEVICES=3 record ''
	jq -e '.gpu.devices == [.gpu.devices[0]] and .gpu.devices[0].uuid == "GPU-00000003-0000-4000-0000-000000000003"
		and .gpu.devices[0].pci == "0000:1c:00.0" and (.gpu.devices[0] | has("mig_gpu_uuid") | not)' report.json
	"$MXBPF" export job.mxd -f chrome -o trace.json
	jq -e '.deviceProperties[0].uuid == "GPU-00000003-0000-4000-0000-000000000003" and ([.traceEvents[] | select(.name == "process_labels")
		| .args.labels] | any(. == "GPU 0,GPU-00000003-0000-4000-0000-000000000003,0000:1c:00.0"))' trace.json
	run ! grep -q 'MIG divides' <("$MXBPF" report job.mxd)
	run ! grep -q 'MPS shares' <("$MXBPF" report job.mxd)
}

@test "An instance of MIG has its own UUID and that of its GPU, and its busy time is called that of the instance" {
	record instance=162
	jq -e '.gpu.devices[0] | .uuid == "MIG-a2000000-0000-4000-0000-000000000000" and .multiprocessors == 16
		and .mig_gpu_uuid == "GPU-00000000-0000-4000-0000-000000000000"' report.json
	"$MXBPF" report job.mxd >report.txt
	grep -Eq '^GPU 0 .* MIG-a2000000 ' report.txt
	grep -q '^MIG divides a GPU: busy, idle and the number of multiprocessors are those of the instance' report.txt
}

@test "Of a GPU that MPS shares, it is said that busy is what the process ran" {
	record shared
	jq -e '.gpu.devices[0].mps and .gpu.devices[0].busy_ns > 0' report.json
	grep -q '^MPS shares a GPU among processes: busy is what this process ran' <("$MXBPF" report job.mxd)
}

@test "What cannot be seen of a GPU is said with what to do: permissions, MIG, MPS, virtual GPUs, confidential computing" {
	local row words text
	for row in 'permissions:only administrators may profile this GPU; load the module nvidia with' \
		'instance=1,permissions:only administrators may profile .*; the process uses an instance of a GPU that MIG divides' \
		'mig:the GPU is divided by MIG, which does not support it; turn MIG off' \
		'mps:the GPU is shared by MPS, which does not allow this; stop the MPS daemon' \
		'virtual:a virtual GPU does not support it; use a machine with the whole GPU' \
		'permissions-virtual:the hypervisor does not allow it for this virtual GPU' \
		'confidential:confidential computing does not allow it; turn that off'; do
		words=${row%%:*} text=${row#*:}
		record "$words"
		jq -e --arg text "$text" '[.window.notes[].text] | any(test($text))' report.json
		expect_re "$text" "$("$MXBPF" report job.mxd)"
	done
}
