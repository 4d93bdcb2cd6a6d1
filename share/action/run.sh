#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a benchmark under mxbpf record, compares it with stored recordings, and fails if a limit is broken. For any CI system:
# everything comes by environment variables, which docs/ci.md explains.
#
#   MXBPF_COMMAND         the benchmark, a command line for a shell
#   MXBPF_BASELINE        stored recordings, or folders with some, one a line. If there is none yet, the new recordings are
#                         stored in the first of them
#   MXBPF_RUNS            how often the benchmark runs; 1
#   MXBPF_RECORD_OPTIONS  options of mxbpf record, one a line: "--shapes", "-d 30s"
#   MXBPF_FAIL_ON         limits of mxbpf diff --fail-on, one a line
#   MXBPF_OUTPUT          folder for new recordings, and for the comparison as diff.md and diff.json; mxbpf-ci
#   MXBPF                 the program, or a wheel with it; mxbpf
#   GITHUB_STEP_SUMMARY, GITHUB_OUTPUT   GitHub sets them: files that also get the comparison, and what came out
#
# Exits with 0; with 10 if a limit is broken; with the status of the benchmark or of mxbpf if one of them fails.
set -euo pipefail

say() { printf 'mxbpf-ci: %s\n' "$*"; }
die() {
	printf 'mxbpf-ci: error: %s\n' "$*" >&2
	exit 2
}

# Fills the array with the lines of the text that are not blank.
lines_of() { # ARRAY TEXT
	local -n array=$1
	# shellcheck disable=SC2034 # its name is that of another
	mapfile -t array < <(sed 's/^[[:space:]]*//; s/[[:space:]]*$//; /^$/d' <<<"$2")
}

# For the steps that follow on GitHub.
tell() { printf '%s=%s\n' "$1" "$2" >>"${GITHUB_OUTPUT:-/dev/null}"; } # NAME VALUE

# Under sudo the benchmark still runs as the user who calls it; env keeps the path, which sudo replaces.
as_root() {
	if [[ $(id -u) == 0 ]]; then
		"$@"
	elif sudo -n true 2>/dev/null; then
		sudo -n -E env "PATH=$PATH" "$@"
	else
		die "recording needs root, and sudo wants a password or is not there; run the job as root"
	fi
}

# A wheel is unpacked into a folder of its own.
unpack() {
	unpacked=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/mxbpf.XXXXXX")
	trap 'rm -rf "$unpacked"' EXIT
	chmod 755 "$unpacked" # under sudo mxbpf starts the benchmark as another user
	python3 -m pip --quiet --disable-pip-version-check install --no-index --no-deps --target "$unpacked" "$mxbpf"
	mxbpf=$unpacked/bin/mxbpf
}

record() { # FILE
	local line option words=()
	for line in "${record_options[@]}"; do
		read -ra option <<<"$line"
		words+=("${option[@]}")
	done
	as_root "$mxbpf" record --quiet --force -o "$1" "${words[@]}" -- bash -c "$command"
}

# The stored recordings that are there.
stored() {
	local path
	for path in "${baseline[@]}"; do
		if [[ -d $path ]]; then
			find "$path" -name '*.mxd' -type f | sort
		elif [[ -f $path ]]; then
			printf '%s\n' "$path"
		fi
	done
}

# The first run, or the first one after the stored recordings were deleted.
store() {
	local to=${baseline[0]}
	if [[ $to == *.mxd ]]; then
		mkdir -p "$(dirname "$to")"
		cp "${new[0]}" "$to"
	else
		mkdir -p "$to"
		cp "${new[@]}" "$to"
	fi
	say "there is no baseline yet: this run is stored in $to, and the next one is compared with it"
	echo 'mxbpf: there is no baseline yet. This run is stored as one.' >>"$summary"
}

compare() { # STORED-RECORDING...
	local sides=() limits=() limit path status=0
	for path; do sides+=(--base "$path"); done
	sides+=("${new[@]}")
	for limit in "${fail_on[@]}"; do limits+=(--fail-on "$limit"); done
	"$mxbpf" diff "${sides[@]}" --quiet --force -o "$output/diff.json" || return
	"$mxbpf" diff "${sides[@]}" --quiet --force -o "$output/diff.md" "${limits[@]}" 2>"$output/limits.txt" || status=$?
	if [[ -s $output/limits.txt ]]; then
		cat "$output/limits.txt" >&2
		{ echo; sed 's/^/    /' "$output/limits.txt"; } >>"$output/diff.md" # as it is, in a block of code
	fi
	rm "$output/limits.txt"
	cat "$output/diff.md"
	cat "$output/diff.md" >>"$summary"
	return "$status"
}

mxbpf=${MXBPF:-mxbpf} command=${MXBPF_COMMAND:-} output=${MXBPF_OUTPUT:-mxbpf-ci} runs=${MXBPF_RUNS:-1}
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
[[ -n $command ]] || die "no benchmark: MXBPF_COMMAND (input 'command') is empty"
[[ $runs =~ ^[1-9][0-9]?$ ]] || die "MXBPF_RUNS (input 'runs') is '$runs', not a number from 1 to 99"
[[ $mxbpf != *.whl ]] || unpack
mxbpf=$(command -v "$mxbpf") || die "there is no program ${MXBPF:-mxbpf}; install mxbpf, or name it by MXBPF (input 'mxbpf')"
baseline=() record_options=() fail_on=()
lines_of baseline "${MXBPF_BASELINE:-}"
lines_of record_options "${MXBPF_RECORD_OPTIONS:-}"
lines_of fail_on "${MXBPF_FAIL_ON:-}"
((${#baseline[@]})) || die "nothing to compare with: MXBPF_BASELINE (input 'baseline') is empty"

mkdir -p "$output"
rm -f "$output"/new-*.mxd "$output"/diff.*
tell recordings "$output"
new=() status=0
for ((i = 1; i <= runs; i++)); do
	new+=("$output/new-$i.mxd")
	say "run $i of $runs: $command"
	record "${new[-1]}" || status=$?
	if ((status)); then
		tell result failed
		exit "$status"
	fi
done

mapfile -t old < <(stored)
if ((${#old[@]} == 0)); then
	store
	tell result stored
	exit 0
fi
tell markdown "$output/diff.md"
compare "${old[@]}" || status=$?
case $status in
0) tell result passed ;;
10) tell result broken ;;
*) tell result failed ;;
esac
exit "$status"
