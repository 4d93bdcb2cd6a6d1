#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/sanitize.sh PROGRAM...
# Runs unit programs that were built with sanitizers (make unit-asan, make unit-tsan), as many at a time as there are CPUs, and
# prints those that fail, with their output. Exits with 1 if there are any.
set -uo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A lack of memory, which tests cause, is an answer. Tests that end a process on purpose leave its memory.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=0:exitcode=66 LLVM_PROFILE_FILE=/dev/null
run_one() { # PROGRAM FOLDER
	local log=$2/${1##*/}
	if ! timeout 300 "$1" >"$log" 2>&1 || grep -qE '^not ok|runtime error:|ERROR: |WARNING: ThreadSanitizer' "$log"; then
		echo "FAILED: ${1##*/}"
		tail -n 60 "$log"
		return 1
	fi
}
export -f run_one
# shellcheck disable=SC2016 # for the other shell
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'run_one "$1" "$2"' _ {} "$work" || exit 1
echo "$# programs: no finding"
