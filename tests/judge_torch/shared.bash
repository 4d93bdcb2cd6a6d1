# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests that judge PyTorch share. A program counts the same each time that it runs, so that torch.profiler's account
# of it is made once per run of the tests, and so are mxbpf's sessions that several tests look at. helpers.bash loads this
# file in torch_setup.
#
#   prog ARGS...              a program of tests/judge_torch: prog.py ARGS, in a child of the fork server; BUILD as torch_server
#   traced_prog ARGS PROG_ARGS...
#                             mxbpf with ARGS around the section of a program; its standard output in mxbpf.json
#
# These leave copies of their files in the current directory:
#
#   reference PROGRAM         torch.profiler's account: builtin.json; what the program computed: builtin.result
#   reference_shapes PROGRAM  the same with record_shapes: shaped.json. torch.profiler keeps tensors alive then, which changes
#                             when they are freed: sizes of memory are in builtin.json.
#   session PROGRAM           a session with tables: mxbpf.json, and mxbpf.result. It has trace.json and --backward but for
#                             the programs of PLAIN.
#   recording PROGRAM         mxbpf record: job.mxd, its tables mxbpf.json, and mxbpf.result
#   recording_shapes PROGRAM  the same with --shapes: job.mxd, its tables by shape mxbpf.json, trace.json of the session
#   recording_stacks PROGRAM  the same with --py-stacks: job.mxd, trace.json of the session
#   recording_stats PROGRAM   the same with --stats: job.mxd

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
reference_shapes() { take_shared "torch-shaped-$1" prog "$1" --builtin shaped.json --shapes; }

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
recording_stats() { take_shared "torch-recording-stats-$1" make_recording "$1" --stats; }
