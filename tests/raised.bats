#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --raised: the calls that an exception left, with the program's own account of what it caught and when as the reference.

load helpers

setup() { root_setup; }

@test "Calls left by an exception are counted as the program caught them, with lines and times, in every output" {
	local mm='.raised[] | select(.name == "aten::mm")' first last option
	start_code throws '
import os, signal, time, torch
torch.set_num_threads(1)
a = torch.ones(2, 3)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
def fails():
    try:
        torch.mm(a, a)
    except RuntimeError:
        return 1
    return 0
first = time.time_ns()
caught = sum(fails() for _ in range(40))
last = time.time_ns()
torch.mm(a, a.t())
print("caught", caught, first, last, flush=True)
signal.pause()
'
	for option in --agent '--layout mxnet' '--layout torch'; do
		# shellcheck disable=SC2086 # words
		expect_error 2 "--raised" --separate-stderr "$MXBPF" --pid "$READY_PID" --raised $option
	done
	start_bg mxbpf "$MXBPF" record --pid "$READY_PID" --raised --py-stacks -o r.mxd
	wait_line "$(err mxbpf)" '^(mxbpf: )?attached: [0-9]+ probes' "$BG_PID"
	kill -s USR1 "$READY_PID"
	wait_line "$(out throws)" '^caught'
	stop_pid "$BG_PID" INT
	read -r _ _ first last < <(grep ^caught "$(out throws)")
	grep -q '^caught 40 ' "$(out throws)"
	"$MXBPF" report r.mxd -f json >r.json
	jq -e "[$mm] | length == 1" r.json || { jq -c .raised r.json; return 1; }
	# jq computes in doubles, which represent the current time to 256 ns.
	jq -e --argjson first "$first" --argjson last "$last" "$mm | .count == 40 and (.line | test(\": fails\$\")) and
		.first_unix_ns >= \$first - 1000 and .last_unix_ns <= \$last + 1000 and .first_unix_ns < .last_unix_ns" r.json ||
		{ jq -c "$mm" r.json; echo "$first $last"; return 1; }
	[[ $("$MXBPF" report r.mxd -f csv | grep -c '^"raised","aten::mm",,40,') == 1 ]]
	"$MXBPF" report --all r.mxd >tables
	expect_re $'\nRaised: ' "$(<tables)"
	grep -E '^aten::mm +40 .*: fails' tables
	"$MXBPF" export r.mxd -o trace.json
	jq -e '[.traceEvents[] | select(.cat == "exception" and .name == "exception left aten::mm" and .ph == "i")] | length == 40' trace.json
	# Without --raised the report has no such table.
	start_mxbpf --pid "$READY_PID" -d 100ms --format json
	wait_exit "$MXBPF_PID" || true
	run ! grep -q '"raised"' "$(out mxbpf)"
}
