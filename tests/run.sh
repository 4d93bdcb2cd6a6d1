#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the chosen tests need and runs several files at a time, the longest first. Tests with the tag `alone` compare times:
# they run last, one file at a time. The last line is "N passed, N failed, N skipped". Exits with 1 if a test failed or none ran.
# usage: tests/run.sh [--unit|--tag=TAG] [O]     --unit: only the unit programs, which need neither root nor a download
#                                                --tag: only tests of bats with this tag, such as smoke
# environment: ONLY   regular expression: run only files whose name matches (interval.bats, unit/test_elf)
#              LANES  number of files that run at a time; default: one more than there are CPUs, at most 4
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

unit_only='' tag=''
case ${1:-} in
--unit) unit_only=1 && shift ;;
--tag=*) tag=${1#*=} && shift ;;
esac
O=$(realpath -m "${1:-${O:-build}}")
REPO=$PWD
MXBPF=$O/mxbpf
PYTHON=$O/deps/venv/bin/python
PYTHON_TORCH=$O/deps/torch/bin/python
# Prints the path, or nothing if there is no such file.
first() { [[ ! -e $1 ]] || echo "$1"; }
MXBPF_TEST_LIBMXNET=$(first "$O"/deps/venv/lib/python3*/site-packages/mxnet/libmxnet.so)
MXBPF_TEST_LIBTORCH=$(first "$O"/deps/torch/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
export O REPO MXBPF PYTHON PYTHON_TORCH MXBPF_TEST_LIBMXNET MXBPF_TEST_LIBTORCH
# The directory of shared() in helpers.bash, which all files of this run use.
MXBPF_TEST_SHARED=$(mktemp -d)
export MXBPF_TEST_SHARED
trap 'rm -rf "$MXBPF_TEST_SHARED"' EXIT
# Kernels stay compiled between runs. PyTorch's compiler does not quote paths, so it gets paths without a blank.
compiler_deps=$O/deps
if [[ $O == *' '* ]]; then
	compiler_deps=$MXBPF_TEST_SHARED/deps
	ln -s "$O/deps" "$compiler_deps"
	PYTHON_TORCH=$compiler_deps/torch/bin/python
fi
export TORCHINDUCTOR_CACHE_DIR=$compiler_deps/inductor
# Time limits in seconds for a test, a unit program and a bats file.
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-300}
UNIT_SECONDS=${UNIT_SECONDS:-300}
FILE_SECONDS=${FILE_SECONDS:-3000} # the kernels under QEMU need it on a busy machine

CPUS=$(nproc)
LANES=${LANES:-$((CPUS < 4 ? CPUS + 1 : 4))} # a file mostly waits while the kernel attaches and detaches
ONLY=${ONLY:-}
LOGS=$O/test
run=$$.$EPOCHREALTIME # identifies the processes of this run
passed=0 failed=0 skipped=0
failures=()         # names for the end of the output
declare -A job_of=() # pid of the subshell -> job

# Under sudo, files in a user's checkout belong to the user.
finish() {
	end_all "MXBPF_TEST_RUN=$run"
	[[ -z ${SUDO_UID:-} ]] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$O"
	((${#failures[@]} == 0)) || printf 'FAILED: %s\n' "${failures[@]}"
	printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((failed == 0 && passed > 0))
	exit
}

# Ends the processes with this line in their environment: a job and everything that it started, in any process group.
end_all() { # NAME=VALUE
	local signal pids
	for signal in TERM KILL KILL; do
		mapfile -t pids < <(grep -szlxF -- "$1" /proc/[0-9]*/environ | grep -oE '[0-9]+')
		((${#pids[@]})) || return 0
		kill -s "$signal" "${pids[@]}" 2>/dev/null
		timeout 10 tail -s 0.05 "${pids[@]/#/--pid=}" -f /dev/null
	done
}

# shellcheck disable=SC2317 # a trap
interrupted() {
	trap '' INT TERM HUP
	echo 'FAILED: interrupted; ending every process that was started'
	end_all "MXBPF_TEST_RUN=$run"
	wait # for the shells of the jobs
	((failed += 1))
	finish
}

# Reads a TAP file. Writes "passed failed skipped" to fd 3; failed tests with their output, and skips, to stdout.
tap_summary() { # FILE RC
	awk -v rc="$2" '
	/^1\.\.[0-9]+/ { plan = substr($0, 4) + 0; next }
	/^ok / { n++; bad = 0
		if (match($0, / # (skip|SKIP) ?/)) { skip++; name = substr($0, 1, RSTART - 1); sub(/^ok [0-9]+ (- )?/, "", name)
			printf "    skipped: %s: %s\n", name, substr($0, RSTART + RLENGTH) }
		else pass++
		# A unit program prints the reason before "not ok".
		held = ""; next }
	/^not ok / { n++; fail++; bad = 1; sub(/^not ok [0-9]+ (- )?/, "")
		printf "    FAILED: %s\n%s", $0, held; held = ""; next }
	/^# measured again: / { printf "    %s\n", substr($0, 3); next }
	bad { print "      " $0; next }
	{ held = held "      " $0 "\n" }
	END {
		if (!plan || n < plan || (rc && !fail)) {
			fail++
			printf "    FAILED: ended early, %d of %s tests, exit code %d\n%s", n, plan ? plan : "?", rc, held }
		printf "%d %d %d\n", pass, fail, skip >"/dev/fd/3"
	}' "$1"
}

log_of() { echo "$LOGS/${1//[\/ ]/-}"; }

# Runs in a subshell: writes output to LOG.tap and "wall user system" seconds to LOG.time, and returns the job's status. A shell
# starts background jobs with SIGINT ignored, and the caller may ignore other signals, so this restores the defaults.
run_job() { # JOB
	local job=$1 log seconds=$FILE_SECONDS command tags='!alone'
	[[ ! $tag ]] || tags+=,$tag
	log=$(log_of "$job")
	export MXBPF_TEST_RUN=$run MXBPF_TEST_JOB=$run.$BASHPID
	case $job in
	unit/*) seconds=$UNIT_SECONDS command=("$O/$job") ;;
	*' alone') command=(bats --formatter tap --print-output-on-failure --filter-tags alone "tests/${job% alone}") ;;
	*) command=(bats --formatter tap --print-output-on-failure --filter-tags "$tags" "tests/$job") ;;
	esac
	TIMEFORMAT='%R %U %S'
	{ time env --default-signal=INT,QUIT,USR1,USR2 timeout -k 10 "$seconds" "${command[@]}" >"$log.tap" 2>&1 </dev/null; } 2>"$log.time"
}

report() { # JOB RC
	local job=$1 log p f s wall user system
	log=$(log_of "$job")
	tap_summary "$log.tap" "$2" 3>"$log.sum" >"$log.txt"
	read -r p f s <"$log.sum"
	((passed += p, failed += f, skipped += s))
	read -r wall user system < <(tail -n 1 "$log.time")
	awk "BEGIN { printf \"%.1f %.1f\", $wall, $user + $system }" >>"$LOGS/seconds"
	echo " $job" >>"$LOGS/seconds"
	printf '%-4s %3d passed %4.0f s  %s\n' "$( ((f)) && echo FAIL || echo ok)" "$p" "$wall" "$job"
	cat "$log.txt"
	mapfile -t -O "${#failures[@]}" failures < <(sed -n "s|^    FAILED: |$job: |p" "$log.txt")
}

report_one() { # waits until one of the jobs has ended
	local pid rc
	wait -n -p pid "${!job_of[@]}"
	rc=$?
	end_all "MXBPF_TEST_JOB=$run.$pid"
	report "${job_of[$pid]}" "$rc"
	unset "job_of[$pid]"
}

run_jobs() { # LANES, JOBs on stdin
	local job
	while read -r job; do
		((${#job_of[@]} < $1)) || report_one
		run_job "$job" &
		job_of[$!]=$job
	done
	while ((${#job_of[@]})); do report_one; done
}

# Prints the jobs, one per line. The next function sorts them by their time in tests/seconds; unknown ones count as long.
all_jobs() {
	local f
	if [[ $tag ]]; then
		grep -lE "^# bats (file|test)_tags=(.*,)?$tag(,.*)?\$" tests/*.bats | sed 's|^tests/||'
		return
	fi
	for f in tests/unit/*.c; do
		f=${f#tests/}
		echo "${f%.c}"
	done
	[[ ! $unit_only ]] || return 0
	for f in tests/*.bats; do
		grep -q '^# bats file_tags=alone' "$f" || echo "${f#tests/}"
		! grep -q '^# bats \(file\|test\)_tags=alone' "$f" || echo "${f#tests/} alone"
	done
}

longest_first() {
	awk 'FILENAME != "-" { job = $0; sub(/^[^ ]+ /, "", job); seconds[job] = $1; next }
		{ print $0 in seconds ? seconds[$0] : 100, $0 }' tests/seconds - | sort -k 1,1nr -s | cut -d ' ' -f 2-
}

slowest() {
	(($(wc -l <"$LOGS/seconds") > 10)) || return 0
	echo 'The ten slowest files:'
	sort -nr "$LOGS/seconds" | head -n 10 | while read -r wall cpu job; do
		printf '  %4.0f s, %4.0f s of CPU time  %s\n' "$wall" "$cpu" "$job"
	done
}

build() {
	# With the variables of an outer make, this make would only print a warning about the job server.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory -j"$CPUS" O="$O" "$@" && return
	echo "FAILED: the build (make $*)"
	failed=1
	finish
}

# Prints the targets that the jobs need: everything that a file makes or names.
products() { # JOBS
	local job here
	here=$(realpath -ms --relative-base=. "$O") # as make calls it
	echo all
	while read -r job; do
		[[ $job == unit/* ]] || echo progs
		case $job in
		unit/*) echo "$job" ;;
		fuzz.bats) echo fuzzers ;;
		kernels.bats) printf '%s\n' tests/unit/*_kernel.c | sed 's|^tests/\(.*\)\.c|\1|' ;;
		run.bats*) printf 'unit/test_%s\n' caller calibrate elf hidden layout marks omp ;;
		*) grep -oE 'unit/test_[a-z_0-9]*[a-z0-9]' "tests/${job% alone}" ;;
		esac
	done <<<"$1" | sort -u | while read -r job; do
		if [[ $job != unit/* ]]; then echo "$job"; elif [[ -e tests/$job.c ]]; then echo "$here/$job"; fi
	done
}

shopt -s nullglob
selected=$(all_jobs | grep -E -- "$ONLY")
if [[ -z $selected ]]; then
	echo "FAILED: no file of tests has a name that matches ONLY=$ONLY; there are:"
	all_jobs | tr '\n' ' ' | fold -s -w 100
	echo
	failed=1
	finish
fi
mkdir -p "$LOGS"
: >"$LOGS/seconds"
mapfile -t products < <(products "$selected")
build "${products[@]}"
# Four files make it, which must not do so at a time. Those that need it say why there is none.
if grep -qE '^(static|faults|session_faults|gpu_run)\.bats' <<<"$selected"; then make -s O="$O" static >"$LOGS/static" 2>&1 || true; fi
trap interrupted INT TERM HUP
run_jobs "$LANES" < <(grep -v ' alone$' <<<"$selected" | longest_first)
run_jobs 1 < <(grep ' alone$' <<<"$selected" | longest_first)
slowest
finish
