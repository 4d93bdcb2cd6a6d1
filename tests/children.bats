#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Short-lived child processes of a PyTorch program, and the effect of shared probes on unrelated processes.

load helpers

setup() { root_setup torch; }

# start_forks NAME FD: starts tests/workload/torch_forks.py with its standard input at descriptor FD; sets READY_PID.
start_forks() {
	mkfifo "$BATS_TEST_TMPDIR/$1.in"
	start_ready "$1" bash -c 'exec <>"$0"; exec "$@"' "$BATS_TEST_TMPDIR/$1.in" "$PYTHON_TORCH" \
		"$REPO/tests/workload/torch_forks.py" >/dev/null
	eval "exec $2>\"$BATS_TEST_TMPDIR/$1.in\""
}

# wait_lines FILE REGEX N: waits until N lines match.
wait_lines() {
	# shellcheck disable=SC2016 # for that shell
	timeout 120 bash -c 'until (($(grep -c -E "$1" "$0") >= $2)); do sleep 0.01; done' "$@"
}

# tell NAME FD LINE: sends LINE and waits until the program has done it.
tell() {
	local done
	done=$(grep -c '^done$' "$(out "$1")") || true # none yet
	echo "$3" >&"$2"
	wait_lines "$(out "$1")" '^done$' $((done + 1))
}

