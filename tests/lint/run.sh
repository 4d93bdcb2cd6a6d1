#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Static checks of the tree. Exits with 1 if any fails.
# usage: tests/lint/run.sh [O] [CHECK...]    CHECK: tree format shell cppcheck spelling; default: all
# shellcheck disable=SC2317 # the checks are called by name
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
O=${1:-build}
shift $(($# ? 1 : 0))

CLANG_FORMAT=${CLANG_FORMAT:-clang-format-14}

# Under sudo another user may own the tree, and git refuses that without this setting.
listed() { git -c safe.directory="$PWD" ls-files -co --exclude-standard -- "$@" | while read -r f; do [[ ! -f $f ]] || echo "$f"; done; }
mapfile -t all < <(listed)
mapfile -t c_files < <(listed '*.c' '*.h' '*.cpp' | grep -Ev '^(vmlinux|vendor)/')
mapfile -t bats_files < <(listed '*.bats')
mapfile -t shell_files < <(listed '*.sh' '*.bash' .ci/run)
((${#all[@]})) || { echo "lint: this is not a git checkout"; exit 1; }

check_tree() { python3 tests/lint/tree.py "${all[@]}"; }

check_format() {
	"$CLANG_FORMAT" --dry-run -Werror "${c_files[@]}" 2>&1 | { grep -E '^[^ ].*error:' || true; } | cut -d: -f1 | sort | uniq -c |
		awk '{ bad = 1; print $2 ": " $1 " places are not in the house format: '"$CLANG_FORMAT"' -i " $2 } END { exit bad }'
}

# A line of a test that begins with ! never fails the test, whatever the command does (SC2314, SC2315).
check_shell() { shellcheck -x "${shell_files[@]}" && shellcheck --include=SC2314,SC2315 "${bats_files[@]}"; }

# ctuuninitvar mistakes the address of an uninitialised array for a use of it. The build directory keeps the results of
# unchanged files.
check_cppcheck() {
	mkdir -p "$O/cppcheck"
	cppcheck --quiet --cppcheck-build-dir="$O/cppcheck" --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 --suppress=ctuuninitvar \
		'-DLIBBPF_OPTS(type,name,...)=struct type name = { 0 }' -Iuser -Iinclude user
}

# Correct words that codespell does not know: mxnet.nd, a mistyped word of a test, a truncated symbol, C's statics.
check_spelling() { codespell -q 3 --skip "tests/fuzz/corpus/*,share/page/vendor/*,vendor/*/src/*,vendor/*/include/*,vendor/*/*LICENSE*" --ignore-words-list nd,recrod,alph,statics "${all[@]}"; }

declare -A needs=([tree]=python3 [format]=$CLANG_FORMAT [shell]=shellcheck [cppcheck]=cppcheck [spelling]=codespell)
checks=("$@")
((${#checks[@]})) || checks=(tree format shell cppcheck spelling)
bad=0
for check in "${checks[@]}"; do
	if ! command -v "${needs[$check]:?no such check}" >/dev/null; then
		echo "lint: ${needs[$check]} is missing; tests/setup.sh installs it"
		bad=1
	elif ! "check_$check"; then
		echo "lint: $check: FAILED"
		bad=1
	fi
done
exit "$bad"
