#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Things of other users do no harm: names and files of their processes, their recordings and configurations, and outputs in their folders.
#
# HOSTILE_ASAN=build-asan/mxbpf runs the same tests with another binary, such as one with sanitizers, made by
# `make O=build-asan ASAN=1`.
load helpers

MXBPF=$(realpath "${HOSTILE_ASAN:-$MXBPF}")
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1

setup() {
	root_setup
	export LC_ALL=C.UTF-8
}

teardown() {
	kill_started
	park_jobs
	[[ -z ${GROUP:-} ]] || rmdir "$GROUP"
}

# Fails if a file has a control byte other than tab and line feed, a mark of direction, or a line that a name has forged.
clean() { # FILE...
	local file forged
	for file; do
		[[ $file == *.csv ]] && forged= || forged='|^forged' # in quotes of CSV, a line feed is one
		[[ -s $file ]] || { echo "$file is empty" && return 1; }
		LC_ALL=C grep -n -a -P '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80[\x8e\x8f\xa8-\xae]'"$forged" "$file" >found || continue
		echo "in $file: $(cut -c1-200 found | cat -v)"
		return 1
	done
}

@test "Hostile names of a program, its directory, a thread, an operator, a pod and a control group reach no terminal, page, metric or log" {
	local evil=$'\e]0;x\a<script>%s%n\u202e"\\\nforged 1\n\xff' root=/sys/fs/cgroup address
	mkdir "$evil"
	[[ -e $root/cgroup.procs ]] || root=$root/cpuacct # version 1
	! mkdir "$root/mxbpf-$$"$'<script>\e"\\\u202e%n' 2>/dev/null || GROUP=$(echo "$root/mxbpf-$$"*)
	cp "$O/toy/libmxnet.so" "$evil/"
	# The program has an operator with a long name.
	python3 -c 'import os, sys
old = b"a name that is too long for the string\x27s own room"
new = os.fsencode(sys.argv[2])
data = open(sys.argv[1], "rb").read()
assert old in data
open(sys.argv[3], "wb").write(data.replace(old, (new * 9)[:len(old)]))' "$O/toy/toy" "$evil" "$evil/"$'t\e[2J\u202e%n'
	chmod +x "$evil/"$'t\e[2J\u202e%n'
	start_ready evil env POD_NAME="$evil" sh -c '[ -z "$0" ] || echo $$ >"$0/cgroup.procs"; exec "$@"' \
		"${GROUP:-}" "$evil/"$'t\e[2J\u202e%n' 200 2 hold "$evil"
	start_bg serve "$MXBPF" serve --pid "$READY_PID" --interval 200ms --max-overhead 100% --listen 127.0.0.1:0 --stream lines \
		--flight-record 10s --on 'operator.max(*script*) > 1ns'
	SERVE_PID=$BG_PID
	wait_line "$(err serve)" 'info: attached: [0-9]+ probes' "$SERVE_PID"
	start_mxbpf record --pid "$READY_PID" --api all -o r.mxd
	start_bg top "$MXBPF" top --exact --batch --pid "$READY_PID" --probes op
	wait_line "$(out top)" 'iterations/s' "$BG_PID"
	"$MXBPF" list >list.txt
	"$MXBPF" check --pid "$READY_PID" >check.txt || true
	"$MXBPF" now --pid "$READY_PID" -d 10ms >now.txt 2>now-said.txt
	"$MXBPF" now --pid "$READY_PID" -d 10ms -f json >now.json
	kill -s USR1 "$READY_PID"
	wait_line "$(out evil)" '^{' "$READY_PID"
	wait_line "$(out top)" '<script>' "$BG_PID"
	wait_line "$(err serve)" 'info: wrote [.]/mxbpf-[0-9TZ]+-operator[.]mxd: .*<script>' "$SERVE_PID"
	address=$(sed -n 's|.* info: listening on ||p' "$(err serve)")
	curl -sS --max-time 60 "$address/metrics" -o metrics "$address/report.json" -o serve.json "$address/" -o serve.html
	curl -sS --max-time 60 -H 'Accept: application/openmetrics-text; version=1.0.0' "$address/metrics" -o openmetrics
	end_pid "$SERVE_PID"
	kill -s INT "$BG_PID" "$MXBPF_PID"
	wait_exit "$MXBPF_PID"
	wait_exit "$BG_PID"
	"$MXBPF" report r.mxd >report.txt
	"$MXBPF" report r.mxd -f json >report.json
	"$MXBPF" report r.mxd -f csv >report.csv
	"$MXBPF" report r.mxd --all >all.txt
	"$MXBPF" diff r.mxd r.mxd >diff.txt 2>&1
	"$MXBPF" export r.mxd -f chrome -o chrome.json
	grep -q 'x1b.*script' report.txt # the name was there
	clean list.txt check.txt now.txt now-said.txt now.json report.txt report.json report.csv all.txt diff.txt chrome.json \
		"$(out top)" "$(err mxbpf)" metrics openmetrics lines serve.json serve.html "$(err serve)"
	grep -F 'operator="\\x1b]0;x\\x07<script>%s%n\\xe2\\x80\\xae\"\\\\x0aforged' metrics | grep -cF 'pod="\\x1b]0;'
	[[ -z ${GROUP:-} ]] || grep -cF '<script>\\x1b\"\\\\xe2\\x80\\xae%n"' metrics
	# Each line is a comment or a sample, as the formats define them.
	run ! grep -v -P '^(# .*|[a-z_]+([{]([a-z_A-Z]+="([^"\\]|\\["\\n])*",?)*[}])? [-+.e0-9]+( # [{]recording="[^"\\]*"[}] [.0-9]+ [.0-9]+)?)$' metrics openmetrics
	jq -se 'any(.[].tables.operator[]?; .name | test("<script>"))' lines
	jq -e '.tables.operator | map(.name) | any(test("<script>"))' report.json
	"$MXBPF" report r.mxd --html page.html >page.txt
	clean page.html
	run ! grep -q '<script>%s' page.html
}

@test "A configuration that is not root's alone is refused before a word of it is used, and a FIFO, a folder and a large file hold nobody up" {
	local file
	# What is read of a file that is accepted.
	echo 'nonsense = 1' | tee theirs group others mine >/dev/null
	chown nobody theirs
	chmod 664 group
	chmod 646 others
	mkfifo fifo
	head -c 70000 /dev/zero | tr '\0' '#' >large
	ln -s theirs link
	for file in theirs group others link; do
		expect_error 2 "error: $file can be changed by others, who could so command mxbpf" timeout 20 "$MXBPF" serve --config "$file" --host
	done
	for file in fifo large . /dev/zero; do
		expect_error 2 'is no plain file of at most 64 KiB' timeout 20 "$MXBPF" serve --config "$file" --host
	done
	run timeout 20 "$MXBPF" serve --config mine --host
	expect_re 'nonsense' "$output"
}

@test "A process whose list of mappings is endless is refused in bounded memory, and the others are listed" {
	cc -O1 -Wall -Wextra -Werror -shared -fPIC -o many.so "$REPO/tests/faults/many.c"
	start_ready many env LD_PRELOAD="$PWD/many.so" MANY_MAPS=60000 MANY_FILE=1 "$O/toy/toy" 20 2 >/dev/null
	local command many=$READY_PID limit=$((512 << 20))
	[[ -z ${HOSTILE_ASAN:-} ]] || limit=unlimited # sanitizers reserve terabytes
	start_toy 20 2
	for command in "now --pid $many" "--pid $many -d 10ms" "check --pid $many"; do
		# shellcheck disable=SC2086 # words
		run prlimit --as="$limit" timeout 60 "$MXBPF" $command
		[[ $status == 3 ]]
		expect_re "the list of mappings of process $many \(toy\) is longer than 64 MiB" "$output"
	done
	run prlimit --as="$limit" timeout 60 "$MXBPF" list
	expect_re "^ *$READY_PID +toy " "$output"
}

@test "A library of a living process whose symbols point into instructions gets no probe, and the process computes the same" {
	cp -r "$O/toy" "$PWD/toy" && TOY=$PWD/toy
	start_toy 20 2
	# Each function begins one byte later, in the very file that the process has mapped.
	python3 "$REPO/tests/faults/symbols.py" toy/libmxnet.so later
	run timeout 60 "$MXBPF" check --pid "$READY_PID"
	expect_re 'NO +memory.alloc .*its symbol points into a function, not to its start' "$output"
	expect_error 3 'may not be probed' timeout 60 "$MXBPF" --exact --pid "$READY_PID" --api all -d 10ms
	end_pid "$READY_PID" USR1
	[[ $(sed -n 2p "$(out toy)") == 'caught 8' ]]
}

@test "Whatever field of a mapped library lies, check and a session end in time and memory, and the process lives" {
	expect_run 0 python3 "$REPO/tests/faults/lies.py" "$O/toy/libmxnet.so" "$O/prog/maps_elf" 149 "$MXBPF" check --pid '{pid}'
	expect_run 0 python3 "$REPO/tests/faults/lies.py" "$O/toy/libmxnet.so" "$O/prog/maps_elf" 1597 "$MXBPF" --exact -q -d 1ms --pid '{pid}'
}

@test "Recordings and JSON results that an attacker wrote end report, merge and diff with a status of their own, and print no control byte" {
	local name
	expect_run 0 python3 "$REPO/tests/faults/forged.py" "$MXBPF" "$REPO/tests/golden/real.mxd" 10
	mkfifo pipe.mxd pipe.json
	ln -s /dev/zero zero.mxd
	ln -s "$REPO/tests/golden/real.mxd" real.mxd
	for name in pipe.mxd pipe.json zero.mxd; do
		for command in "report $name" "report real.mxd $name" "diff real.mxd $name" "export $name -o x.json"; do
			# shellcheck disable=SC2086 # words
			expect_error 1 'it is not a regular file' timeout 20 "$MXBPF" $command
		done
	done
}

@test "What another user has placed at an output path stays as it is, whatever the option and the folder, and holds nobody up" {
	local golden=$REPO/tests/golden/real.mxd dir kind command
	mkdir theirs open sticky mine
	echo secret | tee victim >kept
	for dir in theirs open sticky mine; do
		ln -s "$PWD/victim" "$dir/link"
		ln -s "$PWD/new" "$dir/dangling"
		ln victim "$dir/hard"
		mkfifo "$dir/pipe"
		mkdir "$dir/folder"
		echo theirs >"$dir/file"
		python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$dir/socket"
		chown -h nobody "$dir"/{link,dangling,pipe,file,socket}
	done
	chown nobody theirs
	chmod 777 open
	chmod 1777 sticky
	for dir in theirs open sticky mine; do
		for kind in link dangling hard pipe folder file socket; do
			for command in "report $golden -f json -o" "report $golden --html" "export $golden -f chrome -o" "diff $golden $golden -f json -o" \
				"record -d 1ms --pid $$ -o" "serve --host --textfile"; do
				# shellcheck disable=SC2086 # words
				run timeout -s KILL 20 "$MXBPF" $command "$dir/$kind"
				((status >= 1 && status <= 4)) || { echo "$command $dir/$kind: $status: $output" && return 1; }
			done
			[[ $dir/$kind != */file || $(<"$dir/file") == theirs ]]
		done
		[[ -p $dir/pipe && -S $dir/socket && -L $dir/link && -z $(ls "$dir/folder") ]]
	done
	cmp victim kept
	[[ ! -e new ]]
}

@test "Variables that name places of others change no file of theirs: TMPDIR, NOTIFY_SOCKET, TERMINFO, HOME" {
	mkdir theirs
	chown nobody theirs
	echo secret >victim
	ln -s "$PWD/victim" theirs/link
	start_toy 20 2
	local now
	now=$(ls -la --time-style=full-iso theirs victim)
	expect_run 5 timeout 60 env TMPDIR="$PWD/theirs" NOTIFY_SOCKET="$PWD/theirs/link" TERMINFO="$PWD/theirs" HOME="$PWD/theirs" XDG_CONFIG_HOME="$PWD/theirs" \
		PATH="$PWD/theirs" "$MXBPF" --exact --pid "$READY_PID" -d 10ms -f json
	expect_run 0 timeout 60 env TMPDIR="$PWD/theirs" "$MXBPF" report "$REPO/tests/golden/real.mxd"
	[[ $(ls -la --time-style=full-iso theirs victim | grep -v ' \.$') == "$(grep -v ' \.$' <<<"$now")" ]]
}

@test "A link of another user in the path of an output is not followed, in a folder of any owner, and that of root is" {
	local folder
	mkdir theirs mine secret
	chown nobody theirs
	for folder in theirs mine; do
		ln -s "$PWD/secret" "$folder/link"
		chown -h nobody "$folder/link"
		for command in "report $REPO/tests/golden/real.mxd -f json -o $folder/link/x.json" "export $REPO/tests/golden/real.mxd -o $folder/link/x.json" \
			"record -d 1ms --pid $$ -o $folder/link/x.mxd" "export $REPO/tests/golden/real.mxd -o $folder/link/x.arrow" \
			"export $REPO/tests/golden/real.mxd -o $folder/link/x/" "record --gpu --no-bpf -o $folder/link/x.mxd -- true"; do
			# shellcheck disable=SC2086 # words
			run timeout 20 "$MXBPF" $command
			expect_re 'a directory in it is a symbolic link of another user; give the path it leads to' "$output"
		done
	done
	[[ -z $(ls -A secret) ]]
	chown -h root theirs/link
	# The command of root would load the agent from there, and its owner could exchange it.
	for folder in theirs theirs/link/../theirs; do
		expect_run 1 timeout 20 "$MXBPF" record --gpu --no-bpf -o "$folder/x.mxd" -- true
		expect_re 'another user can exchange what is in .*/theirs/, and a command of root would load a library from there' "$output"
	done
	[[ $(ls -A theirs) == link ]]
	"$MXBPF" report "$REPO/tests/golden/real.mxd" -f json -o theirs/link/x.json
	[[ -s secret/x.json ]]
}

@test "What another user puts at an output path while a session runs stays as it is, or is replaced without being followed" {
	local kind of
	local -A runs
	echo secret | tee victim >kept
	start_toy 20 2 hold
	for kind in link dangling hard pipe folder; do
		mkdir "$kind"
		chown nobody "$kind"
		start_bg "$kind" "$MXBPF" --pid "$READY_PID" -f json -o "$kind/t.json" --trace "$kind/t.trace.json" --html "$kind/t.html"
		runs[$kind]=$BG_PID
		start_bg "record-$kind" "$MXBPF" record --pid "$READY_PID" -o "$kind/t.mxd"
		runs[record-$kind]=$BG_PID
	done
	for kind in link dangling hard pipe folder; do
		wait_line "$(err "$kind")" '^attached:' "${runs[$kind]}"
		wait_line "$(err "record-$kind")" '^attached:' "${runs[record-$kind]}"
		for of in "$kind"/t.{json,trace.json,html,mxd}; do
			rm -f "$of"
			case $kind in
			link) ln -s "$PWD/victim" "$of" ;;
			dangling) ln -s "$PWD/new" "$of" ;;
			hard) ln victim "$of" ;;
			pipe) mkfifo "$of" ;;
			folder) mkdir "$of" ;;
			esac
			[[ $kind == hard ]] || chown -h nobody "$of"
		done
	done
	for kind in "${!runs[@]}"; do
		kill -s INT "${runs[$kind]}"
		status=0
		wait_exit "${runs[$kind]}" 60 || status=$?
		echo "$kind: $status $(tail -n 1 "$(err "$kind")")"
		[[ $status == [15] ]]
		[[ $kind != record-* ]] || expect_re 't.mxd was deleted or replaced while it was made' "$(<"$(err "$kind")")"
	done
	cmp victim kept
	[[ ! -e new && -L link/t.json && -p pipe/t.json && -z $(ls -A folder/t.json) && $(<hard/t.mxd) == secret ]]
	[[ -z $(find . -name '.mxbpf-*') ]]
}

