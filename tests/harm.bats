#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The agent never harms a program, at whatever moment mxbpf is killed. This is a short form of tests/harm/harm.py, which
# docs/testing.md describes.

load helpers

setup() { torch_setup; }

@test "Programs over two allocators, which fork and load libraries, survive SIGKILL of mxbpf at random moments with the same results and import tables" {
	python3 "$REPO/tests/harm/harm.py" --mxbpf "$MXBPF" --python "$PYTHON_TORCH" --dir "$PWD" --injections 4 --whole 1 \
		--allocators glibc,jemalloc --seed "$RANDOM"
}

@test "A program that loads and unloads a library without end holds up neither the tables nor the end of the window" {
	cc -O1 -shared -fPIC -o churn.so "$REPO/tests/harm/churn.c"
	start_bg job "$PYTHON_TORCH" -c '
import _ctypes, threading, torch
def loads():
    while True:
        _ctypes.dlclose(_ctypes.dlopen("./churn.so", 2))
threading.Thread(target=loads, daemon=True).start()
x = torch.ones(8)
print("ready", flush=True)
while True:
    x.add_(1)'
	wait_line "$(out job)" '^ready'
	timeout -s KILL 100 "$MXBPF" --pid "$BG_PID" --duration 1 >tables
	grep '^aten::add_ ' tables
}
