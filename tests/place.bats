#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The tests pass from any place. A checkout is mounted below /tmp, in a folder whose name has a blank, and the programs and tests run
# there that have to do with where they are: those with the tag `place`.

load helpers

@test "A checkout under /tmp whose path has a blank builds there, and passes the tests that have to do with paths" {
	need_root
	need_mxnet
	need_torch
	cd "$BATS_TEST_TMPDIR"
	PLACE=$(mktemp -d '/tmp/mxbpf a b.XXXXXX')
	# What the build and the tests write there is in memory. Downloads are the same files.
	# shellcheck disable=SC2016 # for that shell
	run env -u O -u REPO -u MXBPF -u PYTHON -u PYTHON_TORCH -u MXBPF_TEST_SHARED -u ONLY unshare -m bash -exc '
		view() { # OF AT: a view of a folder that can be written
			mkdir -p "$2" "layer$2"
			mount -t tmpfs none "layer$2"
			mkdir "layer$2/upper" "layer$2/work"
			mount -t overlay -o "lowerdir=$1,upperdir=layer$2/upper,workdir=layer$2/work" none "$2"
		}
		view "$1" "$3"
		[[ $2 == "$1/build" ]] || view "$2" "$3/build"
		mkdir -p "$3/build/deps"
		mount --rbind "$2/deps" "$3/build/deps"
		cd "$3"
		rm build/mxbpf build/gen/agent.so build/obj/user/elf/unwind.o build/unit/test_unwind
		tests/run.sh --tag=place
		ONLY="^unit/test_(unwind|cut|gpu_agent|hostile)\$" tests/run.sh --unit
		make --no-print-directory install DESTDIR="$3/de st" PREFIX=/usr
		"$3/de st/usr/bin/mxbpf" --version
	' - "$REPO" "$O" "$PLACE"
	expect_status 0
	[[ $output != *skipped:* ]] || { echo "$output"; return 1; }
}

teardown() {
	kill_started
	[[ ! ${PLACE:-} ]] || rmdir "$PLACE"
}
