# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions for all bats files: `load helpers` in the first line. tests/run.sh exports MXBPF (the binary), O, PYTHON (MXNet's),
# PYTHON_TORCH and REPO. A bats file that is run by hand gets them for O=build.
#
#   root_setup [mxnet|torch...]
#                              setup() of files whose tests need root: need_root and the other needs, and changes to the test's
#                              own directory
#   need_root                  skips unless root
#   need_mxnet                 fails, with the remedy, unless tests/setup.sh has installed MXNet
#   need_torch                 fails, with the remedy, unless tests/setup.sh has installed PyTorch
#   need_mxnet_2               skips unless tests/versions/setup.sh has run; PYTHON imports MXNet 2.0 from then on
#   torch_setup                setup() of files that judge PyTorch: JUDGE is tests/judge_torch, `prog ARGS...` runs its
#                              programs; tests/judge_torch/shared.bash has the fixtures that tests of a run share
#   shared NAME COMMAND...     runs COMMAND once per run of the tests, in a directory of its own; SHARED is that directory.
#                              Other tests that ask for NAME wait until it is complete. Background processes of COMMAND must
#                              end when the directory is removed.
#   take_shared NAME COMMAND...
#                              like shared, and copies the files of the directory into the current one
#   mxnet_reference PROGRAM.py the account of MXNet's own profiler for a program of tests/judge, once per run: files with the
#                              prefix builtin, and with the prefix naive for the engine with one thread
#   measured                   in setup() of tests that compare times or judge by statistics: what they measure can be wrong once,
#                              because other guests of the machine change the speed of its CPUs. A test that fails measures
#                              again and has to pass then; the output of the run says so.
#   start_bg NAME COMMAND...   starts COMMAND with stdout in $BATS_TEST_TMPDIR/NAME.out, stderr in NAME.err; sets BG_PID
#   start_mxbpf ARGS...        start_bg mxbpf "$MXBPF" ARGS..., returns when it prints "attached:"; sets MXBPF_PID. Tables are
#                              exact unless ARGS have --max-overhead.
#   start_ready NAME CMD...    start_bg of a program that prints "ready PID", returns then; sets READY_PID and prints it
#   start_workload ARGS...     start_ready of tests/workload/mxnet_train.py as "workload"; sets WORKLOAD_PID and prints it
#                              (a subshell $(start_workload) works, too)
#   shared_workload ARGS...    like start_workload, but the tests of a file use one job in turn, which is stopped between
#                              them. $(out workload) has its output from now on. A test that ends the job or waits for its
#                              end must start its own.
#   start_torch ARGS...        like start_workload for tests/workload/torch_train.py, in a child of the fork server
#   torch_server               starts tests/fork_server.py, which has imported torch, once per run of the tests. SERVED is the
#                              command that runs SCRIPT ARGS... in a child of it, SERVER_PID the server. BUILD selects the
#                              PyTorch: wheel (the default), stripped, debian, next (the newest), previous (the one before).
#   start_code NAME CODE ARGS...
#                              start_ready of a PyTorch program given as text, in a child of the fork server
#   make_static TARGET...      makes packages and other targets that need the static program, one file of tests at a time. Skips if the
#                              sources of Debian that it needs cannot be downloaded.
#   other_build LIBRARY COPY   copies a library under the build id of another MXNet that mxbpf knows
#   start_toy ARGS...          start_ready of tests/toy, a C++ program on a toy MXNet; TOY: its directory (default $O/toy)
#   traced ARGS STDOUT COMMAND...
#                              runs mxbpf with ARGS, --exact and --pid around exactly the section between the gates of
#                              tests/judge/drive.py; its stdout goes to STDOUT
#   traced_prog ARGS PROG_ARGS...
#                              after torch_setup: traced for a program of judge_torch, with stdout in mxbpf.json
#   same_counts TOY JSON       succeeds if mxbpf's JSON has the counts of the toy's output and no call is lost
#   wait_line FILE REGEX [PID] waits until a line of the growing file matches; fails if PID ends before, or after
#                              WAIT_SECONDS (120)
#   wait_lines N FILE REGEX    waits until N lines of the growing file match
#   wait_new_line FILE REGEX [N]
#                              wait_line for lines that are not there yet, of a process that goes on printing them; N times
#   wait_exit PID [SECONDS]    waits until the child ends; returns its exit status (124: it still runs)
#   wait_gone PID [SECONDS]    waits until a process ends that need not be a child; returns 0 or 1
#   end_pid PID [SIGNAL [SECONDS]]
#                              sends INT (or SIGNAL) to the child and waits; returns its exit status
#   end_ready                  ends the program of start_ready by USR1, and then waits for mxbpf, which ends with it
#   stop_pid PID [SIGNAL]      sends TERM (or SIGNAL) and waits; sends KILL and fails if the process does not end
#   for_others FILE            prints the path of a program or folder, or of a copy if other users may not enter where it is, such as a
#                              home
#   out NAME, err NAME         the path of NAME's output
#   probe_links                ids of the BPF links that processes of this test hold, and of those that no process holds
#   no_new_links IDS           waits until all of the current links that are not among IDS are gone
#   expect_run N COMMAND...    `run` of the command, which must end with status N
#   expect_error N REGEX COMMAND...
#                              expect_run; a line of what it prints must match. With --separate-stderr: of its stderr
#   expect_status N            checks the status of the last `run`; prints its output if it differs
#   expect_re REGEX TEXT       prints the text and fails if no line matches
#   expect_same TOLD SEEN      prints what differs and fails; empty arguments fail, too
#   # bats test_tags=alone     before a test that compares times: tests/run.sh runs it when no other file is running
#   kill_started               ends every process that the test started, except shared jobs
#   park_jobs                  stops the shared jobs
#                              teardown() calls both: a teardown of your own must do so, too. teardown_file() ends the
#                              shared jobs.
#
# Call start_* directly and not in $(...), and wait_exit not under `run`, if the exit status matters: a shell knows only
# its own children. A status other than 0 ends a test: `wait_exit "$pid" || status=$?`.

