#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `mxbpf serve --stream`: each interval as a line of JSON. The job is tests/toy, which prints what it did.

load helpers

setup() { root_setup; }

start_stream() { # NAME FILE ARGUMENTS...
	start_bg "$1" "$MXBPF" serve --pid "$READY_PID" --interval 200ms --max-overhead 100% --stream "$2" "${@:3}"
	SERVE_PID=$BG_PID
	wait_line "$(err "$1")" 'attached: [0-9]+ probes' "$SERVE_PID"
}

end_stream() {
	end_pid "$SERVE_PID"
}

follows_schema() { # FILE
	local line
	while read -r line; do
		"$PYTHON" -m jsonschema -i <(echo "$line") "$O/report.schema.json" 2>warnings || { cat warnings; return 1; }
	done <"$1"
}

@test "Each interval is a line of JSON that the schema describes, on stdout and in a file that goes on" {
	start_toy 200 3 stay
	start_stream stdout - --listen none
	kill -s USR1 "$READY_PID"
	wait_line "$(out toy)" '^caught'
	wait_lines 3 "$(out stdout)" '^[{].*[}]$'
	end_stream
	follows_schema "$(out stdout)"
	# The counts of the intervals add up to what the job did.
	jq -s '[.[].tables.operator[]? | {name, count}] | group_by(.name) | map({(.[0].name): (map(.count) | add)}) | add' "$(out stdout)" >seen
	jq -e --slurpfile did <(tail -n 1 "$(out toy)") '. == $did[0].operator' seen
	start_stream first lines.json --listen none
	wait_lines 1 lines.json '^[{].*[}]$'
	end_stream
	start_stream second lines.json --listen none
	wait_lines 3 lines.json '^[{].*[}]$'
	end_stream
	follows_schema lines.json
	[[ $(stat -c %a lines.json) == 600 ]]
	jq -es 'map(.window.start_unix_ns) | . == sort and length >= 3' lines.json
}

@test "After a disk was full, the next line says how many were left out" {
	start_toy 1 1
	mkdir disk
	# Of this process alone.
	cat >on_full_disk <<-'EOF'
		mount -t tmpfs -o size=1m full disk
		head -c 1m /dev/zero >disk/ballast
		exec "$@"
	EOF
	start_bg full unshare -m bash on_full_disk "$MXBPF" serve --pid "$READY_PID" --interval 200ms --max-overhead 100% \
		--stream disk/lines --listen none
	SERVE_PID=$BG_PID
	wait_line "$(err full)" 'cannot write disk/lines: No space left on device; lines are left out'
	local disk=/proc/$SERVE_PID/root/$PWD/disk
	rm "$disk/ballast"
	wait_line "$disk/lines" '"lines_left_out": [1-9]'
	wait_lines 2 "$disk/lines" '^[{].*[}]$'
	cp "$disk/lines" .
	end_stream
	[[ $(grep -c 'lines are left out' "$(err full)") == 1 ]]
	[[ $(grep -c '"lines_left_out"' lines) == 1 ]] # the line after that says nothing, because nothing was left out
	grep -E '^[{].*[}]$' lines | head -n 2 >whole
	follows_schema whole
}

@test "A stream that nobody reads holds nothing up" {
	start_toy 1 1
	mkfifo lines
	start_stream fifo lines --textfile m.prom --listen none
	timeout "$WAIT_SECONDS" bash -c 'until grep -s "^mxbpf_watched_seconds_total [1-9]" m.prom; do read -rt 0.1 <> <(:) || :; done'
	end_stream
	ln -s /etc/passwd link
	run -1 "$MXBPF" serve --pid "$READY_PID" --stream link --listen none
	run -2 "$MXBPF" serve --stream '' --listen none
}
