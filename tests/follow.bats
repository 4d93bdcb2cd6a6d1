#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Child processes of the target: which calls are recorded, from when on, and what following must not do to them.

load helpers

setup() {
	root_setup mxnet
	FORKS=("$PYTHON" "$REPO/tests/workload/mxnet_forks.py")
}

# Starts the workload with its standard input at descriptor 9.
start_forks() { # ARGS...
	mkfifo "$BATS_TEST_TMPDIR/in"
	start_bg forks bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "${FORKS[@]}" "$@"
	exec 9>"$BATS_TEST_TMPDIR/in"
	wait_line "$(out forks)" '^ready' "$BG_PID"
	FORKS_PID=$BG_PID
}

workers() { # N
	echo "$1" >&9
	wait_line "$(out forks)" '^workers'
}

seeds() { # prints the counts of MXRandomSeed in a JSON report, sorted
	jq -c '[.tables.MXNET_C_API[] | select(.name == "MXRandomSeed").count] | sort' "$1"
}

wait_followed() { # N
	wait_line "$(err mxbpf)" "^mxbpf: following process" "$MXBPF_PID"
	timeout "$WAIT_SECONDS" bash -c 'until (($(grep -c "^mxbpf: following process" "$0") == $1)); do sleep 0.02; done' "$(err mxbpf)" "$1"
}

@test "Every call of forked workers after the attach is counted in rows of each process" {
	start_forks --calls 50
	start_mxbpf -v --pid "$FORKS_PID" --follow filtered --api all --format json
	workers 3
	wait_followed 3
	printf '\n0\n' >&9
	wait_exit "$FORKS_PID"
	wait_exit "$MXBPF_PID"
	[[ $(seeds "$(out mxbpf)") == '[50,50,50]' ]]
	[[ $(jq '[.tables.MXNET_C_API[] | select(.name == "MXRandomSeed").pid] | unique | length' "$(out mxbpf)") == 3 ]]
	# Each worker has its own gap, and no unrelated process hits a probe.
	jq -e '.window | .followed == 3 and .unfollowed == 0 and (.gaps | length == 3 and all(.[]; .gap_ns > 0)) and
		.follow_lag_ns == (.gaps | map(.gap_ns) | max) and (has("strangers") | not)' "$(out mxbpf)"
	[[ $(jq .loss.dropped "$(out mxbpf)") == 0 ]]
	[[ $(grep -c '^worker [0-9]* 0$' "$(out forks)") == 3 ]] # mxbpf stops only workers of commands that it launched
}

@test "Tables for people add up the rows of all processes and say so" {
	start_forks --calls 50
	start_bg recording "$MXBPF" record -v --follow filtered --pid "$FORKS_PID" -o "$BATS_TEST_TMPDIR/r.mxd"
	MXBPF_PID=$BG_PID
	wait_line "$(err recording)" '^attached'
	workers 2
	timeout "$WAIT_SECONDS" bash -c 'until (($(grep -c "^mxbpf: following process" "$0") == 2)); do sleep 0.02; done' "$(err recording)"
	printf '\n0\n' >&9
	wait_exit "$MXBPF_PID"
	run --separate-stderr "$MXBPF" report --all "$BATS_TEST_TMPDIR/r.mxd"
	expect_re '^MXRandomSeed +100 ' "$output"
	expect_re '^others   2 more processes followed, each at most .* after its start; rows are sums over the processes$' "$output"
	expect_re '^gaps     not recorded before the probes were active: process [0-9]+ for [^,]+, process [0-9]+ for [^,]+$' "$output"
	run --separate-stderr "$MXBPF" report "$BATS_TEST_TMPDIR/r.mxd" --layout mxnet
	expect_re '^MXRandomSeed +100 ' "$output"
}

@test "Existing worker processes are followed from the start" {
	start_forks --calls 50
	workers 2
	start_mxbpf -v --pid "$FORKS_PID" --api all --format json
	wait_followed 2
	printf '\n0\n' >&9
	wait_exit "$MXBPF_PID"
	[[ $(seeds "$(out mxbpf)") == '[50,50]' ]]
}

