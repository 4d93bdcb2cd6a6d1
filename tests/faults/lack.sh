#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: lack.sh LIBRARY POINTS COMMAND [ARGUMENT...]
# Runs a command of mxbpf again and again. Each time another one of its allocations fails (LIBRARY is fail_nth.c, compiled):
# POINTS of them, spread evenly; 0: every one. The command has to end with the result that it has otherwise, or with an error
# that names the lack of memory. What it did instead is printed, and the status is 1.
set -u
library=$1 points=$2
shift 2
# shellcheck source=tests/faults/result.sh
source "$(dirname "$0")/result.sh"
run() { in_folder env FAIL_NTH="$1" FAIL_COUNT="$dir/count" LD_PRELOAD="$library" "${@:2}"; }

run 0 "$@" || { echo "without a fault it ends with status $?: $(tail -n 1 err)"; exit 1; }
keep_result
count=$(<count) wrong=0
step=$((points && count > points ? count / points : 1))
for ((n = 1; n <= count; n += step)); do
	run "$n" "$@"
	status=$?
	if ((status > 4)); then
		echo "allocation $n of $count: status $status: $(tail -n 1 err)"
	elif ((status)); then
		grep -Eq 'error: .*(out of memory|not enough memory|Cannot allocate memory)|warning: .*Cannot allocate memory' err &&
			no_part_is_left && continue
		echo "allocation $n of $count: status $status, and no word of memory: $(tail -n 1 err)"
	else
		same_result && continue
		grep -Eq 'out of memory|Cannot allocate memory' err && continue
		echo "allocation $n of $count: another result, and no word of memory: $(diff want out | sed -n 2p)"
	fi
	wrong=1
done
exit $wrong
