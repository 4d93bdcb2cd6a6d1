#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows mxbpf on a running training job: tables on the terminal and a trace for Perfetto.
# usage: [JOB=mxnet|pytorch] tests/demo.sh [O]       as root; `make demo` installs and builds everything first
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

O=$(realpath -m "${1:-${O:-build}}")
MXBPF=$O/mxbpf
JOB=${JOB:-mxnet}
# The jobs have a fault that was planted on purpose: the findings should name it.
declare -A TITLE=([mxnet]='MXNet 1.9.1' [pytorch]='PyTorch 2.13') \
	PYTHON=([mxnet]=venv [pytorch]=torch) \
	PROGRAM=([mxnet]='mxnet_job.py checkpoint' [pytorch]='torch_job.py loader-sleeps') \
	FAULT=([mxnet]='it writes a checkpoint every 12th step' [pytorch]='the worker of its DataLoader sleeps')
TRACE=$O/demo-trace.json.gz
SECONDS_SEEN=${SECONDS_SEEN:-5}
START_SECONDS=60
job=

say() { printf '\n==> %s\n' "$*"; }
die() {
	printf '\ndemo: error: %s\n' "$*" >&2
	exit 1
}

stop_job() {
	[[ -z $job ]] || { kill "$job" && wait "$job"; } 2>/dev/null
	rm -rf "$work"
}

[[ $(id -u) == 0 ]] || die "attaching needs root: sudo make demo"
[[ -n ${TITLE[$JOB]:-} ]] || die "JOB is mxnet or pytorch, not '$JOB'"
python=$O/deps/${PYTHON[$JOB]}/bin/python
read -ra program <<<"${PROGRAM[$JOB]}"
[[ -x $MXBPF && -x $python ]] || die "nothing is built yet; run: sudo make demo"
work=$(mktemp -d)
trap stop_job EXIT
trap 'exit 130' INT TERM

say "starting a training job on ${TITLE[$JOB]}: tests/planted/${program[*]} (it knows nothing of mxbpf)"
"$python" -u "tests/planted/${program[0]}" "${program[@]:1}" >"$work/out" 2>"$work/err" &
job=$!
pid=$(timeout "$START_SECONDS" tail -n +1 -f --pid="$job" "$work/out" 2>/dev/null | grep -m 1 '^ready ' | cut -d' ' -f2)
[[ -n $pid ]] || die "the job did not start: $(tail -n 5 "$work/err")"

say "mxbpf --pid $pid -d ${SECONDS_SEEN}s --trace $TRACE"
"$MXBPF" --pid "$pid" -d "${SECONDS_SEEN}s" --trace "$TRACE"
rc=$?
((rc == 0)) || die "mxbpf ended with exit code $rc; \`$MXBPF check --pid PID\` shows what this machine supports"
[[ -s $TRACE ]] || die "mxbpf wrote no trace"
[[ -z ${SUDO_UID:-} ]] || chown "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$TRACE"
kill -0 "$job" 2>/dev/null || die "the job ended while mxbpf profiled it"

say "the trace is in $TRACE"
echo "    open https://ui.perfetto.dev and drop the file there (it is not uploaded)"
say "the fault that was planted in this job: ${FAULT[$JOB]}"
echo "    the findings at the top of the output name it, and the line of Python where it is"
