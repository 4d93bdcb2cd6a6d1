#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The mock of a GPU (tests/gpu/double) must enforce the rules of CUPTI and misbehave as asked, or the tests that use it prove
# nothing. A small client keeps or breaks each rule. No test here needs a GPU or root.

load helpers

CLIENT=$O/gpu/client

# client WORDS COMMAND: runs the client while the mock misbehaves in this way; prints NAME=VALUE lines.
client() {
	MXBPF_DOUBLE=$1 timeout 60 "$CLIENT" "$2" 2>"$BATS_TEST_TMPDIR/client.err" | tr ' ' '\n'
}

# value NAME TEXT: prints the value of a name in the client's output.
value() { sed -n "s/^$1=//p" <<<"$2"; }

aborts() { # RULE COMMAND
	expect_error 134 "^GPU mock: rule broken: $1: " timeout 60 "$CLIENT" "$2"
}

@test "A client that keeps the rules gets every record of the GPU double exactly once" {
	local seen
	seen=$(MXBPF_DOUBLE_ACCOUNT=$BATS_TEST_TMPDIR/account client '' collect)
	expect_same "kernels=1002 copies=1 peers=1 sets=1 runtime=1017 driver=1017 syncs=3 dropped=0" "$(head -n 8 <<<"$seen" | paste -sd ' ')"
	expect_same 1002000 "$(value ns "$seen")"
	expect_same "0 0 0 0 0" "$(for name in zero no_name absurd early wrong_tid; do value $name "$seen"; done | paste -sd ' ')"
	expect_same '{"kernel":1002,"copy":1,"peer":1,"set":1,"runtime":1017,"driver":1017,"sync":3,"device":0,"graph":0,"memory":0}' \
		"$(jq -c '.delivered | del(.overhead)' "$BATS_TEST_TMPDIR/account")"
	jq -e '.left_enabled == 0 and .made == .delivered and .launched_ns == .kernel_ns and .launched.kernel == 1002' "$BATS_TEST_TMPDIR/account"
}

@test "The GPU double delivers a burst of a million kernels without loss" {
	local seen
	seen=$(client '' burst)
	expect_same "1000000 1000001 100000000 0" "$(for name in kernels runtime ns dropped; do value $name "$seen"; done | paste -sd ' ')"
}

@test "Records of the GPU double have the size of each API version and a poisoned tail" {
	local row seen
	for row in 13:160 17:176 18:200 22:208 28:208 130001:216 130101:224 130301:232 130401:248; do
		seen=$(MXBPF_DOUBLE_VERSION=${row%:*} client '' collect)
		expect_same "${row#*:}" "$(value kernel_bytes "$seen")"
		expect_same "1002" "$(value kernels "$seen")"
		[[ $row == 13:* ]] || expect_same 1002 "$(value poison "$seen")"
	done
}

@test "The GPU double knows the sizes of all records in NVIDIA's headers" {
	python3 - "$O/gpu/libcupti.so.12" "$REPO/tests/gpu/abi.txt" <<-'EOF'
		import ctypes, re, sys
		cupti = ctypes.CDLL(sys.argv[1])
		kinds = {"Kernel": [10], "Memcpy": [1], "MemcpyPtoP": [22], "Memset": [2], "API": [4, 5], "Synchronization": [38],
		    "Overhead": [17], "GraphTrace": [51], "Device": [8]}
		bad, checked = [], 0
		for line in open(sys.argv[2]):
		    words = line.split()
		    if line.startswith("release"):
		        release, version = words[1], int(words[2])
		    row = re.match(r"CUpti_Activity(\D+?)\d* (\d+) ", line)
		    # CUDA 12.0 and 12.1 have the version of CUDA 11.8 and longer kernels.
		    if row and not release.startswith("12.0"):
		        for kind in kinds[row[1]]:
		            got = cupti.double_record_bytes(kind, version)
		            checked += 1
		            if got != int(row[2]):
		                bad.append(f"{release} ({version}): {row[1]} has {row[2]} bytes, the mock {got}")
		sys.exit("\n".join(bad) if bad else checked < 30 and "too few rows")
	EOF
}

@test "The GPU double aborts a process that calls CUPTI before CUDA is initialised" {
	aborts before-cuinit before-cuinit
}

@test "The GPU double aborts a forked child that calls CUPTI" {
	run "$CLIENT" fork
	expect_re '^GPU mock: rule broken: fork: ' "$output"
	expect_re 'signal=6' "$output"
}

@test "A NULL buffer aborts below API version 27 and drops the record from there on" {
	MXBPF_DOUBLE_VERSION=26 aborts null-buffer null-buffer
	local seen
	seen=$(MXBPF_DOUBLE_VERSION=27 client '' null-buffer)
	expect_same "0 3042" "$(value kernels "$seen") $(value dropped "$seen")"
}

