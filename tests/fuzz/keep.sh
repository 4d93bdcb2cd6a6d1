#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/keep.sh [O [NAME...]]
# Chooses of the inputs that fuzzers have found (O/fuzz/corpus/NAME) the fewest that reach what all reach, and keeps them in
# tests/fuzz/corpus/NAME. They replace those that were chosen before. Inputs with another name than a hash stay: regressions,
# and first inputs that a person wrote.
set -euo pipefail
cd "$(dirname "$0")/../.."
O=$(realpath -m "${1:-build}")
names=("${@:2}")
((${#names[@]})) || mapfile -t names < <(basename -s .c tests/fuzz/fuzz_*.c)
BYTES_MAX=3000 # of an input
work=$(mktemp -d)
FUZZ_DIR=$(mktemp -d -p /dev/shm)
export FUZZ_DIR
trap 'rm -rf "$work" "$FUZZ_DIR"' EXIT

for name in "${names[@]}"; do
	own=tests/fuzz/corpus/$name
	mkdir -p "$own" "$work/$name/"{small,seeds,chosen}
	tests/fuzz/seeds.sh "$name" "$work/$name/seeds"
	for from in "$O/fuzz/corpus/$name" "$own"; do
		find "$from" -type f -size "-${BYTES_MAX}c" ! -name 'seed-*' -exec cp -t "$work/$name/small" {} +
	done
	LLVM_PROFILE_FILE=/dev/null "$O/fuzz/$name" -set_cover_merge=1 -use_counters=0 -rss_limit_mb=2048 -timeout=10 \
		"$work/$name/chosen" "$work/$name/small" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
	find "$own" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
	cp -t "$own" "$work/$name/chosen"/* 2>/dev/null || true
	printf '%-14s %4d inputs, %6d bytes\n' "$name" "$(find "$own" -type f | wc -l)" "$(cat "$own"/* | wc -c)"
done
