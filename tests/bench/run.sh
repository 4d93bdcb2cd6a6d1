#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Overhead of profilers: none, the runtime's own, bpftrace and mxbpf on the same loops in one run; see bench.py. Prints
# tables and goals, and writes them with every sample to O/bench.json. Needs root and a quiet machine.
#
#   make bench             about half an hour
#   make bench QUICK=1     about seven minutes, less exact
#   ROUNDS=5               number of samples (default: 3)
#   LOOPS=tiny,static,cnn,torch-tiny,torch-cnn,torch-layer,torch-lstm  only some loops
#   MODES=none,builtin-trace,builtin-agg,builtin-late,torch-profiler,torch-memory,torch-shapes,torch-full,bpftrace,mxbpf-op,mxbpf,mxbpf-all,mxbpf-trace,
#         mxbpf-counters,mxbpf-api-work,mxbpf-ops,mxbpf-mem,mxbpf-agent,mxbpf-agent-account,mxbpf-agent-mem,
#         mxbpf-agent-shapes,mxbpf-agent-full
#   BLOCKS=busy,steady,export,bpf,switch,account,groups,cost,selves,host,serve,speed   measurements besides the comparison, or none
#   BASE=PATH              another build of mxbpf in the same rounds: modes base-op, base, base-all
#   PYTHON=... PYTHON_TORCH=... PY_SPY=... MXBPF=...   another Python with MXNet or with PyTorch, another py-spy, another binary
#
# usage: tests/bench/run.sh [O]
set -euo pipefail
cd "$(dirname "$0")/../.."

O=$(realpath -m "${1:-${O:-build}}")
MXBPF=${MXBPF:-$O/mxbpf}
PYTHON=${PYTHON:-$O/deps/venv/bin/python}
PYTHON_TORCH=${PYTHON_TORCH:-$O/deps/torch/bin/python}
PY_SPY=${PY_SPY:-$O/deps/bench/bin/py-spy}

die() {
	printf 'bench: error: %s\n' "$*" >&2
	exit 1
}

export O # of the mock of a GPU
[[ $(id -u) == 0 ]] || die "BPF needs root; run: sudo make bench"
[[ -x $MXBPF ]] || die "no $MXBPF; run make"
[[ -x $PYTHON ]] || die "no MXNet at $PYTHON; run tests/setup.sh"

[[ -x $PYTHON_TORCH ]] || die "no PyTorch at $PYTHON_TORCH; run tests/setup.sh"

# Under sudo, files in a user's checkout belong to the user.
give_back() {
	[[ -z ${SUDO_UID:-} ]] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$O"
}
trap give_back EXIT

"$PYTHON" -B tests/bench/bench.py --mxbpf "$MXBPF" ${BASE:+--base "$BASE"} --python-torch "$PYTHON_TORCH" --py-spy "$PY_SPY" --work "$O/bench" --json "$O/bench.json" ${QUICK:+--quick} \
	${ROUNDS:+--rounds "$ROUNDS"} --loops "${LOOPS:-}" --modes "${MODES:-}" --blocks "${BLOCKS:-}"
printf '\nGPU, on the mock:\n'
(cd "$O/bench" && MXBPF=$MXBPF "$PYTHON" -B "$OLDPWD/tests/bench/gpu_cost.py" ${QUICK:+1})
