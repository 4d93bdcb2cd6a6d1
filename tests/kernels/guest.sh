#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The first process of the guest of boot.sh. Runs the tasks in $TASKS (separated by commas) and sends the files of each in /out
# to the host when the task has ended, at the latest after TASK_SECONDS. A task is
#   offers    `mxbpf check`; files: offers, release (of the kernel)
#   test_*    the unit test of that name; file: NAME.tap
#   now       `mxbpf now` on a toy that hangs; directory: toy, now.json, err, status
#   held      mxbpf --sample on the toy, while which hold.py stops the machine and makes its clocks jump, it sleeps, and its second
#             CPU goes and comes; directory: toy, ticks (its CPU time), worked (if it worked to the end of all that), clocks (see
#             hold_up), sleeps, mxbpf.json, mxbpf.err, status
#   settings  sessions on the toy under settings of the kernel, which stay as they are; directories: see try_settings, with offers
#             and the files of a session
#   BACKEND   mxbpf with that backend on the toy; directory: toy, mxbpf.json, mxbpf.err, status.
#             "best": without --backend; "options": --counters, --memory, --sched and --sample;
#             "throttled": --sched in a cgroup with 0.3 CPUs, and its cpu.stat before (cpu.stat.0) and after mxbpf's end
#             (cpu.stat.1); "omp": --omp on the toy with OpenMP teams
# Each task also has TASK.complaints, the kernel's messages since the previous task, and TASK.uptime, the guest's uptime in
# seconds before and after it.
export PATH=/bin
TASK_SECONDS=1800

limit() { # PID
	mount -t cgroup2 none /sys/fs/cgroup
	echo "+cpu +memory" >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/outer
	echo "+cpu +memory" >/sys/fs/cgroup/outer/cgroup.subtree_control
	mkdir /sys/fs/cgroup/outer/inner
	echo '30000 100000' >/sys/fs/cgroup/outer/cpu.max
	echo "$1" >/sys/fs/cgroup/outer/inner/cgroup.procs
}

# The toy has finished its work before the first cpu.stat. mxbpf's last reading is between the two.
end_while_it_holds() { # PID DIR
	local line
	while read -r line; do
		echo "$line"
		case $line in "{"*) break ;; esac
	done >"$2/toy"
	cp /sys/fs/cgroup/outer/cpu.stat "$2/cpu.stat.0"
	kill -TERM "$(pidof mxbpf)"
}

watch_toy() { # BACKEND
	local dir=$1 option="--backend $1" api="--api all" rounds=40 line pid hold toy=/toy/toy
	case $1 in
	best) option= ;;
	options)
		option="--counters task-clock,page-faults --memory --sched --sample 997"
		rounds=80 # enough for some samples
		;;
	omp)
		option="--omp --probes op"
		api=
		toy=/toy/omp/libtorch_cpu.so
		rounds=2 # two threads
		;;
	throttled)
		option=--sched
		rounds=80 # enough for some periods
		hold=hold
		;;
	esac
	mkdir "$dir"
	mkfifo "$dir/from_toy" "$dir/from_mxbpf"
	# shellcheck disable=SC2086 # a word, or none
	"$toy" "$rounds" 2 $hold >"$dir/from_toy" &
	exec 3<"$dir/from_toy"
	read -r line pid <&3
	[ "$1" != throttled ] || limit "$pid"
	{
		# shellcheck disable=SC2086 # no word, or several
		mxbpf --exact --pid "$pid" $api --format json $option >"$dir/mxbpf.json" 2>"$dir/from_mxbpf"
		echo $? >"$dir/status"
	} &
	while read -r line; do
		echo "$line"
		case $line in attached*)
			kill -USR1 "$pid"
			[ "$1" != throttled ] || end_while_it_holds "$pid" "$dir" <&3
			;;
		esac
	done <"$dir/from_mxbpf" >"$dir/mxbpf.err"
	kill -USR1 "$pid" 2>/dev/null # if mxbpf did not attach
	cat <&3 >>"$dir/toy"
	exec 3<&-
	wait
	[ "$1" != throttled ] || cp /sys/fs/cgroup/outer/cpu.stat "$dir/cpu.stat.1"
	rm "$dir"/from_*
}

look_at_hang() {
	local line pid
	mkdir now
	mkfifo now/from_hang
	/toy/hang >now/from_hang &
	exec 3<now/from_hang
	read -r line pid <&3
	kill -USR1 "$pid"
	read -r line <&3 # the toy hangs now
	mxbpf now --pid "$pid" --format json >now/now.json 2>now/err
	echo $? >now/status
	kill -USR2 "$pid"
	cat <&3 >now/toy
	exec 3<&-
	wait
	rm now/from_hang
}

