#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The rpm with its service, licences and list of what is linked. rpm installs it into a copy-on-write view of this machine.

load helpers
load packages

setup_file() {
	need_root
	command -v rpmbuild >/dev/null || { echo 'no rpmbuild: run tests/setup.sh' >&2; return 1; }
	make_static rpm PACKAGE_VERSION=0.9 || return 1
	mv "$O/mxbpf-0.9-1.x86_64.rpm" "$BATS_FILE_TMPDIR/0.9.rpm"
	make_static rpm PACKAGE_VERSION=0.10 || return 1
	mv "$O/mxbpf-0.10-1.x86_64.rpm" "$BATS_FILE_TMPDIR/0.10.rpm"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	RPM=$BATS_FILE_TMPDIR/0.9.rpm NEWER=$BATS_FILE_TMPDIR/0.10.rpm
}

@test "The rpm is installed, runs, is upgraded with its configuration kept, removed, and leaves only what the user changed" {
	# shellcheck disable=SC2016 # for that shell
	on_a_copy '
				rpm -i 0.9.rpm
		[[ $(mxbpf --version) == "mxbpf "* && $(command -v mxbpf) == /usr/bin/mxbpf ]]
		mxbpf check >/dev/null || (($? == 4))
		gzip -t /usr/share/man/man1/mxbpf.1.gz
		bash -n /usr/share/bash-completion/completions/mxbpf
		rpm -V mxbpf
		[[ $(<called) == "systemctl daemon-reload" ]] # neither enabled nor started
		rm called

		echo interval=5s >>/etc/mxbpf/serve.conf
		rpm -U 0.10.rpm
		[[ $(rpm -q --qf "%{VERSION}" mxbpf) == 0.10 ]]
		grep -qx interval=5s /etc/mxbpf/serve.conf
		grep -qx "systemctl try-restart mxbpf-serve.service" called
		! grep disable called || exit
		rm called

		mkdir -p /var/lib/prometheus/node-exporter
		: >/var/lib/prometheus/node-exporter/mxbpf.prom
		rpm -e mxbpf
		[[ $(head -n 1 called) == "systemctl --no-reload disable --now mxbpf-serve.service" && $(tail -n 1 called) == *daemon-reload ]]
		[[ ! -e /usr/bin/mxbpf && ! -e /var/lib/prometheus/node-exporter/mxbpf.prom ]]
		grep -qx interval=5s /etc/mxbpf/serve.conf.rpmsave
		rm /etc/mxbpf/serve.conf.rpmsave
	' "$RPM" "$NEWER"
	grep -v -e ^var/lib/rpm/ -e ^root/.rpmdb/ left | expect_nothing
}

@test "The rpm requires no other package, belongs to root, and has the maintainer, the licences and the list of what is linked" {
	local list=root/usr/share/doc/mxbpf/mxbpf.spdx.json sum
	# rpm 4.16 of Rocky 9 and Amazon Linux 2023 has these features.
	expect_same $'rpmlib(BuiltinLuaScripts)\nrpmlib(CompressedFileNames)\nrpmlib(FileDigests)\nrpmlib(PayloadFilesHavePrefix)' \
		"$(rpm -qp --requires "$RPM" | sed 's/ .*//' | sort -u)"
	expect_same 'root root' "$(rpm -qp --qf '[%{FILEUSERNAME} %{FILEGROUPNAME}\n]' "$RPM" | sort -u)"
	expect_same "$("$REPO/share/maintainer.sh")" "$(rpm -qp --qf '%{PACKAGER}' "$RPM")"
	expect_same /etc/mxbpf/serve.conf "$(rpm -qpc "$RPM")"
	mkdir root
	(cd root && rpm2cpio "$RPM" | cpio -idm --quiet)
	run ! grep -E 'INTERP|NEEDED' <(readelf -ldW root/usr/bin/mxbpf)
	diff -r "$O/portable/licences" root/usr/share/doc/mxbpf/licences
	sum=$(sha256sum <root/usr/bin/mxbpf | cut -c -64)
	jq -e --arg sum "$sum" '.files[0].checksums | any(.checksumValue == $sum)' "$list"
}

@test "Two rpms of the same tree are identical byte for byte" {
	make_static rpm PACKAGE_VERSION=0.9
	cmp "$RPM" "$O/mxbpf-0.9-1.x86_64.rpm"
	rm "$O/mxbpf-0.9-1.x86_64.rpm"
}

@test "An address that nobody else can write to is no maintainer of a package" {
	expect_error 1 'is no name and address' env MAINTAINER='mxbpf developers <mxbpf@localhost>' "$REPO/share/maintainer.sh"
	expect_error 1 'is no name and address' env MAINTAINER=nobody "$REPO/share/maintainer.sh"
	expect_same 'A B <a@b.example>' "$(MAINTAINER='' DEBFULLNAME='A B' DEBEMAIL=a@b.example "$REPO/share/maintainer.sh")"
}
