#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots kernels with every task, writes what worked into tests/kernels/results, and makes docs/kernels.md of all results.
# A kernel that Debian does not have is booted if someone has put it into DIR: vmlinuz-SERIES, built with BTF (`make kernels`
# says where DIR is).
# usage: matrix.sh DIR [SERIES...]     default: each vmlinuz-SERIES in DIR
# environment: MXBPF and O, as in helpers.bash; BOOTS (default: a temporary directory) gets the files of each guest
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1
shift
BOOTS=${BOOTS:-$(mktemp -d)}
# test_inject_kernel is last, because it sets Yama to forbid all tracers.
TASKS=(best uprobe_multi perf options omp now throttled test_attach_kernel test_programs_kernel test_stack_kernel
	test_account_kernel test_sessions_kernel test_watch_kernel test_inject_kernel)
REFUSED=(best now) # of a kernel that mxbpf does not run on

origin() { # SERIES
	if [[ -f $dir/package-$1 ]]; then
		echo "package of Debian $(<"$dir/package-$1")"
	else
		echo "built by hand"
	fi
}

try() { # SERIES
	local its=$BOOTS/$1 tasks=("${TASKS[@]}")
	[[ $1 != 5.10 ]] || tasks=("${REFUSED[@]}")
	rm -rf "$its"
	mkdir "$its"
	"$here/boot.sh" "$dir/vmlinuz-$1" "$its" "${tasks[@]}" >"$its/boot.log" 2>&1 || { tail "$its/boot.log" "$its/console" >&2; return 1; }
	"$here/matrix.py" judge "$its" | jq --arg from "$(origin "$1")" --arg tried "$(date -u +%Y-%m-%d)" \
		'. + {from: $from, tried: $tried}' >"$its.json"
	mv "$its.json" "$here/results/$1.json"
}

all=("$@")
if ((!$#)); then
	all=("$dir"/vmlinuz-*)
	all=("${all[@]##*/vmlinuz-}")
fi
for series in "${all[@]}"; do
	echo "booting Linux $series (files: $BOOTS/$series)"
	try "$series"
done
"$here/matrix.py" page >"$here/../../docs/kernels.md"
