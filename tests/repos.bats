#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The repositories of packages, which apt and dnf take from their folder, signed by a key that is made for this test.

load helpers
load packages

setup_file() {
	[[ $(id -u) == 0 ]] || skip "needs root"
	local program
	for program in reprepro createrepo_c rpmsign dnf gpg; do
		command -v "$program" >/dev/null || { echo "$program is missing: run tests/setup.sh" >&2; return 1; }
	done
	export GNUPGHOME=$BATS_FILE_TMPDIR/gpg
	mkdir -m 700 "$GNUPGHOME"
	gpg --batch --quiet --passphrase '' --quick-gen-key 'mxbpf test <test@example.org>' rsa3072 sign never 3>&-
	KEY=$(gpg --batch --list-secret-keys --with-colons | awk -F : '$1 ~ /^fp/ { print $10; exit }')
	export KEY
	make_static repos KEY="$KEY" MAINTAINER='A Name <name@example.org>' URL=file:///tmp/repos || return 1
	mv "$O/repos" "$BATS_FILE_TMPDIR"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	cp -r "$BATS_FILE_TMPDIR/repos" .
}

teardown_file() {
	[[ -z ${GNUPGHOME:-} ]] || gpgconf --kill gpg-agent
}

# Changes the byte at the middle of a file.
change_byte() { # FILE
	python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    data = bytearray(f.read())
    data[len(data) // 2] ^= 1
    f.seek(0)
    f.write(data)' "$1"
}

@test "apt installs mxbpf from the repository, and refuses it after a byte of a signature, of the list or of the package has changed" {
	local changed package
	for changed in InRelease Packages package; do cp -r repos "$changed"; done
	change_byte InRelease/apt/dists/stable/InRelease
	for package in Packages/apt/dists/stable/main/binary-amd64/Packages*; do change_byte "$package"; done
	change_byte package/apt/pool/main/m/mxbpf/mxbpf_*.deb
	# shellcheck disable=SC2016 # for that shell
	on_a_copy '
		rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists
		mkdir -p /etc/apt/keyrings
		cp repos/mxbpf.asc /etc/apt/keyrings
		cp repos/mxbpf.sources /etc/apt/sources.list.d
		cp -r repos good
		install() { apt-get -q -y -o DPkg::Options::=--no-triggers install mxbpf; }
		use() { rm -rf repos /var/lib/apt/lists && cp -r "$1" repos; }
		update() { apt-get -q -o APT::Update::Error-Mode=any update; }
		for changed in InRelease Packages; do
			use "$changed"
			if update; then exit 1; fi
			if install; then exit 1; fi
		done
		use package
		update
		if install; then exit 1; fi
		[[ ! -e /usr/bin/mxbpf ]]
		use good
		update
		install
		[[ $(mxbpf --version) == "mxbpf "* ]]
		[[ $(dpkg-query -W -f "\${Maintainer}" mxbpf) == "A Name <name@example.org>" ]]
		rm /etc/apt/keyrings/mxbpf.asc
		if update; then exit 1; fi
	' InRelease Packages package repos >log 2>&1 || { cat log; return 1; }
	cat log
	grep -q 'Hash Sum mismatch' log
	grep -q 'NO_PUBKEY' log
}

# Installs mxbpf into an empty root. It says what dnf has said.
with_dnf() { # REPOSITORIES
	local top=$PWD
	rm -rf root conf && mkdir root conf
	sed "s|file:///tmp/repos|file://${top// /%20}/$1|" repos/mxbpf.repo >conf/mxbpf.repo
	dnf -y --installroot="$top/root" --releasever=9 --setopt=reposdir="$top/conf" --setopt=plugins=0 install mxbpf 2>&1
}

@test "dnf installs mxbpf from the repository into an empty root, and refuses an unsigned or changed package and a changed list" {
	local status
	with_dnf repos
	[[ $(root/usr/bin/mxbpf --version) == "mxbpf "* ]]
	[[ $(rpm -qp --qf '%{PACKAGER}' repos/rpm/*.rpm 2>/dev/null) == "A Name <name@example.org>" ]]

	# The list has a valid signature, but the package has none.
	cp -r repos unsigned
	rpmsign --define "__gpg $(command -v gpg)" --delsign unsigned/rpm/*.rpm
	createrepo_c --quiet unsigned/rpm
	rm -f unsigned/rpm/repodata/repomd.xml.asc
	gpg --batch --local-user "$KEY" --armor --detach-sign unsigned/rpm/repodata/repomd.xml 3>&-
	status=0 && with_dnf unsigned >said || status=$?
	cat said
	((status == 1)) && [[ ! -e root/usr/bin/mxbpf ]]
	grep -q 'is not signed' said

	cp -r repos changed
	change_byte changed/rpm/*.rpm
	status=0 && with_dnf changed >said || status=$?
	cat said
	((status == 1)) && [[ ! -e root/usr/bin/mxbpf ]]
	grep -q "checksum" said

	cp -r repos list
	sed -i 's/<revision>/<revision>1/' list/rpm/repodata/repomd.xml
	status=0 && with_dnf list >said || status=$?
	cat said
	((status == 1)) && [[ ! -e root/usr/bin/mxbpf ]]
	grep -qi 'signature' said
}

@test "No repository is made without a key that can sign and a maintainer whom others can write to" {
	local address
	refused() { # REGEX COMMAND...
		expect_run 2 env -u KEY "${@:2}"
		[[ ${lines[0]} =~ ^"repos: error: "$1 ]]
	}
	refused 'KEY and MAINTAINER are needed' make -s -C "$REPO" --no-print-directory O="$PWD/none" repos KEY="$KEY"
	((${#lines[@]} == 2)) # the second one is of make
	refused 'KEY and MAINTAINER are needed' MAINTAINER='A Name <name@example.org>' "$REPO/share/repos.sh" none
	for address in 'root <root@localhost>' 'A <a@host.localdomain>' name@example.org 'A Name'; do
		expect_run 2 env KEY="$KEY" MAINTAINER="$address" "$REPO/share/repos.sh" none
		[[ ${lines[0]} == "maintainer: error: '$address' is no name and address that others can write to"* ]]
	done
	refused 'gpg has no secret key' KEY=0123456789ABCDEF MAINTAINER='A Name <name@example.org>' "$REPO/share/repos.sh" none
	[[ ! -e none ]]
}