hold_up() { # HOW: prints it, and seconds of CLOCK_BOOTTIME before and after it
	local before
	before=$(cut -d' ' -f1 /proc/uptime)
	case $1 in
	stop | freeze)
		echo "please $1" >/dev/ttyS0
		sleep 0.5
		;;
	unplug)
		echo 0 >/sys/devices/system/cpu/cpu1/online
		sleep 0.3
		echo 1 >/sys/devices/system/cpu/cpu1/online
		;;
	sleep)
		echo +2 >/sys/class/rtc/rtc0/wakealarm
		echo mem >/sys/power/state
		;;
	esac
	echo "$1 $before $(cut -d' ' -f1 /proc/uptime)"
}

watch_held() {
	local toy mxbpf how
	mkdir held
	/toy/toy 2000 2 hold >held/toy &
	toy=$!
	until grep -q '^ready' held/toy; do sleep 0.1; done
	mxbpf --exact --pid "$toy" --api all --format json --sample 99 >held/mxbpf.json 2>held/mxbpf.err &
	mxbpf=$!
	until grep -q '^attached' held/mxbpf.err || ! kill -0 "$mxbpf"; do sleep 0.1; done
	kill -USR1 "$toy"
	for how in unplug stop freeze sleep; do hold_up $how; done >held/clocks
	grep -q '^{' held/toy || : >held/worked
	cp /sys/power/suspend_stats/success held/sleeps
	until grep -q '^{' held/toy; do sleep 0.1; done
	cut -d' ' -f14,15 "/proc/$toy/stat" >held/ticks
	kill -INT "$mxbpf"
	wait "$mxbpf"
	echo $? >held/status
	kill -USR1 "$toy"
	wait "$toy"
}

under() { # NAME BACKEND [COMMAND...]: by the command, if there is one
	local dir=settings/$1 backend=$2
	shift 2
	mkdir "$dir"
	"$@" sh -c "mxbpf check >$dir/offers; exec /init --task $backend"
	mv "$backend"/* "$dir"
	rmdir "$backend"
}

set_all() { # NAME=VALUE...
	local each
	for each; do
		echo "${each#*=}" >"/proc/sys/${each%=*}" || echo "$each was refused" >>settings/refused
	done
}

# Lockdown and a 1 in unprivileged_bpf_disabled cannot be undone. No file system of tracepoints is mounted here.
try_settings() {
	mkdir settings
	find /sys/kernel/tracing /sys/kernel/debug -mindepth 1 >settings/tracefs
	set_all kernel/unprivileged_bpf_disabled=0 kernel/perf_event_paranoid=-1
	under loose best
	set_all net/core/bpf_jit_enable=0
	under no_jit best
	set_all net/core/bpf_jit_enable=1
	under no_types best unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' -
	mount -t securityfs none /sys/kernel/security
	set_all kernel/unprivileged_bpf_disabled=1 kernel/perf_event_paranoid=4 kernel/kptr_restrict=2 net/core/bpf_jit_harden=2
	echo integrity >/sys/kernel/security/lockdown
	cp /sys/kernel/security/lockdown settings/integrity
	under strict perf
	echo confidentiality >/sys/kernel/security/lockdown
	under confidentiality best
	cp /sys/kernel/security/lockdown settings/lockdown
}

run_task() { # TASK
	case $1 in
	offers)
		uname -r >release
		mxbpf check >offers
		;;
	test_*) MXBPF_TEST_EMULATED=1 "$1" >"$1.tap" ;;
	now) look_at_hang ;;
	held) watch_held ;;
	settings) try_settings ;;
	*) watch_toy "$1" ;;
	esac
}

if [ "${1:-}" = --task ]; then # the kernel passes arguments of its own to init
	run_task "$2"
	exit
fi
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
ifconfig lo 127.0.0.1 up
cd /out || poweroff -f
stty -F /dev/ttyS1 raw
for task in offers $(echo "$TASKS" | tr , ' '); do
	cut -d' ' -f1 /proc/uptime >"$task.uptime"
	timeout -s KILL "$TASK_SECONDS" /init --task "$task"
	cut -d' ' -f1 /proc/uptime >>"$task.uptime"
	kill -KILL -1 # leftover processes of the task
	dmesg -c | grep -E 'WARNING:|BUG:|Oops|soft lockup|rcu.*stall' >"$task.complaints"
	tar -c -f - . >/dev/ttyS1
	rm -rf ./*
done
poweroff -f
