#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Options that reduce overhead by recording less: --api work, --ops, --iterations. They show the same numbers for what they
# record, and every output says what they leave out.

load helpers

setup() { root_setup; }

counts() { # TABLE JSON [FILTER]
	jq -S --arg table "$1" "[.tables[\$table][] | ${3:-.} | {(.name): .count}] | add" "$2"
}

@test "--api work has the counts of MXNet's profiler and of --api all for its calls" {
	need_mxnet
	# One program runs without MXNet's profiler, and one has both profilers in the same run.
	traced '--format json --api work' work.json "$PYTHON" "$REPO/tests/judge/prog.py" --bare
	traced '--api all --format json' all.json "$PYTHON" "$REPO/tests/judge/prog.py" --bare
	traced '--format json --api work' both.json "$PYTHON" "$REPO/tests/judge/prog.py" --builtin builtin --gates
	local names
	names=$(jq -c '[.tables.MXNET_C_API[].name]' work.json)
	[[ $(jq length <<<"$names") -ge 5 ]]
	expect_same "$(counts MXNET_C_API work.json)" "$(counts MXNET_C_API all.json "select(.name | IN($names[]))")"
	expect_same "$(counts MXNET_C_API both.json)" "$(jq -S --argjson names "$names" \
		'.Time.MXNET_C_API | with_entries(select(.key | IN($names[])) | .value |= .Count)' builtin.json)"
	# Calls outside of --api work are trivial, so those in it have nearly all of the time. By medians: a busy machine can stop any call.
	jq -e --argjson names "$names" '[.tables.MXNET_C_API[] | {shown: (.name | IN($names[])), ns: (.count * .p50_ns)}] |
		(map(select(.shown).ns) | add) / (map(.ns) | add) > 0.8' all.json
	# A wait ends with the call around it, so none is lost without an end.
	expect_same "$(counts 'Engine wait' work.json)" "$(counts 'Engine wait' all.json)"
	jq -e '.loss.unmatched == 0 and .loss.dropped == 0 and (.window.notes[0] | .name == "api" and (.text | test("^[12][0-9] functions of the C API that work or wait are probed; 2[0-9][0-9] others")))' work.json
	jq -e '.window | has("notes") | not' all.json
}

@test "--api work includes every C API call that waits for an array, so that each wait has an end" {
	need_mxnet
	"$MXBPF" --exact --api work --format json -- "$PYTHON" -c '
import mxnet as mx
array = mx.nd.sparse.csr_matrix(mx.nd.array([[1, 0], [0, 2]]))
for _ in range(7): # the C API copies the parts of a sparse array once they exist
    array.data
    array.indices
print(array.asnumpy().sum())' >json 2>said
	[[ $(grep -c '^3' said) == 1 ]]
	jq -e '.loss.unmatched == 0 and ([.tables.MXNET_C_API[] | {(.name): .count}] | add | .MXNDArrayGetDataNDArray == 7 and
		.MXNDArrayGetAuxNDArray >= 7) and (.tables."Engine wait"[0].count >= 14)' json
}

@test "--api work has the arrows of --api all, and tables and CSV say what is left out" {
	need_mxnet
	start_workload --tiny
	"$MXBPF" record --pid "$WORKLOAD_PID" -d 1s -q --api work -o r.mxd
	"$MXBPF" export r.mxd -q -f chrome -o t.json
	jq -e '.otherData.arrows > 100 and (.otherData.window.notes | length == 1) and
		([.traceEvents[] | select(.cat == "c_api") | .name] | unique | length >= 4)' t.json
	expect_re '^api +[12][0-9] functions of the C API .* others are not, and their calls are not included' "$("$MXBPF" report --all r.mxd)"
	expect_re '^# api +[12][0-9] functions of the C API' "$("$MXBPF" report r.mxd --layout mxnet)"
	expect_re '^"api","[12][0-9] functions of the C API' "$("$MXBPF" report r.mxd --format csv)"
	"$PYTHON" -m jsonschema -i <("$MXBPF" report r.mxd --format json) "$O/report.schema.json"
}

