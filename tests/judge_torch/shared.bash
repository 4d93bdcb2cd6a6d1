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

# Two workers of torchrun on PYTHON's gloo under mxbpf: r.mxd, report.json, and torch.profiler's account of each worker, 0.json and 1.json.
workers() { # PYTHON [RECORD_ARGS...]
	# Port 0: any that is free.
	OMP_NUM_THREADS=1 "$MXBPF" record --force -o r.mxd "${@:2}" -- "$1" -m torch.distributed.run --nproc-per-node 2 \
		--rdzv-backend c10d --rdzv-endpoint localhost:0 "$JUDGE/ddp.py" >&2
	"$MXBPF" report r.mxd --format json >report.json
}

# Rows of one worker, of the kinds that the pattern says, as {name: count}.
rows_told() { jq -S --arg re "$2" '.rows | with_entries(select(.key | test($re)))' "$1.json"; }
rows_seen() {
	jq -S --slurpfile of "$1.json" --arg re "$2" '[.tables.operator[] | select(.pid == $of[0].pid and (.name | test($re)))
		| {key: .name, value: .count}] | from_entries' report.json
}

same_as_workers() {
	local rank re
	jq -e '.window | .followed == 2 and .unfollowed == 0 and (has("fallbacks") | not)' report.json
	# The kernel may hide a switch of a thread from mxbpf.
	jq -e '(.loss | del(.attempted, .stored) | add) == ([.sources[]? | select(.source == "scheduler").unmatched] | add // 0)' report.json
	for rank in 0 1; do
		# Point to point is no work of the kind that a collective is.
		for re in '^c10d::' '^gloo:(?!send|recv)' 'Backward0|AccumulateGrad' '^Optimizer' '^aten::(addmm|sum|ones|fill_|mul)$'; do
			diff <(rows_told "$rank" "$re") <(rows_seen "$rank" "$re")
			[[ $(rows_seen "$rank" "$re" | jq length) -gt 0 ]]
		done
		[[ $(rows_seen "$rank" '^c10d::' | jq length) == 9 ]]
	done
}
