#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests with the tag `next` on the newest PyTorch and NumPy of PyPI, and says which versions these are, so that what a new
# version breaks is known on the day it comes. Each test compares with that version's own account. Downloads some 160 MB.
# usage: tests/next.sh [O]
set -euo pipefail
cd "$(dirname "$0")/.."
O=$(realpath -m "${1:-build}")
python=$O/deps/torch/bin/python
# The newest version must not be that of a machine's own limits.
export PIP_CONFIG_FILE=/dev/null PIP_CONSTRAINT='' PIP_DISABLE_PIP_VERSION_CHECK=1

newest() { # PACKAGE
	"$python" -m pip index versions "$1" 2>/dev/null | sed -n "s/^$1 (\\(.*\\))\$/\\1/p"
}

torch=$(newest torch)
numpy=$(newest numpy)
mxnet=$(newest mxnet)
[[ $torch && $numpy && $mxnet ]] || { echo 'next: PyPI does not answer' >&2; exit 1; }
MXBPF_TEST_NEXT=$O/deps/next
tests/torch_next/setup.sh "$MXBPF_TEST_NEXT" "$python" "$torch"
"$python" -m pip -q install --no-deps --upgrade --target "$MXBPF_TEST_NEXT/site" "numpy==$numpy"
export MXBPF_TEST_NEXT
status=0
tests/run.sh --tag=next "$O" || status=$?
echo "$(date +%F): PyTorch $torch, NumPy $numpy, MXNet $mxnet, CPython $(cd "$O/deps/pythons" && printf '%s\n' 3.*/ | sort -V | tr -d / | tail -n 1)"
exit "$status"
