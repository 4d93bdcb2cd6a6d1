#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The container image. A look into the archive needs no container runtime. The program runs in the files of the image with the rights
# and the mounts that docs/install.md gives it.

load helpers

setup_file() {
	need_root
	make_static image || return 1
	mv "$O/mxbpf.oci.tar" "$BATS_FILE_TMPDIR/image.tar"
}

# Unpacks the image's manifest, configuration and layers.
setup() {
	local layer
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir image root
	tar -C image -xf "$BATS_FILE_TMPDIR/image.tar"
	MANIFEST=$(blob "$(jq -r '.manifests[0].digest' image/index.json)")
	CONFIG=$(blob "$(jq -r .config.digest "$MANIFEST")")
	while read -r layer; do tar -C root -xf "$(blob "$layer")"; done < <(jq -r '.layers[].digest' "$MANIFEST")
}

blob() { echo "image/blobs/${1/://}"; } # DIGEST

@test "The image has the program, its licences and the list of what is linked, no shell, and starts the program" {
	local sum
	expect_same $'licences\nmxbpf\nmxbpf.spdx.json' "$(find root -mindepth 1 -maxdepth 1 -printf '%P\n' | LC_ALL=C sort)"
	expect_same mxbpf "$(find root -type f -perm /111 -printf '%P\n')"
	diff -r "$O/portable/licences" root/licences
	jq -e '.config.Entrypoint == ["/mxbpf"] and .config.Cmd == ["help"]' "$CONFIG"
	[[ $(jq -r '.config.Labels["org.opencontainers.image.version"]' "$CONFIG") == "$(<"$REPO/VERSION")" ]]
	sum=$(sha256sum <root/mxbpf | cut -c -64)
	jq -e --arg sum "$sum" '.files[0].checksums | any(.checksumValue == $sum)' root/mxbpf.spdx.json
}

@test "Two images of the same tree are identical" {
	make_static image
	mkdir again
	tar -C again -xf "$O/mxbpf.oci.tar"
	rm "$O/mxbpf.oci.tar"
	cmp image/index.json again/index.json
}

# Runs the program of the image as root without a network, on files that it cannot change, with the host's processes and these
# capabilities (numbers).
in_image() { # CAPABILITIES ARGS...
	timeout 60 unshare --mount --net bash -ec '
		mkdir -p root/proc root/sys root/tmp
		mount --bind root root
		mount --bind -o ro root root
		mount --rbind /proc root/proc
		mount -t sysfs -o ro none root/sys
		mount -t tmpfs none root/tmp
		exec python3 - "$@"' bash "$@" <<-'END'
			import ctypes, os, sys
			os.chroot('root')
			os.chdir('/')
			keep = [int(n) for n in sys.argv[1].split(',')]
			for n in range(64):
			    n in keep or ctypes.CDLL(None).prctl(24, n, 0, 0, 0)  # PR_CAPBSET_DROP
			os.execve('/mxbpf', ['mxbpf', *sys.argv[2:]], {})
		END
}

@test "Three capabilities and the processes of the host are enough for a look from the image; with one less its name is told" {
	need_root
	[[ $("$MXBPF" check) == *"ok   uprobe_multi"* ]] || skip "perf uprobes need CAP_SYS_ADMIN"
	start_bg job "$O/toy/libtorch_cpu.so"
	wait_line "$(out job)" '^ready ' "$BG_PID"
	in_image 19,38,39 --probes op --pid "$BG_PID" -d 300ms -f json >look.json # SYS_PTRACE, PERFMON, BPF
	jq -e '(.tables.operator[] | select(.name == "aten::honest").count > 0) and .loss.dropped == 0' look.json
	expect_error 4 'CAP_SYS_PTRACE' in_image 38,39 --probes op --pid "$BG_PID" -d 300ms
	expect_error 4 'CAP_BPF' in_image 19,38 --probes op --pid "$BG_PID" -d 300ms
}
