#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Code that a process maps after the attach: kernels of torch.compile, each in a library of its own.

load helpers

export BATS_TEST_TIMEOUT=300

setup() {
	root_setup torch
	WAIT_SECONDS=120
	PROGRAM=("$PYTHON_TORCH" "$REPO/tests/workload/torch_compile.py")
}

# Starts the workload with its standard input at descriptor 9.
start_compiling() {
	mkfifo "$BATS_TEST_TMPDIR/in"
	start_bg workload bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "${PROGRAM[@]}"
	exec 9>"$BATS_TEST_TMPDIR/in"
	wait_line "$(out workload)" '^ready' "$BG_PID"
	WORKLOAD_PID=$BG_PID
}

call() { # FUNCTION TIMES
	echo "$1 $2" >&9
	wait_line "$(out workload)" "^done $1"
}

counts() { # JSON
	jq -c '[.tables["compiled kernel"][].count] | sort' "$1"
}

@test "torch.compile's kernels are probed at attach or when they are mapped, without stopping any thread" {
	start_compiling
	call first 1
	start_mxbpf --pid "$WORKLOAD_PID" --format json
	call first 20
	call second 1 # maps its library
	call second 29
	echo 'end 0' >&9
	wait_exit "$MXBPF_PID" 60
	[[ $(counts "$(out mxbpf)") =~ ^\[20,(29|30)\]$ ]]
	# Each kernel has the name of its file, and the report has the path.
	jq -e '.target.libraries as $libs | .tables["compiled kernel"] | length == 2 and all(.[]; (.name | startswith("inductor::c"))
		and (.name[10:] as $hash | any($libs[]; .path | contains("/" + $hash))))' "$(out mxbpf)"
	jq -e '.window | .late_libraries == 2 and .late_refused == 0 and (has("fallbacks") | not)' "$(out mxbpf)"
	jq -e '.loss | .dropped + .unmatched + .unreadable == 0' "$(out mxbpf)"
	# They are not operators, because torch.profiler does not know them.
	jq -e 'all(.tables.operator[]; .name | startswith("inductor") | not)' "$(out mxbpf)"
}

@test "A launched command's compiled kernels are recorded from their first call, with a category of their own" {
	printf 'first 7\nsecond 3\n' >"$BATS_TEST_TMPDIR/in"
	"$MXBPF" record --no-follow --trace "$BATS_TEST_TMPDIR/t.json" -o "$BATS_TEST_TMPDIR/r.mxd" -- \
		bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "${PROGRAM[@]}"
	"$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --format json >"$BATS_TEST_TMPDIR/json"
	[[ $(counts "$BATS_TEST_TMPDIR/json") == '[3,7]' ]]
	jq -e '[.traceEvents[] | select(.cat == "compiled_kernel")] | length == 10 and all(.name | startswith("inductor::"))' \
		"$BATS_TEST_TMPDIR/t.json"
	[[ $(jq '[.traceEvents[] | select(.cat == "cpu_op" and (.name | startswith("inductor")))] | length' "$BATS_TEST_TMPDIR/t.json") == 0 ]]
	# The torch layout omits them.
	expect_run 0 --separate-stderr "$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --layout torch
	expect_re '^ *aten::ones ' "$output"
	run ! expect_re 'inductor' "$output" 2>/dev/null
}

@test "--wait attaches to a process when it imports torch, and without --wait such a process is an error" {
	mkfifo "$BATS_TEST_TMPDIR/in"
	# shellcheck disable=SC2016 # for that shell
	start_bg later bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "$PYTHON_TORCH" -c '
import sys
print("here", flush=True)
sys.stdin.readline()
# A loader at work has libtorch_cpu mapped and libc10 not yet. This process imitates it.
import ctypes, glob, mmap
with open(glob.glob(sys.prefix + "/lib/python3*/site-packages/torch/lib/libtorch_cpu.so")[0], "rb") as lib:
    half = mmap.mmap(lib.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
ctypes.CDLL("libutil.so.1")
print("half", flush=True)
sys.stdin.readline()
half.close()
import torch
print("imported", flush=True)
sys.stdin.readline()
for _ in range(21):
    torch.ones(3).add_(1)
'
	local pid=$BG_PID
	exec 9>"$BATS_TEST_TMPDIR/in"
	wait_line "$(out later)" '^here'
	expect_run 3 --separate-stderr "$MXBPF" --exact --pid "$pid"
	start_bg mxbpf "$MXBPF" --exact --wait --pid "$pid" --format json
	wait_line "$(err mxbpf)" "^waiting until process $pid \(.*\) or a child of it loads libmxnet\.so\* \(MXNet\), libtorch_cpu\.so\* \(PyTorch\); Ctrl-C ends"
	echo >&9
	wait_line "$(out later)" '^half'
	expect_run 3 --separate-stderr "$MXBPF" --exact --pid "$pid"
	echo >&9
	wait_line "$(err mxbpf)" '^attached: [0-9]+ probes'
	wait_line "$(out later)" '^imported'
	echo >&9
	wait_exit "$BG_PID" 60
	jq -e '[.tables.operator[] | select(.name == "aten::add_").count] == [21]' "$(out mxbpf)"
}

@test "--wait ends with the process or Ctrl-C and leaves nothing behind" {
	local links
	links=$(probe_links)
	start_bg sleeper sleep 100
	local sleeper=$BG_PID
	start_bg mxbpf "$MXBPF" --exact --wait --pid "$sleeper"
	wait_line "$(err mxbpf)" '^waiting until'
	kill -s INT "$BG_PID"
	local status=0
	wait_exit "$BG_PID" || status=$?
	[[ $status == 5 ]]
	start_bg mxbpf "$MXBPF" --exact --wait --pid "$sleeper"
	wait_line "$(err mxbpf)" '^waiting until'
	kill "$sleeper"
	status=0
	wait_exit "$BG_PID" || status=$?
	[[ $status == 3 ]]
	expect_re 'loaded no supported library' "$(<"$(err mxbpf)")"
	no_new_links "$links"
	expect_run 2 --separate-stderr "$MXBPF" --wait -- true
}

# bats test_tags=place
@test "One of two runtimes in a process is profiled, every output names the other, and --runtime selects it" {
	cd "$BATS_TEST_TMPDIR"
	ln -s "$O/toy/libmxnet.so" . # the list of libraries to load ends at blanks, and the path of the checkout may have one
	LD_PRELOAD=./libmxnet.so start_ready both "$O/toy/libtorch_cpu.so" >/dev/null
	run --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 200ms
	expect_re '^runtime +PyTorch is loaded, too, but not profiled; use --runtime pytorch$' "$output"
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 2s --runtime pytorch --probes op --format json
	jq -e '.tables.operator | length == 2' <<<"$output"
	jq -e '.window.notes[0] | .name == "runtime" and (.text | startswith("MXNet is loaded, too"))' <<<"$output"
	expect_run 2 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" --runtime jax
	start_ready one "$O/toy/libtorch_cpu.so" >/dev/null
	expect_error 3 '\(looked for libmxnet\.so\* \(MXNet\)\)' --separate-stderr "$MXBPF" --exact --pid "$READY_PID" --runtime mxnet
}
