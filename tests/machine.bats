#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The machine around the target: cgroup limits, pressure and frequencies, with the kernel's own files as the reference.

load helpers

PERFETTO=$REPO/tests/perfetto
DEPS=$O/deps/perfetto

setup() {
	root_setup mxnet
	make_group
	shared_workload --steps 1000000 # nearly all of its CPU time is in operators, so a limit throttles one of them
	JOB_PID=$WORKLOAD_PID
	echo "$JOB_PID" >"$GROUP/cgroup.procs"
}

teardown() {
	kill_started
	park_jobs
	[[ -d ${GROUP:-} ]] || return 0
	[[ -z ${JOB_PID:-} ]] || echo "$JOB_PID" >"${GROUP%/*}/cgroup.procs"
	rmdir "$GROUP/other" "$GROUP"
}

# Makes a cgroup with a limit of 0.3 CPUs and the highest weight, so that it reaches the limit on a busy machine. Sets GROUP,
# LIMIT_NAME (its file), GROUP_PATH. Its child "other" has no limit.
make_group() {
	local name=mxbpf-test-$BASHPID mounts
	mounts=$(awk '$3 == "cgroup2" { print $2, "v2" } $3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2, "v1" }' /proc/self/mounts)
	while read -r mount version; do
		[[ $version == v1 || " $(<"$mount/cgroup.controllers") " == *" cpu "* ]] || continue
		mkdir "$mount/$name" || continue
		GROUP=$mount/$name GROUP_PATH=/$name
		mkdir "$GROUP/other"
		if [[ $version == v1 ]]; then
			LIMIT_NAME=cpu.cfs_quota_us
			echo 30000 >"$GROUP/cpu.cfs_quota_us"
			echo 100000 >"$GROUP/cpu.shares"
		else
			LIMIT_NAME=cpu.max
			echo +cpu >"$mount/cgroup.subtree_control"
			echo '30000 100000' >"$GROUP/cpu.max"
			echo 10000 >"$GROUP/cpu.weight"
		fi
		return 0
	done <<<"$mounts"
	skip "NOT TESTED: no hierarchy of control groups here has the cpu controller and takes new groups"
}

throttled_ns() {
	awk '$1 == "throttled_usec" { print $2 * 1000 } $1 == "throttled_time" { print $2 }' "$GROUP/cpu.stat"
}

# Waits until the kernel has throttled the cgroup this many times more.
throttle() { # TIMES
	# shellcheck disable=SC2016 # for that shell
	timeout 60 bash -c 'n() { awk "\$1 == \"nr_throttled\" { print \$2 }" "$0/cpu.stat"; }
		before=$(n); until (($(n) >= before + $1)); do sleep 0.02; done' "$GROUP" "$1"
}

perfetto_setup() { [[ -f $DEPS/stamp ]] || "$PERFETTO/setup.sh" "$DEPS"; }

gauge() { # NAME FILE: prints that gauge of the cgroup with the limit
	jq -e --arg name "$1" --arg path "$GROUP_PATH" \
		'.machine.gauges[] | select(.name == $name and .group != null and (.group | endswith($path)))' "$2"
}

@test "Throttling by a cgroup's limit is reported, with the share of the kernel's own account" {
	local before after_attach before_end after
	before=$(throttled_ns)
	start_mxbpf --pid "$WORKLOAD_PID" --format json
	after_attach=$(throttled_ns)
	throttle 12
	before_end=$(throttled_ns)
	stop_pid "$MXBPF_PID" INT
	after=$(throttled_ns)
	gauge throttled "$(out mxbpf)" >throttled
	jq -e --argjson inner "$((before_end - after_attach))" --argjson outer "$((after - before))" \
		'.difference >= $inner and .difference <= $outer and $inner > 0' throttled
	gauge cpu_max "$(out mxbpf)" | jq -e '.last == 300'
	gauge periods_throttled "$(out mxbpf)" | jq -e '.difference >= 12'
	share=$(jq '100 * .difference / .elapsed_ns | round' throttled)
	((share >= 10))
	expect_re "^throttled $share %.* of the window by the cgroup's $LIMIT_NAME \(0\.30 CPUs\): $GROUP_PATH\$" \
		"$(jq -r '.machine.says[]' "$(out mxbpf)")"
}

@test "A recording reports throttling below the tables and as counters in both forms of trace" {
	local form
	perfetto_setup
	start_mxbpf record --pid "$WORKLOAD_PID" -o r.mxd
	throttle 20
	stop_pid "$MXBPF_PID" INT
	"$MXBPF" report --all r.mxd >report
	expect_re "^machine  throttled [0-9]+ %.* of the window by the cgroup's $LIMIT_NAME \(0\.30 CPUs\): $GROUP_PATH\$" "$(<report)"
	# A throttled call is not blamed on another process.
	expect_re "throttled by the cgroup's limit, or preempted [0-9.]+ [mu]?s \(" "$(<report)"
	[[ $(grep 'preempted [0-9]' report | grep -c -v 'throttled by') == 0 ]]
	"$MXBPF" report r.mxd --format csv >report.csv
	grep -q "^\"machine\",\"throttled\",.*$GROUP_PATH\",\"ns\",*$" report.csv
	"$MXBPF" report r.mxd --format json >report.json
	"$PYTHON" -m jsonschema -i report.json "$O/report.schema.json" 2>warnings
	gauge throttled report.json >throttled
	for form in chrome chrome-classic; do
		"$MXBPF" export r.mxd -f "$form" -o "$form.json"
		node "$PERFETTO/engine.mjs" "$DEPS" "$form.json" --json >engine.json
		# The track has a share per second or so, and the mean of the window lies between them.
		jq -e -s --arg path "$GROUP_PATH" '(100 * .[1].difference / .[1].elapsed_ns) as $mean | .[0].errors == [] and
			([.[0].counter_tracks[] | select(.name | startswith("cgroup ") and endswith($path + ": throttled %"))] |
			length == 1 and .[0].n >= 1 and .[0].min <= $mean + 0.01 and .[0].max >= $mean - 0.01) and
			([.[0].counter_tracks[] | select(.name == "machine: busy CPUs")] | length == 1 and .[0].max > 0)' \
			engine.json throttled || { jq -c .counter_tracks engine.json throttled; return 1; }
	done
}