# Prints the bytes at every address in a toy that mxbpf would probe.
code() { # PID
	local offsets
	mapfile -t offsets < <("$MXBPF" check --pid "$1" | sed -n '/ memory.throw /d; s/^  ok .* +0x\([0-9a-f]*\) .*/\1/p')
	((${#offsets[@]} >= 8)) || return 1
	python3 "$REPO/tests/code_bytes.py" "$1" libmxnet.so "${offsets[@]}"
}

end_session() {
	end_pid "$MXBPF_PID"
}

calls() { # NAME: calls of an operator in all processes
	jq --arg name "aten::$1" '[.tables.operator[]? | select(.name == $name).count] | add // 0' "$(out mxbpf)"
}

# Starts a toy on a copy of its library, which no other test has mapped.
own_toy() { # ARGS...
	TOY=$BATS_TEST_TMPDIR/toy
	[[ -d $TOY ]] || cp -r "$O/toy" "$TOY"
	start_toy "$@"
	TOY_PID=$READY_PID
}

# Makes the toy fork its child processes once more.
toy_forks() {
	local done
	done=$(grep -c '^done$' "$(out toy)") || true # none yet
	kill -s USR1 "$TOY_PID"
	wait_lines "$(out toy)" '^done$' $((done + 1))
}

creates() { jq '[.tables.MXNET_C_API[]? | select(.name == "MXNDArrayCreate").count] | add // 0' "$(out mxbpf)"; }

@test "200 forked PyTorch children have exact counts in rows of their own, even while mxbpf does not run" {
	start_forks forks 9
	start_mxbpf --pid "$READY_PID" --follow shared --ops cosh --format json
	kill -s STOP "$MXBPF_PID"
	tell forks 9 'children 200'
	kill -s CONT "$MXBPF_PID"
	end_session
	[[ $(calls cosh) == 1400 ]]
	jq -e '[.tables.operator[] | select(.name == "aten::cosh").count] | length == 200 and all(.[]; . == 7)' "$(out mxbpf)"
	jq -e '(.window | .followed == 200 and .unfollowed == 0 and .follow_lag_ns == 0 and (has("gaps") | not)) and
		(.loss | .dropped + .unmatched + .truncated + .unreadable == 0)' "$(out mxbpf)"
}

@test "2000 successive children return their entries and slots in the kernel, which has 1024 of each" {
	own_toy 3 2000 fork
	start_mxbpf --pid "$TOY_PID" --probes api --api all --format json
	kill -s STOP "$MXBPF_PID"
	toy_forks
	kill -s CONT "$MXBPF_PID"
	end_session
	[[ $(creates) == 6000 ]]
	jq -e '.window | .followed == 2000 and .unfollowed == 0 and (has("strangers") | not)' "$(out mxbpf)"
	jq -e '.loss | .dropped + .unmatched == 0' "$(out mxbpf)"
}

@test "An unrelated process keeps its code and behaviour, and only its hits after a fork of the target are counted" {
	own_toy 5 1 hold
	local stranger=$TOY_PID before forks=1
	cp "$(out toy)" "$BATS_TEST_TMPDIR/stranger.ready"
	before=$(code "$stranger")
	mv "$(out toy)" "$(out stranger)"
	own_toy 3 1 fork
	start_mxbpf -v --pid "$TOY_PID" --probes api --api all --format json
	[[ $(code "$stranger") == "$before" ]]
	# A child that ends before its probes are active is missed and reported.
	until grep -q '^mxbpf: following process' "$(err mxbpf)"; do toy_forks && forks=$((forks + 1)); done
	[[ $(code "$stranger") != "$before" ]]
	toy_forks
	kill -s USR1 "$stranger"
	wait_line "$(out stranger)" '^{' "$stranger"
	end_session
	[[ $(code "$stranger") == "$before" ]]
	kill -s USR1 "$stranger"
	wait_gone "$stranger"
	# The stranger's 46 calls hit a start and an end probe each. A missed child counts as a stranger, too.
	jq -e '.MXNET_C_API.MXNDArrayCreate == 15' <<<"$(tail -n 1 "$(out stranger)")"
	jq -e --argjson forks "$forks" '.window | .followed + .unfollowed == $forks and .strangers.hits >= 92 and
		.strangers.hits <= 92 + 58 * ($forks - 1) and .strangers.time_ns > 100 * .strangers.hits' "$(out mxbpf)"
	(($(creates) >= 3 && $(creates) <= 3 * forks))
}

@test "A process that calls the library all the time while its shared probes are attached is no stranger" {
	own_toy 2000000000 1
	kill -s USR1 "$TOY_PID"
	"$MXBPF" --exact --pid "$TOY_PID" --follow shared --probes api --api all -d 100ms -o "$BATS_TEST_TMPDIR/busy.json"
	stop_pid "$TOY_PID" KILL
	jq -e '.tables.MXNET_C_API | map(.count) | add > 0' "$BATS_TEST_TMPDIR/busy.json"
	jq -e '.window | has("strangers") | not' "$BATS_TEST_TMPDIR/busy.json"
}

@test "A child that calls exec is forgotten in the kernel, and no hit of its new image counts" {
	start_forks forks 9
	start_mxbpf --pid "$READY_PID" --follow shared --ops 'cosh,sinh' --format json
	kill -s STOP "$MXBPF_PID" # mxbpf must not see the new image before it has ended
	tell forks 9 exec
	kill -s CONT "$MXBPF_PID"
	end_session
	[[ $(calls cosh) == 7 && $(calls sinh) == 0 ]]
	jq -e '.window.strangers.hits >= 14 and .loss.unmatched == 0' "$(out mxbpf)"
}

@test "--follow filtered keeps the operator ends of workers that are born while their probes are attached" {
	start_forks forks 9
	start_mxbpf --pid "$READY_PID" --follow filtered --format json
	tell forks 9 'loader 6'
	end_session
	cat "$(err mxbpf)"
	# A process counts once, even if it ends between two reports of its loader.
	jq -e '.window | (has("fallbacks") | not) and .followed + .unfollowed == 12 and (has("strangers") | not)' "$(out mxbpf)"
	# Every followed process has a gap from its start until its probes were active.
	jq -e '.window | (.gaps // [] | length) == .followed and all(.gaps // [] | .[]; .gap_ns > 0)' "$(out mxbpf)"
}

# --iterations needs a function that ends iterations, which the other build lacks.
@test "A process that cannot be followed is counted and reported once, however often its loader reports it" {
	need_mxnet
	cd "$BATS_TEST_TMPDIR"
	other_build "$O/toy/libmxnet.so" other/libmxnet.so
	# The process maps another build of the runtime, then more libraries, and does the same again after exec.
	local loads='import ctypes, os, sys
for lib in sys.argv[2], "libcrypto.so.3", "libstdc++.so.6":
    ctypes.CDLL(lib)
if sys.argv[1] == "again":
    os.execv(sys.executable, [sys.executable, "-c", os.environ["LOADS"], "last", sys.argv[2]])'
	export LOADS=$loads
	# shellcheck disable=SC2016 # for that shell
	run --separate-stderr "$MXBPF" -v --iterations 1/2 --format json -- bash -c '"$0" "$1" --tiny --steps 20
		"$2" -c "$LOADS" again other/libmxnet.so; exit 0' "$PYTHON" "$REPO/tests/workload/mxnet_train.py" "$PYTHON_TORCH"
	[[ $status == [05] ]] # the job may end before an iteration is recorded
	[[ $(grep -c 'process [0-9]* is not followed: ' <<<"$stderr") == 1 ]]
	jq -e '.window | .followed == 0 and .unfollowed == 1' <<<"$output"
}

@test "--wait --pid LAUNCHER finds a child that has the runtime and one that maps it later" {
	local when
	for when in now later; do
		mkfifo "$BATS_TEST_TMPDIR/$when.in"
		# shellcheck disable=SC2016 # for that shell
		start_bg "$when" bash -c 'exec <>"$0"; [[ $2 == now ]] || read -r; "$1/toy" 20 1; echo ended' "$BATS_TEST_TMPDIR/$when.in" \
			"$O/toy" "$when"
		local launcher=$BG_PID
		[[ $when == later ]] || wait_line "$(out "$when")" '^ready'
		start_bg mxbpf "$MXBPF" --exact --wait --pid "$launcher" --format json
		MXBPF_PID=$BG_PID
		if [[ $when == later ]]; then
			wait_line "$(err mxbpf)" '^waiting until process .* or a child of it loads' "$MXBPF_PID"
			echo >"$BATS_TEST_TMPDIR/$when.in"
		fi
		wait_line "$(err mxbpf)" '^attached: ' "$MXBPF_PID"
		kill -s USR1 "$(sed -n 's/^ready //p' "$(out "$when")")"
		wait_exit "$MXBPF_PID"
		jq -e '.tables.MXNET_C_API | length > 0' "$(out mxbpf)"
	done
}

@test "A child whose loader is still mapping the runtime is followed in the end, and not counted as failed" {
	cd "$BATS_TEST_TMPDIR"
	torch_server
	mkfifo here go
	# Stops the loader after it has mapped libtorch_cpu.so and before it maps its dependencies.
	cc -shared -fPIC -o halt.so -x c - <<-'END'
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <link.h>
		#include <string.h>
		#include <unistd.h>
		unsigned la_version(unsigned version) { return version; }
		unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
		{
			char word;

			if (strstr(map->l_name, "/libtorch_cpu.so")) {
				close(open("here", O_WRONLY));
				return read(open("go", O_RDONLY), &word, 1) < 0;
			}
			return 0;
		}
	END
	cat >parent.py <<-'END'
		import os, subprocess, sys
		import torch
		print('ready', os.getpid(), flush=True)
		subprocess.run([sys.executable, '-c', 'import torch; torch.ones(3)'], env=dict(os.environ, LD_AUDIT='./halt.so'))
	END
	start_ready parent "${SERVED[@]}" "$PWD/parent.py" >/dev/null
	cat here
	start_mxbpf --pid "$READY_PID" --format json
	echo >go
	wait_exit "$MXBPF_PID" 120
	jq -e '(.window | .followed == 1 and .unfollowed == 0) and ([.tables.operator[] | select(.name == "aten::ones").count] == [1])' \
		"$(out mxbpf)"
}
