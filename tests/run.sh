#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests; the last line is "N passed, N failed, N skipped". Exit 1 if any failed or none ran.
# usage: tests/run.sh [--unit] [O]     --unit: only what needs neither root nor a download
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

unit_only=
[[ ${1:-} == --unit ]] && { unit_only=1; shift; }
O=$(realpath -m "${1:-${O:-build}}")
REPO=$PWD
MXBPF=$O/mxbpf
PYTHON=$O/deps/venv/bin/python
PYTHON_TORCH=$O/deps/torch/bin/python
MXBPF_TEST_LIBMXNET=$(echo "$O"/deps/venv/lib/python3*/site-packages/mxnet/libmxnet.so)
MXBPF_TEST_LIBTORCH=$(echo "$O"/deps/torch/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
export O REPO MXBPF PYTHON PYTHON_TORCH MXBPF_TEST_LIBMXNET MXBPF_TEST_LIBTORCH
# What hangs is ended: a test of a bats file, a unit program, a whole bats file, of which the longest takes minutes.
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-300}
UNIT_SECONDS=120
FILE_SECONDS=900

LOGS=$O/test
passed=0 failed=0 skipped=0
failures=() # their names once more at the end, where one looks

# Under sudo, what is made in a user's checkout is the user's.
finish() {
	[[ -z ${SUDO_UID:-} ]] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$O"
	((${#failures[@]} == 0)) || printf 'FAILED: %s\n' "${failures[@]}"
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((failed == 0 && passed > 0))
	exit
}

# One TAP stream -> "passed failed skipped" on fd 3; failed tests with their output and skips on stdout.
tap_summary() { # FILE RC
	awk -v rc="$2" '
	/^1\.\.[0-9]+/ { plan = substr($0, 4) + 0; next }
	/^ok / { n++; bad = 0
		if (match($0, / # (skip|SKIP) ?/)) { skip++; name = substr($0, 1, RSTART - 1); sub(/^ok [0-9]+ (- )?/, "", name)
			printf "    skipped: %s: %s\n", name, substr($0, RSTART + RLENGTH) }
		else pass++
		# A unit program explains a failed check before its "not ok".
		held = ""; next }
	/^not ok / { n++; fail++; bad = 1; sub(/^not ok [0-9]+ (- )?/, "")
		printf "    FAILED: %s\n%s", $0, held; held = ""; next }
	bad { print "      " $0; next }
	{ held = held "      " $0 "\n" }
	END {
		if (!plan || n < plan || (rc && !fail)) {
			fail++
			printf "    FAILED: ended early, %d of %s tests, exit code %d\n%s", n, plan ? plan : "?", rc, held }
		printf "%d %d %d\n", pass, fail, skip >"/dev/fd/3"
	}' "$1"
}

run_tap() { # TITLE LOG COMMAND...
	local title=$1 log=$2 begin=$SECONDS rc p f s
	shift 2
	"$@" >"$log" 2>&1 </dev/null
	rc=$?
	tap_summary "$log" "$rc" 3>"$log.sum" >"$log.txt"
	read -r p f s <"$log.sum"
	((passed += p, failed += f, skipped += s))
	printf '%-4s %3d passed %4d s  %s\n' "$( ((f)) && echo FAIL || echo ok)" "$p" $((SECONDS - begin)) "$title"
	cat "$log.txt"
	mapfile -t -O "${#failures[@]}" failures < <(sed -n "s|^    FAILED: |$title: |p" "$log.txt")
}

build() {
	# The job server of an outer make would only warn here.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make --no-print-directory -j2 O="$O" "$@" && return
	echo "FAILED: the build (make $*)"
	failed=1
	finish
}

mkdir -p "$LOGS"
if [[ $unit_only ]]; then build all units; else build all units progs; fi

shopt -s nullglob
for c in tests/unit/*.c; do
	name=$(basename "$c" .c)
	run_tap "unit/$name" "$LOGS/unit-$name.tap" timeout -k 5 "$UNIT_SECONDS" "$O/unit/$name"
done
if [[ -z $unit_only ]]; then
	for f in tests/*.bats; do
		run_tap "$(basename "$f")" "$LOGS/$(basename "$f").tap" \
			timeout -k 10 "$FILE_SECONDS" bats --formatter tap --print-output-on-failure "$f"
	done
fi
finish