@test "Worker processes that are new interpreters are followed when they map the library" {
	start_forks --calls 50 --spawn
	start_mxbpf -v --pid "$FORKS_PID" --api all --format json
	workers 2
	wait_followed 2
	printf '\n0\n' >&9
	wait_exit "$MXBPF_PID"
	[[ $(seeds "$(out mxbpf)") == '[50,50]' ]]
	[[ $(grep -c '^worker [0-9]* 0$' "$(out forks)") == 2 ]]
	# Names are strings in a library at a different address in each process.
	jq -e '[.tables.MXNET_C_API[].name] | all(startswith("MX"))' "$(out mxbpf)"
}

@test "--no-follow does not record child processes" {
	start_forks --calls 50
	start_mxbpf --no-follow --pid "$FORKS_PID" --api all --format json
	workers 2
	printf '\n0\n' >&9
	wait_exit "$FORKS_PID"
	wait_exit "$MXBPF_PID"
	# The parent's own last call is recorded.
	jq -e '(.window | has("followed") | not) and [.tables.MXNET_C_API[] | .name, .count] == ["MXNotifyShutdown", 1]' "$(out mxbpf)"
	[[ $(seeds "$(out mxbpf)") == '[]' ]]
}

@test "Child processes of a launched command that call exec are recorded from their first call" {
	printf '2\n\n0\n' >"$BATS_TEST_TMPDIR/in"
	expect_run 0 --separate-stderr "$MXBPF" --exact --api all --format json -- bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" \
		"${FORKS[@]}" --calls 50 --spawn --launched
	echo "$output" >"$BATS_TEST_TMPDIR/json"
	[[ $(seeds "$BATS_TEST_TMPDIR/json") == '[50,50]' ]]
	# import mxnet calls this once in each of the three interpreters.
	[[ $(jq '[.tables.MXNET_C_API[] | select(.name == "MXLibInfoFeatures").count] | add' "$BATS_TEST_TMPDIR/json") == 3 ]]
	jq -e '.window | .followed == 2 and .follow_lag_ns == 0' "$BATS_TEST_TMPDIR/json"
}

# Counts the probes of this session only: other tests attach at the same time. Samples of page faults are links, too.
fds_of_links() { (cd "/proc/$MXBPF_PID/fdinfo" && grep -ls '^link_type:' [0-9]* | xargs -r grep -Ls '^link_type:.*perf' | wc -l); }

@test "Probes and map entries of ended child processes are removed during the session" {
	start_forks --calls 1
	start_mxbpf -v --follow filtered --pid "$FORKS_PID"
	local fds
	fds=$(fds_of_links)
	workers 3
	wait_followed 3
	(($(fds_of_links) > fds))
	echo >&9
	export -f fds_of_links
	# shellcheck disable=SC2016 # for that shell
	MXBPF_PID=$MXBPF_PID timeout "$WAIT_SECONDS" bash -c 'until (($(fds_of_links) <= $0)); do sleep 0.02; done' "$fds"
	kill -s 0 "$MXBPF_PID"
}

# start_parent NAME FD: starts tests/faults/reborn.py, whose input is descriptor FD; sets READY_PID.
start_parent() {
	mkfifo "$BATS_TEST_TMPDIR/$1.in"
	start_ready "$1" bash -c 'exec <>"$0"; exec "$@"' "$BATS_TEST_TMPDIR/$1.in" \
		python3 "$REPO/tests/faults/reborn.py" "$O/toy/libmxnet.so" >/dev/null
	eval "exec $2>\"$BATS_TEST_TMPDIR/$1.in\""
}