# Asks serve for a recording, and expects what it says of it.
asks() { # NTH REGEX
	kill -s USR1 "$BG_PID"
	wait_lines "$1" "$(err serve)" 'info: wrote .*[.]mxd: |the last seconds were not written'
	expect_re "$2" "$(grep -E 'info: wrote .*[.]mxd: |the last seconds were not written' "$(err serve)" | tail -n 1)"
}

@test "While serve runs, its folder becomes a link, a file, nothing, unwritable and another user's: nothing of theirs changes, and it goes on" {
	local i now
	start_toy 1 1 hold
	mkdir folder theirs
	echo MXBPFREC >theirs/mxbpf-20200101T000000Z-signal.mxd # in its own folder, serve would delete it
	chown nobody theirs
	echo secret >victim
	now=$(ls -lA --time-style=full-iso theirs victim)
	start_bg serve unshare -m setpriv --bounding-set=-dac_override,-dac_read_search "$MXBPF" serve --pid "$READY_PID" --interval 200ms \
		--max-overhead 100% --listen none --flight-record 60s --keep 1 --trace-dir folder --textfile folder/m.prom
	wait_line "$(err serve)" 'info: attached: [0-9]+ probes' "$BG_PID"
	asks 1 'info: wrote folder/'
	mv folder first
	ln -s theirs folder
	chown -h nobody folder
	asks 2 'a directory in it is a symbolic link of another user'
	wait_line "$(err serve)" 'cannot write folder/m.prom: a directory in it is a symbolic link of another user.* tries again'
	rm folder
	echo mine >folder
	asks 3 'a part of its path is not a directory'
	[[ $(<folder) == mine ]]
	rm folder
	asks 4 'its directory does not exist'
	mkdir -m 555 folder
	asks 5 'Permission denied'
	chmod 777 folder
	for i in {0..59}; do
		ln -s "$PWD/victim" "folder/mxbpf-$(date -u -d "$i seconds" +%Y%m%dT%H%M%SZ)-signal.mxd"
	done
	chown -h nobody folder folder/*Z-signal.mxd
	asks 6 'info: wrote folder/mxbpf-[0-9TZ]+-signal-1[.]mxd'
	[[ $(find folder -type l | wc -l) == 60 ]]
	# A mount on which serve has a file open for writing cannot become read-only, so it is put there when it is.
	mkdir readonly
	nsenter -t "$BG_PID" -m sh -c "mount --bind '$PWD/folder' '$PWD/readonly' && mount -o remount,ro,bind '$PWD/readonly' &&
		mount --move '$PWD/readonly' '$PWD/folder'"
	asks 7 'Read-only file system'
	nsenter -t "$BG_PID" -m umount --lazy "$PWD/folder" # serve may have the folder open
	mv folder second
	mkdir folder
	asks 8 'info: wrote folder/'
	until [[ -s folder/m.prom ]]; do read -rt 0.05 <> <(:) || :; done
	end_pid "$BG_PID"
	[[ $(ls -lA --time-style=full-iso theirs victim) == "$now" ]]
	[[ $(find first second folder -name '*.mxd' -type f | wc -l) == 3 ]]
}

@test "A recording that is cut, grows, changes and is replaced while it is read gives a status of mxbpf's own" {
	local command changes i
	cp "$REPO/tests/golden/real.mxd" r.mxd
	cp r.mxd real.mxd
	start_bg changes python3 "$REPO/tests/faults/changes.py" "$REPO/tests/golden/real.mxd" r.mxd
	changes=$BG_PID
	for i in {1..8}; do
		for command in "report r.mxd" "report r.mxd r.mxd" "diff r.mxd real.mxd" "export r.mxd -o x.json"; do
			# shellcheck disable=SC2086 # words
			run timeout 20 "$MXBPF" $command
			[[ $status == [01] ]] || { echo "$command: $status: $output" && return 1; }
		done
	done
	is_started <<<"$changes $(start_time "$changes")"
}

@test "A process that gets the number of the one that is watched is not watched for it" {
	mkfifo commands
	local pid
	# shellcheck disable=SC2016 # for that shell
	start_bg again bash -c 'exec python3 "$@" <commands' again "$REPO/tests/faults/again.py" "$O/toy/toy" 20 2 hold
	exec 7>commands
	wait_line "$(out again)" '^ready' "$BG_PID"
	pid=$(sed -n 's/^ready //p' "$(out again)")
	start_mxbpf --pid "$pid" -f json --api all
	kill -s USR1 "$pid"
	wait_line "$(out again)" '^{'
	cp "$(out again)" first
	echo >&7
	wait_lines 2 "$(out again)" '^ready'
	kill -s USR1 "$pid"
	wait_lines 2 "$(out again)" '^[{]'
	wait_exit "$MXBPF_PID" 60
	same_counts first "$(out mxbpf)"
	exec 7>&-
}

@test "A process that becomes another one thousands of times ends no command that looks at it, and none of them hangs" {
	cat >storm <<-'END'
		#!/bin/sh
		[ "$STORM" ] || echo "ready $$"
		export STORM=1
		if [ "$LD_PRELOAD" ]; then unset LD_PRELOAD; else export LD_PRELOAD="$LIBRARY"; fi
		exec "$0"
	END
	chmod +x storm
	start_ready storm env LIBRARY="$O/toy/libmxnet.so" "$PWD/storm" >/dev/null
	local command i
	for i in 1 2; do
		for command in list "check --pid $READY_PID" "now --pid $READY_PID -d 1ms" "--pid $READY_PID -d 1ms" "--comm storm -d 1ms" "top --batch --pid $READY_PID -d 1ms" \
			"--agent --pid $READY_PID -d 1ms" "--host -d 1ms"; do
			# shellcheck disable=SC2086 # words
			run timeout 120 "$MXBPF" $command # --host attaches to every job of the machine
			[[ $status == [0345] || ($status == 2 && $command == --agent*) ]] || { echo "$command: $status: $output" && return 1; }
		done
	done
	is_started <<<"$READY_PID $(start_time "$READY_PID")"
}

@test "A process that spawns a program 500 times in a row is watched with each of its own calls, and the programs end as without mxbpf" {
	start_ready spawns python3 -c 'import ctypes, os, signal, sys
library = ctypes.CDLL(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", os.getpid(), flush=True)
signal.sigwait({signal.SIGUSR1})
statuses = set()
for _ in range(500):
    library.MXNDArrayWaitAll()
    statuses.add(os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)[1])
print(statuses, flush=True)' "$O/toy/libmxnet.so" >/dev/null
	start_mxbpf --pid "$READY_PID" --api all -f json
	end_pid "$READY_PID" USR1 60
	wait_exit "$MXBPF_PID" 60
	expect_re '^\{0\}$' "$(<"$(out spawns)")"
	jq -e '([.tables[][] | select(.name == "MXNDArrayWaitAll") | .count] == [500]) and (.loss | .dropped == 0 and .attempted == .stored)' "$(out mxbpf)"
	# Between vfork() and exec, a child uses the memory of its parent, so it is not followed.
	jq -e '.window | (.followed // 0) == 0 and (.unfollowed // 0) == 0' "$(out mxbpf)"
}
