#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs kernels for boot.sh as DIR/vmlinuz-SERIES, and a QEMU to boot them: Debian 12's own (7.2) crashes in every third
# boot of 6.12. Both come from Debian 12 and its backports, through the mirror that apt is configured for, with lists of their
# own, so the machine's configuration stays. DIR/lack has the reason while something is missing. Quick if all is there.
# usage: setup.sh DIR
set -euo pipefail
mkdir -p "$1"
cd "$1"
SERIES=(6.1 6.12)
APT=(-q -o "Dir::State::Lists=$PWD/apt")

qemu_works() {
	local version
	version=$(qemu-system-x86_64 --version 2>/dev/null | sed -n '1s/.* version \([0-9]*\).*/\1/p')
	((${version:-0} >= 8))
}

complete() {
	local series
	for series in "${SERIES[@]}"; do
		[[ -f vmlinuz-$series ]] || return 1
	done
	qemu_works
}

# shellcheck disable=SC2016 # $(...) is apt's
add_suites() {
	local have mirror suite
	mkdir -p apt/partial
	apt-get "${APT[@]}" update
	have=$(apt-get "${APT[@]}" indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)')
	mirror=$(awk '$1 !~ /-/ && $2 == "main" && !n++ { print $3 }' <<<"$have")
	[[ -n $mirror ]]
	cat /etc/apt/sources.list >sources.list 2>/dev/null || true
	for suite in bookworm bookworm-backports; do
		grep -q "^$suite " <<<"$have" ||
			echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >>sources.list
	done
	APT+=(-o "Dir::Etc::SourceList=$PWD/sources.list")
	apt-get "${APT[@]}" update
}

fetch_kernel() { # SERIES
	local package
	package=$(apt-cache "${APT[@]}" show linux-image-cloud-amd64 |
		sed -n "s/^Depends: \(linux-image-${1//./[.]}[.][^ ,]*\).*/\1/p" | sort -V | tail -n 1)
	[[ -n $package ]]
	apt-get "${APT[@]}" download "$package"
	dpkg -x "$package"_*.deb unpacked
	mv unpacked/boot/vmlinuz-* "vmlinuz-$1"
	rm -r unpacked "$package"_*.deb
}

if ! complete; then
	echo 'cannot install QEMU 8 or later, or the kernels to boot (output: deps/kernels.log)' >lack
	add_suites
	qemu_works || DEBIAN_FRONTEND=noninteractive \
		apt-get "${APT[@]}" -y --no-install-recommends -t bookworm-backports install qemu-system-x86
	qemu_works
	for series in "${SERIES[@]}"; do
		[[ -f vmlinuz-$series ]] || fetch_kernel "$series"
	done
	rm -rf apt sources.list
fi
rm -f lack
