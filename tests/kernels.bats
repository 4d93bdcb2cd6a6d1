#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf profiles the toy on other kernels, which boot under QEMU (tests/toy, tests/kernels).

load helpers

DEPS=$O/deps/kernels
KERNELS_6_1=(best uprobe_multi stats options omp test_attach_kernel test_programs_kernel now test_stack_kernel
	test_account_kernel test_inject_kernel) # runs last, because it sets Yama to forbid all tracers
KERNELS_6_12=(uprobe_multi perf stats throttled) # runs last, because it leaves a cgroup behind

# Both kernels boot once, in parallel. Each test judges the files that its tasks left.
setup_file() {
	[[ ! -f $DEPS/lack ]] || return 0
	boot 6.1 "${KERNELS_6_1[@]}" 3>&- &
	boot 6.12 "${KERNELS_6_12[@]}" 3>&- &
	wait
}

boot() { # SERIES TASK...
	local dir=$BATS_FILE_TMPDIR/$1
	[[ -f $DEPS/vmlinuz-$1 ]] || return 0
	mkdir "$dir"
	"$REPO/tests/kernels/boot.sh" "$DEPS/vmlinuz-$1" "$dir" "${@:2}" >"$dir/boot.log" 2>&1
	echo "the guest ended with status $?" >>"$dir/boot.log"
}

# Changes to the directory with the files that the tasks left on that kernel.
booted() { # SERIES TASK...
	local task
	[[ ! -f $DEPS/lack ]] || skip "$(<"$DEPS/lack")"
	if [[ ! -f $DEPS/vmlinuz-$1 ]]; then
		echo "no $DEPS/vmlinuz-$1: run tests/setup.sh" >&2
		return 1
	fi
	cd "$BATS_FILE_TMPDIR/$1"
	for task in offers "${@:2}"; do
		if [[ ! -f $task.complaints ]]; then
			echo "task $task of Linux $1 left nothing:" >&2
			tail -n 20 boot.log console >&2
			return 1
		fi
		[[ ! -s $task.complaints ]] || { cat "$task.complaints" >&2; return 1; }
	done
}

counted() { # TASK
	cat "$1/mxbpf.err" >&2
	[[ $(<"$1/status") == 0 ]] && same_counts "$1/toy" "$1/mxbpf.json"
}

# --interval reads the kernel's sums each time, and the last document has the final ones.
counted_stats() {
	(($(wc -l <stats/mxbpf.json) > 1))
	sed -i '$!d' stats/mxbpf.json
	counted stats
}

passed() { # UNIT MORE_THAN
	cat "$1.tap"
	grep -q '^1\.\.[0-9]' "$1.tap"
	[[ $(grep -c '^not ok' "$1.tap") == 0 ]]
	(($(grep -c '^ok' "$1.tap") - $(grep -c '# SKIP' "$1.tap") > $2))
}

@test "Linux 6.1 without uprobe_multi counts exactly with perf, and refuses --backend uprobe_multi with the reason" {
	booted 6.1 best uprobe_multi
	counted best
	[[ $(<uprobe_multi/status) == 4 ]]
	expect_re 'no uprobe_multi links \(Linux 6\.6 and later' "$(<uprobe_multi/mxbpf.err)"
	expect_re '^  no +uprobe_multi ' "$(<offers)"
	expect_re '^  ok +perf ' "$(<offers)"
}

@test "Linux 6.1 counts exactly with --stats" {
	booted 6.1 stats
	counted_stats
}

# The toy waits for mxbpf in read(), and its threads wait for each other.
switched() { # TASK
	jq -e '[.off_cpu.calls[] | .futex_ns + .other_ns] | add > 0' "$1/mxbpf.json" && counted "$1"
}

@test "Linux 6.1 with --sched shows the toy's threads off the CPU, with the counts of a session without it" {
	booted 6.1 options
	switched options
}

@test "Linux 6.1 reads perf events in each call" {
	booted 6.1 options
	counted options
	jq -e '[.tables[][].counters | values] | map(.calls) | add > 100' options/mxbpf.json
	jq -e '[.tables[][].counters | values] | all(.["task-clock"] > 0)' options/mxbpf.json
}

@test "Linux 6.1 takes samples in the clock's interrupt" {
	booted 6.1 options
	counted options
	jq -e '.samples | .hz == 997 and .count > 10' options/mxbpf.json
}

