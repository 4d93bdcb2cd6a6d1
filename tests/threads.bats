#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What each thread did with CPUs, with the program's own account of its threads as the reference.

load helpers

setup() {
	need_root
	cd "$BATS_TEST_TMPDIR"
}

@test "Threads have the CPU time that they measure themselves, those that have ended too, in every output" {
	local account
	start_code threads '
import ctypes, json, os, signal, threading, time, torch
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
began, told, ends = time.process_time_ns(), {}, threading.Event()
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
told["process"] = time.process_time_ns() - began
print("told", json.dumps(told), flush=True)
signal.pause()
'
	start_mxbpf record --pid "$READY_PID" -o t.mxd
	kill -USR1 "$READY_PID"
	wait_line "$(out threads)" '^told ' "$READY_PID"
	stop_pid "$MXBPF_PID" INT
	account=$(sed -n 's/^told //p' "$(out threads)")
	"$MXBPF" report t.mxd -f json -o t.json
	# A thread that has ended has what was read of it before; the rest has no thread.
	jq -e --argjson told "$account" '
		def about($x): . > 0.98 * $x - 5000000 and . < 1.02 * $x + 5000000;
		([.threads[] | {key: "\(.tid)", value: .}] | from_entries) as $of
		| ($of["\($told.burner.tid)"] | .name == "burner" and (.cpu_ns | about($told.burner.ns)) and .runs > 0)
			and ($of["\($told.helper.tid)"] | .name == "helper" and (.cpu_ns | about($told.helper.ns)))
			and ([.threads[] | select(.tid == 0 or .tid == $told.brief.tid).cpu_ns] | add | about($told.brief.ns))
			and ([.threads[].cpu_ns] | add | about($told.process))' t.json
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
