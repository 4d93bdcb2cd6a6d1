#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mxbpf detects an unreliable end probe during the session, and every output reports it (tests/toy/torch.c).

load helpers

setup() {
	need_root
	start_ready liar "$O/toy/libtorch_cpu.so" >/dev/null
}

@test "A function whose end probe is unreliable falls back to upper bounds, and every output says since when" {
	start_bg recording "$MXBPF" record --pid "$READY_PID" --probes op -o "$BATS_TEST_TMPDIR/r.mxd"
	wait_line "$(err recording)" 'the probe at the end of aten::liar missed calls'
	end_pid "$BG_PID"
	cd "$BATS_TEST_TMPDIR"
	"$MXBPF" report r.mxd --format json >r.json
	jq -e '.window.fallbacks | length == 1 and .[0].name == "aten::liar" and .[0].at_ns > 0 and .[0].calls_before > 9' r.json
	# Its calls are still counted after the fallback. The other function keeps its own end probe.
	jq -e '[.tables.operator[] | {(.name): .count}] | add | keys == ["aten::honest", "aten::liar"] and (map(.) | min > 9 and max - min <= 1)' r.json
	local layout
	for layout in modern torch torch-classic mxnet; do
		"$MXBPF" report r.mxd --layout "$layout" >table
		expect_re '(^|# )FALLBACK aten::liar: its end was found to be wrong; since .*s times are upper bounds, and [0-9,]+ earlier calls' \
			"$(<table)"
	done
	expect_re '^"fallback","aten::liar",' "$("$MXBPF" report r.mxd --format csv)"
	"$MXBPF" export r.mxd -f chrome -o - | jq -e '.otherData.window.fallbacks[0].name == "aten::liar"'
	"$MXBPF" report r.mxd --layout mxnet --format json | jq -e '.mxbpf.window.fallbacks[0].name == "aten::liar"'
}

@test "A session too short to notice the unreliable end probe reports it at its end" {
	expect_run 0 --separate-stderr "$MXBPF" --exact --pid "$READY_PID" --probes op -d 300ms
	expect_re '^FALLBACK aten::liar' "$output"
	expect_re 'the probe at the end of aten::liar missed calls' "$stderr"
}
