# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared fixtures of the tests that judge PyTorch. A program has the same counts in each run, so the account of torch.profiler
# is made once per run of the tests, and so are sessions of mxbpf that several tests use. torch_setup in helpers.bash loads
# this file.
#
#   prog ARGS...              runs prog.py ARGS in a child of the fork server; BUILD as for torch_server
#   traced_prog ARGS PROG_ARGS...
#                             runs mxbpf with ARGS around the section of a program; its stdout is mxbpf.json
#
# These copy their files into the current directory:
#
#   reference PROGRAM         builtin.json, torch.profiler's account, and builtin.result, the program's result
#   reference_shapes PROGRAM  shaped.json, the account with record_shapes. That keeps tensors alive and delays their frees, so
#                             builtin.json has the sizes of memory.
#   session PROGRAM           mxbpf.json and mxbpf.result of a session with tables, with --backward and trace.json except for
#                             the programs in PLAIN
#   recording PROGRAM         job.mxd of mxbpf record, its tables mxbpf.json, and mxbpf.result
#   recording_shapes PROGRAM  job.mxd with --shapes, its tables by shape mxbpf.json, and the session's trace.json
#   recording_stacks PROGRAM  job.mxd with --py-stacks, and the session's trace.json

PLAIN=' adam adam-foreach adam-fused '

prog() {
	torch_server
	"${SERVED[@]}" "$JUDGE/prog.py" "$@"
}

traced_prog() {
	torch_server
	traced "$1" mxbpf.json "${SERVED[@]}" "$JUDGE/prog.py" "${@:2}"
}

reference() { take_shared "torch-builtin-${BUILD:-wheel}-$1" prog "$1" --builtin builtin.json --result builtin.result; }
reference_shapes() { take_shared "torch-shaped-${BUILD:-wheel}-$1" prog "$1" --builtin shaped.json --shapes; }

session() {
	local options='--format json'
	[[ $PLAIN == *" $1 "* ]] || options+=' --backward --trace trace.json'
	take_shared "torch-session-$1" traced_prog "$options" "$1" --bare --result mxbpf.result
}

make_recording() { # PROGRAM MXBPF_ARGS
	traced_prog "record -o job.mxd $2" "$1" --bare --result mxbpf.result
	"$MXBPF" report job.mxd --format json ${3:+--by "$3"} >mxbpf.json
}
recording() { take_shared "torch-recording-$1" make_recording "$1" ''; }
recording_shapes() { take_shared "torch-recording-shapes-$1" make_recording "$1" '--shapes --trace trace.json' shape; }
recording_stacks() { take_shared "torch-recording-stacks-$1" make_recording "$1" '--py-stacks --trace trace.json'; }

# Two ranks of torchrun on PYTHON's gloo: counts and sizes of what each sent and received are exact.
sends_and_receives() { # PYTHON
	"$MXBPF" record --agent --shapes -o job.mxd -- "$1" -m torch.distributed.run --standalone --nproc-per-node 2 "$REPO/tests/workload/sends.py"
	expect_same '[["recv","rank 0",4000,20],["recv","rank 1",4000,20],["send","rank 0",4000,20],["send","rank 1",4000,20]]' \
		"$("$MXBPF" report job.mxd --format json | jq -c '[.collectives.operations[] | [.name, .group, .bytes, .calls]] | sort')"
}
