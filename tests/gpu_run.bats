#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run.sh runs all checks on a machine with a GPU. These tests run it on the mock of a GPU, in a directory tree that
# has what such a machine has: Python with PyTorch, a driver (the mock's), and a static mxbpf. There are none of the libraries
# that mxbpf needs otherwise, and no compiler.

load helpers

setup() {
	root_setup torch
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$REPO" O="$O" static
}

# Makes the tree in ./root. The directories of Python, PyTorch and the checks are mounted by in_root.
make_root() {
	local file
	TORCH=$(realpath "$O/deps/torch")
	ROOT=$PWD/root
	mkdir -p root/proc root/sys root/dev root/tmp root/usr/bin root/bin root/gpu root/double "root$TORCH" root/usr/lib/python3.11 copied
	chmod 1777 root/tmp
	cp "$REPO"/tests/gpu/*.py "$REPO/tests/gpu/run.sh" "$O/mxbpf-static" copied
	cp -L /usr/bin/python3.11 root/usr/bin/python3
	cp -L /bin/dash root/bin/sh
	cp -L /usr/bin/dirname root/bin/dirname
	find "$TORCH"/lib/python3.*/site-packages/torch/lib /usr/lib/python3.11/lib-dynload "$O/gpu" -maxdepth 1 -name '*.so*' -print0 |
		xargs -0 ldd /usr/bin/python3.11 /bin/dash /usr/bin/dirname 2>/dev/null | grep -oE '/(usr/)?lib[^ ]*' | grep -v "$TORCH" | sort -u >libraries
	while read -r file; do
		mkdir -p "root$(dirname "$file")"
		[[ ! -f $file ]] || cp -L "$file" "root$file"
	done <libraries
	run ! grep . <(find root -name 'libbpf*' -o -name 'libelf*' -o -name 'libZydis*' -o -name 'libcjson*')
}