# Attached probes of the C API: api.enter is in all of its functions, api.work in those that work or wait.
probed() { # JSON
	jq -c '[.probes[] | select(.status == "attached" and (.name | startswith("api."))).name]' "$1"
}

@test "Tables leave out getters by default and say how many functions are not probed; recordings and traces have all" {
	need_mxnet
	start_workload --tiny
	local usual=(--exact --pid "$WORKLOAD_PID" -d 1s -q) not_probed more
	"$MXBPF" "${usual[@]}" --all >text
	not_probed=$(sed -nE 's/^MXNET_C_API: .* rows?; (2[0-9]{2}) functions are not probed \(not measured; see --api all\)$/\1/p' text)
	[[ -n $not_probed ]]
	expect_re "^api .*; $not_probed others are not, .*--api all" "$(<text)"
	expect_re '^[0-9.]+ iterations per second.* or calls not probed' "$(<text)"
	expect_re '^probed calls of the C API ' "$(<text)"
	expect_re '^your Python code or not probed ' "$(<text)"
	"$MXBPF" "${usual[@]}" -o usual.json
	[[ $(probed usual.json) == '["api.work"]' ]]
	jq -e --argjson n "$not_probed" '.window.api | .not_probed == $n and .probed >= 20' usual.json
	"$PYTHON" -m jsonschema -i usual.json "$O/report.schema.json"
	"$MXBPF" "${usual[@]}" --interval 300ms --format json | tail -n 1 >series.json
	[[ $(probed series.json) == '["api.work"]' ]]
	for more in '--api all' '--trace t.json' --memory --raised; do
		# shellcheck disable=SC2086 # words
		"$MXBPF" "${usual[@]}" $more --force --format json >all.json
		[[ $(probed all.json) == '["api.enter","api.exit"]' ]]
		jq -e '.window | has("api") or has("notes") | not' all.json
	done
	"$MXBPF" "${usual[@]}" --all --api all >text
	expect_re '^MXNET_C_API: [^;]* rows' "$(<text)"
	expect_re '^the rest of the C API ' "$(<text)"
	"$MXBPF" record "${usual[@]}" -o r.mxd
	"$MXBPF" report r.mxd -o all.json
	[[ $(probed all.json) == '["api.enter","api.exit"]' ]]
	# Getters are most of the C API's calls of a small training step.
	more='[.tables.MXNET_C_API[].name] | any(startswith("MXSymbolGet") or startswith("MXNDArrayGet"))'
	jq -e "$more" all.json
	jq -e "$more | not" usual.json
	"$MXBPF" "${usual[@]}" --layout mxnet | grep -E '^MX(Symbol|NDArray)Get'
}

@test "A PyTorch job, which has no C API, has the same tables by default" {
	need_torch
	start_torch --tiny
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s -q --all >text
	[[ -z $(grep -E 'not probed|^api ' text) ]]
	expect_re '^aten::mm +' "$(<text)"
}

@test "A program that only calls getters is told about --api all" {
	need_mxnet
	start_ready getters "$PYTHON" -c 'import mxnet as mx, os, time
array = mx.nd.ones((2, 3))
array.asnumpy()
print("ready", os.getpid(), flush=True)
while True:
    array.shape
    time.sleep(0.01)' >/dev/null
	expect_run 5 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 500ms
	expect_re 'it called none of the probed functions .*; --api all probes every function of the C API' "$stderr"
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 500ms --api all
	expect_re '^MXNDArrayGetShape' "$output"
}

@test "--ops probes only functions that match and has the counts of a full session" {
	need_torch
	torch_server
	local prog=("${SERVED[@]}" "$REPO/tests/judge_torch/prog.py" adam --bare) name memory
	traced '--format json' all.json "${prog[@]}"
	traced "--format json --ops conv*,aten::a*mm*,Conv*0" some.json "${prog[@]}"
	name='select(.name | test("^aten::(conv.*|a.*mm.*)$|(^|[: ])Conv[^:]*0$"))'
	expect_same "$(counts operator some.json)" "$(counts operator all.json "$name")"
	[[ $(counts operator some.json | jq length) -ge 6 ]]
	# --ops leaves out no allocations, which have a table of their own.
	memory='.tables.memory[0] | {allocs, frees, alloc_bytes, free_bytes} | select(.allocs > 0)'
	expect_same "$(jq "$memory" some.json)" "$(jq "$memory" all.json)"
	jq -e '.loss.dropped == 0 and .window.left_out > 0 and (.window.notes[0].text | test(" of 3,[01][0-9]+ operator functions"))' some.json
	"$PYTHON" -m jsonschema -i some.json "$O/report.schema.json"
}

