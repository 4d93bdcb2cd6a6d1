#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The table of threads. The reference is the CPU time that the threads of a program measure themselves.

load helpers

setup() { root_setup; }

@test "Threads have the CPU time that they measure themselves, those that have ended too, in every output" {
	local account
	start_code threads '
import ctypes, json, os, signal, threading, time, torch
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
began, told, ends = time.process_time_ns(), {}, threading.Event()
reads, writes = os.pipe()
forked = os.fork()
if not forked:
    libc = ctypes.CDLL(None)
    libc.prctl(1, signal.SIGKILL)
    libc.prctl(15, b"forked", 0, 0, 0)
    while time.process_time() < 0.4:
        pass
    os.write(writes, b"%d" % time.process_time_ns())
    signal.sigwait([signal.SIGUSR1])
    torch.ones(2)
    print("called", flush=True)
    signal.pause()
def burns(name, seconds, stays):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    while time.thread_time() < seconds:
        pass
    told[name] = {"tid": threading.get_native_id(), "ns": time.thread_time_ns()}
    if stays:
        ends.wait()
threads = [threading.Thread(target=burns, args=a, daemon=True) for a in (("burner", 0.6, True), ("helper", 0.3, True), ("brief", 0.2, False))]
for t in threads:
    t.start()
threads[2].join()
while len(told) < 3:
    time.sleep(0.01)
torch.ones(2)
told["forked"] = {"pid": forked, "ns": int(os.read(reads, 20))}
told["process"] = time.process_time_ns() - began
print("told", json.dumps(told), flush=True)
signal.pause()
'
	start_mxbpf record -v --pid "$READY_PID" -o t.mxd
	kill -USR1 "$READY_PID"
	wait_line "$(out threads)" '^told ' "$READY_PID"
	account=$(sed -n 's/^told //p' "$(out threads)")
	wait_line "$(err mxbpf)" "following process" "$MXBPF_PID"
	kill -USR1 "$(jq .forked.pid <<<"$account")"
	wait_line "$(out threads)" '^called' "$READY_PID"
	stop_pid "$MXBPF_PID" INT
	"$MXBPF" report t.mxd -f json -o t.json
	# A thread that has ended has what was read of it before; the rest has no thread. A process that begins in the window is
	# whole. Both make a call, so tables are sums of two processes.
	jq -e --argjson told "$account" '
		def about($x): . > 0.98 * $x - 5000000 and . < 1.02 * $x + 5000000;
		(.threads | map(select(.name != "forked"))) as $own
		| ($own | map({key: "\(.tid)", value: .}) | from_entries) as $of
		| ($of["\($told.burner.tid)"] | .name == "burner" and (.cpu_ns | about($told.burner.ns)) and .runs > 0)
			and ($of["\($told.helper.tid)"] | .name == "helper" and (.cpu_ns | about($told.helper.ns)))
			and ([$own[] | select(.tid == 0 or .tid == $told.brief.tid).cpu_ns] | add | about($told.brief.ns))
			and ([$own[].cpu_ns] | add | about($told.process))
			and (.threads | map(select(.name == "forked")) | length == 1 and (.[0].cpu_ns | about($told.forked.ns)))' t.json
	"$MXBPF" report t.mxd -f csv -o t.csv
	expect_same "$(jq -r '.threads[] | "\(.tid) \(.cpu_ns)"' t.json | sort)" "$(python3 -c '
import csv
for row in csv.DictReader(open("t.csv")):
    if row["table"] == "threads":
        print(row["tid"], row["thread_cpu_ns"])' | sort)"
	run "$MXBPF" report t.mxd --all
	expect_re '^burner +[0-9]+ +[0-9.]+ ms 0\.[0-9]+ ' "$output"
	run "$MXBPF" report t.mxd
	expect_re '^more .*threads' "$output"
}