# tell NAME FD LINE: sets PID to the pid of the answer.
tell() {
	local lines
	lines=$(grep -c '' "$(out "$1")")
	echo "$3" >&"$2"
	wait_lines $((lines + 1)) "$(out "$1")" '.' || return 1
	PID=$(tail -n 1 "$(out "$1")")
	PID=${PID#* }
}

# While mxbpf is stopped, it cannot see that a child ends before its pid comes back.
@test "A pid that comes back counts for each followed child that has it, and for no other process" {
	local mode reborn other fds
	export -f fds_of_links
	export MXBPF_PID
	start_parent stranger 8
	for mode in filtered shared; do
		start_parent "target-$mode" 9
		start_mxbpf -v --pid "$READY_PID" --follow "$mode" --api all --format json
		tell "target-$mode" 9 "calls 0 3"
		reborn=$PID
		wait_followed 1
		tell "target-$mode" 9 "ends $reborn"
		# Another program, and then a forked child, has the pid. Probes of the forked child stay when the other one's are removed.
		kill -s STOP "$MXBPF_PID"
		tell "target-$mode" 9 "sleeps $reborn"
		tell "target-$mode" 9 "ends $reborn"
		tell "target-$mode" 9 "calls $reborn 5"
		tell "target-$mode" 9 "calls 0 2"
		other=$PID
		kill -s CONT "$MXBPF_PID"
		wait_line "$(err mxbpf)" "^mxbpf: following process $other$"
		fds=$(fds_of_links)
		tell "target-$mode" 9 "ends $other"
		# shellcheck disable=SC2016 # for that shell
		[[ $mode == shared ]] || timeout "$WAIT_SECONDS" bash -c 'until (($(fds_of_links) < $0)); do sleep 0.02; done' "$fds"
		tell "target-$mode" 9 "ends $reborn"
		# A stranger has the pid of a child that has executed a program with the runtime and ended.
		kill -s STOP "$MXBPF_PID"
		tell "target-$mode" 9 "execs $reborn 10"
		tell "target-$mode" 9 "ends $reborn"
		tell stranger 8 "calls $reborn 100"
		tell "target-$mode" 9 "calls 0 2"
		other=$PID
		kill -s CONT "$MXBPF_PID"
		wait_line "$(err mxbpf)" "^mxbpf: following process $other$"
		tell stranger 8 "ends $reborn"
		tell "target-$mode" 9 "ends $other"
		end_pid "$MXBPF_PID"
		jq -e --argjson pid "$reborn" '(.loss | .dropped + .unmatched == 0) and
			([.tables.MXNET_C_API[] | [.pid == $pid, .count]] | sort == [[false, 2], [false, 2], [true, 8]])' "$(out mxbpf)"
	done
}

@test "Where BPF is forbidden between two children or two builds, the second is named with its reason, and the others count" {
	local target first
	cd "$BATS_TEST_TMPDIR"
	cc -O2 -Wall -Wextra -Werror -o nth_call "$REPO/tests/faults/nth_call.c"
	other_build "$O/toy/libmxnet.so" other/libmxnet.so
	start_parent target 9
	target=$READY_PID
	start_bg mxbpf ./nth_call calls bpf EPERM "$PWD/forbidden" "$MXBPF" --exact -v --pid "$target" --follow filtered --api all --format json
	wait_line "$(err mxbpf)" '^attached: ' "$BG_PID"
	tell target 9 "calls 0 3"
	first=$PID
	wait_line "$(err mxbpf)" "^mxbpf: following process $first$"
	: >forbidden
	tell target 9 "calls 0 5"
	wait_line "$(err mxbpf)" "process $PID is not followed: .* is not permitted: run with sudo"
	tell target 9 "ends $PID"
	tell target 9 "execs 0 7 other/libmxnet.so"
	wait_line "$(err mxbpf)" "process $PID is not followed: .* is not permitted: run with sudo"
	tell target 9 "ends $PID"
	rm forbidden
	tell target 9 "calls 0 11"
	wait_line "$(err mxbpf)" "^mxbpf: following process $PID$"
	tell target 9 "ends $PID"
	tell target 9 "ends $first"
	stop_pid "$target"
	wait_exit "$BG_PID"
	jq -e '(.window | .followed == 2 and .unfollowed == 2) and (.loss | .dropped + .unmatched == 0) and
		([.tables.MXNET_C_API[].count] | sort == [3, 11])' "$(out mxbpf)"
}

@test "Hundreds of child processes that exit at once are counted and cause no harm" {
	local program='import mxnet as mx, os, sys
for _ in range(300):
    pid = os.fork()
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print(mx.nd.ones((2,)).asnumpy())'
	expect_run 0 --separate-stderr "$MXBPF" --exact --format json -- "$PYTHON" -c "$program"
	expect_re '^\[1\. 1\.\]$' "$stderr"
	jq -e '.window | .followed + .unfollowed == 300' <<<"$output"
}

@test "A process that calls exec of a program with the library is recorded in that program, too" {
	cat >"$BATS_TEST_TMPDIR/again.py" <<-'EOF'
		import os, sys
		import mxnet as mx

		def seed_here():
		    mx.random.seed(1)

		seed_here()
		mx.nd.waitall()
		if len(sys.argv) == 1:
		    os.execv(sys.executable, [sys.executable, __file__, 'again'])
	EOF
	expect_run 0 --separate-stderr "$MXBPF" --exact --api all --py-stacks --by stack --format json -- "$PYTHON" "$BATS_TEST_TMPDIR/again.py"
	# Both calls have the same stack, so they are one row.
	jq -e '[.tables.MXNET_C_API[] | select(.name == "MXRandomSeed") | .count, (.stack[1] | test("seed_here$"))] == [2, true] and
		.loss.dropped == 0' <<<"$output"
}

# Prints the entries that the BPF maps of $MXBPF_PID have for a process, as {"map": ENTRIES}. The other maps are LRU maps.
held_of() { # PID
	local id name maps='mark_values life_pushed life_last'
	for id in $(sed -n 's/^map_id:[[:space:]]*//p' /proc/"$MXBPF_PID"/fdinfo/* | sort -u); do
		name=$(bpftool -j map show id "$id" | jq -r .name)
		[[ " $maps " == *" $name "* ]] || continue
		bpftool -j map dump id "$id" | jq -c --arg name "$name" --argjson pid "$1" \
			'[.[].formatted.key | select(. == $pid or .tgid? == $pid)] | select(length > 0) | {($name): length}'
	done | jq -c -s 'add // {}'
}

wait_held() { # PID MAPS: waits until held_of() has exactly these maps
	export -f held_of
	export MXBPF_PID
	# shellcheck disable=SC2016 # for that shell
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(held_of "$0" | jq -c keys) == "$1" ]]; do sleep 0.02; done' "$1" "$2" && return 0
	held_of "$1" >&2
	return 1
}

@test "Map entries of closed windows and of a killed process are removed, so that others find room" {
	mkfifo "$BATS_TEST_TMPDIR/in"
	start_bg mxbpf bash -c 'exec <"$0"; exec "$@"' "$BATS_TEST_TMPDIR/in" "$MXBPF" --life -- \
		bash -c '"$0" "$1"; echo died; read -r; exit 0' "$PYTHON" "$REPO/tests/life/dies.py"
	MXBPF_PID=$BG_PID
	exec 9>"$BATS_TEST_TMPDIR/in"
	wait_line "$(out mxbpf)" '^pushed' "$MXBPF_PID"
	local pid
	pid=$(sed -n 's/^pushed //p' "$(out mxbpf)")
	wait_held "$pid" '["life_last","life_pushed","mark_values"]'
	kill -USR1 "$MXBPF_PID" # pauses
	wait_held "$pid" '["life_last","mark_values"]'
	kill -KILL "$pid"
	wait_line "$(out mxbpf)" '^died' "$MXBPF_PID"
	wait_held "$pid" '[]'
	echo >&9
	wait_exit "$MXBPF_PID"
}
