#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A process that attacks the mxbpf that is attached to it, through the agent's shared memory and its bell (tests/hostile).
# mxbpf must not crash, hang, use much memory, or touch a file of somebody else. If the process writes what an honest agent
# cannot write, mxbpf says so and exits with 1. Amounts are legal, however large.
#
# HOSTILE_ASAN=build-asan/mxbpf runs the same tests with another binary, such as one with sanitizers, made by
# `make O=build-asan ASAN=1`. HOSTILE_SECONDS=2 judges on a quiet machine whether mxbpf ends within 2 s of its window.
# HOSTILE_ALL=1 makes all attacks; otherwise each test makes the first three of each kind.

load helpers

HOSTILE=$BATS_TEST_DIRNAME/hostile
UNDER_TEST=$(realpath "${HOSTILE_ASAN:-$MXBPF}")
OBJECT=${UNDER_TEST%/*}/gen/agent.so
WINDOW=0.3 # s; an attack begins with the window, which a forged one ends at once
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1

setup_file() {
	need_root
	OFFSETS=$(nm -D "$OBJECT" | awk '{ at[$3] = $1 } END { print at["mxbpf_agent_config"], at["mxbpf_agent_bell"], at["mxbpf_agent_switch"] }')
	export OFFSETS # of the agent's configuration, bell and switch
	cc -O2 -Wall -Wextra -Werror -shared -fPIC -pthread -I"$REPO/include" -o "$BATS_FILE_TMPDIR/evil.so" "$HOSTILE"/evil*.c -ldl
}

setup() {
	torch_setup
	torch_server
}

start_evil() { # ATTACK [OPTIONS OF job.py]
	! is_gpu "$1" || set -- "$@" --gpu "$O/gpu"
	start_ready "$1" "${SERVED[@]}" "$HOSTILE/job.py" "$1" "$BATS_FILE_TMPDIR/evil.so" "$OBJECT" "$PWD/$1.victim" \
		"$OFFSETS" "${@:2}" >/dev/null
}

# Runs mxbpf against a job for a window. Its status is in NAME.status, its output in NAME.json and NAME.said.
besiege() { # NAME PID OPTIONS...
	local name=$1 pid=$2
	shift 2
	[[ " $* " == *' -f '* ]] || set -- "$@" -f json
	: >"$name.said"
	start_bg "within-$name" python3 "$HOSTILE/within.py" "$WINDOW" "$name.json" "$name.said" \
		"$UNDER_TEST" --exact --pid "$pid" -d "${WINDOW}s" "$@"
}

# Prints what was said if a test fails.
complain() { # NAME WHAT
	echo "$1: $2" >&2
	cat "$(out "within-$1")" "$(err "within-$1")" >&2
	head -c 2000 "$1.said" | cat -v >&2
	[[ ! -f $(err "$1") ]] || head -c 2000 "$(err "$1")" | cat -v >&2
	return 1
}

# Checks what every attack must leave intact. Sets STATUS.
unharmed() { # NAME PID
	local text
	STATUS=$(sed -n 's/^status \([0-9-]*\),.*/\1/p' "$(out "within-$1")")
	[[ ! -s $(err "within-$1") ]] || complain "$1" 'a limit was broken' || return 1
	[[ ! -s $1.json ]] || ! grep -q '^{' "$1.json" || jq -e 'has("window")' "$1.json" >/dev/null || complain "$1" 'not JSON' || return 1
	! LC_ALL=C grep -q '[[:cntrl:]]' <(tr -d '\n\t' <"$1.json") <(tr -d '\n\t' <"$1.said") ||
		complain "$1" 'a control character in the output' || return 1
	text=$(grep -c "broke the agent's contract" "$1.said" || true)
	if ((STATUS == 1)); then
		grep -q "process $2 broke the agent's contract" "$1.said" || complain "$1" 'exit status 1 without the reason' || return 1
		! grep -q '^{' "$1.json" || jq -e 'any(.window.notes[]; .text | test("contract"))' "$1.json" >/dev/null ||
			complain "$1" 'the tables have no note' || return 1
	elif ((text)); then
		complain "$1" "a broken contract, and exit status $STATUS"
	fi
}

