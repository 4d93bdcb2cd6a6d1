#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --sched shows why threads were off the CPU. Each annotated part of the program waits for something else
# (tests/workload/torch_waits.py). The kernel's own account of its threads is the reference.
load helpers

setup() { root_setup torch; }

start_waits() { # ARGS...
	torch_server
	start_ready waits "${SERVED[@]}" "$REPO/tests/workload/torch_waits.py" "$@" >/dev/null
}

# waits [OPTION...] -- ARGS...: runs the program's work under mxbpf --sched, with the report in mxbpf.out. Sets WAITS_PID,
# and RAN_NS and WAITED_NS to the kernel's account of its main thread.
waits() {
	local options=()
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	start_waits "$@"
	WAITS_PID=$READY_PID
	start_mxbpf --pid "$WAITS_PID" --sched -f json "${options[@]}"
	kill -USR1 "$WAITS_PID"
	wait_line waits.out '^done ' "$WAITS_PID"
	read -r _ RAN_NS WAITED_NS < <(grep '^done ' waits.out)
	stop_pid "$MXBPF_PID"
	stop_pid "$WAITS_PID"
}

# Starts a busy process named hog on a CPU.
start_hog() { # CPU
	cp "$(command -v bash)" hog
	start_bg hog taskset -c "$1" ./hog -c 'while :; do :; done'
}

part() { # NAME JQ-CONDITION
	jq -e --arg name "$1" ".off_cpu.calls[] | select(.name == \$name) | $2" mxbpf.out >/dev/null && return 0
	jq -c '.off_cpu.calls[]' mxbpf.out >&2
	echo "of $1 does not hold: $2" >&2
	return 1
}

