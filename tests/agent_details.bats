#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --agent with --shapes and --py-stacks: the agent reads the arguments of operators and Python frames inside the process. These
# tests compare them with torch.profiler.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" --all-names "$@"; }

# Writes job.mxd and mxbpf.result of a program. The first session injects the agent while the program is busy, and the next one
# finds it there.
agent_recording() { # PROGRAM
	torch_server
	python3 "$REPO/tests/judge/drive.py" --before "'$MXBPF' --agent --pid {pid} --format json" \
		--tool "'$MXBPF' record --agent --shapes --py-stacks --memory -o job.mxd --pid {pid}" --stdout record.out -- \
		"${SERVED[@]}" "$JUDGE/prog.py" "$1" --bare --result mxbpf.result --busy
	"$MXBPF" report job.mxd --format json --by shape >mxbpf.json
	"$MXBPF" export job.mxd -o export.json
}

same_shapes() { # PROGRAM
	reference_shapes "$1"
	reference "$1"
	agent_recording "$1"
	compare --calls builtin.json mxbpf.json --trace export.json --shapes shaped.json
	"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json mxbpf.json
	cmp builtin.result mxbpf.result
	jq -e '.loss | .dropped == 0 and .attempted == .stored and .unreadable == 0 and .truncated == 0' mxbpf.json
}

same_stacks() { # PROGRAM, after same_shapes
	"${SERVED[@]}" "$REPO/tests/stacks/torch_builtin.py" "$1" frames.json
	python3 "$REPO/tests/stacks/compare_torch.py" frames.json job.mxd
}

@test "The agent sees the tensors, frames and modules of a CNN trained with SGD as torch.profiler does" {
	same_shapes sgd
	same_stacks sgd
}

@test "The agent sees the tensors and frames of a program with caught exceptions as torch.profiler does" {
	same_shapes exceptions
	same_stacks exceptions
}

@test "The agent sees tensors in lists of a CNN trained with foreach Adam as torch.profiler does" { same_shapes adam-foreach; }
@test "The agent sees the tensors of a transformer, nested ones too, as torch.profiler does" { same_shapes transformer; }
@test "The agent sees tensors of every kind, passed in every way, as torch.profiler does" { same_shapes forms; }
@test "The agent sees tensors on TorchScript's stack as torch.profiler does" { same_shapes script; }
@test "The agent sees the tensors of vmap and custom Functions as torch.profiler does" { same_shapes custom; }

# The program calls operators of the wheel's library through ctypes, for a Python without PyTorch.
told_on() { # INTERPRETER [PROGRAM [ARG...]]
	[[ -x $1 ]] || skip "no $1: $(tail -n 1 "$O/deps/pythons.log" 2>/dev/null)"
	python3 "$REPO/tests/judge/drive.py" --before "'$MXBPF' --agent --pid {pid} --format json" \
		--tool "'$MXBPF' record -o calls.mxd --agent --py-stacks --probes op --pid {pid}" --stdout record.out -- \
		env OMP_NUM_THREADS=1 "$1" "$REPO/tests/stacks/${2:-prog.py}" "$MXBPF_TEST_LIBTORCH" said.json --busy "${@:3}"
	python3 "$REPO/tests/stacks/compare.py" said.json calls.mxd
}

@test "The agent's stacks equal the program's own on CPython 3.11" { told_on /usr/bin/python3; }
@test "The agent's stacks equal the program's own on CPython 3.9" { told_on "$O/deps/pythons/3.9/python"; }
@test "The agent's stacks equal the program's own on CPython 3.13" { told_on "$O/deps/pythons/3.13/python"; }
@test "The agent's stacks equal the program's own on CPython 3.14" { told_on "$O/deps/pythons/3.14/python"; }
# bats test_tags=next
@test "The agent's stacks equal the program's own on CPython 3.15" { told_on "$O/deps/pythons/3.15/python"; }
@test "The agent's stacks in threads that go through interpreters equal the program's own" {
	told_on "$O/deps/pythons/3.14/python" interpreters.py
	told_on "$O/deps/pythons/3.13/python" interpreters.py --shared
}
@test "The agent's stacks equal the program's own on CPython 3.13t" { told_on "$O/deps/pythons/3.13t/python"; }
@test "The agent's stacks equal the program's own on CPython 3.14t" { told_on "$O/deps/pythons/3.14t/python"; }

@test "The agent reads the arguments of operators in Debian's PyTorch 1.13 as torch.profiler does" {
	[[ -x $O/deps/torch-debian/bin/python ]] || skip "no Debian PyTorch: $(tail -n 1 "$O/deps/torch-debian.log" 2>/dev/null)"
	BUILD=debian
	reference_shapes exceptions
	agent_recording exceptions
	"$PYTHON_TORCH" "$JUDGE/shapes.py" shaped.json mxbpf.json
}
