#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes docs/trace.png again: a training step of MXNet in Perfetto's interface. Look at the picture before you commit it.
# usage: tests/perfetto/picture.sh [O]       as root, after tests/setup.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

O=$(realpath -m "${1:-${O:-build}}")
work=$(mktemp -d)
job=
trap '[[ -z $job ]] || kill "$job"; rm -rf "$work"' EXIT

"$O/deps/venv/bin/python" -u tests/workload/mxnet_train.py >"$work/out" &
job=$!
grep -q -m 1 '^ready ' < <(timeout 60 tail -n +1 -f --pid="$job" "$work/out")
"$O/mxbpf" --quiet --pid "$job" -d 2s --trace "$work/t.json.gz" -o "$work/tables.txt"
node tests/perfetto/ui.mjs "$O/deps/perfetto" "$work/t.json.gz" docs/trace.png \
	--select MXAutogradBackwardEx --operators 60 --viewport 1600x720
