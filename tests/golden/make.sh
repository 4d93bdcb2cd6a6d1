#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the fixtures again: tests/golden/make.sh record  records the real job again (as root, after tests/setup.sh)
#                          tests/golden/make.sh         writes what every table prints; review the diff before committing
set -euo pipefail
cd "$(dirname "$0")/../.."
MXBPF=${MXBPF:-build/mxbpf}
GOLDEN=tests/golden

# A mount namespace gives the paths in the recording a neutral name.
if [[ ${1:-} == record ]]; then
	# shellcheck disable=SC2016 # the inner shell expands
	unshare -m bash -c '
		mount --bind "$PWD" /mnt && cd /mnt
		build/deps/venv/bin/python tests/judge/drive.py --stdout /dev/null \
			--tool "/mnt/build/mxbpf record --pid {pid} -o /mnt/tests/golden/real.mxd" -- \
			/mnt/build/deps/venv/bin/python tests/judge/prog.py --bare --rounds 1'
	chmod 644 "$GOLDEN/real.mxd"
fi

"$MXBPF" report --all "$GOLDEN/real.mxd" >"$GOLDEN/real.modern.txt"
"$MXBPF" report "$GOLDEN/real.mxd" >"$GOLDEN/real.short.txt"
"$MXBPF" report --all "$GOLDEN/real.mxd" --sort avg --ascending --top 3 >"$GOLDEN/real.modern-avg-top3.txt"
"$MXBPF" report "$GOLDEN/real.mxd" --format json >"$GOLDEN/real.json"
"$MXBPF" report "$GOLDEN/real.mxd" --layout mxnet >"$GOLDEN/real.mxnet.txt"
"$MXBPF" report "$GOLDEN/real.mxd" --layout mxnet --format json >"$GOLDEN/real.mxnet.json"
"$MXBPF" report "$GOLDEN/real.mxd" --layout torch >"$GOLDEN/real.torch.txt"
"$MXBPF" report "$GOLDEN/real.mxd" --layout torch-classic --sort cuda_time_total --top 5 >"$GOLDEN/real.torch-classic.txt"
"$MXBPF" export "$GOLDEN/real.mxd" -o - | gzip -9n >"$GOLDEN/real.trace.json.gz"
