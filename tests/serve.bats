#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Metrics of `mxbpf serve`. Ground truth is what each process says that it did, and what Prometheus's own programs read.

load helpers

PROMETHEUS=$O/deps/prometheus/usr/bin

setup() {
	root_setup torch
	[[ -x $PROMETHEUS/promtool ]] && command -v curl >/dev/null || skip "no Prometheus; run tests/setup.sh"
	mkdir bin
	NAME=c$$-count # of no other test that runs at the same time
	ln -s "$(readlink -f "$PYTHON_TORCH")" "bin/${NAME}d"
}

# SIGUSR1: so many iterations as the argument says, each with an operator that is called seven times. SIGUSR2: the next one takes
# three seconds longer. A second argument is the number of threads that wait.
JOB='
import os, signal, sys, threading, time
signals = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals) # also in threads that begin later
import torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.1)
did = 0
def step():
    for _ in range(7):
        torch.sinh(weight)
    weight.sum().backward()
    optimizer.step()
step()
for i in range(int((sys.argv[2:] or [0])[0])): # each in a function of its own
    exec(f"def wait{i}(): signal.pause()")
    threading.Thread(target=globals()[f"wait{i}"], daemon=True).start()
print("ready", os.getpid(), flush=True)
while (asked := signal.sigwait(signals)) != signal.SIGTERM:
    if asked == signal.SIGUSR2:
        time.sleep(3)
        print("slept", flush=True)
        continue
    for _ in range(int(sys.argv[1])):
        step()
    did += int(sys.argv[1])
    print("did", did, flush=True)
'

start_job() { # NAME ITERATIONS [THREADS THAT WAIT]; sets READY_PID. The name of the process begins with NAME.
	echo "$JOB" >job.py
	start_ready "$1" env PYTHONPATH="$(dirname "$(dirname "$PYTHON_TORCH")")/lib/python3.11/site-packages" \
		"bin/${NAME}d" "$PWD/job.py" "$2" "${3:-0}" >/dev/null
}

