#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows mxbpf on a real training job that runs already: tables on the terminal, a trace for Perfetto.
# usage: [JOB=mxnet|pytorch] tests/demo.sh [O]       (as root; `make demo` sets everything up and calls this)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

O=$(realpath -m "${1:-${O:-build}}")
MXBPF=$O/mxbpf
JOB=${JOB:-mxnet}
# Not hybridized: beside its bulks, which MXNet makes of a backward pass, there are operators that it runs by themselves.
declare -A TITLE=([mxnet]='MXNet 1.9.1' [pytorch]='PyTorch 2.13') \
	PYTHON=([mxnet]=venv [pytorch]=torch) \
	PROGRAM=([mxnet]='mxnet_train.py --hybridize none' [pytorch]=torch_train.py) \
	OPTIONS=([mxnet]='' [pytorch]='--shapes --backward')
TRACE=$O/demo-trace.json
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
read -ra options <<<"${OPTIONS[$JOB]}"
[[ -x $MXBPF && -x $python ]] || die "not built yet: sudo make demo does everything"
work=$(mktemp -d)
trap stop_job EXIT
trap 'exit 130' INT TERM

say "starting a training job on ${TITLE[$JOB]}: tests/workload/${program[0]} (it has not heard of mxbpf)"
"$python" -u "tests/workload/${program[0]}" "${program[@]:1}" >"$work/out" 2>"$work/err" &
job=$!
pid=$(timeout "$START_SECONDS" tail -n +1 -f --pid="$job" "$work/out" 2>/dev/null | grep -m 1 '^ready ' | cut -d' ' -f2)
[[ -n $pid ]] || die "the job did not get ready: $(tail -n 5 "$work/err")"

say "mxbpf --pid $pid -d ${SECONDS_SEEN}s ${OPTIONS[$JOB]:+${OPTIONS[$JOB]} }--trace $TRACE"
"$MXBPF" --pid "$pid" -d "${SECONDS_SEEN}s" "${options[@]}" --trace "$TRACE"
rc=$?
((rc == 0)) || die "mxbpf ended with exit code $rc; \`$MXBPF check --pid PID\` says what this machine offers"
[[ -s $TRACE ]] || die "mxbpf wrote no trace"
[[ -z ${SUDO_UID:-} ]] || chown "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$TRACE"
kill -0 "$job" 2>/dev/null || die "the job ended while it was looked at"

say "the trace is in $TRACE"
echo "    open https://ui.perfetto.dev and drop the file on it (it stays in your browser)"
echo "    the job went on all the while; its last lines:"
tail -n 2 "$work/out" | sed 's/^/        /'