# A job that has ended by itself leaves its status for complain().
end_job() { # NAME PID
	kill -s KILL "$2" 2>/dev/null && return
	wait_exit "$2" 10 || echo "the job has ended with status $?" >>"$(err "$1")"
}

# The verdicts: a forged one is found, a legal one changes nothing, and the third kind is found, or harmless, or mxbpf refuses
# to attach.
forged() { ((STATUS == 1)) || complain "$1" "exit status $STATUS, not 1"; }
harmless() {
	((STATUS == 0)) || complain "$1" "exit status $STATUS, not 0" || return 1
	jq -e '.loss | .attempted < 1e12 and .dropped < 1e12' "$1.json" >/dev/null || complain "$1" 'absurd numbers'
}
legal() {
	harmless "$1" || return 1
	jq -e '[.tables.operator[]? | select(.name == "aten::mul") | .count > 20] == [true]' "$1.json" >/dev/null ||
		complain "$1" 'the operators of the job are missing'
}
either() {
	case $STATUS in
	0) harmless "$1" ;;
	1) ;;
	3 | 4) grep -q "process $2" "$1.said" || complain "$1" "exit status $STATUS without the process" ;;
	*) complain "$1" "exit status $STATUS" ;;
	esac
}

# The memory is not used: mxbpf refuses it, or the session is as usual with other memory.
unused() { if ((STATUS)); then either "$@"; else legal "$1"; fi; }

is_gpu() { [[ $1 == gpu-* || $1 == *-gpu || $1 == want-* ]]; }