bats_require_minimum_version 1.8.0 # test tags

REPO=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
O=$(realpath -m "${O:-$REPO/build}")
MXBPF=${MXBPF:-$O/mxbpf}
PYTHON=${PYTHON:-$O/deps/venv/bin/python}
PYTHON_TORCH=${PYTHON_TORCH:-$O/deps/torch/bin/python}
WAIT_SECONDS=${WAIT_SECONDS:-120}
export REPO O MXBPF PYTHON PYTHON_TORCH
# Plans that mxbpf keeps: neither from the machine nor for it.
export XDG_CACHE_HOME=${MXBPF_TEST_SHARED:-$BATS_RUN_TMPDIR}/cache
mkdir -p "$XDG_CACHE_HOME"
export LC_ALL=C.UTF-8 # tables for people depend on the locale
STARTED_BY=() # pid of a program that is not a child of this shell -> pid of the child that ends with the program's status

measured() {
	# shellcheck disable=SC2034 # for bats
	BATS_TEST_RETRIES=1
	((BATS_TEST_TRY_NUMBER == 1)) || echo "# measured again: $BATS_TEST_DESCRIPTION" >&3
}

need_root() {
	[[ $(id -u) == 0 ]] || skip "needs root"
}

root_setup() {
	local need
	for need in root "$@"; do "need_$need" || return 1; done
	cd "$BATS_TEST_TMPDIR" || return 1
}

make_static() {
	local made=$BATS_FILE_TMPDIR/made
	flock "$O/static.lock" make -s -C "$REPO" --no-print-directory O="$O" "$@" >"$made" 2>&1 && return 0
	! grep -q 'cannot download' "$made" || skip "Debian's sources of cJSON, Zydis and libmicrohttpd cannot be downloaded"
	cat "$made" >&2
	return 1
}

