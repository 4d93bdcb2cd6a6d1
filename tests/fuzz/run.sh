#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/run.sh [O [NAME...]]     NAME: only these fuzzers, such as fuzz_agent
# Runs every fuzzer (built by `make fuzz`) for FUZZ_SECONDS (default 60), as many at a time as there are CPUs. MINUTES: all of
# them together take so long. Each starts from tests/fuzz/corpus/NAME, from tests/fuzz/seeds.sh and from what earlier runs found,
# which is kept under O/fuzz/corpus/NAME. FUZZ_CORPUS=DIR keeps it in DIR/NAME. FUZZ_SEED: the seed of libFuzzer's random numbers.
set -euo pipefail
cd "$(dirname "$0")/../.."
O=$(realpath -m "${1:-build}")
names=("${@:2}")
((${#names[@]})) || mapfile -t names < <(basename -s .c tests/fuzz/fuzz_*.c)
CORPUS=${FUZZ_CORPUS:-$O/fuzz/corpus}
jobs=$(nproc)
seconds=${FUZZ_SECONDS:-60}
[[ -z ${MINUTES:-} ]] || seconds=$((MINUTES * 60 * (jobs < ${#names[@]} ? jobs : ${#names[@]}) / ${#names[@]}))

# The words of a parser's source are the dictionary of its fuzzer.
declare -A words=(
	[fuzz_text]='user/target/*.c user/feature/machine/read*.c user/record/meta.c user/kineto/wire.c'
	[fuzz_diff]='user/compare/operand.c user/feature/findings/*.c user/feature/findings/causes/*.c'
	[fuzz_options]='user/cmd/opts.c user/cmd/setters.c user/cmd/table*.c user/feature/*/options.c user/trigger/parse.c user/compare/limit.c'
	[fuzz_http]='user/serve/*.c tests/fuzz/fuzz_http.c'
	[fuzz_proc]='user/target/*.c user/feature/machine/read*.c user/kineto/sockets.c'
)
# Longest inputs in bytes. Shorter ones are tried more often.
declare -A longest=([fuzz_record]=60000 [fuzz_elf]=60000 [fuzz_demangle]=300 [fuzz_agent]=800 [fuzz_gpu]=800 [fuzz_python]=600
	[fuzz_names]=800 [fuzz_options]=1000 [fuzz_nvtx]=1000 [fuzz_views]=3000 [fuzz_proc]=3000)
# With ten thousands of features, libFuzzer's weighing of inputs takes nine tenths of the time.
declare -A weighs=([fuzz_views]=-entropic=0)

run_one() { # NAME
	local name=$1 own=tests/fuzz/corpus/$1 grown=$CORPUS/$1 options=()
	mkdir -p "$grown"
	tests/fuzz/seeds.sh "$name" "$grown"
	if [[ -n ${words[$name]:-} ]]; then
		# shellcheck disable=SC2086 # patterns of files
		grep -ohE '"[a-zA-Z/][^"\\%]{1,40}"' ${words[$name]} | grep -v '\.[ch]"' | sort -u >"$O/fuzz/$name.dict"
		options+=(-dict="$O/fuzz/$name.dict")
	fi
	[[ ! -d $own ]] || own=$(realpath "$own")
	[[ -d $own ]] || own=
	(cd "$CORPUS" && LLVM_PROFILE_FILE=/dev/null "$O/fuzz/$name" -max_total_time="$seconds" -seed="${FUZZ_SEED:-0}" -timeout=10 -rss_limit_mb=2048 \
		-max_len="${longest[$name]:-8000}" -verbosity=0 -print_final_stats=1 -artifact_prefix="$CORPUS/$name-" \
		${weighs[$name]+"${weighs[$name]}"} "${options[@]}" "$grown" ${own:+"$own"}) >"$O/fuzz/$name.log" 2>&1
}

FUZZ_DIR=$(mktemp -d -p /dev/shm) # in memory, for outputs
export FUZZ_DIR UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 # without it, such a finding is one line in a log
trap 'rm -rf "$FUZZ_DIR"' EXIT
status=0
declare -A of=()
finish_one() {
	local pid rc=0
	wait -n -p pid "${!of[@]}" || rc=$?
	((!rc)) || { status=1; tail -n 60 "$O/fuzz/${of[$pid]}.log"; }
	awk -v name="${of[$pid]}" -v rc="$rc" '/stat::number_of_executed_units/ { runs = $2 } END {
		printf "%s %s: %d inputs\n", rc ? "FAILED" : "ok", name, runs }' "$O/fuzz/${of[$pid]}.log"
	unset "of[$pid]"
}
for name in "${names[@]}"; do
	((${#of[@]} < jobs)) || finish_one
	run_one "$name" &
	of[$!]=$name
done
while ((${#of[@]})); do finish_one; done
exit $status