# Makes these attacks, three at a time. The verdict is that on each of them. The options are those of mxbpf.
attack() { # VERDICT ATTACK... [-- OPTIONS]
	local verdict=$1 failed=0 i WINDOW=$WINDOW
	local -a all=() names pids runs options
	shift
	while (($#)) && [[ $1 != -- ]]; do
		all+=("$1")
		shift
	done
	shift $(($# > 0))
	[[ $verdict != forged ]] || WINDOW=5 # on a busy machine the job may do nothing for half a second
	[[ -n ${HOSTILE_ALL:-} ]] || all=("${all[@]:0:3}")
	while ((${#all[@]})); do
		names=("${all[@]:0:3}") all=("${all[@]:3}") pids=() runs=()
		for i in "${!names[@]}"; do
			start_evil "${names[i]}"
			pids+=("$READY_PID")
		done
		for i in "${!names[@]}"; do
			options=(--agent "$@")
			! is_gpu "${names[i]}" || options+=(--gpu)
			besiege "${names[i]}" "${pids[i]}" "${options[@]}"
			runs+=("$BG_PID")
		done
		for i in "${!names[@]}"; do
			wait_exit "${runs[i]}" 60 || true
			end_job "${names[i]}" "${pids[i]}"
		done
		for i in "${!names[@]}"; do
			unharmed "${names[i]}" "${pids[i]}" && "$verdict" "${names[i]}" "${pids[i]}" && happened "${names[i]}" || failed=1
		done
	done
	((!failed))
}

# test_gate forges each field as well, without a process.
forged_fields() { [[ -n ${HOSTILE_ALL:-} ]] || skip "unit/test_gate has these; HOSTILE_ALL=1 makes them with a process"; }

# The job has begun the attack. One that comes before mxbpf says nothing.
happened() {
	[[ $1 == fake-* ]] || grep -qx "evil: $1" "$(err "$1")" || complain "$1" 'the attack did not take place' || return 1
	! grep 'evil: impossible' "$(err "$1")" || skip "impossible here"
}

@test "A job that could attack and does not, and one that rings the bell as the agent would, are profiled as usual" {
	attack legal none legal
	jq -e '[.tables.operator[] | select(.name == "evil::call") | .count] == [2550]' legal.json
	jq -e '.loss | .dropped == 0 and .attempted == .stored' legal.json
}

@test "Calls without end are counted as dropped, and mxbpf ends with its window" {
	attack legal flood
	jq -e '.loss | .dropped > 0 and .attempted == .stored + .dropped' flood.json
	attack either flood-on # the agent would stop with the window
}

@test "A job that ends or executes another program in the middle of its calls ends the session as usual" {
	attack harmless exits execs
}

@test "Names that are longer than the agent's do not become records" {
	attack forged name-is-records name-forges-span name-forges-two name-256 name-wraps-to-0 name-wraps-to-64 name-random
}

@test "Names without an end, beyond the texts, or with an end that comes and goes are forged" {
	attack forged name-unended name-beyond
	attack either name-changes
}

@test "Lists of arguments and stacks that mean nothing, or are too many, do not end mxbpf" {
	attack either lists-wild lists-many -- --shapes --py-stacks
}

@test "A million names do not take more memory than mxbpf may use" { attack either names-many; }

@test "Names with control characters and wrong UTF-8 are legal and printed safely, in JSON and in tables" {
	attack legal name-escapes
	jq -e '[.tables.operator[] | select(.name | test("evil"))] | length >= 2' name-escapes.json
	attack shown name-escapes -- -f table
}
shown() { [[ $STATUS == 0 && $(<"$1.json") == *evil* ]] || complain "$1" "exit status $STATUS, or no table"; }

@test "Calls with an impossible scope, flag, self time or thread are forged" {
	forged_fields
	attack forged call-scope left-scope call-flags call-self left-self call-tid-0
}

@test "Calls that begin or end in the future are forged, and one from before the window is not recorded" {
	forged_fields
	attack forged call-dur left-future call-end call-future
	attack either call-start-0
}

@test "Threads without end take no memory" { attack either threads-many; }

@test "Batches with too many calls, of an unknown kind or of an unknown slot are forged" {
	attack forged batch-long batches-random batch-slot batch-what
	attack either batch-seq batch-nowhere
}

@test "Counters of 9e18 calls are forged" {
	attack forged count-calls count-deep count-no-slot count-back
}

@test "Open calls that are too deep, begin in the future or hold garbage are forged" {
	forged_fields
	attack forged open-deep open-future open-scope open-name
	attack either open-twin
}

@test "Shared memory that changes at random, is emptied or truncated does not end mxbpf" {
	attack either shared-random shared-truncated shared-emptied shared-random-gpu
}

# It has 0.8 s for each attack, and a job that gets no CPU in that time attacks nothing.
# bats test_tags=alone
@test "A job that changes what mxbpf has written, or what never changes, harms only its own numbers" {
	attack either shared-magic since-back want-back shared-version since-0 config-changed
}

@test "An agent that the job has loaded itself, with other memory, cannot end mxbpf" {
	attack either fake-truncated fake-error fake-short fake-legal fake-unaligned fake-kernel
	attack unused fake-magic fake-unmapped
}

@test "Memory that is a file of another user stays as it is" {
	local before
	start_evil fake-file
	before=$(stat -c '%y %s' fake-file.victim && b2sum <fake-file.victim)
	besiege fake-file "$READY_PID" --agent
	wait_exit "$BG_PID" || true
	unharmed fake-file "$READY_PID"
	either fake-file "$READY_PID"
	expect_same "$before" "$(stat -c '%y %s' fake-file.victim && b2sum <fake-file.victim)"
}

@test "Kernels that the agent could report are recorded as usual" {
	attack legal gpu-legal
	jq -e '[.gpu.kernels[] | select(.name == "evil_kernel") | .count] == [1000]' gpu-legal.json
}

# bats test_tags=alone
@test "Records of a GPU without end are counted as dropped, and mxbpf ends with its window" {
	attack legal gpu-flood
	jq -e '.loss | .dropped > 0' gpu-flood.json
	attack either gpu-flood-on
}

@test "Records of an unknown kind and batches with too many of them are forged" {
	forged_fields
	attack forged gpu-kind gpu-kind-0 gpu-batch-long
	attack either gpu-random
}

@test "Names of kernels that are too long, have no end or lie beyond the texts are forged" {
	forged_fields
	attack forged gpu-name-beyond gpu-name-unended gpu-name-long
	attack either gpu-name-changes
}

@test "A million names of kernels, and one whose readable form has 2^200 parts, take neither memory nor time" {
	attack legal gpu-name-bomb
	attack either gpu-names-many
}

@test "Names of kernels with control characters are legal and printed safely" { attack legal gpu-name-escapes; }

# bats test_tags=alone
@test "Times of a GPU that are impossible, and clocks that go backward, take neither memory nor time" {
	attack either gpu-times gpu-clocks gpu-backward gpu-clocks-random
}

@test "Contexts, streams, correlations, devices and threads without end take neither memory nor time" {
	attack either gpu-calls gpu-words
	attack either gpu-many # takes a CPU for itself, as does the next one
	attack either gpu-devices
}

@test "Four billion devices, and sums that no GPU reaches, are forged" {
	attack forged gpu-ndevices gpu-sums gpu-sums-back gpu-state
	attack either gpu-about
}

@test "Impossible states and strings of the agent's client of CUPTI are harmless" {
	attack either gpu-held gpu-strings gpu-strings-escape
}

@test "An honest child process of a hostile job has the counts of its own account" {
	local child within
	EVIL_WITHOUT_CALLS=1 start_evil gpu-kind --child
	child=$(sed -n 's/^child //p' "$(out gpu-kind)")
	: >gpu-kind.said
	start_bg within-gpu-kind python3 "$HOSTILE/within.py" 60 gpu-kind.json gpu-kind.said "$UNDER_TEST" --pid "$READY_PID" \
		--gpu --follow -f json
	within=$BG_PID
	wait_line gpu-kind.said '^(mxbpf: )?attached: ' "$within"
	wait_line "$(err gpu-kind)" '^evil: gpu-kind'
	kill -s USR1 "$child"
	wait_line "$(out gpu-kind)" '^did'
	kill -s INT "$(pgrep -P "$within")"
	wait_exit "$within" || true
	unharmed gpu-kind "$READY_PID"
	jq -e --argjson pid "$child" '[.tables.operator[] | select(.pid == $pid and .name == "aten::sin") | .count] == [1000]' gpu-kind.json
	forged gpu-kind
}

@test "Threads without end of a job in a pid namespace of its own take no memory" {
	start_evil threads-many --namespace
	besiege threads-many "$READY_PID" --agent
	wait_exit "$BG_PID" || true
	unharmed threads-many "$READY_PID"
	either threads-many "$READY_PID"
	happened threads-many
}

# Records the GPU of a job that writes the agent's file itself.
forge_file() { # ATTACK
	: >"$1.said"
	start_bg "within-$1" python3 "$HOSTILE/within.py" 1 "$1.json" "$1.said" "$UNDER_TEST" record --gpu --no-bpf -o "$1.mxd" -- \
		/usr/bin/python3 -c 'import ctypes, sys
evil = ctypes.CDLL(sys.argv[1])
sys.exit(evil.evil(sys.argv[2].encode(), b"", sys.argv[3].encode(), (ctypes.c_ulong * 3)()))' \
		"$BATS_FILE_TMPDIR/evil.so" "$1" "$PWD/$1.victim"
	wait_exit "$BG_PID" || true
	STATUS=$(sed -n 's/^status \([0-9-]*\),.*/\1/p' "$(out "within-$1")")
	[[ ! -s $(err "within-$1") ]] || complain "$1" 'a limit was broken' || return 1
	[[ $STATUS == [015] ]] || complain "$1" "exit status $STATUS" || return 1
	[[ ! -f $1.mxd ]] || "$UNDER_TEST" report "$1.mxd" --all >/dev/null || [[ $? == 5 ]] || complain "$1" 'a damaged recording'
}

@test "Without BPF, a forged file of records is neither endless nor somebody else's" {
	local name failed=0
	for name in file-sparse file-random file-fifo file-link file-symlink; do
		forge_file "$name" || failed=1
	done
	for name in file-link file-symlink; do
		[[ $(LC_ALL=C grep -a -o UUUU "$name.victim") == UUUU ]] || # 0x55 in ASCII
			{ echo "mxbpf has written to the file of $name" >&2 && failed=1; }
	done
	((!failed))
}