# Runs a command in the tree. OPTION is one of chroot.
in_root() { # OPTION COMMAND...
	# shellcheck disable=SC2016 # for that shell
	run timeout 280 unshare -m bash -ec '
		root=$1 torch=$2 double=$3 copied=$4 option=$5
		shift 5
		for pair in "$torch:$torch" "/usr/lib/python3.11:/usr/lib/python3.11" "$double:/double" "$copied:/gpu"; do
			mount --bind "${pair%%:*}" "$root${pair#*:}"
			mount -o remount,bind,ro "$root${pair#*:}"
		done
		for dir in proc sys dev; do mount --rbind /$dir "$root/$dir"; done
		cd /
		exec env -i PATH=/bin:/usr/bin:/usr/sbin PYTHON="$torch/bin/python" chroot $option "$root" "$@"' - "$ROOT" "$TORCH" "$O/gpu" "$PWD/copied" "$@"
	mkdir -p results
	tar -xzf root/tmp/out/gpu.tar.gz -C results
	[[ $status == 0 ]] || output+=$'\n'$(tail -n 10 results/log/*)
}

# Prints the verdicts of the rows whose check matches.
verdicts() { # CHECK
	python3 -c 'import json, sys
rows = [r for r in json.load(open("results/results.json"))["results"] if r["check"] == sys.argv[1]]
print(*sorted({r["verdict"] for r in rows}))' "$1"
}

@test "run.sh needs nothing but Python with PyTorch, a static mxbpf and its own files; with BPF no check is skipped for it" {
	make_root
	in_root --userspec=0:0 /gpu/run.sh --double /double --out /tmp/out machine launched attached own-profiler twice
	expect_status 0
	expect_re 'These are results of the mock' "$output"
	expect_re '^\| attached: letting go of CUPTI took \|  \| [0-9.]+ ?[mun]?s' "$output"
	expect_same "$(verdicts launched) $(verdicts attached) $(verdicts own-profiler) $(verdicts twice)" \
		"measured passed measured passed passed measured passed"
}

@test "Without BPF, root and MADV_WIPEONFORK, run.sh does the checks that need no BPF, and skips the others with the reason" {
	make_root
	cp "$O/prog/refuse_madvise" copied
	in_root --userspec=65534:65534 /gpu/refuse_madvise 18 /gpu/run.sh --double /double --out /tmp/out \
		machine launched attached graph own-profiler workers exits facts-small-buffers
	expect_status 0
	expect_same "$(verdicts launched) $(verdicts attached) $(verdicts graph) $(verdicts own-profiler)" \
		"measured passed skipped measured passed passed"
	expect_re '^\| graph: letting go of CUPTI took \|  \| [0-9.]+ ?[mun]?s' "$output"
	expect_re 'CUPTI itself: small-buffers \| +\| kernels: 5000 of 5000' "$output"
	expect_re 'skipped \| without BPF \(.+\)' "$output"
}

# replays NAME: the mock replays the tape, and what mxbpf records of it is what NAME.json has.
replays() {
	gunzip -c "$1.tape.gz" >tape
	cat >job.py <<-EOF
		import ctypes, struct, time
		cupti = ctypes.CDLL("$O/gpu/libcupti.so.12")
		ctypes.CDLL("$O/gpu/libgpuops.so").gpuops_init()
		tape = open("tape", "rb").read()
		clocks, at = [], 16
		while at < len(tape):
		    kind, size = struct.unpack_from("II", tape, at)
		    if kind == 3:
		        clocks.append(struct.unpack_from("QQQ", tape, at + 8)[1])
		    at += 8 + (size + 7 & ~7)
		time.sleep((clocks[-1] - clocks[0]) / 1e9 + 1)  # the tape is replayed in its own time
	EOF
	MXBPF_DOUBLE_TAPE=$PWD/tape MXBPF_DOUBLE_VERSION=17 "$MXBPF" record --gpu --no-bpf -q -o job.mxd -- /usr/bin/python3 job.py
	"$MXBPF" report job.mxd --all -f json >report.json
	python3 - "$1.json" <<-'EOF'
		import json, sys
		gpu = json.load(open("report.json"))["gpu"]
		told = json.load(open(sys.argv[1]))
		seen = {"kernels": sorted([row["name"], row["count"], row["total_ns"]] for row in gpu["kernels"]),
		        "copies": sum(row["count"] for row in gpu["copies"]), "activities": gpu["records"][0]["activities"], "calls": gpu["records"][0]["calls"]}
		# Each time is rounded to a ns when CUPTI's clock is converted.
		for (name, count, ns), (name2, count2, ns2) in zip(seen.pop("kernels"), told.pop("kernels"), strict=True):
		    assert (name, count) == (name2, count2) and abs(ns - ns2) <= 2 * count, (name, count, ns, name2, count2, ns2)
		assert seen == told, (seen, told)
	EOF
}

@test "The mock of a GPU replays the tape that run.sh brings back, with the same kernels, copies and calls" {
	PYTHON=$PYTHON_TORCH run "$REPO/tests/gpu/run.sh" --double "$O/gpu" --out out fixtures
	expect_status 0
	tar -xzf out/gpu.tar.gz fixtures
	replays fixtures/double
}

@test "The buffers of a real H200 with PyTorch, which CUPTI 13.0 filled, give the kernels, copies and calls that they gave there" {
	replays "$REPO/tests/gpu/fixtures/nvidia-h200"
}

@test "A check that fails, one that hangs and one that has no time left are in the table, and in the exit code" {
	mkdir copied
	cp "$REPO"/tests/gpu/*.py "$REPO/tests/gpu/run.sh" copied
	python3 - <<-'EOF'
		text = open("copied/checks.py").read()
		open("copied/checks.py", "w").write(text.replace("def main():", '''@check
		def hangs(test):
		    """It hangs."""
		    test.judge("before it hangs", True, 1)
		    time.sleep(100)


		@check
		def dies(test):
		    """It dies."""
		    os.kill(os.getpid(), signal.SIGKILL)


		@check
		def differs(test):
		    """It differs."""
		    test.judge("two and three", False, "2 | 3")


		def main():''', 1))
	EOF
	LIMIT=2 run copied/run.sh --double "$O/gpu" --out out hangs dies differs
	expect_status 1
	expect_re '^\| before it hangs \| yes \| 1 \|$' "$output"
	expect_re '^\| hangs \| \*\*no\*\* \| it did not end within 2 s \|$' "$output"
	expect_re '^\| dies \| \*\*no\*\* \| the check ended with status -9; see log/dies \|$' "$output"
	expect_re '^\| two and three \| \*\*no\*\* \| 2 .\| 3 \|$' "$output"
	TOTAL=0 run copied/run.sh --double "$O/gpu" --out other hangs
	expect_status 4
	expect_re '^\| hangs \| skipped \| 0 s had passed; run.sh --resume runs it \|$' "$output"
}

# Prints the names of checks with a result, and how often each was run; fails if the archive or the table is not whole.
have_run() {
	python3 - <<-'EOF'
		import json, tarfile
		with tarfile.open("out/gpu.tar.gz") as tar:
		    texts = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
		results = json.loads(texts["results.json"])
		assert texts["gpu.md"].decode().endswith("|\n") and open("out/gpu.md").read().endswith("|\n")
		names = [row["check"] for row in results["results"] + results["earlier"]]
		print(*sorted(f"{name}={names.count(name)}" for name in set(names)))
	EOF
}

@test "run.sh is interrupted after some checks and killed within one: the archive is whole, and --resume does the rest" {
	local pid child all left
	mkdir copied fifo tmp
	cp "$REPO"/tests/gpu/*.py "$REPO/tests/gpu/run.sh" copied
	mkfifo fifo/begun
	# This check hangs when it is run for the first time and for the second time.
	python3 - <<-'EOF'
		text = open("copied/checks.py").read()
		open("copied/checks.py", "w").write(text.replace("def main():", '''@check
		def hangs(test):
		    """It hangs."""
		    turns = os.path.join(os.environ["TURNS"], "turns")
		    with open(turns, "a") as f:
		        f.write("x")
		    if os.path.getsize(turns) > 2:
		        return test.judge("it does not hang", True, 1)
		    with open(os.path.join(os.environ["TURNS"], "begun"), "w") as f:
		        f.write(f"{os.getpid()}")
		    time.sleep(100)


		PLAN["hangs"] = Entry(60, ALONE)


		def main():''', 1))
	EOF
	export TURNS=$PWD/fifo PYTHON=$PYTHON_TORCH TMPDIR=$PWD/tmp
	mapfile -t all < <(copied/run.sh --list | grep -vx 'facts-machine\|facts-late-objects\|hangs' | grep facts-)
	all=(facts-machine facts-late-objects hangs "${all[@]}")
	copied/run.sh --double "$O/gpu" --out out "${all[@]}" 3>&- &
	pid=$!
	child=$(<fifo/begun)
	kill -TERM "$pid"
	wait "$pid" || [[ $? == 143 ]]
	wait_gone "$child"
	expect_re '^facts-late-objects=1 facts-machine=1$' "$(have_run)"
	[[ -z $(ls tmp) ]] # a call that ends removes its own
	copied/run.sh --double "$O/gpu" --out out --resume "${all[@]}" 3>&- &
	pid=$!
	child=$(<fifo/begun)
	kill -KILL "$pid"
	wait "$pid" || [[ $? == 137 ]]
	wait_gone "$child"
	expect_re '^facts-late-objects=1 facts-machine=1$' "$(have_run)"
	left=(tmp/*)
	expect_re '^tmp/mxbpf-gpu-run-[^ ]+$' "${left[*]}"
	# The next call removes what the killed one has left, but nothing that somebody holds or that is not its own.
	mkdir tmp/mxbpf-gpu-run-held tmp/mxbpf-gpu-run-other tmp/aim
	touch tmp/mxbpf-gpu-run-file tmp/aim/file
	ln -s aim tmp/mxbpf-gpu-run-link
	chown 65534 tmp/mxbpf-gpu-run-other
	exec {held}<tmp/mxbpf-gpu-run-held
	flock "$held"
	expect_run 0 copied/run.sh --double "$O/gpu" --out out --resume "${all[@]}"
	expect_same "$(have_run | tr ' ' '\n' | sed 's/=.*//' | grep -c .)" "${#all[@]}"
	expect_re 'hangs=1' "$(have_run)"
	expect_same "$(cat fifo/turns)" xxx
	exec {held}<&-
	expect_same "$(cd tmp && find . -mindepth 1 | sort | tr '\n' ' ')" \
		"./aim ./aim/file ./mxbpf-gpu-run-file ./mxbpf-gpu-run-held ./mxbpf-gpu-run-link ./mxbpf-gpu-run-other "
	# What a call finds, it keeps.
	MXBPF_DOUBLE=lock-order run copied/run.sh --double "$O/gpu" --out out facts-small-buffers
	expect_re '^\| CUPTI itself: small-buffers \|  \| kernels: 5000 of 5000' "$output"
	expect_re 'facts-late-objects=1 .*facts-small-buffers=2 .*facts-versions=1' "$(have_run)"
	expect_same "$(find out -type f | wc -l)" 2
	# What the facts say about the mock. One call launches one kernel, and one call waits for them.
	tar -xzf out/gpu.tar.gz facts.md
	expect_re '^- records: .*runtime.: 2001, .kernel.: 2000' "$(<facts.md)"
	expect_re '^- kernels that begin before their launch: 0 of 20; without a launch 0' "$(<facts.md)"
	expect_re '^- another one while it stands: 39 ' "$(<facts.md)"
	expect_re '^- kernels: 5000 of 5000, dropped 0, [0-9]{2,} buffers' "$(<facts.md)"
	expect_re '^- decides: pool limit 8, one subscription: 120000 of 120000 kernels, dropped 0' "$(<facts.md)"
	expect_re '^- functions that the agent switches off: [0-9]+ of [0-9]+' "$(<facts.md)"
	# What decides something has a row of its own.
	expect_re '^\| CPU time of a launch, the agent.s selection \|  \| [0-9]+ ns' "$(<out/gpu.md)"
	expect_re '^\| CUDA graph, second session \|  \| 200 kernels of 200' "$(<out/gpu.md)"
	expect_re '^\| a forced flush with a kernel under way \|' "$(<out/gpu.md)"
}

@test "Without a GPU, or with a driver that does not answer, run.sh refuses with the reason and status 3" {
	mkdir driver
	cc -shared -fPIC -o driver/libcuda.so.1 -x c - <<<'#include <unistd.h>
		int cuInit(int flags) { return pause(); }'
	LIMIT=1 LD_LIBRARY_PATH=$PWD/driver PYTHON=/usr/bin/python3 run "$REPO/tests/gpu/run.sh" --out out
	expect_status 3
	expect_re '^run.sh: there is no GPU that can be used: cuInit did not return within 1 s$' "$output"
	[[ ! -e out ]]
	TOTAL=0 LD_LIBRARY_PATH=$O/gpu PYTHON=/usr/bin/python3 run "$REPO/tests/gpu/run.sh" --out begun facts-machine # a driver that answers
	expect_status 4
	expect_re '^\| facts-machine \| skipped \| 0 s had passed' "$output"
	[[ ! -e /dev/nvidia0 ]] || skip "there is a GPU"
	PYTHON=$PYTHON_TORCH run "$REPO/tests/gpu/run.sh" --out out
	expect_status 3
	expect_re '^run.sh: there is no GPU that can be used: .*(libcuda|cuInit|no device)' "$output"
	[[ ! -e out ]]
}
