#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What watching costs: nothing, the runtime's own profiler, bpftrace and mxbpf on the same loops in one run; see bench.py.
# Prints tables and the goals; the same and every sample as JSON in O/bench.json. Needs root, and a quiet machine.
#
#   make bench             about 15 minutes
#   make bench QUICK=1     about 90 seconds, rough
#   ROUNDS=5               more samples (3)
#   LOOPS=tiny,static,cnn,torch-tiny,torch-cnn,torch-layer  only some loops
#   MODES=none,builtin-trace,builtin-agg,builtin-late,torch-profiler,torch-full,bpftrace,mxbpf-op,mxbpf,mxbpf-all,mxbpf-trace,
#         mxbpf-counters,mxbpf-stats,mxbpf-api-work,mxbpf-ops,mxbpf-mem,mxbpf-agent,mxbpf-agent-account,mxbpf-agent-mem
#   BLOCKS=busy,steady,export,bpf,switch,account,groups   or none: what is measured beside the comparison
#   BASE=PATH              another build of mxbpf, in the same rounds: modes base-op, base, base-all
#   PYTHON=... PYTHON_TORCH=... MXBPF=...   another Python with MXNet, with PyTorch, another binary
#
# usage: tests/bench/run.sh [O]
set -euo pipefail
cd "$(dirname "$0")/../.."

O=$(realpath -m "${1:-${O:-build}}")
MXBPF=${MXBPF:-$O/mxbpf}
PYTHON=${PYTHON:-$O/deps/venv/bin/python}
PYTHON_TORCH=${PYTHON_TORCH:-$O/deps/torch/bin/python}

die() {
	printf 'bench: error: %s\n' "$*" >&2
	exit 1
}

[[ $(id -u) == 0 ]] || die "BPF needs root: sudo make bench"
[[ -x $MXBPF ]] || die "no $MXBPF: make"
[[ -x $PYTHON ]] || die "no MXNet at $PYTHON: tests/setup.sh"

[[ -x $PYTHON_TORCH ]] || die "no PyTorch at $PYTHON_TORCH: tests/setup.sh"

# Under sudo, what is made in a user's checkout is the user's.
give_back() {
	[[ -z ${SUDO_UID:-} ]] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$O"
}
trap give_back EXIT

"$PYTHON" -B tests/bench/bench.py --mxbpf "$MXBPF" ${BASE:+--base "$BASE"} --python-torch "$PYTHON_TORCH" --work "$O/bench" --json "$O/bench.json" ${QUICK:+--quick} \
	${ROUNDS:+--rounds "$ROUNDS"} --loops "${LOOPS:-}" --modes "${MODES:-}" --blocks "${BLOCKS:-}"