@test "The trace of a PyTorch job has the machine's counters" {
	perfetto_setup
	kill_started
	park_jobs
	start_torch
	start_mxbpf --pid "$WORKLOAD_PID" --trace t.json
	wait_new_line "$(out workload)" '^step' 2
	stop_pid "$MXBPF_PID" INT
	jq -e .schemaVersion t.json
	node "$PERFETTO/engine.mjs" "$DEPS" t.json --json >engine.json
	jq -e '.errors == [] and any(.counter_tracks[]; .name == "machine: busy CPUs" and .max > 0)' engine.json
}

@test "Gauges of successive intervals add up to the whole, each starting with the previous reading" {
	start_mxbpf --pid "$WORKLOAD_PID" --format json --interval 300ms --reset
	throttle 10
	stop_pid "$MXBPF_PID" INT
	while read -r line; do gauge throttled <(echo "$line"); done <"$(out mxbpf)" >all
	jq -e -s 'length > 2 and (map(.difference) | add) == .[-1].last - .[0].first and
		all(range(1; length) as $i | .[$i].first == .[$i - 1].last; .)' all
}

@test "Throttling in a pause is not in the window" {
	local paused
	start_mxbpf --pid "$WORKLOAD_PID" --format json
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	paused=$(throttled_ns)
	throttle 10
	paused=$(($(throttled_ns) - paused))
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^resumed, ' "$MXBPF_PID"
	throttle 3
	stop_pid "$MXBPF_PID" INT
	gauge throttled "$(out mxbpf)" >throttled
	jq -e --argjson paused "$paused" '$paused > 0 and .difference > 0 and .last - .first - .difference >= $paused' throttled
	jq -e -s '(.[0].elapsed_ns - .[1].window.duration_ns | fabs) < .[1].window.paused_ns / 2' throttled "$(out mxbpf)"
}

@test "A target that is moved to another cgroup is followed there" {
	start_mxbpf --pid "$WORKLOAD_PID" --format json
	echo "$WORKLOAD_PID" >"$GROUP/other/cgroup.procs"
	throttle 15
	stop_pid "$MXBPF_PID" INT
	jq -e --arg path "$GROUP_PATH/other" '[.machine.gauges[] | select(.name == "cpu_max" and .group != null and
		(.group | endswith($path)))] | length == 1 and .[0].last == null' "$(out mxbpf)"
	# The parent cgroup still throttles it.
	expect_re "^throttled .* $LIMIT_NAME \(0\.30 CPUs\): $GROUP_PATH\$" "$(jq -r '.machine.says[]' "$(out mxbpf)")"
}

@test "A container with its own cgroup namespace sees its cgroup as the root" {
	local type=cgroup2
	[[ $LIMIT_NAME == cpu.max ]] || type='cgroup -o cpu'
	# shellcheck disable=SC2016 # for that shell
	start_bg mxbpf sh -c 'echo $$ >"$0/cgroup.procs" && exec unshare --cgroup --mount sh -c "$1"' "$GROUP" \
		"mkdir cgroup && mount -t $type none cgroup && umount -l /sys/fs/cgroup && mount --move cgroup /sys/fs/cgroup &&
		exec '$MXBPF' --exact --pid $WORKLOAD_PID -d 4s --format json"
	wait_exit "$BG_PID" || { cat "$(err mxbpf)" >&2; return 1; }
	expect_re "^throttled .* $LIMIT_NAME \(0\.30 CPUs\)\$" "$(jq -r '.machine.says[]' "$(out mxbpf)")"
}

# Only mxbpf sees these mounts: it finds the cgroup by the target's own.
@test "A machine without pressure files, frequencies and cgroups reports nothing false, and the reason on request" {
	local what
	# shellcheck disable=SC2016 # for that shell
	start_bg mxbpf unshare --mount sh -c 'mount -t tmpfs none /proc/pressure && mount -t tmpfs none /sys/fs/cgroup &&
		mount -t tmpfs none /sys/devices/system/cpu && mount --bind /dev/null /proc/cpuinfo &&
		exec "$0" --exact --pid "$1" -d 4s --format json --verbose' "$MXBPF" "$WORKLOAD_PID"
	wait_exit "$BG_PID" || { cat "$(err mxbpf)" >&2; return 1; }
	for what in stall_cpu stall_io stall_memory cpu_khz cpu_khz_max; do
		jq -e --arg name "$what" 'all(.machine.gauges[]; .name != $name)' "$(out mxbpf)"
	done
	expect_re 'cannot read stall_cpu: /proc/pressure/cpu: No such file or directory' "$(<"$(err mxbpf)")"
	[[ $(jq -r '.machine.says[]' "$(out mxbpf)" | grep -c -v '^throttled\|^the hypervisor') == 0 ]]
	expect_re "^throttled .* $LIMIT_NAME \(0\.30 CPUs\): $GROUP_PATH\$" "$(jq -r '.machine.says[]' "$(out mxbpf)")"
}
