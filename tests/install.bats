#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests of what a packager runs.

load helpers

@test "make install puts binary, man page, completion and service under DESTDIR and PREFIX, and make uninstall removes them" {
	local dest=$BATS_TEST_TMPDIR/dest top
	top=$dest/opt/mxbpf
	make -C "$REPO" --no-print-directory O="$O" install DESTDIR="$dest" PREFIX=/opt/mxbpf
	"$top/bin/mxbpf" --version
	[[ -s $top/share/man/man1/mxbpf.1 && -s $top/share/bash-completion/completions/mxbpf ]]
	cmp "$O/report.schema.json" "$top/share/mxbpf/report.schema.json"
	grep -q '^ExecStart=/opt/mxbpf/bin/mxbpf serve' "$top/lib/systemd/system/mxbpf-serve.service"
	cmp "$REPO/share/skill/SKILL.md" "$top/share/mxbpf/SKILL.md"
	diff -x '*.service' -x '*.schema.json' -x SKILL.md -r "$REPO/share/serve" "$top/share/mxbpf"
	make -C "$REPO" --no-print-directory O="$O" uninstall DESTDIR="$dest" PREFIX=/opt/mxbpf
	[[ -z $(find "$dest" -type f) ]]
}

@test "Two builds of the same tree are identical byte for byte" {
	local again=$BATS_TEST_TMPDIR/again room
	# The second build makes the BPF programs, everything that includes them, archive and binary again. One rule makes all
	# other objects, so one object per room suffices. That saves a minute.
	mkdir "$again"
	cp -a "$O/obj" "$again"
	for room in "$again"/obj/user/*/; do
		find "$room" -name '*.o' | sort | head -n 1 | xargs rm
	done
	make -C "$REPO" --no-print-directory -j2 O="$again" all >"$again/made"
	(($(grep -c '^  CC ' "$again/made") >= 15 && $(grep -c '^  CC ' "$again/made") < 100)) # of more than 300
	cmp "$O/mxbpf" "$again/mxbpf"
}

@test "Each target that make help names can be made where nothing is made yet, and is in the documentation" {
	local target all
	cd "$REPO"
	all=$(make help | sed -n 's/^targets: //p')
	(($(wc -w <<<"$all") > 15))
	# shellcheck disable=SC2086 # words
	make -n O="$BATS_TEST_TMPDIR/none" $all >/dev/null
	for target in $all; do
		grep -qE "^\\$ (sudo )?make (-j[^ ]* )?$target( |\$)|\`(sudo )?make $target( [A-Z_]*=[^\`]*)?\`|[^a-z]make $target([^a-z-]|\$)" README.md docs/*.md tests/fuzz/README.md
	done
	[[ ! -e $BATS_TEST_TMPDIR/none ]]
}

@test "make check needs no product of make test and no root, and make clean leaves what was downloaded alone" {
	local only=$BATS_TEST_TMPDIR/only user=()
	mkdir -p "$only/deps"
	cp -a "$O"/{obj,gen,unit,libmxbpf.*,mxbpf*,report.schema.json} "$only"
	rm -f "$only"/unit/test_{agent_lib,gpu_agent,inject_kernel,sessions_kernel}
	if [[ $(id -u) == 0 ]]; then
		chown -R 65534:65534 "$BATS_TEST_TMPDIR"
		user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
		chmod a+x "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$(dirname "$BATS_TEST_TMPDIR")"
		"${user[@]}" test -r "$REPO/Makefile" -a -w "$only" || user=()
	fi
	env -u O HOME="$BATS_TEST_TMPDIR" "${user[@]}" make -C "$REPO" --no-print-directory O="$only" \
		"$only"/unit/test_{agent_lib,gpu_agent,inject_kernel} ONLY='test_(fmt|sessions_kernel)$' check
	ls "$only"/{gen/agent.so,gpu/libgpucost.so,gpu/client,toy/inject_agent.so,prog/inject_target,prog/blocked,toy/libmxnet.so}
	make -C "$REPO" --no-print-directory O="$only" clean
	expect_same deps "$(ls "$only")"
}

@test "All that is missing is named at once, by the line that installs it and that the README has" {
	local all=(PKG_CONFIG=none CC=none CLANG=none BPFTOOL=none) line
	run env PKG_CONFIG=false make -C "$REPO" --no-print-directory O="$BATS_TEST_TMPDIR/none" all
	[[ $status != 0 ]]
	expect_re 'packages are missing; install them: sudo apt-get install libbpf-dev .* libmicrohttpd-dev libyajl-dev libsqlite3-dev\.' "$output"
	run make -C "$REPO" --no-print-directory O="$BATS_TEST_TMPDIR/none" "${all[@]}" all
	line=$(sed -n 's/.*install them: \(.*\)\.  Stop\.$/\1/p' <<<"$output")
	[[ -n $line ]]
	expect_same "$line" "$(sed -n 's/^\$ \(sudo apt-get install [^#]*[^ #]\).*/\1/p' "$REPO/README.md")"
}