need_mxnet() {
	[[ -x $PYTHON ]] && return 0
	echo "no MXNet at $PYTHON: run tests/setup.sh" >&2
	return 1
}

need_mxnet_2() {
	[[ -f $O/deps/versions/2.0.0b1/stamp ]] || skip "no MXNet 2.0.0b1 at $O/deps/versions: tests/versions/setup.sh"
	export PYTHONPATH=$O/deps/versions/2.0.0b1
}

need_torch() {
	[[ -x $PYTHON_TORCH ]] && return 0
	echo "no PyTorch at $PYTHON_TORCH: run tests/setup.sh" >&2
	return 1
}

# setup() of files that judge PyTorch. Changes to the test's own directory.
# The newest PyTorch: that of the tests, or of tests/next.sh.
NEXT=${MXBPF_TEST_NEXT:-$O/deps/torch-next}

PREVIOUS=$O/deps/torch-previous

need_next() {
	[[ -f $NEXT/stamp ]] || skip "no newer PyTorch at $NEXT: $(tail -n 1 "$O/deps/torch-next.log" 2>/dev/null)"
}

need_previous() {
	[[ -f $PREVIOUS/stamp ]] || skip "no PyTorch 2.14 at $PREVIOUS: $(tail -n 1 "$O/deps/torch-previous.log" 2>/dev/null)"
}

torch_setup() {
	need_root
	need_torch
	JUDGE=$REPO/tests/judge_torch
	# shellcheck source=tests/judge_torch/shared.bash
	source "$JUDGE/shared.bash"
	cd "$BATS_TEST_TMPDIR" || return 1
}

traced() {
	python3 "$REPO/tests/judge/drive.py" --tool "'$MXBPF' $1 --exact --pid {pid}" --stdout "$2" -- "${@:3}"
}

# tests/run.sh names one directory for all files. A file that is run by hand has a directory of its own.
shared() {
	local all=${MXBPF_TEST_SHARED:-$BATS_RUN_TMPDIR/shared} lock
	SHARED=$all/$1
	mkdir -p "$all"
	exec {lock}>"$SHARED.lock"
	flock "$lock"
	if [[ ! -f $SHARED/made ]]; then
		rm -rf "$SHARED"
		mkdir "$SHARED"
		# A failure ends the test here and releases the lock. A background process must not inherit the lock.
		(
			cd "$SHARED" || exit
			"${@:2}"
			: >made
		) {lock}>&-
	fi
	exec {lock}>&-
}

make_mxnet_reference() { # PROGRAM
	"$PYTHON" "$1" --builtin builtin
	# MXNet's trace has allocations in order, which their sizes need, only from an engine with one thread.
	MXNET_ENGINE_TYPE=NaiveEngine "$PYTHON" "$1" --builtin naive
}

mxnet_reference() { take_shared "mxnet-builtin-$(basename "$1")" make_mxnet_reference "$1"; }

# serve COMMAND...: starts a fork server in the current directory.
serve() {
	local for_all=(env -u MXBPF_TEST_JOB)
	# A server outlives this file: when a file has ended, tests/run.sh ends processes with this variable. Only one file has tests of
	# this PyTorch, and a session on all processes of the host can follow four builds, which the other servers and MXNet are.
	[[ $BUILD != previous ]] || for_all=()
	"${for_all[@]}" setsid "$@" "$REPO/tests/fork_server.py" serve "$PWD/socket" >served 2>&1 </dev/null 3>&- &
	WAIT_SECONDS=300 wait_line served '^serving [0-9]+$' $! # it imports torch, from a disk that may be busy
}