@test "A second subscriber of the GPU double gets error 39 and the name of the first, until that one leaves" {
	expect_re '^first=0 second=39 named=39 leave=0 again=0 holder=the first$' "$("$CLIENT" second)"
	expect_re '^first=39 second=39 named=39 .* again=39 holder=Nsight$' "$(MXBPF_DOUBLE=busy,holder=Nsight,drop "$CLIENT" second)"
}

@test "The GPU double refuses to mix both families of functions in either order" {
	expect_re '^subscribe=0 v1=0 v2=14 disable=0 leave=0 subscribe=0 v2=0 v1=14 *$' "$(MXBPF_DOUBLE_VERSION=130401 "$CLIENT" mixed)"
}

@test "Each registration of a timestamp callback after the first corrupts one more kernel" {
	expect_re '^once=0 twice=1 thrice=3$' "$("$CLIENT" clock)"
}

@test "After graph level was enabled once, kernels of graphs have no records" {
	local seen
	seen=$(client '' graph)
	expect_same "1000 0" "$(value kernels "$seen") $(value graph "$seen")"
}

@test "The callbacks of another client replace those of the first" {
	expect_re 'other=1 kernels=0$' "$("$CLIENT" replaced)"
}

@test "Thread ids are values of pthread_self unless the client asks for those of the system" {
	expect_re '^runtime=1017 wrong_tid=1017$' "$("$CLIENT" thread-ids)"
}

@test "A device that existed before has a record only after cuptiActivityEnableAndDump" {
	expect_re '^enable=0 dump=1$' "$("$CLIENT" dump)"
}

@test "A function of the driver that is enabled alone has no records, and one whose kind is enabled without the others has its own" {
	# Two launches only make nodes of a graph.
	expect_re '^alone=0 chosen=1002$' "$("$CLIENT" filter)"
}

@test "The account of the GPU double has the kinds that a subscriber left enabled" {
	MXBPF_DOUBLE_ACCOUNT=$BATS_TEST_TMPDIR/account "$CLIENT" left
	expect_same 8 "$(jq .left_enabled "$BATS_TEST_TMPDIR/account")"
}

@test "A buffer with an incomplete record comes only by a forced flush, and is read up to that record" {
	expect_re '^held=0 kernels=100 runtime=101 code=21$' "$(MXBPF_DOUBLE_ACCOUNT=$BATS_TEST_TMPDIR/account "$CLIENT" incomplete)"
	jq -e '.delivered.kernel == 100 and .lost.kernel == 101 and .unreadable == 303' "$BATS_TEST_TMPDIR/account"
}

@test "cuptiFinalize throws away the records that were not flushed" {
	local seen
	seen=$(MXBPF_DOUBLE_ACCOUNT=$BATS_TEST_TMPDIR/account client '' finalize)
	expect_same 0 "$(value subscribe "$seen")"
	expect_same "$(value kernels "$seen")" "$(jq .delivered.kernel "$BATS_TEST_TMPDIR/account")"
	jq -e '.lost.kernel > 0 and .delivered.kernel + .lost.kernel == 1002 and .made.kernel == 1002' "$BATS_TEST_TMPDIR/account"
}

@test "The GPU double makes wrong records as often as asked and counts them" {
	local seen account=$BATS_TEST_TMPDIR/account
	export MXBPF_DOUBLE_ACCOUNT=$account
	expect_same 100 "$(value early "$(client early=10 collect)")"
	expect_same 100 "$(jq .early "$account")"
	expect_same 143 "$(value zero "$(client zero=7 collect)")"
	expect_same 143 "$(jq .zero_times "$account")"
	expect_same 902 "$(value kernels "$(client lose=10 collect)")"
	seen=$(client lose-calls=10 collect)
	expect_same "1002 0 $(value driver "$seen")" "$(for name in kernels dropped runtime; do value $name "$seen"; done | paste -sd ' ')"
	jq -e '.lost.runtime > 90 and .made.runtime == 1017 and .lost.runtime == .lost.driver' "$account"
	expect_same 10 "$(value no_name "$(client no-name=100 collect)")"
	seen=$(client drop=10 collect)
	expect_same "$(jq '[.dropped[]] | add' "$account")" "$(value dropped "$seen")"
	jq -e '.dropped.kernel > 50 and .made.kernel == .delivered.kernel + .dropped.kernel' "$account"
	seen=$(client spoil=500 collect)
	expect_same "$(jq .corrupted "$account")" "$(value absurd "$seen")"
	jq -e '.corrupted > 400' "$account"
	expect_same 500 "$(value context2 "$(client contexts collect)")"
}

