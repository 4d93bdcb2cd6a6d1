#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf compared with MXNet's own profiler: both record the same deterministic section, one run each, and must agree exactly.

load helpers

JUDGE=$REPO/tests/judge

setup() { root_setup mxnet; }

compare() { "$PYTHON" "$JUDGE/compare.py" "$@"; }

# make_mxnet_reference() in helpers.bash runs it.
naive() { MXNET_ENGINE_TYPE=NaiveEngine "$PYTHON" "$@" --builtin naive; }

# bats test_tags=smoke,place
@test "An unprofiled run under mxbpf has the rows, counts, allocations and bytes of a profiled one" {
	mxnet_reference "$JUDGE/prog.py"
	take_shared mxnet-session traced '--api all --format json' mxbpf.json "$PYTHON" "$JUDGE/prog.py" --bare
	compare builtin mxbpf.json --bytes-of naive
}

@test "MXNet's trace without bulking shows no bulk, so that both profilers see the same operators" {
	"$PYTHON" "$JUDGE/prog.py" --builtin builtin --no-aggregate
	expect_run 0 jq -r '.traceEvents[] | select(.cat == "operator") | .name' builtin.trace.json
	expect_re '^_backward_Convolution$' "$output"
	[[ $output != *ImperativeBulk* ]]
}

@test "MXNet's layouts by mxbpf have the counts of MXNet's profiler" {
	mxnet_reference "$JUDGE/prog.py"
	take_shared mxnet-layout traced '--layout mxnet' mxbpf.txt "$PYTHON" "$JUDGE/prog.py" --bare
	compare builtin mxbpf.txt
	traced '--layout mxnet --format json' mxbpf.json "$PYTHON" "$JUDGE/prog.py" --bare
	compare builtin mxbpf.json
}

# MXNet runs a WaitForVar operator or not, depending on whether its worker or the program is first: two profiled runs of these
# programs differ, too. The next test compares that operator within one run.
documented() { # NAME
	"$PYTHON" "$JUDGE/run_doc.py" "$JUDGE/$1.py" --builtin builtin
	naive "$JUDGE/run_doc.py" "$JUDGE/$1.py"
	traced '--api all --format json' mxbpf.json "$PYTHON" "$JUDGE/run_doc.py" "$JUDGE/$1.py" --bare
	compare builtin mxbpf.json --bytes-of naive --may-race WaitForVar
}

@test "The documentation's first program has the same counts under mxbpf and MXNet's profiler" { documented doc1; }
@test "The documentation's second program has the same counts under mxbpf and MXNet's profiler" { documented doc2; }

@test "mxbpf and MXNet's profiler in the same run count the same, also operators whose number is a race" {
	local doc
	for doc in doc1 doc2; do
		traced '--api all --format json' mxbpf.json "$PYTHON" "$JUDGE/run_doc.py" "$JUDGE/$doc.py" --builtin builtin --gates
		compare builtin mxbpf.json
	done
}

# bats test_tags=alone
@test "95 of 100 operator durations are within 5 us or 5 % of MXNet's in the same run" {
	measured
	traced '--format json --trace mxbpf-trace.json' mxbpf.json "$PYTHON" "$JUDGE/prog.py" --builtin builtin --gates
	"$PYTHON" "$JUDGE/durations.py" builtin.trace.json mxbpf-trace.json
}

@test "The judge detects a surplus row, count, allocation or byte" {
	mxnet_reference "$JUDGE/prog.py"
	take_shared mxnet-session traced '--api all --format json' mxbpf.json "$PYTHON" "$JUDGE/prog.py" --bare
	local change
	for change in '.tables.operator[0].count += 1' 'del(.tables.operator[3])' '.tables.MXNET_C_API[0].count -= 1' \
		'.tables.MXNET_C_API += [{name: "MXNew", count: 1}]' '.tables["Device Storage"][0].frees += 1' \
		'.tables["Device Storage"][0].alloc_bytes += 4'; do
		jq "$change" mxbpf.json >changed.json
		echo "$change"
		expect_run 1 compare builtin changed.json --bytes-of naive
	done
}
