#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: calls.sh COMMAND [ARGUMENT...]
# Runs a command of a static mxbpf again and again under strace. Each time another one of its system calls fails, once. The
# command has to end with the result that it has otherwise, or with a status of failure and a message that names the error, and
# never says that a file is damaged. What it did instead is printed, and the status is 1.
set -u
# shellcheck source=tests/faults/result.sh
source "$(dirname "$0")/result.sh"

in_folder "$@" || { echo "without a fault it ends with status $?: $(tail -n 1 err)"; exit 1; }
keep_result
wrong=0
for fault in openat:EMFILE openat:EACCES read:EIO pread64:EIO pread64:EINTR write:ENOSPC write:EINTR mmap:ENOMEM newfstatat:EIO \
	fstat:EIO fcntl:EMFILE lseek:EIO; do
	for n in {1..12} {15..60..5}; do
		rm -f trace
		in_folder strace -f -o "$dir/trace" -e trace="${fault%:*}" -e inject="${fault%:*}:error=${fault#*:}:when=$n" "$@"
		status=$?
		grep -q INJECTED trace || break
		if ((status > 4)); then
			echo "$fault, call $n: status $status: $(tail -n 1 err)"
		elif ((status)); then
			grep -Eq '^mxbpf: (error|warning): ' err && ! grep -q damaged err && no_part_is_left && continue
			echo "$fault, call $n: status $status: $(tail -n 1 err)"
		else
			same_result && continue
			echo "$fault, call $n: another result, and no failure"
		fi
		grep INJECTED trace
		wrong=1
	done
done
exit $wrong