torch_server() {
	local SHARED command=("$PYTHON_TORCH")
	case ${BUILD:=wheel} in
	stripped) command=(env LD_LIBRARY_PATH="$O/deps/torch-stripped" "$PYTHON_TORCH") ;;
	debian) command=("$O/deps/torch-debian/bin/python") ;;
	next) command=("$NEXT/bin/python") ;;
	previous) command=("$PREVIOUS/bin/python") ;;
	esac
	shared "torch-server-$BUILD" serve "${command[@]}"
	SERVED=(python3 "$REPO/tests/fork_server.py" run "$SHARED/socket")
	# shellcheck disable=SC2034 # for the tests
	SERVER_PID=$(sed -n 's/^serving //p' "$SHARED/served")
}

take_shared() {
	shared "$@"
	find "$SHARED" -mindepth 1 -maxdepth 1 -type f ! -name made ! -name started -exec cp --reflink=auto -t . {} +
}

# Time that the hypervisor has stolen from all CPUs since boot. Some of the kernel's clocks count it as time of the thread that
# was on the CPU, others do not.
stolen_ns() { awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" { printf "%.0f", $9 * 1e9 / hz }' /proc/stat; }

for_others() {
	local to=$BATS_TEST_TMPDIR/others/${1##*/} dir=$BATS_TEST_TMPDIR
	! setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$1" || { echo "$1" && return; }
	if [[ ! -e $to ]]; then
		mkdir -p "${to%/*}" && cp -r "$1" "$to" && chmod -R a+rX "${to%/*}"
		while [[ $dir == "$BATS_RUN_TMPDIR"* ]]; do chmod a+x "$dir" && dir=${dir%/*}; done
	fi
	echo "$to"
}

out() { echo "$BATS_TEST_TMPDIR/$1.out"; }
err() { echo "$BATS_TEST_TMPDIR/$1.err"; }

# A pid may be reused before it is killed. Together with its start time it is unique.
start_time() {
	local fields
	[[ -r /proc/$1/stat ]] && fields=$(<"/proc/$1/stat") || return 1
	read -ra fields <<<"${fields##*) }"
	echo "${fields[19]}"
}

start_bg() {
	local name=$1
	shift
	: >"$(out "$name")" 2>"$(err "$name")" # a reader may come before the redirection
	# bats waits for every process that has its fd 3.
	"$@" >"$(out "$name")" 2>"$(err "$name")" </dev/null 3>&- &
	BG_PID=$!
	echo "$BG_PID $(start_time "$BG_PID")" >>"$BATS_TEST_TMPDIR/started"
}

# tail follows by inotify. It ends with its reader, or within a second after the process.
wait_line() {
	timeout "$WAIT_SECONDS" tail -n +1 -f ${3:+--pid="$3"} "$1" 2>/dev/null | grep -q -m 1 -E -- "$2" && return 0
	echo "no line '$2' in $1:" >&2
	tail -n 20 "$1" >&2
	return 1
}

wait_lines() {
	timeout "$WAIT_SECONDS" tail -n +1 -f "$2" 2>/dev/null | {
		local line n=0
		while ((n < $1)) && read -r line; do [[ ! $line =~ $3 ]] || ((++n)); done
		((n == $1))
	} && return 0
	echo "no $1 lines '$3' in $2:" >&2
	tail -n 20 "$2" >&2
	return 1
}

wait_new_line() {
	local i
	for ((i = 0; i < ${3:-1}; i++)); do
		timeout "$WAIT_SECONDS" tail -n 0 -f "$1" 2>/dev/null | grep -q -m 1 -E -- "$2" && continue
		echo "no new line '$2' in $1" >&2
		return 1
	done
}

start_ready() {
	local name=$1
	start_bg "$@"
	if ! wait_line "$(out "$name")" '^ready [0-9]+$' "$BG_PID"; then
		tail -n 20 "$(err "$name")" >&2
		return 1
	fi
	READY_PID=$(sed -n 's/^ready //p;T;q' "$(out "$name")")
	if [[ $READY_PID != "$BG_PID" ]]; then # a child of the fork server or of mxbpf
		STARTED_BY[READY_PID]=$BG_PID
		echo "$READY_PID $(start_time "$READY_PID")" >>"$BATS_TEST_TMPDIR/started"
	fi
	echo "$READY_PID"
}

start_workload() {
	need_mxnet && start_ready workload "$PYTHON" "$REPO/tests/workload/mxnet_train.py" "$@" >/dev/null || return 1
	WORKLOAD_PID=$READY_PID
	echo "$WORKLOAD_PID"
}

# The job has a directory of its own, like a test's.
shared_workload() {
	local name=${*:-plain}
	local job=$BATS_FILE_TMPDIR/jobs/${name// /_}
	mkdir -p "$job"
	if [[ ! -f $job/started ]] || ! is_started <"$job/started"; then
		BATS_TEST_TMPDIR=$job start_workload "$@" >/dev/null
	fi
	read -r WORKLOAD_PID _ < <(tail -n 1 "$job/started")
	start_bg workload tail -n 0 -s 0.05 -f "$job/workload.out"
	kill -s CONT "$WORKLOAD_PID"
}

# Succeeds if the last process on stdin, lines of `started`, still runs.
is_started() {
	local pid started
	read -r pid started < <(tail -n 1)
	[[ -n $started && $(start_time "$pid") == "$started" && $(ps -o stat= -p "$pid") != Z* ]]
}

park_jobs() {
	local file pid
	for file in "$BATS_FILE_TMPDIR"/jobs/*/started; do
		[[ ! -f $file ]] || ! is_started <"$file" || { read -r pid _ < <(tail -n 1 "$file") && kill -s STOP "$pid"; }
	done
	return 0
}

teardown_file() {
	local job
	for job in "$BATS_FILE_TMPDIR"/jobs/*/; do
		BATS_TEST_TMPDIR=$job kill_started
	done
}

start_torch() {
	need_torch
	torch_server
	start_ready workload "${SERVED[@]}" "$REPO/tests/workload/torch_train.py" "$@" >/dev/null || return 1
	WORKLOAD_PID=$READY_PID
	echo "$WORKLOAD_PID"
}

start_code() {
	need_torch
	torch_server
	cat >"$BATS_TEST_TMPDIR/$1.py" <<<"$2"
	start_ready "$1" "${SERVED[@]}" "$BATS_TEST_TMPDIR/$1.py" "${@:3}"
}

other_build() {
	mkdir -p "$(dirname "$2")"
	objcopy -O binary --only-section=.note.gnu.build-id "$1" "$2.note"
	{ head -c 16 "$2.note" && printf '\x5b\xc4\x78\x70\xa5\x85\x12\x3f\x6a\x8e\xbc\x2f\x32\x3c\x41\x50\xa4\xbb\x77\xd5'; } >"$2.other"
	objcopy --update-section .note.gnu.build-id="$2.other" "$1" "$2"
}

start_toy() {
	start_ready toy "${TOY:-$O/toy}/toy" "$@" >/dev/null
}

# The kernel may hide a switch on a busy machine. The next record of its thread then counts as unmatched, and no call is lost.
same_counts() {
	local did seen
	did=$(tail -n 1 "$1" | jq -S '. + {lost: 0}') || return 1
	seen=$(jq -S '(.tables | map_values(if .[0].count then map({(.name): .count}) | add
		else .[0] | {allocs, frees, alloc_bytes, free_bytes} end))
		+ {lost: ((.loss | .dropped + .truncated + .unreadable + .unmatched + .attempted - .stored) -
		([.sources[]? | select(.source == "scheduler").unmatched] | add // 0))}' "$2") || return 1
	expect_same "$did" "$seen"
}

start_mxbpf() {
	local exact=(--exact)
	[[ $1 == -* && " $* " != *' --max-overhead '* ]] || exact=()
	start_bg mxbpf "$MXBPF" "${exact[@]}" "$@"
	MXBPF_PID=$BG_PID
	wait_line "$(err mxbpf)" '^(mxbpf: )?attached: [0-9]+ probes' "$MXBPF_PID"
}

wait_gone() {
	timeout "${2:-$WAIT_SECONDS}" tail -s 0.05 --pid="$1" -f /dev/null && return 0
	# A zombie has ended and waits for its parent. A reaped process has no state.
	[[ $(ps -o stat= -p "$1" 2>/dev/null) =~ ^(Z.*)?$ ]]
}

wait_exit() {
	local rc=0
	wait_gone "$1" "${2:-}" || { echo "process $1 does not end" >&2 && return 124; }
	wait "${STARTED_BY[$1]:-$1}" || rc=$?
	((rc == 0)) || echo "process $1 ended with status $rc" >&2
	return "$rc"
}

stop_pid() {
	kill -s "${2:-TERM}" "$1" 2>/dev/null
	wait_gone "$1" 20 && return 0
	echo "process $1 did not end on ${2:-TERM}" >&2
	kill -s KILL "$1"
	return 1
}

end_pid() {
	kill -s "${2:-INT}" "$1" || return 1
	wait_exit "$1" "${3:-}"
}

end_ready() {
	end_pid "$READY_PID" USR1 || return
	wait_exit "$MXBPF_PID"
}

kill_started() {
	local pid started
	[[ -f $BATS_TEST_TMPDIR/started ]] || return 0
	while read -r pid started; do
		[[ -n $started && $(start_time "$pid") == "$started" ]] || continue
		# The fork server may have ended it, because its client ended.
		kill -s CONT "$pid" 2>/dev/null || continue
		kill -s KILL "$pid" 2>/dev/null || continue
		wait_gone "$pid" 10
	done <"$BATS_TEST_TMPDIR/started"
	return 0
}

teardown() {
	kill_started
	park_jobs
}

# Reads the ids before their holders: a link that another process closes in between seems to have no holder, but disappears.
# BATS_TEST_TMPDIR in the environment identifies the test's own processes.
probe_links() {
	local ids dir others
	ids=$(bpftool -j link show | jq -r '.[].id')
	others=$(find /proc/[0-9]*/fd -lname 'anon_inode:bpf*link*' -printf '%h\n' 2>/dev/null | uniq | while read -r dir; do
		grep -szqxF "BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR" "${dir%fd}environ" ||
			sed -s -n 's/^link_id:[[:space:]]*//p' "${dir}info"/* 2>/dev/null
	done)
	grep -vxF "${others:-none}" <<<"$ids" || true
}
export -f probe_links

no_new_links() {
	# shellcheck disable=SC2016 # for that shell
	timeout 60 bash -c 'left=$(probe_links | grep -vxF "$0")
		while [[ -n $left ]]; do sleep 0.1; left=$(probe_links | grep -xF "$left" || true); done' "$1" && return 0
	echo "links that were not there before: $(probe_links), before: $1" >&2
	return 1
}

expect_run() {
	run "${@:2}"
	expect_status "$1"
}

expect_error() {
	local said=output
	[[ $3 != --separate-stderr ]] || said=stderr
	expect_run "$1" "${@:3}" || return
	expect_re "$2" "${!said}"
}

expect_status() {
	# shellcheck disable=SC2154 # `run` sets them
	if [[ $status != "$1" ]]; then
		printf 'exit code %s, not %s:\n%s\n%s\n' "$status" "$1" "$output" "${stderr:-}" >&2
		return 1
	fi
}

expect_re() {
	grep -q -E -- "$1" <<<"$2" && return 0
	printf 'no line matches %s:\n%s\n' "$1" "$2" >&2
	return 1
}

# The output of a filter that failed or matched nothing.
expect_same() {
	case $1 in
	'' | null | '[]' | '{}') echo "nothing to compare: '$1'" >&2 && return 1 ;;
	esac
	diff <(echo "$1") <(echo "$2") >&2
}