step() { # NAME PID SUM: until it has made SUM iterations in all
	kill -s USR1 "$2"
	wait_line "$(out "$1")" "^did $3$"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_serve() { # ARGUMENTS...
	start_bg serve "$MXBPF" serve --interval 200ms --max-overhead 100% --textfile m.prom --listen none --verbose "$@"
	SERVE_PID=$BG_PID
}

# The sum of all samples whose line begins with the regex.
metric() { # REGEX [FILE]
	grep -E "^$1" "${2:-m.prom}" | awk '{ sum += $NF } END { print sum + 0 }'
}

# bats test_tags=smoke
@test "Counters are what each process says that it did, and go on when it starts again" {
	local first second
	start_serve --comm "$NAME*"
	wait_line "$(err serve)" "waiting until one of the processes named $NAME"
	start_job first 100 && first=$READY_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	step first "$first" 100
	stop_pid "$first"
	start_job second 20 && second=$READY_PID
	wait_line "$(err serve)" "following process $second" "$SERVE_PID"
	step second "$second" 20
	end_pid "$SERVE_PID"
	cat m.prom
	# The iteration before they were ready may be seen, too. Of a process, the first one has no known start, and the last one no end.
	[[ $(metric 'mxbpf_operator_duration_seconds_count\{.*operator="aten::sinh"') =~ ^8(40|47|54)$ ]]
	[[ $(metric 'mxbpf_iteration_duration_seconds_count') =~ ^1(16|17|18|19|20)$ ]]
	[[ $(metric mxbpf_events_lost_total) == 0 ]]
	[[ $(metric "mxbpf_thread_cpu_seconds_total\\{.*thread_name=\"$NAME") != 0 ]]
	"$PROMETHEUS/promtool" check metrics <m.prom
	# node_exporter, which runs as another user, reads the same.
	[[ $(stat -c %a m.prom) == 644 ]]
	local port
	port=$(free_port)
	start_bg exporter "$PROMETHEUS/prometheus-node-exporter" --collector.disable-defaults --collector.textfile \
		--collector.textfile.directory="$PWD" --web.listen-address="127.0.0.1:$port"
	wait_line "$(err exporter)" 'Listening on'
	curl -sS "http://127.0.0.1:$port/metrics" >exported
	grep '^node_textfile_scrape_error 0' exported
	[[ $(metric 'mxbpf_operator_duration_seconds_count' exported) == "$(metric 'mxbpf_operator_duration_seconds_count')" ]]
}

start_ranks() { # NAME SCRIPT: a launcher with one rank, which meet at a port that is another one each time; sets READY_PID
	start_ready "$1" env PYTHONPATH="$(dirname "$(dirname "$PYTHON_TORCH")")/lib/python3.11/site-packages" \
		"bin/${NAME}d" -m torch.distributed.run --standalone --nproc-per-node 1 "$2" 20 >/dev/null
}

@test "A job that torchrun starts again has the same labels, and two scripts are two jobs" {
	local name launcher least=0
	echo "$JOB" >train.py
	echo "$JOB" >other.py
	start_serve --comm "$NAME*"
	wait_line "$(err serve)" "waiting until one of the processes named $NAME"
	for name in first second; do
		least=$((least + 18)) # the first iteration has no known start, and the last one may have no end
		start_ranks "$name" train.py
		launcher=$BG_PID
		wait_line "$(err serve)" "following process $READY_PID" "$SERVE_PID"
		step "$name" "$READY_PID" 20
		until (($(metric 'mxbpf_iteration_duration_seconds_count\{job_name="train.py",rank="0"') >= least)); do read -rt 0.05 <> <(:) || :; done
		kill -s TERM "$READY_PID"
		wait_exit "$launcher"
	done
	start_ready other env PYTHONPATH="$(dirname "$(dirname "$PYTHON_TORCH")")/lib/python3.11/site-packages" "bin/${NAME}d" other.py 20 >/dev/null
	wait_line "$(err serve)" "following process $READY_PID" "$SERVE_PID"
	step other "$READY_PID" 20
	end_pid "$SERVE_PID"
	# The launcher of the ranks has their name, and no rank.
	grep -oE '^mxbpf_targets\{.*\}' m.prom | sed 's/,runtime=.*//' | sort >targets
	cat targets
	diff targets - <<-'END'
		mxbpf_targets{job_name="other.py"
		mxbpf_targets{job_name="train.py"
		mxbpf_targets{job_name="train.py",rank="0"
	END
	[[ $(metric 'mxbpf_iteration_duration_seconds_count\{job_name="train.py",rank="0"') =~ ^(3[6-9]|40)$ ]]
}

# Recordings of the folder, the oldest first.
recordings() { find . -maxdepth 1 -name 'mxbpf-*.mxd' | sort; }

wait_recordings() { # N: until so many were written
	wait_lines "$1" "$(err serve)" 'info: wrote .*[.]mxd: '
}

@test "A slow iteration is recorded once, with the seconds before it, and a healthy job never" {
	local job file
	start_job job 300 && job=$READY_PID
	start_serve --pid "$job" --flight-record 60s --on 'iteration > 2500ms' --on 'hang 1h'
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	step job "$job" 300
	kill -s USR2 "$job"
	wait_line "$(out job)" '^slept'
	step job "$job" 600
	wait_recordings 1
	step job "$job" 900
	until (($(metric 'mxbpf_operator_duration_seconds_count\{.*operator="aten::sinh"') >= 6300)); do read -rt 0.05 <> <(:) || :; done
	kill -s USR1 "$SERVE_PID"
	wait_recordings 2
	end_pid "$SERVE_PID"
	cat "$(err serve)"
	mapfile -t file < <(recordings)
	[[ ${#file[@]} == 2 && ${file[0]} == *-iteration.mxd && ${file[1]} == *-signal.mxd ]]
	expect_re " info: wrote .*-iteration[.]mxd: iteration [0-9]+ of process $job took [0-9.]+ s" "$(<"$(err serve)")"
	"$MXBPF" report "${file[0]}" -f json >first.json
	"$MXBPF" report "${file[1]}" -f json >second.json
	# The slow one is in the first, with what was before it; the second begins where the first ended.
	jq -e '.iterations.loops | length == 1 and (.[0] | .count > 300 and .max_ns > 2.5e9)' first.json
	jq -e '.iterations.loops[0] | .max_ns < 2.5e9' second.json
	[[ $(jq -s 'map(.tables.operator[] | select(.name == "aten::sinh").count) | add' first.json second.json) =~ ^63(00|07|14)$ ]]
	jq -e '.loss.dropped == 0' first.json
}

@test "Of recordings the newest are kept, and files of others are left alone" {
	local job i
	touch mxbpf-20200101T000000Z-mine mine.mxd
	echo 'my own text' >mxbpf-20200101T000000Z-mine.mxd
	cp mxbpf-20200101T000000Z-mine.mxd mxbpf-20200101T000000Z-mine.txt
	echo MXBPFREC >mxbpf-20200101T000000Z-theirs.mxd && chown 65534 mxbpf-20200101T000000Z-theirs.mxd
	# The clock was set back since.
	echo MXBPFREC >mxbpf-29990101T000000Z-signal.mxd
	start_job job 5 && job=$READY_PID
	start_serve --pid "$job" --flight-record 2s --keep 2
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	for i in 1 2 3 4; do
		step job "$job" $((5 * i))
		kill -s USR1 "$SERVE_PID"
		wait_recordings "$i"
	done
	end_pid "$SERVE_PID"
	ls
	[[ $(recordings | grep -vc 20200101) == 2 && -e mxbpf-20200101T000000Z-mine && -e mine.mxd ]]
	[[ -e mxbpf-20200101T000000Z-mine.mxd && -e mxbpf-20200101T000000Z-mine.txt && -e mxbpf-20200101T000000Z-theirs.mxd ]]
	[[ ! -e mxbpf-29990101T000000Z-signal.mxd ]]
}

@test "A job that hangs is recorded once, with what each of its threads does; on a full disk no part of it stays, and the reason is told" {
	local job disk
	start_job job 50 40 && job=$READY_PID
	mkdir disk
	# Of this process alone.
	cat >on_full_disk <<-'END'
		mount -t tmpfs -o size=1m full disk
		head -c 1m /dev/zero >disk/ballast
		exec "$@"
	END
	start_bg serve unshare -m bash on_full_disk "$MXBPF" serve --interval 200ms --max-overhead 100% --listen none --textfile m.prom --pid "$job" \
		--flight-record 10s --on 'hang 1s' --trace-dir disk
	SERVE_PID=$BG_PID
	disk=/proc/$SERVE_PID/root/$PWD/disk
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	step job "$job" 50 # then it waits for a signal
	wait_line "$(err serve)" 'the last seconds were not written .*: cannot write .*: No space left on device'
	expect_re 'what each thread does was not written: cannot write disk/mxbpf-[0-9TZ]+-hang.txt: No space left on device' "$(<"$(err serve)")"
	[[ $(ls "$disk") == ballast ]]
	truncate -s -4k "$disk/ballast" # room for the first line, and not for forty threads
	step job "$job" 100
	wait_lines 2 "$(err serve)" 'the last seconds were not written'
	expect_re "what each thread does was not written: mxbpf now --pid $job ended with exit code 1" "$(<"$(err serve)")"
	[[ $(ls "$disk") == ballast ]]
	rm "$disk/ballast"
	step job "$job" 150
	wait_recordings 1
	cp "$disk"/* .
	end_pid "$SERVE_PID"
	cat "$(err serve)"
	[[ $(recordings | wc -l) == 1 && -s $(echo mxbpf-*-hang.txt) ]]
	expect_re "job[.]py\\([0-9]+\\)" "$(cat mxbpf-*-hang.txt)"
}

teardown() {
	kill_started
	park_jobs
	[[ -z ${GROUP:-} ]] || rmdir "$GROUP/one" "$GROUP/two" "$GROUP"
}

start_in_group() { # NAME: a toy of that name, in the group of that name
	local dir=$PWD/$1
	mkdir "$dir" "$GROUP/$1"
	cp "$O/toy/libmxnet.so" "$dir"
	cp "$O/toy/toy" "$dir/group-$1"
	start_ready "$1" sh -c "echo \$\$ >'$GROUP/$1/cgroup.procs' && exec '$dir/group-$1' 3000 1 hold" >/dev/null
}

used_cpu() { # NAME: its group has used CPU time since mxbpf came
	until metric "mxbpf_cgroup_cpu_seconds_total\{job_name=\"group-$1\",cgroup=\"[^\"]*/$1\"" | grep -q '[1-9]'; do read -rt 0.1 <> <(:) || :; done
}

@test "Each job has the control group in which it runs, also one that begins later" {
	local root=/sys/fs/cgroup first
	[[ -e $root/cgroup.procs ]] || root=$root/cpuacct # version 1
	mkdir "$root/mxbpf-serve-$$" 2>/dev/null || skip "cannot make a control group"
	GROUP=$root/mxbpf-serve-$$
	start_serve --comm 'group-*'
	wait_line "$(err serve)" 'waiting until one of the processes named group-'
	start_in_group one && first=$READY_PID
	wait_line "$(err serve)" "following process $first" "$SERVE_PID"
	start_in_group two
	wait_line "$(err serve)" "following process $READY_PID" "$SERVE_PID"
	kill -s USR1 "$READY_PID"
	used_cpu two
	[[ $(metric 'mxbpf_cgroup_cpu_seconds_total\{job_name="group-one",cgroup="[^"]*/two"') == 0 ]]
	kill -s USR1 "$first"
	used_cpu one
	stop_pid "$SERVE_PID" INT
}

# Like the unit and the pod: the root of three capabilities, which can change no file but those of the current directory.
least_privilege() {
	local caps=-all,+bpf,+perfmon,+sys_ptrace
	cat >least <<-EOF
		#!/bin/bash -e
		mount --bind '$PWD' '$PWD'
		mount --bind /proc/sys /proc/sys
		for place in / /sys /proc/sys; do mount -o remount,bind,ro \$place; done
		cd '$PWD'
		exec setpriv --bounding-set $caps --inh-caps $caps --ambient-caps $caps --no-new-privs '$MXBPF' "\$@"
	EOF
	LEAST=(unshare -m bash "$PWD/least")
}

# A loop of tiny operators that says at SIGUSR1 how many iterations it has made. Each has 100 calls of sinh. From the first
# of these signals on it has 10 calls of a function as torch.compile makes them.
FAST='
import ctypes, os, signal
import torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.1)
did, probed, kernel = 0, 0, None
def tell(*_):
    global kernel
    kernel = kernel or ctypes.CDLL("./ab/c" + 51 * "a" + ".so").kernel
    print("did", did, probed, flush=True)
signal.signal(signal.SIGUSR1, tell)
print("ready", os.getpid(), flush=True)
while True:
    for _ in range(10 if kernel else 0):
        kernel()
    probed += bool(kernel) and ctypes.string_at(kernel, 1) == b"\xcc"
    x = weight
    for _ in range(100):
        x = torch.sinh(x)
    x.sum().backward()
    optimizer.step()
    did += 1
'

@test "Above the limit calls are recorded in slices, and the counters stand for all of them" {
	local job did probed iterations calls kernels
	mkdir ab
	echo 'int kernel(void) { return 1; }' | cc -shared -fPIC -xc - -o "ab/c$(printf 'a%.0s' {1..51}).so"
	start_code fast "$FAST" >/dev/null && job=$READY_PID
	# With 1 % slices are half a minute apart.
	start_bg serve "$MXBPF" serve --pid "$job" --max-overhead 5% --interval 2s --textfile m.prom --listen none --verbose
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$BG_PID"
	kill -s USR1 "$job"
	wait_line "$(err serve)" 'calls are recorded in slices' "$BG_PID"
	wait_lines 4 "$(err serve)" 'slice of process'
	kill -s USR1 "$job"
	end_pid "$BG_PID"
	wait_lines 2 "$(out fast)" '^did '
	read -r did probed < <(awk '/^did/ { did = $2 - first; first = first ? first : $2 } END { print did, $3 }' "$(out fast)")
	iterations=$(metric mxbpf_iteration_duration_seconds_count)
	calls=$(metric 'mxbpf_operator_duration_seconds_count.*"aten::sinh"')
	grep slice "$(err serve)"
	kernels=$(metric 'mxbpf_call_duration_seconds_count.*"inductor::')
	echo "$did iterations; estimated: $iterations, with $calls calls of sinh and $kernels of a library that was mapped later, probed in $probed"
	((iterations * 4 > did && iterations < 4 * did)) # about a dozen were seen
	((calls > 70 * iterations && calls < 140 * iterations))
	((kernels > 7 * iterations && kernels < 14 * iterations && probed > 0 && probed * 2 < did))
	[[ $(metric mxbpf_partial) == 1 && $(metric mxbpf_slices_total) -ge 4 ]]
	[[ $(metric 'mxbpf_operator_error_ratio.*"aten::sinh"') =~ ^(0\.|1$) ]]
}

@test "Three capabilities and a file system that cannot be changed suffice to watch the job of another user, with its labels" {
	local job other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"${other[@]}" test -r "$PYTHON_TORCH" || skip "other users may not enter the folder of PyTorch"
	start_ready job "${other[@]}" env -C / RANK=3 SLURM_JOB_ID=77 SLURM_JOB_NAME=trainer "$PYTHON_TORCH" -c "$JOB" 100 >/dev/null
	job=$READY_PID
	least_privilege
	start_bg serve "${LEAST[@]}" serve --interval 200ms --max-overhead 100% --textfile m.prom --listen none --verbose --pid "$job"
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$BG_PID"
	grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs):' "/proc/$BG_PID/status"
	[[ $(awk '/^Cap(Eff|Bnd):/ { print $2 }' "/proc/$BG_PID/status" | uniq) == 000000c000080000 ]]
	step job "$job" 100
	end_pid "$BG_PID"
	cat m.prom "$(err serve)"
	[[ $(metric 'mxbpf_operator_duration_seconds_count\{.*rank="3".*slurm_job="77".*operator="aten::sinh"') =~ ^70[07]$ ]]
	[[ $(metric mxbpf_events_lost_total) == 0 && $(stat -c %a:%U m.prom) == 644:root ]]
}

@test "Alerts are what Prometheus accepts, each fires on what it is for, and none on a healthy job" {
	"$PROMETHEUS/promtool" check rules "$REPO/share/serve/alerts.yml"
	"$PROMETHEUS/promtool" test rules "$REPO/tests/serve/alerts_test.yml"
}

notified() { # REGEX: until the service manager has received such a line
	wait_line "$(out manager)" "$1"
}

@test "A service manager is told of the start, of each moment, of a reload and of the end, and counters go on after a reload" {
	local job
	start_bg manager python3 -uc '
import socket
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("notify")
print("bound", flush=True)
while True:
    print(manager.recv(4096).decode(), flush=True)
'
	wait_line "$(out manager)" bound
	printf '# options\n\ncomm = %s*\ninterval = 200ms\n max-overhead=100%%\ntextfile = m.prom\nlisten = unix:m.sock\nverbose\n' "$NAME" >serve.conf
	start_bg serve env NOTIFY_SOCKET="$PWD/notify" WATCHDOG_USEC=300000 "$MXBPF" serve --config serve.conf
	SERVE_PID=$BG_PID
	notified '^READY=1' # although no process has the name yet
	notified '^WATCHDOG=1'
	start_job job 50 && job=$READY_PID
	wait_lines 1 "$(err serve)" 'attached: [0-9]+ probes'
	step job "$job" 50
	kill -s HUP "$SERVE_PID"
	wait_lines 2 "$(err serve)" 'attached: [0-9]+ probes'
	step job "$job" 100
	until (($(metric 'mxbpf_operator_duration_seconds_count\{.*operator="aten::sinh"') >= 700)); do read -rt 0.05 <> <(:) || :; done
	# A file that is wrong, or that others can write, changes nothing.
	echo 'speed = fast' >>serve.conf
	kill -s HUP "$SERVE_PID"
	wait_line "$(err serve)" "serve.conf: unknown option '--speed'.*; the options stay as they were"
	wait_lines 3 "$(err serve)" 'attached: [0-9]+ probes'
	end_pid "$SERVE_PID" TERM
	notified '^RELOADING=1'
	notified '^STOPPING=1'
	chmod g+w serve.conf
	expect_error 2 'serve.conf can be changed by others' "$MXBPF" serve --config serve.conf
}

@test "A job that hangs while the options are read again is recorded, and once" {
	local job
	printf 'comm = %s*\ninterval = 200ms\nmax-overhead = 100%%\nlisten = none\nverbose\nflight-record = 10s\non = hang 2s\n' "$NAME" >serve.conf
	start_job job 50 && job=$READY_PID
	start_bg serve "$MXBPF" serve --config serve.conf --textfile m.prom
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	step job "$job" 50
	until (($(metric 'mxbpf_iteration_duration_seconds_count') >= 40)); do read -rt 0.05 <> <(:) || :; done
	# The session that begins now sees no iteration of it.
	kill -s HUP "$SERVE_PID"
	wait_lines 2 "$(err serve)" 'attached: [0-9]+ probes'
	wait_recordings 1
	expect_re "hang[.]mxd: process $job has made no iteration for (at least )?[0-9.]+ s" "$(<"$(err serve)")"
	kill -s HUP "$SERVE_PID"
	wait_lines 3 "$(err serve)" 'attached: [0-9]+ probes'
	end_pid "$SERVE_PID"
	[[ $(recordings | wc -l) == 1 ]]
}

@test "Each line of the log has a time and a level, and in the journal a level alone" {
	local line before
	before=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	printf 'comm = no such name\nlisten = unix:m.sock\nverbose\n' >serve.conf
	start_bg serve "$MXBPF" serve --config serve.conf
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" ' info: waiting until one of the processes named no such name'
	echo 'speed = fast' >>serve.conf
	kill -s HUP "$SERVE_PID"
	wait_line "$(err serve)" " warning: serve.conf: unknown option '--speed'"
	end_pid "$SERVE_PID" TERM
	while read -r line; do
		[[ $line =~ ^(20[0-9-]+T[0-9:]+Z)\ (debug|info|warning):\ . ]]
		[[ ! ${BASH_REMATCH[1]} < $before && ! ${BASH_REMATCH[1]} > $(date -u +%Y-%m-%dT%H:%M:%SZ) ]]
	done <"$(err serve)"
	: >journal
	run -2 env JOURNAL_STREAM="$(stat -c %d:%i journal)" "$MXBPF" serve --config serve.conf 2>&1
	expect_re '^20.*Z error: serve.conf: unknown option' "$output" # systemd has set the variable for another file
	run -2 bash -c 'JOURNAL_STREAM=$(stat -c %d:%i journal) exec "$@" 2>>journal' bash "$MXBPF" serve --config serve.conf
	expect_re '^<3>serve.conf: unknown option' "$(<journal)"
}

@test "The init of the machine, which may be hidden even from root, is not said to be left out; in a user namespace the reason is that one" {
	start_bg serve "$MXBPF" serve --listen unix:m.sock --verbose
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'waiting until|attached: [0-9]+ probes' "$SERVE_PID"
	stop_pid "$SERVE_PID" INT
	run ! grep -E 'process 1 (is not followed|cannot be watched)|host itself' "$(err serve)"
	run -4 unshare -Ur "$MXBPF" --pid 1 -d 1s
	expect_re 'the user namespace in which mxbpf runs, or a security module, forbids it; run mxbpf on the host itself' "$output"
}

@test "serve that waits for its first process ends at a signal without an error" {
	start_serve --comm 'no such name' --flight-record 5s
	wait_line "$(err serve)" 'waiting until one of the processes named no such name'
	kill -s USR1 "$SERVE_PID" # there is nothing to write yet
	end_pid "$SERVE_PID" TERM
}

address() { sed -n 's|.* info: listening on http://||p' "$(err serve)"; }
get() { curl -sS --max-time 60 "http://$(address)$1" "${@:2}"; }

# Until Prometheus has an answer other than an empty one.
asked() { # QUERY
	timeout "$WAIT_SECONDS" bash -c 'until curl -sSG "http://$0/api/v1/query" --data-urlencode "query=$1" |
		jq -e ".data.result | length > 0" >answer; do read -rt 0.1 <> <(:) || :; done' "$(<prometheus.address)" "$1" ||
		{ echo "no data: $1" >&2; return 1; }
}

start_prometheus() { # ARGUMENTS...; scrapes serve every 200 ms
	local port
	port=$(free_port)
	echo "127.0.0.1:$port" >prometheus.address
	cat >prometheus.yml <<-END
		global: {scrape_interval: 200ms, evaluation_interval: 1s}
		rule_files: ["$REPO/share/serve/alerts.yml"]
		scrape_configs: [{job_name: mxbpf, static_configs: [{targets: ["$(address)"]}]}]
	END
	start_bg prometheus "$PROMETHEUS/prometheus" --config.file=prometheus.yml --storage.tsdb.path=tsdb \
		--web.listen-address="127.0.0.1:$port" "$@"
}

@test "A real Prometheus scrapes every metric, and each query of the dashboard has data" {
	local job query
	start_job job 50 && job=$READY_PID
	start_bg serve "$MXBPF" serve --pid "$job" --interval 200ms --max-overhead 100% --listen 127.0.0.1:0
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	step job "$job" 50
	until get /metrics | grep -q '^mxbpf_iteration_duration_seconds_count{.* [1-9]'; do read -rt 0.1 <> <(:) || :; done
	start_prometheus
	asked 'up == 1'
	step job "$job" 100
	get /metrics >text
	get /metrics -H 'Accept: application/openmetrics-text; version=1.0.0' >open
	"$PROMETHEUS/promtool" check metrics <text
	[[ $(tail -n 1 open) == '# EOF' ]]
	# Every name of the text is one that Prometheus has.
	for query in $(sed -n 's/^# TYPE \([a-z_]*\) \(counter\|gauge\)$/\1/p' text); do asked "$query"; done
	# The variables of the dashboard stand for all hosts and jobs; GPUs are on no CPU machine, and this job has one rank.
	jq -r '.panels[].targets[].expr' "$REPO/share/serve/grafana.json" | grep -Ev 'gpu|collectives' | sed 's/\$instance/.*/g; s/\$job_name/.*/g; s/\$__rate_interval/5s/g' >queries
	[[ $(wc -l <queries) -ge 12 ]]
	while read -r query; do
		kill -s USR1 "$job"
		asked "${query/cgroup_throttled_seconds/watched_seconds}"
	done <queries
}

@test "Health, the tables and the page of an interval are served, and who has no token records nothing" {
	local job
	(umask 077 && echo 'a-token-of-some-length' >token)
	: >serve.conf
	start_bg serve "$MXBPF" serve --comm "$NAME*" --interval 200ms --max-overhead 100% --listen 127.0.0.1:0 --allow-trigger token \
		--config serve.conf
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" "waiting until one of the processes named $NAME"
	expect_re '^ok: waiting for the first process' "$(get /healthz)"
	# Before the first interval has ended, the metrics are those of mxbpf itself, so that "up" does not say that it is down.
	get /metrics >first
	"$PROMETHEUS/promtool" check metrics <first
	expect_re '^mxbpf_build_info\{version="[^"]+"\} 1$' "$(<first)"
	expect_re '^mxbpf_watched_seconds_total 0$' "$(<first)"
	[[ $(get /metrics -H 'Accept: application/openmetrics-text; version=1.0.0' | tail -n 1) == '# EOF' ]]
	[[ $(get /report.json -o /dev/null -w '%{http_code}') == 503 ]]
	start_job job 50 && job=$READY_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	[[ $(get /trace -X POST -o /dev/null -w '%{http_code}') == 403 && $(get /trace -o /dev/null -w '%{http_code}') == 405 ]]
	[[ -z $(recordings) ]]
	get '/trace?duration=300ms' -X POST -H 'Authorization: Bearer a-token-of-some-length' >answer &
	step job "$job" 50
	wait $!
	"$MXBPF" report "$(jq -r .file answer)" >/dev/null
	[[ $(get '/trace?duration=2h' -X POST -H 'Authorization: Bearer a-token-of-some-length') == 'duration is a time of at most 50 s'* ]]
	get /report.json >report.json
	jq -e '.schema_version and .window.duration_ns < 5e9' report.json
	get / >page.html
	grep -q '<title>' page.html
	expect_re '^ok: processes are watched' "$(get /healthz)"
	# What is written meanwhile for another reason is not what the client asked for.
	echo 'flight-record = 5s' >serve.conf
	kill -s HUP "$SERVE_PID"
	wait_lines 2 "$(err serve)" 'attached: [0-9]+ probes'
	get '/trace?duration=1s' -X POST -H 'Authorization: Bearer a-token-of-some-length' >answer &
	step job "$job" 100
	kill -s USR1 "$SERVE_PID"
	wait_line "$(err serve)" 'signal[.]mxd: SIGUSR1 asked for it'
	wait $!
	expect_re '"file": "./mxbpf-[0-9TZ]+-request[.]mxd"' "$(<answer)"
}

@test "The bucket of a slow iteration names its recording, as Prometheus and the parser of OpenMetrics read it" {
	local job file open=(-H 'Accept: application/openmetrics-text; version=1.0.0')
	start_job job 100 && job=$READY_PID
	start_bg serve "$MXBPF" serve --pid "$job" --interval 200ms --max-overhead 100% --listen 127.0.0.1:0 --flight-record 30s \
		--on 'iteration > 2500ms'
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'attached: [0-9]+ probes' "$SERVE_PID"
	start_prometheus --enable-feature=exemplar-storage
	step job "$job" 100
	kill -s USR2 "$job"
	wait_line "$(out job)" '^slept'
	step job "$job" 200
	wait_recordings 1
	file=$(basename "$(recordings)")
	until get /metrics "${open[@]}" | grep -qF "$file"; do read -rt 0.1 <> <(:) || :; done
	get /metrics "${open[@]}" >open
	[[ -z $(get /metrics | grep 'recording=') ]]
	# HolisticTraceAnalysis, which is in that environment, brings the parser.
	"$O/deps/readers/bin/python" - "$file" <<-'END'
		import sys, time
		from prometheus_client.openmetrics.parser import text_fd_to_metric_families
		found = [s for f in text_fd_to_metric_families(open("open")) for s in f.samples if s.exemplar]
		assert len(found) == 1, found
		sample, exemplar = found[0], found[0].exemplar
		assert sample.name == "mxbpf_iteration_duration_seconds_bucket" and 2.5 < float(sample.labels["le"]) < 15, sample
		assert exemplar.value <= float(sample.labels["le"]), sample
		assert exemplar.labels == {"recording": sys.argv[1]} and 2.5 < exemplar.value < 10, exemplar
		assert abs(time.time() - float(exemplar.timestamp)) < 600, exemplar
	END
	timeout "$WAIT_SECONDS" bash -c 'until curl -sSG "http://$(<prometheus.address)/api/v1/query_exemplars" \
		--data-urlencode "query=mxbpf_iteration_duration_seconds_bucket" -d "start=$(($(date +%s) - 600))" -d "end=$(($(date +%s) + 600))" |
		jq -e --arg file "$0" ".data | length == 1 and (.[0] | (.seriesLabels.le | tonumber) > 2.5 and (.exemplars | length == 1) and
			(.exemplars[0] | .labels.recording == \$file and (.value | tonumber) > 2.5))" >exemplars; do read -rt 0.1 <> <(:) || :; done' "$file"
	"$MXBPF" report "$file" -f json | jq -e '.iterations.loops[0].max_ns > 2.5e9'
}