@test "--ops saves probe hits if the plan knows the names" {
	need_torch
	start_torch --tiny
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s -q --all --probes op >all
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s -q --all --probes op --ops mm >some
	# Hits for each call of an operator, because the job does more in one window than in the other.
	awk '/^events / { gsub(",", ""); for (i = 1; i < NF; i++) if ($(i + 1) == "probe") hits[FILENAME] = $i }
		$1 == "aten::mm" && $2 ~ /^[0-9]+$/ { calls[FILENAME] = $2 }
		END { some = hits["some"] / calls["some"]; all = hits["all"] / calls["all"]; print some, all; exit !(some > 0 && some * 2 < all) }' all some
	expect_re '^ops +mm: ' "$(<some)"
	expect_re '^left out [0-9,]+ calls' "$(<some)"
	expect_run 0 "$MXBPF" check --pid "$WORKLOAD_PID" --ops 'conv*,mm'
	expect_re 'ok +--ops +matches [0-9]+ of 3[01][0-9]+ operator functions' "$output"
}

@test "--ops leaves MXNet operators that do not match out of the tables and the trace" {
	need_mxnet
	start_workload --tiny
	"$MXBPF" --pid "$WORKLOAD_PID" -d 1s -q --ops 'multi_*,*softmax' --format json --trace t.json >some.json
	# A Dropout that was pushed before the attach has no name and counts as unmatched.
	jq -e '.loss.unmatched as $unmatched | .tables.operator
		| (map(.name) - ["[unreadable]"] | sort == ["_backward_log_softmax", "log_softmax", "multi_sgd_mom_update"])
		and (map(select(.name == "[unreadable]").count) | add // 0) <= $unmatched' some.json
	jq -e '(.tables.MXNET_C_API | length > 5) and .window.left_out > .loss.stored / 10' some.json
	[[ $(jq '[.traceEvents[] | select(.cat == "cpu_op" and .ph == "X")] | length' t.json) == \
		$(jq '[.tables.operator[].count] | add' some.json) ]]
}

@test "--ops without a match suggests names and gives exit code 3" {
	need_mxnet
	need_torch
	start_workload --tiny
	expect_run 3 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s --ops log_sotfmax --probes op
	expect_re "no operator matched --ops 'log_sotfmax'; nearest: log_softmax" "$stderr"
	kill_started
	start_torch --tiny
	expect_run 3 --separate-stderr "$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s --ops 'covn2d'
	expect_re "warning: --ops 'covn2d' matches none of 3[01][0-9]+ operator functions \(nearest: .*conv2d" "$stderr"
	expect_error 3 'NO +--ops +matches none of 3[01][0-9]+ operator functions; nearest: .*conv2d' "$MXBPF" check --pid "$WORKLOAD_PID" --ops 'covn2d'
	kill_started
	start_code forward 'import os, torch
a = torch.ones(4, 4)
print("ready", os.getpid(), flush=True)
while True:
    a @ a' >/dev/null # this program runs no other operator
	expect_run 3 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" -d 1s --ops 'covn2d'
}

@test "Conflicting options and wrong values are refused" {
	local words
	while read -r words; do
		# shellcheck disable=SC2086 # words
		expect_run 2 "$MXBPF" --pid 1 $words
	done <<-'END'
		--probes op --api work
		--probes api --ops mm
		--ops ,mm
		--api some
		--iterations 5/
		--iterations 5/5
		--iterations 0
		--iterations 0/5
		--iterations 5/x
	END
	need_torch
	start_torch --tiny
	expect_error 2 'mxbpf probes no C API of PyTorch' "$MXBPF" --exact --pid "$WORKLOAD_PID" --api work -d 1s
}

@test "--iterations leaves a PyTorch job's result unchanged and counts every iteration" {
	need_torch
	# It runs for several seconds, so that windows open in it even if attaching takes two.
	local job=("$PYTHON_TORCH" "$REPO/tests/workload/torch_train.py" --tiny --steps 2500 --print-result)
	"${job[@]}" >plain
	"$MXBPF" --iterations 2/12 --format json -- "${job[@]}" >json 2>watched || cat watched
	expect_same "$(grep '^result' plain)" "$(grep '^result' watched)"
	"$PYTHON" -m jsonschema -i json "$O/report.schema.json"
	# A whole iteration has two convolutions and one optimizer step. The last window may end with the job.
	jq -e '.window.iterations == 2500 and .window.sampled_iterations >= 2 and .window.sampled_iterations < 1250 and
		.loss.dropped == 0 and (.window.sampled_iterations as $n | [.tables.operator[] | {(.name): .count}] | add |
		(."aten::conv2d" | . >= 2 * $n and . <= 2 * $n + 2) and (."Optimizer.step#SGD.step" | . >= $n and . <= $n + 1))' json
}

@test "--iterations leaves an MXNet job's result unchanged with --api all and work, and no duration includes a gap" {
	need_mxnet
	local job=("$PYTHON" "$REPO/tests/workload/mxnet_train.py" --tiny --steps 400 --print-result) api
	"${job[@]}" >plain
	for api in all work; do
		"$MXBPF" --iterations 3/12 --api "$api" --format json -- "${job[@]}" >json 2>watched
		expect_same "$(grep '^result' plain)" "$(grep '^result' watched)"
		jq -e '.window.iterations == 400 and .window.sampled_iterations >= 3 and .loss.dropped == 0 and
			(.window.sampled_iterations as $n | [.tables.MXNET_C_API[] | {(.name): .count}] | add |
			.MXAutogradBackwardEx | . >= $n and . <= $n + 1) and .window.paused_ns > .window.duration_ns' json
	done
}

# The number of probes of all processes that a process holds.
probes_of() { cat /proc/"$1"/fdinfo/* 2>/dev/null | awk '$1 == "uprobe_cnt:" {n += $2} END {print n + 0}'; }

@test "--iterations keeps one probe attached between windows, which is hit once per iteration" {
	need_mxnet
	start_workload --tiny
	start_mxbpf --pid "$WORKLOAD_PID" --all --iterations 1/1000000 -v
	wait_line "$(err mxbpf)" 'all but one detached in ' "$MXBPF_PID"
	# MXNet has two functions that end an iteration, of which one is hit. The third probe is for its loader.
	local left
	left=$(probes_of "$MXBPF_PID")
	((left >= 1 && left <= 3))
	wait_new_line "$(out workload)" '^step' 2
	end_pid "$MXBPF_PID"
	local hits iterations
	hits=$(sed -nE 's/^events .* from ([0-9,]+) probe hits/\1/p' "$(out mxbpf)" | tr -d ,)
	iterations=$(sed -nE 's/^windows +the tables cover 1 of ([0-9,]+) iterations.*/\1/p' "$(out mxbpf)" | tr -d ,)
	((iterations > 20 && hits > iterations && hits < iterations + 1000))
}

@test "--iterations closes its window in a pause, goes on afterwards, and every format has the number of sampled iterations" {
	need_torch
	start_torch --tiny
	start_mxbpf record --pid "$WORKLOAD_PID" --iterations 2/10 -v -o r.mxd
	wait_line "$(err mxbpf)" 'all but one detached in ' "$MXBPF_PID"
	kill -s USR1 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^paused, ' "$MXBPF_PID"
	kill -s USR2 "$MXBPF_PID"
	wait_line "$(err mxbpf)" '^resumed, ' "$MXBPF_PID"
	wait_new_line "$(err mxbpf)" 'all but one detached in ' 2
	end_pid "$MXBPF_PID"
	local n
	n=$("$MXBPF" report r.mxd --format json | jq '.window | select(.iterations > .sampled_iterations and
		.paused_ns > .duration_ns) | .sampled_iterations')
	((n >= 6))
	expect_re "^windows  the tables cover $n of [0-9,]+ iterations" "$("$MXBPF" report r.mxd)"
	expect_re "^# windows  the tables cover $n of [0-9,]+ iterations" "$("$MXBPF" report r.mxd --layout torch)"
	expect_re "^\"window\",\"sampled_iterations\",,$n," "$("$MXBPF" report r.mxd --format csv)"
	"$MXBPF" export r.mxd -q -f chrome | jq -e --argjson n "$n" '[.. | .sampled_iterations? // empty] == [$n]'
}

# Waits until N windows have closed in a running job.
windows() { # N
	local i
	for ((i = 0; i < $1; i++)); do
		wait_new_line "$(err mxbpf)" 'all but one detached in '
	done
}

@test "--iterations lets exceptions pass in a PyTorch job while probes come and go, and the result is unchanged" {
	need_torch
	torch_server
	start_ready thrower "${SERVED[@]}" "$REPO/tests/workload/torch_throw.py" --repeat
	start_mxbpf --pid "$READY_PID" --iterations 2/5 -v --format json
	kill -s USR1 "$READY_PID"
	windows 3
	stop_pid "$READY_PID"
	wait_exit "$READY_PID"
	wait_exit "$MXBPF_PID"
	expect_re '^caught ([1-9][0-9]+) of \1$' "$(<"$(out thrower)")"
	jq -e '.window.sampled_iterations >= 6 and .unwound > 0 and .loss.dropped == 0' "$(out mxbpf)"
}

@test "--iterations lets exceptions pass in an MXNet job" {
	need_mxnet
	start_ready thrower "$PYTHON" "$REPO/tests/workload/mxnet_throw.py" --times 4000
	start_mxbpf --pid "$READY_PID" --iterations 2/5 -v --format json
	end_pid "$READY_PID" USR1 100
	wait_exit "$MXBPF_PID"
	[[ $(tail -n 1 "$(out thrower)") == 'caught 4000 sync, 4000 async' ]]
	(($(grep -c 'all but one detached in ' "$(err mxbpf)") >= 2))
	jq -e '.window.iterations == 4000 and .window.sampled_iterations >= 4 and .loss.dropped == 0' "$(out mxbpf)"
}

@test "--iterations leaves no link after SIGKILL of mxbpf between two windows, and the job runs on" {
	need_torch
	local links
	links=$(probe_links)
	# The job trains from the same seed repeatedly and fails if a result differs.
	start_torch --tiny --steps 50 --repeat
	start_mxbpf --pid "$WORKLOAD_PID" --iterations 1/1000000 -v
	wait_line "$(err mxbpf)" 'all but one detached in ' "$MXBPF_PID"
	[[ $(probe_links) != "$links" ]]
	stop_pid "$MXBPF_PID" KILL
	no_new_links "$links"
	wait_new_line "$(out workload)" '^equal '
	wait_new_line "$(out workload)" '^equal ' # a whole training has run since
	stop_pid "$WORKLOAD_PID"
	wait_exit "$WORKLOAD_PID"
}

@test "--iterations counts the iterations of a command's next process when the sampled one has ended" {
	need_mxnet
	local job="'$PYTHON' '$REPO/tests/workload/mxnet_train.py' --tiny --steps 200"
	"$MXBPF" --iterations 3/12 --format json -- bash -c "$job && $job" >json
	jq -e '.window.iterations > 300 and .loss.dropped == 0' json
}

@test "--iterations for a job without any says so, and says what an iteration is" {
	need_torch
	start_code forward 'import os, torch
a = torch.ones(4, 4)
print("ready", os.getpid(), flush=True)
while True:
    a @ a' >/dev/null
	expect_run 5 --separate-stderr "$MXBPF" --pid "$READY_PID" --iterations 1/10 -d 11s
	expect_re 'no iteration has ended in 10 s.* the step\(\) of an optimizer' "$stderr"
	expect_re 'no event was recorded: 0 iterations ended in 11\.. s' "$stderr"
}
