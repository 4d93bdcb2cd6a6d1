#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Each command of README.md and docs/ runs, and the first line of its output is the one that the page shows.
# tests/docs/commands.py runs them, and says how a page names the job of a command.

load helpers

COMMANDS=$REPO/tests/docs/commands.py

page() { # PAGE
	local needed jobs=()
	need_root
	needed=$("$COMMANDS" --jobs "$1")
	[[ -n $needed ]] || skip "no command of this page is run"
	cd "$BATS_TEST_TMPDIR"
	if [[ $needed == *mxnet* ]]; then
		shared_workload --tiny --hybridize none
		jobs+=("mxnet=$WORKLOAD_PID")
	fi
	if [[ $needed == *torch* ]]; then
		need_torch
		torch_server
		start_ready torch "${SERVED[@]}" "$REPO/tests/workload/torch_train.py" >/dev/null
		jobs+=("torch=$READY_PID")
	fi
	"$COMMANDS" "$1" "${jobs[@]}"
}

@test "Every command of the pages is in a block that is run, and every option that they name exists" {
	run "$COMMANDS" --check
	[[ $status == 0 && -z $output ]] || { echo "$output"; return 1; }
}

@test "Every page of docs/ is in its contents and has a test here" {
	local page jobs
	while read -r page jobs; do
		[[ $page == README.md || $page == docs/README.md ]] || grep -qF "](${page#docs/})" "$REPO/docs/README.md"
		[[ -z $jobs ]] || grep -q "page $page;" "$BATS_TEST_FILENAME"
	done < <("$COMMANDS" --pages)
}

@test "The table of docs/pytorch.md has what the program does with each option and --agent" {
	expect_same "$("$MXBPF" --generate agent)" "$(sed -n '/^<!-- list agent -->$/,/^<!-- end of list -->$/{/^<!--/!p}' "$REPO/docs/pytorch.md")"
}

@test "The table of docs/privileges.md has the system calls of the program's filter" {
	expect_same "$("$MXBPF" --generate seccomp)" "$(sed -n '/^<!-- list seccomp -->$/,/^<!-- end of list -->$/{/^<!--/!p}' "$REPO/docs/privileges.md")"
}

@test "README.md has at most 180 lines" { (($(wc -l <"$REPO/README.md") <= 180)); }

@test "CHANGELOG.md says what the version in VERSION changed" { grep -qF "## [$(<"$REPO/VERSION")] - " "$REPO/CHANGELOG.md"; }

@test "The commands of README.md print what it shows" { page README.md; }
@test "The commands of docs/counters.md print what it shows" { page docs/counters.md; }
@test "The commands of docs/distributed.md print what it shows" { page docs/distributed.md; }
@test "The commands of docs/findings.md print what it shows" { page docs/findings.md; }
@test "The commands of docs/hang.md print what it shows" { page docs/hang.md; }
@test "The commands of docs/iterations.md print what it shows" { page docs/iterations.md; }
@test "The commands of docs/lifecycle.md print what it shows" { page docs/lifecycle.md; }
@test "The commands of docs/limits.md print what it shows" { page docs/limits.md; }
@test "The commands of docs/memory.md print what it shows" { page docs/memory.md; }
@test "The commands of docs/mxnet.md print what it shows" { page docs/mxnet.md; }
@test "The commands of docs/openmp.md print what it shows" { page docs/openmp.md; }
@test "The commands of docs/operators.md print what it shows" { page docs/operators.md; }
@test "The commands of docs/overhead.md print what it shows" { page docs/overhead.md; }
@test "The commands of docs/pytorch.md print what it shows" { page docs/pytorch.md; }
@test "The commands of docs/sampling.md print what it shows" { page docs/sampling.md; }
@test "The commands of docs/page.md print what it shows" { page docs/page.md; }
@test "The commands of docs/symptoms.md print what it shows" { page docs/symptoms.md; }
@test "The commands of docs/traces.md print what it shows" { page docs/traces.md; }
@test "The commands of docs/why-slow.md print what it shows" { page docs/why-slow.md; }

# Writes the program that a page shows below "<!-- example FILE -->".
example() { # PAGE FILE
	sed -n "/^<!-- example $2 -->\$/,/^\`\`\`\$/{/^\`\`\`/d;/^<!--/d;p}" "$REPO/$1" >"$2"
	[[ -s $2 ]]
}

@test "The server of docs/inference.md has a row for requests, waits for its lock, and its leak has the line that the page names" {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	example docs/inference.md server.py
	sed -i "s/^ThreadingHTTPServer.*/server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)\nprint('port', server.server_port, flush=True)\nprint('ready', __import__('os').getpid(), flush=True)\nserver.serve_forever()/" server.py
	start_ready server "$PYTHON_TORCH" -u server.py
	port=$(awk '/^port/ { print $2 }' "$(out server)")
	cat >clients.py <<-'END'
		import http.client, os, sys, threading, time
		def ask():
		    c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
		    while True:
		        c.request('POST', '/', b'x')
		        c.getresponse().read()
		        time.sleep(0.01)
		for _ in range(4):
		    threading.Thread(target=ask).start()
		print('ready', os.getpid(), flush=True)
	END
	pid=$READY_PID
	start_ready clients python3 clients.py "$port"
	"$MXBPF" --exact --pid "$pid" -d 3s --sched --memory --py-stacks -o server.json
	jq -e '.tables.operator | map(select(.name == "request"))[0] | .count >= 20 and .account.blocked_ns > 0' server.json
	line=$(grep -n 'model(torch.randn' server.py | cut -d: -f1)
	"$MXBPF" --exact --pid "$pid" -d 3s --memory --py-stacks | tee text
	expect_re '^No finding: (no iteration ended|mxbpf found no bottleneck, as far)|^1\. ' "$(<text)"
	expect_re "^    .*server.py\\($line\\): predict" "$(<text)"
	"$MXBPF" --pid "$pid" -d 2s --agent --by range --top 0 | grep -qE '^aten::addmm +request '
}

@test "The program of docs/torch-compile.md has a region for each of its graphs, and kernels" {
	need_root
	need_torch
	cd "$BATS_TEST_TMPDIR"
	example docs/torch-compile.md compiled.py
	sed -i "s/^    net.epoch = .*/    net.epoch = int(step > 50)\n    step == 90 and print('ready', __import__('os').getpid(), flush=True)/" compiled.py
	mkdir cache
	OMP_NUM_THREADS=1 TORCHINDUCTOR_CACHE_DIR=$PWD/cache start_ready compiled "$PYTHON_TORCH" -u compiled.py
	"$MXBPF" --pid "$READY_PID" -d 2s --agent -o compiled.json
	jq -e '[.tables.operator[].name | select(startswith("Torch-Compiled Region: "))] == ["Torch-Compiled Region: 0/1"]' compiled.json
	jq -e '.tables["compiled kernel"] | length >= 3 and all(.[]; .name | startswith("inductor::c"))' compiled.json
	kernel=$(jq -r '.tables["compiled kernel"][0].name | sub("inductor::"; "")' compiled.json)
	[[ -n $(find cache -name "$kernel*.cpp") ]]
}
