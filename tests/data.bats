#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Waiting for data: C++ iterators have a table of their own, and the time in Python's loaders is a part of iterations.

load helpers

setup() { root_setup; }

# CSVIter with several parser threads crashes without mxbpf, too: one in two programs with 2000 iterators did (dmlc-core
# issue 505: two threads write to one string). With one thread none of 24 did.
one_parser() {
	export OMP_NUM_THREADS=1
}

@test "Each batch of an iterator that the program counted is recorded, and its C API call as before" {
	need_mxnet
	one_parser
	local api
	for api in all work; do
		"$MXBPF" --exact --format json --api "$api" -- "$PYTHON" "$REPO/tests/workload/mxnet_loops.py" iterator >seen 2>said
		expect_same "$(sed -n 's/^{"steps"/&/p' said | jq -S .calls)" \
			"$(jq -S '[.tables.Data[] | {(.name): .count}] | add' seen)"
		# Only calls that are open when the process exits lose their end.
		jq -e '.loss.dropped == 0 and .loss.unmatched <= 2 and .unwound == 0' seen
		[[ $api == work ]] || jq -e '([.tables.Data[] | {(.name): .count}] | add) ==
			([.tables.MXNET_C_API[] | select(.name | IN("MXDataIterNext", "MXDataIterBeforeFirst")) | {(.name): .count}] | add)' seen
		jq -e '.iterations.loops[0].parts.data.total_ns > 0' seen
	done
	# A program without iterators has no such table.
	start_workload --tiny
	"$MXBPF" --exact --pid "$WORKLOAD_PID" -d 1s -q --format json | jq -e '.tables | has("Data") | not'
}

# loader PYTHON PROGRAM: the workers' sleeps are most of the iterations' time and of the slowest iteration.
loader() {
	"$MXBPF" --exact --format json -- "$1" "$REPO/tests/workload/$2" loader >seen
	jq -e '.iterations | (.loops | length == 1) and (.loops[0] | .count == 19 and
		.parts.data.total_ns > .parts.total_ns / 2) and
		(.slowest[0] | .number == 11 and .longer == "data" and .longer_ns > .total_ns / 2)' seen
}

@test "The workers of Gluon's DataLoader are recorded with the time that the program waits for them" {
	need_mxnet
	loader "$PYTHON" mxnet_loops.py
}

@test "The workers of PyTorch's DataLoader are recorded with the time that the program waits for them" {
	need_torch
	loader "$PYTHON_TORCH" torch_loops.py
}

@test "An iterator that throws gives the program the same exception, and later calls are complete" {
	need_mxnet
	one_parser
	printf '1,2,3\n%.0s' {1..8} >bad.csv
	printf '1,2\n%.0s' {1..8} >>bad.csv
	cat >throws.py <<-'END'
		import mxnet as mx
		bad = 0
		for _ in range(5):
		    try:
		        for batch in mx.io.CSVIter(data_csv='bad.csv', data_shape=(3,), batch_size=8):
		            pass
		    except mx.MXNetError:
		        bad += 1
		for _ in range(10):
		    (mx.nd.ones((2, 2)) + 1).asnumpy()
		print('thrown', bad)
	END
	"$PYTHON" throws.py >unwatched
	"$MXBPF" --exact --api all --format json -- "$PYTHON" throws.py >seen 2>said
	[[ $(<unwatched) == 'thrown 5' ]]
	grep -q -x 'thrown 5' said
	jq -e '[.tables.Data[].count] == [.tables.MXNET_C_API[] | select(.name == "MXDataIterNext").count] and
		([.tables.MXNET_C_API[] | select(.name == "MXNDArraySyncCopyToCPU").count] == [10]) and .unwound == 0' seen
}
