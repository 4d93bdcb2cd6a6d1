#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf profiles the toy on other kernels, which boot under QEMU (tests/toy, tests/kernels). What works there, and what is refused
# with which message, is what docs/kernels.md says.

load helpers

DEPS=$O/deps/kernels
MATRIX=$REPO/tests/kernels/matrix.py
KERNELS_6_1=(best uprobe_multi options omp test_attach_kernel test_programs_kernel now test_stack_kernel
	test_account_kernel test_inject_kernel) # runs last, because it sets Yama to forbid all tracers
KERNELS_6_12=(uprobe_multi perf throttled settings) # the last two leave a cgroup and lockdown behind

# Each kernel boots once, two at a time. Each test judges the files that its tasks left.
setup_file() {
	[[ ! -f $DEPS/lack ]] || return 0
	boot 6.1 "${KERNELS_6_1[@]}" 3>&- &
	{
		boot 6.12 "${KERNELS_6_12[@]}"
		boot 5.10 best
		boot 7.3 best perf now
	} 3>&- &
	wait
}

boot() { # SERIES TASK...
	local dir=$BATS_FILE_TMPDIR/$1 status try
	[[ -f $DEPS/vmlinuz-$1 ]] || return 0
	# An emulator that did not come up to the first task is started once more: nothing of mxbpf has run in it.
	for try in first second; do
		mkdir -p "$dir"
		status=0
		"$REPO/tests/kernels/boot.sh" "$DEPS/vmlinuz-$1" "$dir" "${@:2}" >"$dir/boot.log" 2>&1 || status=$?
		echo "the $try guest ended with status $status" >>"$dir/boot.log"
		[[ ! -s $dir/release ]] || break
		cat "$dir/boot.log" >&2
		mv "$dir" "$dir.$try"
	done
	[[ -d $dir ]] || mv "$dir.second" "$dir"
}

# Each task ran to its end, and each of these checks has the result that docs/kernels.md says. Changes to the directory with the
# files of the tasks.
as_the_page_says() { # SERIES CHECK...
	[[ ! -f $DEPS/lack ]] || skip "$(<"$DEPS/lack")"
	[[ ! -f $DEPS/none-$1 ]] || skip "$(<"$DEPS/none-$1")"
	if [[ ! -f $DEPS/vmlinuz-$1 ]]; then
		echo "no $DEPS/vmlinuz-$1: run tests/setup.sh" >&2
		return 1
	fi
	cd "$BATS_FILE_TMPDIR/$1" || return
	if [[ ! -s release ]]; then
		tail -n 20 boot.log console >&2
		return 1
	fi
	"$MATRIX" same . "${@:2}" || { tail -n 20 boot.log console >&2; cat ./*/mxbpf.err ./*.tap >&2; return 1; }
}

@test "Linux 6.1 without uprobe_multi counts exactly with perf, and refuses --backend uprobe_multi with the reason" {
	as_the_page_says 6.1 best uprobe_multi
	expect_re 'no uprobe_multi links \(Linux 6\.6 and later' "$(<uprobe_multi/mxbpf.err)"
	expect_re '^  no +uprobe_multi ' "$(<offers)"
	expect_re '^  ok +perf ' "$(<offers)"
}

@test "Linux 6.1 with --sched shows the toy's threads off the CPU, with the counts of a session without it" { as_the_page_says 6.1 sched; }
@test "Linux 6.1 reads perf events in each call" { as_the_page_says 6.1 counters; }
@test "Linux 6.1 takes samples in the clock's interrupt" { as_the_page_says 6.1 sample; }
@test "Linux 6.1 attributes every allocation that is still in use" { as_the_page_says 6.1 memory; }
@test "Linux 6.1 shows OpenMP teams with perf" { as_the_page_says 6.1 omp; }
@test "Linux 6.1 pairs starts and ends as this kernel does" { as_the_page_says 6.1 attach; }
@test "Linux 6.1 loads every program of every runtime with every option" { as_the_page_says 6.1 programs; }

@test "Linux 6.1 lets an agent enter processes without harm, and Yama's refusal is the reason given" {
	as_the_page_says 6.1 inject
	expect_re 'ok [0-9]+ - the error names Yama if Yama forbids tracers, and the process goes on' "$(<test_inject_kernel.tap)"
}

@test "Linux 6.1 shows a hanging job with complete stacks" { as_the_page_says 6.1 now; }
@test "Linux 6.1 walks stacks as this kernel does" { as_the_page_says 6.1 stack; }
@test "Linux 6.1 has accounts of spans that add up and equal /proc, as this kernel does" { as_the_page_says 6.1 account; }

# The toy starts when mxbpf is attached and stays until mxbpf has ended, so the window contains all of the cgroup's throttling.
@test "Linux 6.12 has the throttling of cgroup v2 as in the kernel's own account, and the report says so" {
	as_the_page_says 6.12 throttled
}

@test "Linux 6.12 counts exactly with both backends" { as_the_page_says 6.12 uprobe_multi perf; }

# A session under this setting was refused with the reason, `mxbpf check` tells it, and the toy did what it does otherwise.
refused_under() { # NAME FEATURE REASON
	[[ $(<"settings/$1/status") == 4 && $(grep -c . "settings/$1/mxbpf.err") == 1 ]]
	expect_re "^mxbpf: error: this kernel has no $2: .*$3" "$(<"settings/$1/mxbpf.err")"
	expect_re "^  NO   $2 +.*$3" "$(<"settings/$1/offers")"
	[[ $(grep -c '^  NO ' "settings/$1/offers") == 1 ]]
	expect_same "$(<settings/loose/toy)" "$(<"settings/$1/toy")"
}

@test "Linux 6.12 with strict settings, without tracefs and in lockdown counts exactly, or the refusal names the setting" {
	local name
	as_the_page_says 6.12 uprobe_multi # changes to the directory
	[[ ! -s settings/tracefs && ! -e settings/refused ]]
	for name in loose strict; do
		cat "settings/$name/mxbpf.err"
		same_counts "settings/$name/toy" "settings/$name/mxbpf.json"
		! grep '^  NO ' "settings/$name/offers" || return
	done
	refused_under no_jit 'JIT compiler of BPF' 'net\.core\.bpf_jit_enable=1'
	refused_under no_types 'kernel type information' '/sys/kernel/btf/vmlinux is not there: .*CONFIG_DEBUG_INFO_BTF=y'
	[[ $(<settings/integrity) == 'none [integrity] confidentiality' ]]
	[[ $(<settings/lockdown) == 'none integrity [confidentiality]' ]]
	refused_under confidentiality 'reads of kernel memory' 'lockdown=confidentiality forbids them to BPF programs; boot with'
}

@test "Linux 5.10 is refused, and the message names what it lacks" {
	as_the_page_says 5.10 best
	expect_re 'this kernel has no attach cookies: Linux 5\.15 or later has them' "$(<best/mxbpf.err)"
	[[ $(<best/status) == 4 ]]
}

@test "Linux 7.3 counts exactly, and shows a hanging job with complete stacks" { as_the_page_says 7.3; }

@test "No kernel warns about mxbpf" {
	local series
	for series in 6.1 6.12 7.3; do
		as_the_page_says "$series" quiet
	done
}

@test "The page of kernels is the one that the results of tests/kernels make" {
	expect_same "$("$MATRIX" page)" "$(<"$REPO/docs/kernels.md")"
}