@test "With late, foreign threads hand over all buffers and nothing is lost" {
	local seen
	seen=$(client late collect)
	expect_same "1002 1017" "$(value kernels "$seen") $(value runtime "$seen")"
	(($(value foreign_thread "$seen") >= 4))
}

@test "With at-exit, buffers are handed over at exit only; with lost-at-exit, never" {
	expect_same 0 "$(value kernels "$(client at-exit collect)")"
	expect_same 1002 "$(value kernels "$(client at-exit leave)")"
	(($(value kernels "$(client lost-at-exit leave)") < 1002))
}

@test "With reuse-names, other names come to the addresses of names" {
	expect_same 0 "$(value changed_names "$(client '' collect)")"
	(($(value changed_names "$(client reuse-names collect)") > 0))
}

@test "The clock of the GPU double drifts and steps as asked" {
	local moved
	expect_re '^moved_us=-?[0-9]{1,2}$' "$("$CLIENT" watch-clock)"
	moved=$(value moved_us "$(client drift=1000 watch-clock)")
	((moved > 50)) # of 100 us
	moved=$(value moved_us "$(client step=5e6,step-after=0.05 watch-clock)")
	((moved > 4900 && moved < 5100))
}

@test "Each error that a machine or another tool causes can be had from the GPU double" {
	local row
	for row in permissions:35 permissions-virtual:40 virtual:33 mig:43 mps:31 confidential:41 cmp:42 sli:44 wsl:45 old-profiler:36 \
		legacy-device:38 incompatible:14 not-supported:27 hardware-busy:26 out-of-memory:8 compute-sanitizer:39 other-tool:39 \
		version:34 not-initialized:15 unknown:999 no-privilege-subscribe:35 cuptiSubscribe=8:8 enable-10=21:21; do
		expect_same "error=${row##*:}" "$(client "${row%:*}" collect)"
	done
}

@test "A slow subscription of the GPU double takes as long as asked and is in the log" {
	local began=$EPOCHREALTIME log=$BATS_TEST_TMPDIR/log
	MXBPF_DOUBLE_LOG=$log client slow-subscribe=0.5 dump >/dev/null
	((${EPOCHREALTIME/./} - ${began/./} >= 500000))
	expect_re 'cuptiSubscribe\(begins\)' "$(sed -n 1p "$log")"
	expect_same "cuptiSubscribe() 0,cuptiSetThreadIdType(1) 0,cuptiActivityRegisterCallbacks" \
		"$(sed -n 2,4p "$log" | cut -d ' ' -f 3- | sed 's/Callbacks.*/Callbacks/' | paste -sd ,)"
}

@test "The old libcupti of the GPU double has no function of CUDA 13" {
	run nm -D "$O/gpu/old/libcupti.so.11.8"
	[[ $output == *cuptiSubscribe* && $output != *_v2* ]]
	nm -D "$O/gpu/libcupti.so.12" | grep -q cuptiSubscribe_v2
}

# bats test_tags=place
@test "An operator library that has the runtime in itself has no symbols of it, and its calls have records" {
	local seen
	run nm -D "$O/gpu/static/libgpuops.so"
	[[ $output == *gpuops_launch* && $output != *cudaLaunch* ]]
	ln -s "$O/gpu" "$BATS_TEST_TMPDIR" # the list of libraries to load ends at blanks
	seen=$(LD_PRELOAD=$BATS_TEST_TMPDIR/gpu/static/libgpuops.so client '' collect)
	expect_same "1002 1017" "$(value kernels "$seen") $(value runtime "$seen")"
}

@test "Functions of the mock's runtime begin with push %rbp, as the real ones do" {
	local wrong
	wrong=$(objdump -d "$O/gpu/libcudart.so.12" | awk '/^[0-9a-f]+ <cuda[A-Z]/ { name = $2; getline; if ($0 !~ /push +%rbp/) print name }')
	expect_re '^(<cuda(PeekAtLastError|GetLastError|GetErrorString|DriverGetVersion|RuntimeGetVersion)>:[[:space:]]*)*$' "$wrong"
}

@test "The GPU double replays the buffers that a tape has, with their names, and here they have this process and thread" {
	local seen
	cd "$BATS_TEST_TMPDIR"
	cc -O2 -Wall -Wextra -Wno-unused-parameter -Werror -fPIC -shared -o facts.so "$REPO/tests/gpu/facts.c" -ldl
	FACTS_TAPE=$PWD/cupti.tape MXBPF_GPU_DOUBLE=$O/gpu/libcupti.so.12 MXBPF_DOUBLE_VERSION=130401 \
		python3 "$REPO/tests/gpu/facts.py" ./facts.so tape
	seen=$(MXBPF_DOUBLE_TAPE=$PWD/cupti.tape client '' replay)
	# The last hundred kernels of the tape are behind others of their session, one of which had not ended.
	local kernels runtime
	kernels=$(value kernels "$seen") runtime=$(value runtime "$seen")
	((kernels >= 650 && kernels <= 750 && runtime >= 500))
	expect_same "$runtime $((kernels * 100)) 0 0 248" \
		"$(for name in driver ns absurd wrong_tid kernel_bytes; do value $name "$seen"; done | paste -sd ' ')"
	expect_same "1 facts_kernel" "$(value names "$seen") $(value first "$seen")"
}

