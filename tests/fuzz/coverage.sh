#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/coverage.sh [O [DIR...]]
# Runs each fuzzer with its inputs of tests/fuzz/corpus and seeds.sh, and of DIR/NAME, and prints which share of the lines of each parser
# (tests/fuzz/parsers) they reach. Exits with 1 if an input fails, or if a share is smaller than the file says.
set -euo pipefail
cd "$(dirname "$0")/../.."
O=$(realpath -m "${1:-build}")
dirs=(tests/fuzz/corpus "${@:2}")
work=$(mktemp -d)
FUZZ_DIR=$(mktemp -d -p /dev/shm)
export FUZZ_DIR UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
trap 'rm -rf "$work" "$FUZZ_DIR"' EXIT

run_one() { # NAME
	local inputs=("$work/$1") dir
	mkdir "$work/$1"
	tests/fuzz/seeds.sh "$1" "$work/$1"
	for dir in "${dirs[@]}"; do
		[[ ! -d $dir/$1 ]] || inputs+=("$dir/$1")
	done
	# A profile for each process: that of names is a child.
	LLVM_PROFILE_FILE=$work/$1-%p.raw "$O/fuzz/$1" -runs=0 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$work/" \
		"${inputs[@]}" >"$work/$1.log" 2>&1 || { tail -n 40 "$work/$1.log"; return 1; }
	llvm-profdata merge -o "$work/$1.data" "$work/$1"-*.raw
}

status=0
declare -A of=()
finish_one() {
	local pid
	wait -n -p pid "${!of[@]}" || { status=1; echo "FAILED: ${of[$pid]}"; }
	unset "of[$pid]"
}
mapfile -t names < <(cut -d '|' -f 2 tests/fuzz/parsers | grep '^fuzz_' | sort -u)
for name in "${names[@]}"; do
	((${#of[@]} < $(nproc))) || finish_one
	run_one "$name" &
	of[$!]=$name
done
while ((${#of[@]})); do finish_one; done
((!status)) || exit 1

# By functions, because some files also write: requests, and tables of options.
while IFS='|' read -r parser name floor files but; do
	[[ $parser != '#'* ]] || continue
	# shellcheck disable=SC2086 # several files
	llvm-cov report "$O/fuzz/$name" -instr-profile="$work/$name.data" -show-functions $files 2>/dev/null |
		awk -v parser="$parser" -v name="$name" -v floor="$floor" -v but="$but" '
			NF >= 7 && $1 != "Name" && $1 != "TOTAL" { fn = $1; sub(/.*:/, "", fn)
				if (but == "" || fn !~ "^(" but ")$") { lines += $5; missed += $6 } }
			END { share = lines ? 100 * (lines - missed) / lines : 0; bad = share < floor
				printf "%-24s %-14s %5.1f %%%s\n", parser, name, share, bad ? "  FAILED: less than " floor " %" : ""
				exit bad }' || { echo "FAILED: $parser"; status=1; }
done <tests/fuzz/parsers
exit $status