# sums TRACE TID: prints the sum of each state of a thread in ns, and the time from the first to the last one.
sums() {
	jq -c --argjson tid "$((2000000000 + $2))" '[.traceEvents[] | select(.ph == "X" and .tid == $tid and .name != "wakes")] |
		(map(.ts + .dur) | max) as $to | (map(.ts) | min) as $from |
		{running: map(select(.name | startswith("running"))), runnable: map(select(.name == "runnable")), all: .} |
		map_values(map(.dur) | add // 0) + {lasted: ($to - $from)} | map_values(. * 1000 | round)' "$1"
}

near() { # NS NS: equal within 3 %, or 1 ms for context switches, plus stolen time
	local difference=$(($1 - $2)) stolen=$(($(stolen_ns) - STOLEN_BEFORE))
	((${difference#-} * 100 <= 3 * $2 || ${difference#-} < 1000000 + stolen)) && return 0
	echo "$1 is not $2" >&2
	return 1
}

# Page faults of a file that other programs have brought into memory again take no time.
# bats test_tags=alone
@test "Each operator has its own reason to be off the CPU: a lock, a disk, page faults or a sleep" {
	waits -- --seconds 1.5
	part locked '.futex_ns > 0.9 * (.off_cpu_ns - .waited_ns) and .futex_ns > 5000000'
	part locked '.woken_by | any(.comm == "python" and .own)'
	part reading '.io_ns > 0.9 * (.off_cpu_ns - .waited_ns) and .io_ns > 1000000'
	part mapped '.fault_ns > 0.8 * (.off_cpu_ns - .waited_ns) and .fault_ns > 1000000'
	part napping '.sleep_ns > 0.9 * (.off_cpu_ns - .waited_ns) and .sleep_ns > 5000000'
	part napping '.woken_by == []'
	jq -e '.loss | .dropped == 0 and .attempted == .stored' mxbpf.out
}

# bats test_tags=alone
@test "A busy process on the same CPU is named, and states add up to the kernel's account" {
	measured
	local states STOLEN_BEFORE
	STOLEN_BEFORE=$(stolen_ns)
	start_hog 1
	waits --trace t.json -- --seconds 1.5 --cpu 1 --only computing
	part computing '.waited_ns > 0.9 * .off_cpu_ns and .waited_ns > 100000000'
	part computing '.kept_by | map({(.comm): .ns}) | add | .hog > 5000000'
	part computing '([.kept_by[].ns] | add) as $kept | .waited_ns * 0.99 < $kept and $kept <= .waited_ns'
	jq -e '[.traceEvents[].args.preempted_by | values] | length > 0' t.json # the machine may have other busy processes, too
	jq -e '.traceEvents | any(.pid == 3000000000 and .name == "hog" and .args.waiting_tid == '"$WAITS_PID"')' t.json
	states=$(sums t.json "$WAITS_PID")
	near "$(jq .all <<<"$states")" "$(jq .lasted <<<"$states")"
	(($(jq .lasted <<<"$states") > RAN_NS + WAITED_NS))
	near "$(jq .runnable <<<"$states")" "$WAITED_NS"
	# The thread hardly runs before and after its work.
	near "$(jq .running <<<"$states")" "$RAN_NS"
}

@test "Perfetto accepts the scheduling tracks, with arrows from the waking threads" {
	[[ -f $O/deps/perfetto/stamp ]] || "$REPO/tests/perfetto/setup.sh" "$O/deps/perfetto"
	waits --trace t.json -- --seconds 0.5
	node "$REPO/tests/perfetto/engine.mjs" "$O/deps/perfetto" t.json --json >engine.json || { jq .errors engine.json; return 1; }
	jq -e --argjson tid "$((2000000000 + WAITS_PID))" '.errors == [] and (.threads | any(.tid == $tid and .slices > 10))' engine.json
	jq -e '.flows > 0 and .flows == ($t[0].traceEvents | map(select(.ph == "f")) | length)' --slurpfile t t.json engine.json
	jq -e '.traceEvents | any(.name == "sleeping in futex" and .args.woken_by == "python")' t.json
	jq -e '.traceEvents | any(.name | startswith("disk: read"))' t.json
}

# Checks that the recording r.mxd, its report mxbpf.out and its trace t.json have the loss of each source.
every_output_has_sources() {
	local losses
	losses=$(jq -c '[.sources[] | {source, attempted, dropped}]' mxbpf.out)
	jq -e --argjson of "$losses" '($of | map(.source)) == ["probes", "scheduler"] and
		([.sources[].attempted] | add) == .loss.attempted and all($of[]; .attempted > 0)' mxbpf.out
	expect_re '^sources  probes: [0-9,]+ attempted, 0 dropped; scheduler: [0-9,]+ attempted, 0 dropped$' "$("$MXBPF" report --all r.mxd)"
	expect_re '^# sources  probes: ' "$("$MXBPF" report r.mxd --layout torch)"
	expect_re '^"loss","scheduler: attempted",,[0-9]+,' "$("$MXBPF" report r.mxd -f csv)"
	expect_same "$losses" "$(jq -c '[first(.. | .sources? // empty)[] | {source, attempted, dropped}]' t.json)"
}

@test "A recording, complete or truncated, has the states of the live session" {
	start_waits --seconds 0.5
	start_bg mxbpf "$MXBPF" record --pid "$READY_PID" --sched -o r.mxd
	wait_line mxbpf.err 'attached'
	kill -USR1 "$READY_PID"
	wait_line waits.out '^done ' "$READY_PID"
	stop_pid "$BG_PID"
	"$MXBPF" report -f json r.mxd >mxbpf.out
	part locked '.futex_ns > 5000000'
	"$MXBPF" export -o t.json -q r.mxd
	jq -e '.traceEvents | any(.name == "sleeping in futex")' t.json
	every_output_has_sources
	# Without its end record the recording is folded again.
	jq -S '.off_cpu.calls | sort_by(.name, .category)' mxbpf.out >whole
	[[ $(<whole) != '[]' ]]
	python3 - r.mxd cut.mxd <<-'END'
		import struct, sys
		data = open(sys.argv[1], 'rb').read()
		head = bytearray(data[:64])
		end, = struct.unpack_from('<Q', head, 40)
		import zlib
		struct.pack_into('<Q', head, 16, 0)
		struct.pack_into('<Q', head, 40, 0)
		struct.pack_into('<I', head, 60, zlib.crc32(head[:60]))
		open(sys.argv[2], 'wb').write(bytes(head) + data[64:end])
	END
	"$MXBPF" report -f json cut.mxd 2>/dev/null | jq -S '.off_cpu.calls | sort_by(.name, .category)' | diff whole - >&2
}

@test "Paused time is in no state" {
	local states
	start_waits --seconds 1
	start_mxbpf --pid "$READY_PID" --sched -f json --trace t.json
	kill -USR1 "$READY_PID"
	kill -USR1 "$MXBPF_PID"
	wait_line mxbpf.err '^(mxbpf: )?paused'
	wait_line waits.out '^done ' "$READY_PID"
	kill -USR2 "$MXBPF_PID"
	wait_line mxbpf.err '^(mxbpf: )?resumed'
	stop_pid "$MXBPF_PID"
	states=$(sums t.json "$READY_PID")
	echo "$states" >&2
	# The window may last only some milliseconds. The time before a thread's first event is in no state.
	jq -e --argjson states "$states" '.window.duration_ns >= $states.all and $states.all > 0' mxbpf.out
	jq -e '.window.paused_ns > 500000000' mxbpf.out
}

@test "Both backends see the same states, and CSV has them" {
	waits --backend perf -- --seconds 0.5 --only locked
	part locked '.futex_ns > 5000000'
	start_waits --seconds 0.5 --only locked
	start_mxbpf --pid "$READY_PID" --sched -f csv
	kill -USR1 "$READY_PID"
	wait_line waits.out '^done ' "$READY_PID"
	stop_pid "$MXBPF_PID"
	python3 - mxbpf.out <<-'END'
		import csv, sys
		rows = [r for r in csv.DictReader(open(sys.argv[1])) if r['name'] == 'locked']
		off, = [r for r in rows if r['table'] == 'off_cpu']
		assert 5e6 < int(off['futex_ns']) <= int(off['off_cpu_ns']), off
		assert any(r['by'] == 'python' and int(r['total_ns']) > 0 for r in rows if r['table'] == 'woken_by'), rows
	END
}

@test "--sched is refused with some events only" {
	expect_error 2 '--sched records every context switch' "$MXBPF" --pid 1 --sched --iterations 1/10
}

tracepoints() { grep -h '^tp_name' "/proc/$MXBPF_PID/fdinfo/"* 2>/dev/null | sort; }

@test "A session without --sched loads no program on the scheduler's tracepoints" {
	start_torch --tiny
	start_mxbpf --pid "$WORKLOAD_PID"
	expect_re 'sched_process_exit' "$(tracepoints)"
	[[ $(tracepoints) != *sched_switch* && $(tracepoints) != *sched_waking* ]]
	stop_pid "$MXBPF_PID"
	start_mxbpf --pid "$WORKLOAD_PID" --sched
	expect_re 'sched_switch' "$(tracepoints)"
	stop_pid "$MXBPF_PID"
	stop_pid "$WORKLOAD_PID"
}
