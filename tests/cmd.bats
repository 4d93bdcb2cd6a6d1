# SPDX-License-Identifier: Apache-2.0
# The command line: arguments in, one clear line or a result out. These tests need neither root nor a target.
bats_require_minimum_version 1.5.0

MXBPF=$(realpath -m "${MXBPF:-$BATS_TEST_DIRNAME/../build/mxbpf}")
REAL=$BATS_TEST_DIRNAME/golden/real.mxd
# Commands come from `mxbpf --help`, so that these tests cover a new command without a change.
mapfile -t COMMANDS < <("$MXBPF" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]\+\) .*/\1/p')

setup() {
	mkdir "$BATS_TEST_TMPDIR/here" # bats keeps its own files in the parent directory
	cd "$BATS_TEST_TMPDIR/here" || return 1
	unset POSIXLY_CORRECT
}

teardown() { [[ -z ${TOY:-} ]] || kill -s KILL "$TOY"; }

# fails STATUS REGEX ARGS...: exits with STATUS, one line on stderr that matches REGEX and nothing on stdout.
fails() {
	local want=$1 regex=$2
	shift 2
	run --separate-stderr timeout 20 "$MXBPF" "$@"
	# shellcheck disable=SC2154 # set by run
	if [[ $status != "$want" || -n $output || ${#stderr_lines[@]} != 1 || ! $stderr =~ $regex ]]; then
		printf 'mxbpf %s: exit %s (want %s)\nstdout: %s\nstderr: %s\n  want: %s\n' \
			"$*" "$status" "$want" "$output" "$stderr" "$regex"
		return 1
	fi
}

# A recording's 64-byte header of an unfinished session. gzip computes its CRC-32.
header() { # MAJOR, two hex digits
	{
		printf '%b' "MXBPFREC\\x$1\\0\\0\\0"
		printf '\x40\0\0\0\0\0\0\0\0\0\0\0'
		printf '\0\0\x10\0\0\0\0\0''\0\0\x10\0\0\0\0\0'
		head -c 20 /dev/zero
	} >header.bytes
	[[ $(stat -c %s header.bytes) == 60 ]] || return 1
	gzip -c header.bytes | tail -c 8 | head -c 4 | cat header.bytes -
}

@test "A wrong value gives one line with the allowed values and exit code 2" {
	while IFS='|' read -r words regex; do
		read -ra args <<<"$words"
		fails 2 "$regex" "${args[@]}"
	done <<-'CASES'
		--pid 1 --sort foo|--sort.*total, self, count, avg, min, max, p99, alloc, self-alloc, cpu, runq, blocked, device, name
		--pid 1 --layout html|--layout.*modern, mxnet, torch, torch-classic
		--pid 1 --layout torch -f json|--layout torch does not support --format json
		--pid 1 --format xml|--format.*table, json, html, csv
		export f -f pdf|--format.*chrome
		--pid 1 --probes gpu|--probes.*op, api, mem, wait
		--pid 1 --probes op,|--probes.*op, api, mem, wait
		--pid 1 --duration soon|--duration.*'soon'.*10s, 500ms
		--pid 1 -d 10x|--duration.*10s, 500ms
		--pid 1 -d -5|--duration.*'-5'
		--pid 1 -d 0|--duration.*too short
		--pid 1 -d 99999999999999999h|--duration.*too long
		--pid 1 -d 10000h|--duration.*too long
		--pid 1 --delay x|--delay.*10s, 500ms
		--pid 1 --top 1e3|--top.*from 0 to
		--pid 0|--pid.*from 1 to
		--pid 12x|--pid.*from 1 to
		--pid -1|--pid.*from 1 to
		--pid 99999999999999999999|--pid.*from 1 to
		--pid 1 --max-size 3X|--max-size.*64M, 2GiB
		--pid 1 --max-size 1|--max-size.*from .* MiB to
		--pid 1 --backend uprobe|--backend.*uprobe_multi, perf
		--pid 1 --ring-size 3M|--ring-size.*power of two
		--pid 1 --ring-size 256M --max-memory 512M|--max-memory must be at least four times --ring-size
		--pid 1 --trace -|--trace.*name a file
		record --pid 1 -o a.json --trace a.json|same file
		--pid 1 --interval 99ms|--interval.*too short
		--pid 1 --reset|--reset.*--interval TIME
		--pid 1 --stack-depth 3|--stack-depth needs --by stack
		report f --by module --stack-depth 3|--stack-depth needs --by stack
		trace --pid 1 --via nsys|--via.*one of kineto
		trace --pid 1 --via kineto --with shape|--with.*one of shapes, stacks.*did you mean 'shapes'
		trace --pid 1,2 --via kineto|--pid: only one process
		trace --pid 1 --via kineto -d 2h|--duration.*too long
		trace --pid 1 --via kineto --steps 0|--steps.*from 1 to
	CASES
}

@test "An option of an earlier version is refused with what its users do now" {
	local option
	for option in --stats --stats-check; do
		fails 2 "$option no longer exists: .*slices.*--exact records every call" --pid 1 "$option"
		fails 2 "$option no longer exists" record --pid 1 -o r.mxd "$option"
	done
}

@test "Options that cannot be used together give one line and exit code 2" {
	while IFS='|' read -r words regex; do
		read -ra args <<<"$words"
		fails 2 "$regex" "${args[@]}"
	done <<-'CASES'
		--pid 1 --memory --probes op|--memory needs the probes of allocations
		--pid 1 --memory --iterations 5|--memory needs every allocation
		--pid 1 --sched --iterations 5|--sched records every context switch
		--pid 1 --follow-app --iterations 5|--follow-app and --iterations both
		--pid 1 --backward --ops mm|--backward needs all operators.*remove --ops
		--pid 1 --agent --counters cycles|--counters cannot be used with --agent
		--pid 1 --agent --raised|--raised cannot be used with --agent
		--pid 1 --agent --max-overhead 5%|--max-overhead cannot be used with --agent
		--pid 1 --agent --probes api|--agent records operators
		serve --gpu --textfile m.prom --listen none|--gpu loads a library into processes.*--gpu-jobs
		serve --agent --textfile m.prom --listen none|--agent loads a library into processes.*--comm
		serve --gpu-jobs x --textfile m.prom --listen none|--gpu-jobs needs --gpu
		--pid 1 --layout mxnet --life|--layout mxnet has no table for --life
		--pid 1 --layout mxnet --memory|--layout mxnet has no table for --memory
		--pid 1 --layout torch --raised|--layout torch has no table for --raised
		report f --layout mxnet --backward|--layout mxnet has no table for --backward
	CASES
}

@test "A missing or surplus argument gives one line with the usage and exit code 2" {
	while IFS='|' read -r words regex; do
		read -ra args <<<"$words"
		fails 2 "$regex" "${args[@]}"
	done <<-'CASES'
		--pid|--pid needs a value: PID
		-p|--pid needs a value: PID
		-d 1|--pid PID is missing
		record|--pid PID is missing.*mxbpf record --pid PID
		trace --pid 1|--via PROFILER is missing.*mxbpf trace --via kineto
		trace --via kineto|--pid PID is missing
		report|mxbpf report FILE
		export|mxbpf export FILE
		--pid 1 --quiet=yes|--quiet takes no value
		--pid 1 -Z|unknown option '-Z'
		--d 3|'--d' is ambiguous: --duration, --delay
	CASES
	fails 2 'file name is empty' record --pid 1 -o ''
	fails 2 '--cupti: the path has 256 bytes, and the agent takes at most 255' record --gpu --cupti "$(printf '/%.0s' {1..256})" --pid 1
	fails 2 "'' is not one of" --pid 1 --sort ''
}

@test "A misspelt word gives a suggestion of the right one" {
	fails 2 "did you mean '--trace'" --pid 1 --tarce t.json
	fails 2 "did you mean 'total'" --pid 1 --sort totl
	fails 2 "did you mean 'json'" --pid 1 --format jsn
	fails 2 "did you mean 'modern'" --pid 1 --layout modren
	fails 2 "did you mean 'api'" --pid 1 --probes op,apis
	fails 2 "did you mean 'record'" recrod
}

@test "A process named without --pid gives a hint at --pid" {
	fails 2 'mxbpf --pid 1234' 1234
	fails 2 '--pid' foo
	fails 2 '--pid' --pid 1 2
	fails 2 '--pid' check 1234
	fails 2 '--pid' record 1234
}

@test "An option of another command gives the names of its commands" {
	fails 2 'report does not take --trace.*record' report f --trace t.json
	fails 2 'record does not take --sort.*report' record --pid 1 --sort total
	fails 2 'check does not take --duration' check -d 1
	fails 2 'does not take --trace.*record' export f --trace t.json
}

@test "Words of the user are escaped and on one line in messages" {
	fails 2 '\\x1b\[31mred\\x0a' $'\e[31mred\n'
	fails 2 '\\x1b' --pid 1 --sort $'\e[2J'
	fails 1 '\\x1b' report $'no\e[2Jfile'
}

@test "mxbpf without arguments shows the usage on stderr with exit code 2" {
	run --separate-stderr "$MXBPF"
	[[ $status == 2 && -z $output ]]
	[[ ${stderr_lines[0]} == "Usage: mxbpf --pid PID"* ]]
	((${#stderr_lines[@]} <= 14)) # a line for each command, and one that names --help
}

@test "The help of every command goes to stdout in 80 columns with exit code 0, by three spellings" {
	((${#COMMANDS[@]} >= 5))
	for c in '' "${COMMANDS[@]}"; do
		run --separate-stderr "$MXBPF" ${c:+"$c"} --help
		[[ $status == 0 && -z $stderr && $output == *"mxbpf"* ]]
		[[ -z $c || $output == "Usage: mxbpf $c "* ]]
		[[ $(wc -L <<<"$output") -le 80 ]]
		[[ $output == "$("$MXBPF" ${c:+"$c"} -h)" ]]
		[[ $output == "$("$MXBPF" help ${c:+"$c"})" ]]
	done
	[[ $("$MXBPF" help all) == "Usage: mxbpf --pid"*"Exit status:"*"Examples:"* ]]
}

@test "The first page of --help has at most 60 lines and names the groups of options, each of which has a page" {
	(($("$MXBPF" --help | wc -l) <= 60))
	mapfile -t groups < <("$MXBPF" --help | sed -n '/by group/,/^$/s/^  \([a-z]\+\) .*/\1/p')
	[[ ${groups[*]} == "target probes measure window tables files metrics recordings requests general all" ]]
	for group in "${groups[@]}"; do
		run --separate-stderr "$MXBPF" help "$group"
		[[ $status == 0 && -z $stderr && $(wc -L <<<"$output") -le 80 ]]
		(($(options_of_help <<<"$output" | wc -l) >= 5))
		[[ $group == all ]] || ((${#lines[@]} <= 40))
	done
	for group in "${groups[@]:0:10}"; do
		"$MXBPF" help "$group" | options_of_help
	done | sort | cmp - <("$MXBPF" help all | options_of_help | sort)
	fails 2 "'nonsense' is not a command \(record, .*\) or a group of options \(target, .*, all\)$" help nonsense
	fails 2 "did you mean 'tables'" help table
	fails 2 "did you mean 'record'" help recrod
}

options_of_help() {
	grep -o '^  [- ][a-zA-Z ][, ] --[a-z-]*' | grep -o -- '--.*'
}

@test "The help lists exactly the options that the command takes" {
	"$MXBPF" help all | options_of_help | sort -u >all
	(($(wc -l <all) > 15))
	local no_place=()
	for c in "${COMMANDS[@]}"; do
		"$MXBPF" "$c" --help | options_of_help | sort -u >listed
		[[ -z $(comm -23 listed all) ]]
		no_place=()
		[[ $c != serve ]] || no_place=(--listen none --pid 0) # or it would wait for processes
		while read -r option; do
			run --separate-stderr "$MXBPF" "$c" "$option=x" "${no_place[@]}"
			listed=$("$MXBPF" "$c" --help | options_of_help | grep -cx -- "$option" || true)
			refused=$(grep -c 'does not take' <<<"$stderr" || true)
			[[ $((listed > 0)) == $((refused == 0)) ]] || { echo "$c $option: listed $listed refused $refused"; return 1; }
		done <all
	done
}

@test "--version prints one line on stdout" {
	run --separate-stderr "$MXBPF" --version
	[[ $status == 0 && -z $stderr && $output =~ ^mxbpf\ [0-9]+\.[0-9]+ ]]
	[[ $("$MXBPF" -V) == "$output" ]]
}

# lost_output REGEX: every command that prints fails with REGEX if its stdout cannot be written.
lost_output() {
	local args ready
	exec {ready}< <(exec "$(dirname "$MXBPF")/toy/toy" 1 1 3>&-) # for `list`: it maps a runtime and waits
	TOY=$!
	read -r <&"$ready"
	ln -s "$REAL" real.mxd
	for args in --help --version '--generate lists' list "report real.mxd" "report real.mxd -f json" "export real.mxd"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr to_nowhere $args
		[[ $status == 1 && $stderr =~ $1 ]] || { echo "$args: $status $stderr" && return 1; }
	done
	run --separate-stderr to_nowhere check # its exit code tells more than 1
	[[ $status != 0 && $stderr =~ $1 ]]
}

@test "A full stdout is an error" {
	to_nowhere() { "$MXBPF" "$@" >/dev/full; }
	lost_output 'No space left'
}

@test "A closed stdout is an error, and a closed stderr is none" {
	to_nowhere() { "$MXBPF" "$@" >&-; }
	lost_output 'cannot write standard output: Bad file descriptor'
	"$MXBPF" report "$REAL" 2>&- >tables
	"$MXBPF" report "$REAL" | cmp - tables
}

@test "A closed pipe on stdout is an error" {
	mkfifo pipe
	to_nowhere() {
		exec 5<>pipe 6>pipe 5<&- # the pipe has no reader any more
		"$MXBPF" "$@" >&6
	}
	lost_output 'Broken pipe'
}

@test "A missing file, a directory, a fifo and stdin give one line each without blocking" {
	mkfifo pipe
	for c in report export; do
		fails 1 'none.mxd: No such file' $c none.mxd
		fails 1 'it is not a regular file' $c .
		fails 1 'pipe: it is not a regular file' $c pipe
		fails 2 "'-' .standard input. is not supported" $c -
	done
}

@test "Files of other programs are refused by name with exit code 1" {
	: >empty
	echo 'hello' >short
	head -c 100000 /dev/zero >zeros
	head -c 5000 "$MXBPF" >elf
	printf 'MXBPFREC' >magic
	for c in report export; do
		for f in empty short zeros elf; do
			fails 1 "$f.*not an mxbpf recording" $c $f
		done
		fails 1 'magic: ' $c magic
	done
}

@test "A recording of a newer format is refused as newer" {
	header 7f >newer.mxd
	fails 1 'newer.mxd.*newer mxbpf' report newer.mxd
	fails 1 'newer.mxd.*newer mxbpf' export newer.mxd
}

@test "A damaged header or body is refused as damaged" {
	header 01 | head -c 63 >cut.mxd
	printf '\1' >>cut.mxd
	head -c 4000 /dev/urandom >>cut.mxd
	fails 1 'cut.mxd.*damaged' report cut.mxd
	{
		header 01
		head -c 4000 /dev/zero | tr '\0' x
	} >body.mxd
	fails 1 'body.mxd: ' report body.mxd
}

@test "export reports a bad output path before it reads, and changes no file" {
	header 01 >f.mxd
	echo precious >target
	ln -s target link.json
	fails 1 'link.json' export f.mxd -o link.json
	fails 1 'nowhere/t.json' export f.mxd -o nowhere/t.json
	fails 2 'recording itself' export f.mxd -f chrome -o f.mxd
	fails 1 'f.mxd' export f.mxd -o t.json
	[[ $(cat target) == precious && -L link.json && ! -e t.json ]]
	[[ $(ls -A) == $'f.mxd\nheader.bytes\nlink.json\ntarget' ]]
}

@test "export writes no trace to a terminal" {
	header 01 >f.mxd
	run script -qec "'$MXBPF' export f.mxd" /dev/null
	[[ $status == 2 && $output == *"cannot write a trace to a terminal"* ]]
}

@test "The man page has its sections and no roff warnings" {
	command -v groff >/dev/null || skip "groff is not installed"
	"$MXBPF" --generate lists >lists
	awk -v version=test -f "$BATS_TEST_DIRNAME/../share/man.awk" lists "$BATS_TEST_DIRNAME/../docs/man/mxbpf.1.md" >mxbpf.1
	run groff -man -ww -z -Tutf8 mxbpf.1
	[[ $status == 0 && -z $output ]]
	[[ $(sed -n 's/^\.SH //p' mxbpf.1 | tr '\n' ,) == \
		"NAME,SYNOPSIS,DESCRIPTION,COMMANDS,OPTIONS,RUNNING A COMMAND,CHILD PROCESSES,OUTPUT,NOT SUPPORTED,OPEN CALLS,REQUESTS TO KINETO,INTERVALS,MEMORY,OPENMP TEAMS,LIFE OF AN OPERATOR,ITERATIONS,COLUMNS,SIGNALS,OVERHEAD,LIMITS,EXIT STATUS,FILES,SECURITY,EXAMPLES," ]]
	page=$(groff -man -Tascii -P-cbou mxbpf.1)
	while read -r option; do
		[[ $page == *"$option"* ]]
	done < <("$MXBPF" help all | options_of_help)
}

complete_words() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_mxbpf
	echo "${COMPREPLY[*]}"
}

@test "Completion offers commands, options, values and files" {
	"$MXBPF" --generate completion >mxbpf.bash
	bash -n mxbpf.bash
	# shellcheck disable=SC1091
	source ./mxbpf.bash
	touch 'a job.mxd'
	[[ $(complete_words mxbpf re) == "record report" ]]
	[[ $(complete_words mxbpf --so) == "--sort" ]]
	[[ $(complete_words mxbpf --sort p) == "p99" ]]
	[[ $(complete_words mxbpf --sort = na) == "name" ]]
	[[ $(complete_words mxbpf --probes op,w) == "op,wait" ]]
	[[ $(complete_words mxbpf help t) == "top trace target tables" ]]
	[[ $(complete_words mxbpf report --tra) == "" ]]
	[[ $(complete_words mxbpf report a) == "a job.mxd" ]]
	[[ $(complete_words mxbpf export f -f c) == "chrome chrome-classic" ]]
	[[ " $(complete_words mxbpf --pid "$$") " == *" $$ "* ]]
}

need_recording() {
	[[ -f $REAL ]] || skip "tests/golden/real.mxd is not in the tree"
}

# bats test_tags=smoke
@test "report prints the tables of a recording in every layout and format" {
	need_recording
	for layout in modern mxnet; do
		run --separate-stderr "$MXBPF" report "$REAL" --layout $layout
		[[ $status == 0 && -z $stderr && ${#lines[@]} -gt 5 ]]
		run --separate-stderr "$MXBPF" report "$REAL" --layout $layout --format json
		[[ $status == 0 && -z $stderr ]]
		jq -e . <<<"$output" >/dev/null
	done
	"$MXBPF" report "$REAL" --format json | jq -e '.schema_version == 1 and .loss.attempted > 0'
}

@test "A truncated recording gives a warning on stderr and exit code 0" {
	need_recording
	head -c $(($(stat -c %s "$REAL") - 100)) "$REAL" >cut.mxd
	run --separate-stderr "$MXBPF" report cut.mxd
	[[ $status == 0 && ${#lines[@]} -gt 5 && $stderr == *"warning"*"cut.mxd is incomplete"* ]]
}

@test "export writes the same trace to a file, to gzip and to stdout" {
	need_recording
	"$MXBPF" export "$REAL" -f chrome -o t.json
	"$MXBPF" export "$REAL" -o t.json.gz
	"$MXBPF" export "$REAL" | cmp - t.json
	gzip -dc t.json.gz | cmp - t.json
	[[ $(stat -c %a t.json) == 600 ]]
	jq -e '.traceEvents | length > 0' t.json
}

@test "report -o takes the format from the suffix unless -f says otherwise, and writes what stdout would get" {
	need_recording
	local form
	declare -A suffixes=([table]=txt [json]=json [csv]=csv)
	for form in table json csv; do
		"$MXBPF" report "$REAL" -f $form >"$form.stdout"
		run --separate-stderr "$MXBPF" report "$REAL" -o "t.${suffixes[$form]}"
		[[ $status == 0 && -z $output && $stderr == "wrote t.${suffixes[$form]}" ]]
		cmp "$form.stdout" "t.${suffixes[$form]}"
		run --separate-stderr "$MXBPF" report -q "$REAL" -o "t.${suffixes[$form]}.gz"
		[[ $status == 0 && -z $output$stderr ]]
		gzip -dc "t.${suffixes[$form]}.gz" | cmp "$form.stdout"
		"$MXBPF" report -q "$REAL" -f $form -o any.name --force
		cmp "$form.stdout" any.name
	done
	"$MXBPF" report "$REAL" --layout mxnet -o m.json
	jq -e .mxbpf.loss m.json
	fails 2 '--layout torch does not support --format json' report "$REAL" --layout torch -o x.json
	"$MXBPF" report "$REAL" -o - | cmp - table.stdout
	[[ $(stat -c %a t.json) == 600 ]]
}

@test "An unknown suffix is an error that lists the known ones" {
	need_recording
	fails 2 "'t.xyz' sets no format.*\.json, \.json\.gz, \.pftrace, \.pftrace\.gz, \.folded, .*\.pb\.gz, .*\.memory\.csv" export "$REAL" -o t.xyz
	fails 2 "'t' sets no format.*\.json" --pid 1 --trace t
	fails 2 "'t' sets no format.*\.json" record --pid 1 --trace t
	fails 2 "'t.xyz' sets no format.*\.txt, \.json, \.html, \.csv" report "$REAL" -o t.xyz
	fails 2 "'t.xyz' sets no format.*\.txt, \.json, \.html, \.csv" --pid 1 -o t.xyz
	[[ -z $(ls) ]]
	"$MXBPF" export "$REAL" -f chrome -o t.xyz # -f gives the format
	"$MXBPF" export "$REAL" -o /dev/null       # a device needs no suffix
}

@test "A file that mxbpf did not write in that format is replaced only with --force" {
	need_recording
	local out
	for out in train.py data.json notes.txt table.csv data.json.gz other.folded; do
		echo '{"precious": 1}' >$out
	done
	gzip -c data.json >data.json.gz
	sha1sum -- * >before
	fails 1 'train.py exists and is not a recording.*--force' record --pid $$ -o train.py
	fails 1 'data.json exists and is not a file of format chrome.*--force' --pid $$ --trace data.json
	fails 1 'data.json exists and is not a file of format json' --pid $$ -o data.json
	fails 1 'train.py exists' export "$REAL" -f chrome -o train.py
	fails 1 'data.json exists' export "$REAL" -o data.json
	fails 1 'data.json.gz exists' export "$REAL" -o data.json.gz
	fails 1 'notes.txt exists' report "$REAL" -o notes.txt
	fails 1 'table.csv exists' report "$REAL" -o table.csv
	fails 1 'data.json exists' report "$REAL" -o data.json
	sha1sum --quiet -c before
	"$MXBPF" export "$REAL" -o data.json --force
	jq -e .traceEvents data.json
	fails 1 'data.json exists and is not a file of format json' report "$REAL" -o data.json # a trace is not a table
}

@test "A file that mxbpf wrote is replaced in the same format, compressed or not" {
	need_recording
	local layout out
	for out in t.json t.json.gz; do
		"$MXBPF" export "$REAL" -o $out
		"$MXBPF" export "$REAL" -o $out
		"$MXBPF" export "$REAL" -f chrome-classic -o c-$out
		"$MXBPF" export "$REAL" -f chrome-classic -o c-$out
	done
	for layout in modern mxnet torch torch-classic; do
		for out in txt txt.gz csv csv.gz; do
			"$MXBPF" report "$REAL" -q --layout $layout -o $layout.$out
			"$MXBPF" report "$REAL" -q --layout $layout -o $layout.$out --top 1
		done
	done
	for layout in modern mxnet; do
		"$MXBPF" report "$REAL" -q --layout $layout -o $layout.json
		"$MXBPF" report "$REAL" -q --layout $layout -o $layout.json
	done
	: >empty.json
	"$MXBPF" report "$REAL" -q -o empty.json # mktemp creates empty files
}

# Flips 300 bits, most of them inside records. merge reads two recordings, of which one is intact.
@test "A flipped bit anywhere in a recording is detected by report, export and merge, or harmless" {
	need_recording
	python3 - "$MXBPF" "$REAL" <<-'EOF'
		import random, struct, subprocess, sys, zlib
		mxbpf, real = sys.argv[1:]
		whole = open(real, 'rb').read()
		# A copy with another host name, as the second input of merge.
		other, at = bytearray(whole), -1
		while (at := whole.find(b'CHNK', at + 1)) >= 0:
		    size, = struct.unpack_from('<I', whole, at + 8)
		    end = at + 80 + size
		    other[at:end] = whole[at:end].replace(b'"hostname": "vm"', b'"hostname": "vn"').replace(b'"hostname":"vm"', b'"hostname":"vn"')
		    other[at + 12:at + 16] = bytes(4)
		    other[at + 12:at + 16] = struct.pack('<I', zlib.crc32(other[at:end]))
		assert other != whole
		open('other.mxd', 'wb').write(other)
		full = [i for i in range(0, len(whole), 64) if any(whole[i:i + 64])] # the rest is padding
		def run(words, *files):
		    p = subprocess.run([mxbpf, *words.split(), *files], capture_output=True)
		    return p.returncode, p.stdout, p.stderr
		commands = {'report --all': [], 'report -f json': [], 'export': [], 'report -f csv': ['other.mxd']}
		right = {c: run(c, real, *more) for c, more in commands.items()}
		assert all(r[0] == 0 and r[1] for r in right.values())
		random.seed(13)
		noticed = {c: 0 for c in commands}
		tables = events = 0
		for n in range(75):
		    at = random.choice(full) + random.randrange(64) if n % 5 else random.randrange(len(whole))
		    bad = bytearray(whole)
		    bad[at % len(bad)] ^= 1 << random.randrange(8)
		    open('bad.mxd', 'wb').write(bad)
		    for c, more in commands.items():
		        r = run(c, 'bad.mxd', *more)
		        if r == right[c]:
		            continue
		        assert r[0] == 1 and b'bad.mxd' in r[2], (at, c, r)
		        assert b'damaged at offset' in r[2] or b'incomplete' in r[2] or b'not an mxbpf' in r[2] or b'newer' in r[2], (at, c, r[2])
		        noticed[c] += 1
		        if b'among its events; mxbpf report can print its tables' in r[2] and c != 'export':
		            assert r[1] == right[c][1], (at, c)
		            events += 1
		        tables += b'in its tables, which are made again' in r[2]
		assert min(noticed.values()) > 50 and len(set(noticed.values())) == 1 and tables and events, (noticed, tables, events)
	EOF
}

@test "check without privileges reports the missing privileges and blames no kernel feature" {
	local drop=() program=$MXBPF
	[[ $(id -u) != 0 ]] || drop=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all)
	[[ $(id -u) != 0 ]] || chmod 755 "$BATS_TEST_TMPDIR" .
	[[ $(id -u) != 0 ]] || { cp "$MXBPF" program && program=./program; } # others may not enter a home
	run --separate-stderr "${drop[@]}" "$program" check
	[[ $status == 4 && $output == *"process filter "*"run mxbpf with sudo"* ]]
	run ! grep -E '^  (no|NO) .*(Linux [0-9]|this machine)' <<<"$output"
}

@test "The help of --probes explains each word, and the help of check lists no subcommand" {
	local word
	for word in op api mem wait inside custom mark data kv; do
		"$MXBPF" help probes | tr -s '\n ' ' ' | grep -qE -- "--probes LIST [^-]*\b$word \([a-zA-Z ]+\)"
	done
	run ! grep -- '-- COMMAND' <("$MXBPF" check --help)
}