@test "Linux 6.1 attributes every allocation that is still in use" {
	booted 6.1 options
	counted options
	jq -e --argjson toy "$(tail -n 1 options/toy)" '.memory.holders | (map(.allocs) | add) == $toy["Device Storage"].allocs and
		(map(.frees) | add) == $toy["Device Storage"].frees and all(.[]; .category)' options/mxbpf.json || { jq -c .memory options/mxbpf.json; return 1; }
	jq -e '.memory.devices | all(.missed_frees == 0 and .untracked_allocs == 0)' options/mxbpf.json
}

@test "Linux 6.1 shows OpenMP teams with perf" {
	booted 6.1 omp
	cat omp/mxbpf.err
	[[ $(<omp/status) == 0 ]]
	jq -e --argjson toy "$(tail -n 1 omp/toy)" '(.teams.operators | map({(.name): .}) | add) as $t |
		[$toy | keys[] | $t["aten::" + .] as $row | $row.regions == $toy[.].regions and $row.cpu_ns > 0.9 * $toy[.].cpu_ns] | all' \
		omp/mxbpf.json || { jq -c .teams omp/mxbpf.json; cat omp/toy; return 1; }
}

@test "Linux 6.1 pairs starts and ends as this kernel does" {
	booted 6.1 test_attach_kernel
	passed test_attach_kernel 15
}

@test "Linux 6.1 loads every program of every runtime with every option" {
	booted 6.1 test_programs_kernel
	passed test_programs_kernel 3
}

@test "Linux 6.1 lets an agent enter processes without harm, and Yama's refusal is the reason given" {
	booted 6.1 test_inject_kernel
	passed test_inject_kernel 15
	expect_re 'ok [0-9]+ - the error names Yama if Yama forbids tracers, and the process goes on' "$(<test_inject_kernel.tap)"
}

@test "Linux 6.1 shows a hanging job with complete stacks" {
	booted 6.1 now
	cat now/err
	[[ $(<now/status) == 0 ]]
	jq -e '.threads | length == 5 and any(.[]; .lock_held_by and any(.stack[]; .call == "operator.start") and
		any(.stack[]; .function == "mxnet::engine::run_operators"))' now/now.json
	jq -e '.operator.gated == 1' now/toy
}

@test "Linux 6.1 walks stacks as this kernel does" {
	booted 6.1 test_stack_kernel
	passed test_stack_kernel 8
}

@test "Linux 6.1 has accounts of spans that add up and equal /proc, as this kernel does" {
	booted 6.1 test_account_kernel
	passed test_account_kernel 8
}

# The toy starts when mxbpf is attached and stays until mxbpf has ended, so the window contains all of the cgroup's throttling,
# except what the kernel adds at the end of a period.
@test "Linux 6.12 has the throttling of cgroup v2 as in the kernel's own account, and the report says so" {
	local outer
	booted 6.12 throttled
	counted throttled
	outer=$(jq -c '[.machine.gauges[] | select(.group == "/outer") | {(.name): .}] | add' throttled/mxbpf.json)
	jq -R -n -e --argjson gauges "$outer" '[inputs | split(" ") | {key: .[0], value: .[1] | tonumber}] | group_by(.key) |
		map({key: .[0].key, value: map(.value)}) | from_entries |
		def between($n; $of): $of[0] <= $n and $n <= $of[1];
		between($gauges.throttled.difference / 1000; .throttled_usec) and .throttled_usec[0] > 0 and
		between($gauges.periods_throttled.difference; .nr_throttled) and
		$gauges.cpu_max.last == 300 and $gauges.memory_max.last == null' throttled/cpu.stat.0 throttled/cpu.stat.1 ||
		{ echo "$outer" && cat throttled/cpu.stat.*; return 1; }
	jq -e '[.machine.gauges[] | select(.group == "/outer/inner") | {(.name): .}] | add |
		.group_cpu.difference > 0 and .group_memory.last > 0 and .cpu_max.last == null' throttled/mxbpf.json
	expect_re "^throttled [0-9]+ %.* of the window by the cgroup's cpu\.max \(0\.30 CPUs\): /outer$" \
		"$(jq -r '.machine.says[]' throttled/mxbpf.json)"
}

@test "Linux 6.12 counts exactly with both backends and with --stats" {
	booted 6.12 uprobe_multi perf stats throttled
	counted uprobe_multi
	counted_stats
	counted perf
	switched throttled
}