@test "cuInit of the GPU double starts the library in CUDA_INJECTION64_PATH once" {
	cc -shared -fPIC -o "$BATS_TEST_TMPDIR/inject.so" -x c - <<-'EOF'
		#include <stdio.h>
		int InitializeInjection(void) { return fprintf(stderr, "injected\n") > 0; }
	EOF
	CUDA_INJECTION64_PATH=$BATS_TEST_TMPDIR/inject.so run "$CLIENT" collect
	expect_same 1 "$(grep -c '^injected$' <<<"$output")"
	expect_re '^kernels=1002 ' "$output"
}

# job PROGRAM: the job of this runtime does what its account says on the simulated device, with its own profiler.
job_agrees() {
	local account=$BATS_TEST_TMPDIR/account
	MXBPF_DOUBLE_ACCOUNT=$account "$@" --steps 20 >job.out
	expect_same "$(tail -n 1 job.out | jq -c '[.total.kernels, .total.ns, .total.copies, .total.sets]')" \
		"$(jq -c '[.launched.kernel, .launched_ns, .launched.copy, .launched.set]' "$account")"
	tail -n 1 job.out | jq -e '.total.kernels >= 80 and ([.kernels | keys[] | length] | max) > 300'
}

@test "A PyTorch job's own account of its operators is what the simulated device did" {
	need_torch
	cd "$BATS_TEST_TMPDIR"
	job_agrees "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py"
}

@test "An MXNet job's own account of its operators is what the simulated device did" {
	need_mxnet
	cd "$BATS_TEST_TMPDIR"
	job_agrees "$PYTHON" "$REPO/tests/gpu/mxnet_job.py"
}

@test "A job on two devices launches kernels on both" {
	need_torch
	cd "$BATS_TEST_TMPDIR"
	MXBPF_DOUBLE=devices=2 MXBPF_DOUBLE_LOG=$PWD/log job_agrees "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --devices 2
	tail -n 1 job.out | jq -e '.operators["gpuops::others"] == {"kernels": 20, "ns": 2000000}'
}

@test "Forked children of a job cannot use CUDA, run on without it and end well" {
	need_torch
	cd "$BATS_TEST_TMPDIR"
	job_agrees "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --fork-every 5
	tail -n 1 job.out | jq -e '.forks == 4 and .failed == 0'
}

@test "A job launches a million kernels on demand and has them in its account" {
	need_torch
	local pid
	pid=$(MXBPF_DOUBLE_ACCOUNT=$BATS_TEST_TMPDIR/account start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py")
	kill -s USR2 "$pid"
	wait_line "$(out job)" '^burst 1000000$' "$pid"
	stop_pid "$pid"
	tail -n 1 "$(out job)" | jq -e '.operators["gpuops::burst"] == {"kernels": 1000000, "ns": 100000000}
		and ([.kernels | to_entries[] | select(.key | startswith("burst_")) | .value.kernels] | add) == 1000000'
	expect_same "$(tail -n 1 "$(out job)" | jq .total.kernels)" "$(jq .launched.kernel "$BATS_TEST_TMPDIR/account")"
}

# profile MODE: prints the counts of two traces of the job's own profiler.
profile() {
	local pid
	pid=$(start_ready job "$PYTHON_TORCH" "$REPO/tests/gpu/torch_job.py" --kineto "$1")
	kill -s USR1 "$pid"
	wait_line "$(out job)" '^kineto ' "$pid"
	kill -s USR1 "$pid"
	timeout 60 tail -n +1 -f "$(out job)" | grep -m 2 '^kineto ' | sed 's/^kineto //'
	stop_pid "$pid"
}

@test "Kineto's double gets all kernels of both traces, whether it subscribes once or for each trace" {
	need_torch
	local mode
	for mode in once each; do
		expect_same 'true
true' "$(profile $mode | jq '.error == 0 and .launched == 220 and .kernels == 220 and .foreign == 0 and .absurd == 0')"
	done
}

@test "Kineto's double that registers its clock for each trace has a corrupt kernel in the second trace" {
	need_torch
	expect_same '0
1' "$(profile clock | jq .absurd)"
}
