#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Both backends on a C++ program with known calls (tests/toy): the counts are exact, and the target is not harmed by
# either.

load helpers

setup() { need_root; }

count_exactly() { # MXBPF_ARGS...
	start_toy 200 3
	start_mxbpf --pid "$READY_PID" --api all --format json "$@"
	end_ready
	[[ $(sed -n 2p "$(out toy)") == 'caught 186' ]]
	same_counts "$(out toy)" "$(out mxbpf)"
}

# The code at all functions of the toy that mxbpf would probe. memory.throw is in another library.
code() { # PID
	local offsets
	mapfile -t offsets < <("$MXBPF" check --pid "$1" | sed -n '/ memory.throw /d; s/^  ok .* +0x\([0-9a-f]*\) .*/\1/p')
	((${#offsets[@]} >= 8)) || return 1
	python3 "$REPO/tests/code_bytes.py" "$1" libmxnet.so "${offsets[@]}"
}

# bats test_tags=smoke
@test "uprobe_multi counts every call, operator and byte, with exceptions across probed frames" {
	count_exactly --backend uprobe_multi --ring-size 256M # which takes as much memory as the limit is without the option
}

# bats test_tags=smoke
@test "perf counts every call, operator and byte, with exceptions across probed frames" {
	count_exactly --backend perf
}

@test "perf probes a library that was deleted on disk" {
	TOY=$BATS_TEST_TMPDIR/toy
	cp -r "$O/toy" "$TOY"
	start_toy 20 2
	rm "$TOY/libmxnet.so"
	start_mxbpf --pid "$READY_PID" --api all --format json --backend perf
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID"
	same_counts "$(out toy)" "$(out mxbpf)"
}

# bats test_tags=alone
@test "perf records no events of a second process on the same library and leaves its code unchanged" {
	start_ready other "$O/toy/toy" 20 2
	local other=$READY_PID before
	before=$(code "$other")
	start_toy 20 2
	start_mxbpf --pid "$READY_PID" --api all --format json --backend perf
	[[ $(code "$other") == "$before" ]]
	end_pid "$other" USR1
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID"
	same_counts "$(out toy)" "$(out mxbpf)"
}

# bats test_tags=alone
@test "perf leaves no probe after SIGKILL of mxbpf" {
	start_toy 20 2
	local before
	before=$(code "$READY_PID")
	start_mxbpf --pid "$READY_PID" --backend perf
	[[ $(code "$READY_PID") != "$before" ]]
	stop_pid "$MXBPF_PID" KILL
	export -f code
	timeout "$WAIT_SECONDS" bash -c 'until [[ $(code "$1") == "$0" ]]; do sleep 0.02; done' "$before" "$READY_PID"
	end_pid "$READY_PID" USR1
}

@test "perf without CAP_SYS_ADMIN is refused with the remedy before the target is touched" {
	local caps=+bpf,+perfmon,+sys_ptrace before
	cp -r "$O/toy" "$BATS_TEST_TMPDIR/own" # probes of other tests may be in the code of the library that all tests have
	TOY=$(for_others "$BATS_TEST_TMPDIR/own")
	start_toy 20 2
	before=$(code "$READY_PID")
	expect_run 4 --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps" --ambient-caps "$caps" \
		"$(for_others "$MXBPF")" --pid "$READY_PID" --backend perf
	expect_re 'CAP_SYS_ADMIN: run with sudo' "$stderr"
	[[ $(code "$READY_PID") == "$before" ]]
}

@test "A library that was overwritten in place gets no probe at the old addresses" {
	TOY=$BATS_TEST_TMPDIR/toy
	cp -r "$O/toy" "$TOY"
	local known=5bc47870a585123f6a8ebc2f323c4150a4bb77d5 # the build-id of a build that mxbpf knows
	objcopy -O binary --only-section=.note.gnu.build-id "$TOY/libmxnet.so" "$TOY/note"
	{ head -c 16 "$TOY/note" && printf '%b' "$(sed 's/../\\x&/g' <<<"$known")"; } >"$TOY/other"
	objcopy --update-section .note.gnu.build-id="$TOY/other" "$TOY/libmxnet.so" "$TOY/other.so"
	cd "$BATS_TEST_TMPDIR"
	# mxbpf reads names of C API functions from the file when it reads their first events, so the file is overwritten after that.
	# shellcheck disable=SC2016 # for that shell
	"$MXBPF" --exact --api all --format json --interval 100ms -- bash -c 'toy() { "$0/toy" "$1" 1 | { read -r _ pid; kill -s USR1 "$pid"; cat; }; }
		toy 20
		for name in MXImperativeInvoke MXNDArray{Create,Free,WaitAll,WaitToRead}; do
			until grep -q "\"$name\"" dumps; do sleep 0.05; done
		done
		cat "$0/other.so" >"$0/libmxnet.so"
		toy 30' "$TOY" >dumps 2>said
	# The toys' own counts; stdout has only the tables.
	grep '^{' said | sed -n 1p >first
	grep '^{' said | sed -n 2p >second
	tail -n 1 dumps >report
	jq --argjson pid "$(jq '.labels[0].pid' report)" '.tables |= map_values(map(select(.pid == $pid)))' report >of-first
	jq --argjson pid "$(jq '.labels[1].pid' report)" '.tables |= map_values(map(select(.pid == $pid)))' report >of-second
	same_counts first of-first
	same_counts second of-second
	# The other one is another build, with probes of its own.
	jq -e '.window | .followed == 1 and .unfollowed == 0' report
	jq -e '[.labels[].runtime] | length == 2 and .[0] != .[1]' report
}

# Counts the waits of the toy in NAME.out, with a probe where mxbpf has its own.
start_bpftrace() { # NAME PID FUNCTION [MORE]
	ln -sfn "$O/toy" "$BATS_TEST_TMPDIR/mapped" # bpftrace takes no path with a blank
	start_bg "$1" bpftrace -f json -p "$2" -e "uprobe:$BATS_TEST_TMPDIR/mapped/libmxnet.so:$3 { @ = count(); } ${4:-}"
	wait_line "$(out "$1")" attached_probes "$BG_PID"
}

@test "bpftrace and mxbpf have probes on one function and count exactly, whoever comes or goes first" {
	local function first second
	function=$(nm "$O/toy/libmxnet.so" | sed -n 's/.* T \(.*WaitForVar.*\)/\1/p')
	start_toy 20 2
	start_bpftrace first "$READY_PID" "$function" && first=$BG_PID
	"$MXBPF" --exact --pid "$READY_PID" --api all -d 50ms -q >/dev/null || [[ $? == 5 ]] # it comes later and goes first
	start_mxbpf --pid "$READY_PID" --api all -f json
	# It ends by itself, because bpftrace loses a SIGINT that comes while it attaches.
	start_bpftrace second "$READY_PID" "$function" 'interval:ms:50 { exit(); }' && second=$BG_PID
	wait_exit "$second"
	kill -s USR1 "$READY_PID"
	wait_exit "$MXBPF_PID" 60
	same_counts "$(out toy)" "$(out mxbpf)"
	wait_exit "$first" 20 || stop_pid "$first" INT
	expect_same "$(tail -n 1 "$(out toy)" | jq '."Engine wait".WaitForVar')" "$(jq 'select(.type == "map").data."@"' "$(out first)")"
}
