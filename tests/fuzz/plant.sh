#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/plant.sh [O [REGEX]]     REGEX: only plants whose line in tests/fuzz/plants matches
# Plants each defect of tests/fuzz/plants, one after the other, in a copy of the sources, and prints after how many seconds
# its fuzzer finds it, from the inputs in the tree on. Exits with 1 if one is not found in a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."
O=$(realpath -m "${1:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The objects are links: make replaces only those of the planted file. What is generated is a copy, because make may write it.
cp -a Makefile VERSION user include vendor share tests docs "$work/" 2>/dev/null
mkdir "$work/build"
cp -a "$O/gen" "$work/build/gen"
ln -s "$O/deps" "$work/build/"
cp -al "$O/fuzz" "$work/build/fuzz"
rm -rf "$work/build/fuzz/corpus"

try() { # PARSER NAME FILE SED
	local found=1
	sed -i.honest "$4" "$3"
	! cmp -s "$3" "$3.honest" || { echo "FAILED: $1: the line to change is not there"; return 1; }
	touch "$3"
	make -s "build/fuzz/$2" >"$work/make.log" 2>&1 || { cat "$work/make.log"; return 1; }
	TIMEFORMAT='%R %U %S'
	{ time FUZZ_SECONDS=60 tests/fuzz/run.sh build "$2" >"$work/run.log" 2>&1 || found=; } 2>"$work/time"
	awk -v parser="$1" -v name="$2" -v missed="$found" '{ printf "%-24s %-14s %5.1f s, %.1f s of CPU time%s\n", parser, name, $1,
		$2 + $3, missed ? "  NOT FOUND" : "" }' "$work/time"
	rm -rf build/fuzz/corpus
	mv "$3.honest" "$3"
	touch "$3"
	[[ -z $found ]]
}

status=0
cd "$work"
while IFS='|' read -r parser name file change; do
	[[ $parser != '#'* ]] || continue
	try "$parser" "$name" "$file" "$change" || status=1
done < <(grep -E "${2:-.}" tests/fuzz/plants)
exit $status
