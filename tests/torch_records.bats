#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Records of a PyTorch job beyond times, compared with torch.profiler on the same program: the forward operator of each
# backward node, and sizes, types and strides of tensors.

load helpers

setup() { torch_setup; }

compare() { "$PYTHON_TORCH" "$JUDGE/compare.py" "$@"; }

same_joins() { # PROGRAM
	reference "$1"
	recording "$1"
	compare builtin.json mxbpf.json --trace job.mxd
	cmp builtin.result mxbpf.result
}

@test "Forward and backward records of a CNN are joined as torch joins them" { same_joins sgd; }
@test "Forward and backward records of a compiled net are joined as torch joins them" { same_joins compiled; }
@test "Forward and backward records of two Python threads are joined as torch joins them" { same_joins threads; }

# Compares arrows, too. record_shapes keeps tensors alive and delays their frees, so sizes need a run of their own.
same_shapes() { # PROGRAM
	reference_shapes "$1"
	reference "$1"
	recording_shapes "$1"
	compare builtin.json mxbpf.json --trace job.mxd --shapes shaped.json
	"$MXBPF" export job.mxd -o export.json
	compare builtin.json mxbpf.json --trace export.json --shapes shaped.json
	cmp builtin.result mxbpf.result
}

@test "Tensors of a CNN, in lists too, have torch's sizes, types and strides" { same_shapes adam-foreach; }
@test "Tensors of a transformer, nested ones too, have torch's sizes, types and strides" { same_shapes transformer; }
@test "Tensors of every kind, passed in every way, have torch's sizes, types and strides" { same_shapes forms; }
@test "Tensors on TorchScript's stack have torch's sizes, types and strides" { same_shapes script; }
@test "Tensors of vmap and custom Functions have torch's sizes, types and strides" { same_shapes custom; }
@test "Tensors of a program with exceptions have torch's sizes, types and strides" { same_shapes exceptions; }

@test "The judge detects a surplus size, type, stride or arrow" {
	same_shapes sgd
	local change file
	for change in 'shaped .slices[5][2] += 1' 'shaped .by_shape[3][2] += 1' 'shaped .arguments = .arguments[1:]' \
		'builtin .links[0][2] += 1'; do
		file=${change%% *}.json
		jq "${change#* }" "$file" >changed.json
		mv "$file" kept.json
		mv changed.json "$file"
		echo "$change"
		expect_run 1 compare builtin.json mxbpf.json --trace job.mxd --shapes shaped.json
		mv kept.json "$file"
	done
}

# Watches torch_ranges.py with ARGS. A row of each annotation has its calls, its time, and no time of others.
crossing() { # ARGS...
	torch_server
	start_ready ranges "${SERVED[@]}" "$REPO/tests/workload/torch_ranges.py"
	start_mxbpf record "$@" --pid "$READY_PID" -o r.mxd
	end_ready
	"$MXBPF" report r.mxd --raw --format json >r.json
	"$MXBPF" report r.mxd --raw --by range --format json >by.json
	python3 - "$(tail -n 1 "$(out ranges)")" <<-'END'
		import json, sys
		told, report, by = json.loads(sys.argv[1]), json.load(open("r.json")), json.load(open("by.json"))
		rows = {row["name"]: row for row in report["tables"]["operator"]}
		mm = told.pop("mm")
		assert rows["aten::mm"]["count"] == mm
		for name, row in told.items():
		    seen = rows[name]
		    assert seen["count"] == row["calls"], (name, row, seen)
		    assert row["least_ns"] <= seen["total_ns"] <= row["most_ns"], (name, row, seen)
		    assert seen["self_ns"] <= seen["total_ns"], seen
		last = [row for row in by["tables"]["operator"] if row["name"] == "aten::mm" and row["range"] == "last"]
		assert [row["count"] for row in last] == [1], last
		assert sum(row["count"] for row in by["tables"]["operator"] if row["name"] == "aten::mm") == mm
	END
	# The kernel shows BPF not all switches of threads on a busy machine.
	jq -e '[.sources[] | select(.source != "scheduler") | .dropped + .unmatched] | length >= 1 and add == 0' r.json
}

@test "Annotations of coroutines that cross on one thread have their own starts and ends, however many follow each other" {
	crossing
}
@test "Annotations that cross on one thread have their own starts and ends with the agent" { crossing --agent; }

@test "--shapes without operators is refused before anything is attached" {
	torch_server
	expect_error 2 '^mxbpf: error: .*--probes op' "$MXBPF" --exact --pid "$SERVER_PID" --shapes --probes mem -d 100ms
}
