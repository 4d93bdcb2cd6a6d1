#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The statically linked binary.

load helpers

setup_file() { make_static static; }

setup() {
	need_root
	STATIC=$O/mxbpf-static
}

# A directory with nothing but the binary and the files of the test.
empty_root() {
	ROOT=$BATS_TEST_TMPDIR/root
	mkdir "$ROOT"
	cp "$STATIC" "$ROOT/mxbpf"
}

in_root() { # ARGS...
	env -i LC_ALL=C.UTF-8 "$(command -v chroot)" "$ROOT" /mxbpf "$@"
}

@test "The static binary needs no library" {
	readelf -ldW "$STATIC" >"$BATS_TEST_TMPDIR/headers"
	run ! grep -E 'INTERP|NEEDED' "$BATS_TEST_TMPDIR/headers"
	empty_root
	[[ $(in_root --version) == "$("$MXBPF" --version)" ]]
	in_root help >/dev/null
	run in_root check
	expect_re '^  ok   uprobe_multi' "$output"
}

@test "In an empty root the static binary makes the same tables, JSON and trace of a recording" {
	local args
	empty_root
	cp "$REPO/tests/golden/real.mxd" "$ROOT"
	for args in '--all' '--format json' '--layout torch' '--advice'; do
		# shellcheck disable=SC2086 # words
		expect_same "$("$MXBPF" report "$ROOT/real.mxd" $args)" "$(in_root report real.mxd $args)"
	done
	in_root export real.mxd -q -o trace.json
	"$MXBPF" export "$ROOT/real.mxd" -q -o "$BATS_TEST_TMPDIR/trace.json"
	cmp "$ROOT/trace.json" "$BATS_TEST_TMPDIR/trace.json"
}

@test "The static binary counts every call, operator and byte of a running job" {
	MXBPF=$STATIC
	start_toy 200 3
	start_mxbpf --pid "$READY_PID" --api all --format json
	end_ready
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "The static binary counts the operators of a running job on PyTorch as the dynamic one does" {
	torch_setup
	torch_server
	traced '--format json' dynamic.json "${SERVED[@]}" "$JUDGE/prog.py" sgd --bare
	MXBPF=$STATIC traced '--format json' static.json "${SERVED[@]}" "$JUDGE/prog.py" sgd --bare
	counts() { jq -c '.loss.dropped, (.tables.operator | map([.name, .count]) | sort[])' "$1"; }
	expect_same "$(counts dynamic.json)" "$(counts static.json)"
}

@test "The static binary unwinds the stack of a waiting thread as the dynamic one does" {
	start_toy 1 1
	stack() { "$1" now --pid "$READY_PID" --format json -q -d 1s | jq -e -c '.threads[].stack[] | [.function, .address]'; }
	expect_same "$(stack "$MXBPF")" "$(stack "$STATIC")"
}

@test "The list of what is linked into the static binary has every library whose functions it has" {
	local function library
	make -s -C "$REPO" --no-print-directory O="$O" STATIC=1 sbom
	nm "$STATIC" | awk '$2 ~ /^[TtWw]$/ { print $3 }' >"$BATS_TEST_TMPDIR/functions"
	jq -r '.packages[] | .name, (.sourceInfo // "")' "$O/mxbpf-static.spdx.json" >"$BATS_TEST_TMPDIR/listed"
	while read -r function library; do
		grep -qx "$function" "$BATS_TEST_TMPDIR/functions"
		grep -qE "^(source package )?$library( |$)" "$BATS_TEST_TMPDIR/listed"
	done <<-EOF
		bpf_object__open_skeleton libbpf
		elf_begin elfutils
		dwfl_begin elfutils
		inflate zlib
		BZ2_bzDecompress bzip2
		lzma_code xz-utils
		cJSON_Parse cjson
		ZydisDecoderInit zydis
		MHD_start_daemon libmicrohttpd
		yajl_parse yajl
		sqlite3_open_v2 sqlite3
		cplus_demangle_v3_callback libiberty
		tparm ncurses
		malloc glibc
		ArrowIpcWriterInit nanoarrow
		flatcc_builder_init flatcc
	EOF
}

@test "The static binary says that it cannot send metrics" {
	expect_error 1 'nothing can be sent without libcurl: this is the static mxbpf' "$STATIC" serve --listen none --otlp http://127.0.0.1:1
}
