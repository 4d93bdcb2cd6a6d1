#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs kernels for boot.sh as DIR/vmlinuz-SERIES, and a QEMU to boot them: Debian 12's own (7.2) crashes in every third
# boot of 6.12. All come from Debian, from its present release and from older and newer ones, through the mirror that apt is
# configured for, with lists of their own, so the machine's configuration stays. DIR/lack has the reason while QEMU or a kernel
# that the tests need is missing. If the mirror has none of the other kernels, DIR/none-SERIES says so. Quick if all is there.
# usage: setup.sh DIR [all]     all: also those that only matrix.sh boots
set -euo pipefail
mkdir -p "$1"
cd "$1"
SERIES=(6.1 6.12) # without these the tests are skipped
MORE=(5.10 7.3)   # booted by the tests if they are there
[[ ${2:-} != all ]] || MORE+=(6.18)
declare -A SUITES=([6.1]=bookworm [6.12]=bookworm-backports [5.10]=bullseye [6.18]=trixie-backports [7.3]=trixie-backports)
APT=(-q -o "Dir::State::Lists=$PWD/apt")

qemu_works() {
	local version
	version=$(qemu-system-x86_64 --version 2>/dev/null | sed -n '1s/.* version \([0-9]*\).*/\1/p')
	((${version:-0} >= 8))
}

have() { # SERIES...
	local series
	for series; do
		[[ -f vmlinuz-$series ]] || return 1
	done
}

# shellcheck disable=SC2016 # $(...) is apt's
add_suites() { # SUITE...
	local have mirror suite
	mkdir -p apt/partial
	apt-get "${APT[@]}" update
	have=$(apt-get "${APT[@]}" indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)')
	mirror=$(awk '$1 !~ /-/ && $2 == "main" && !n++ { print $3 }' <<<"$have")
	[[ -n $mirror ]]
	cat /etc/apt/sources.list >sources.list 2>/dev/null || true
	for suite; do
		grep -q "^$suite " <<<"$have" ||
			echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >>sources.list
	done
	APT+=(-o "Dir::Etc::SourceList=$PWD/sources.list")
	apt-get "${APT[@]}" update
}

# Since 6.19 the kernel itself is in a package of its own.
fetch_kernel() { # SERIES SUITE
	local package
	package=$(apt-cache "${APT[@]}" pkgnames linux-image- | grep -E "^linux-image-${1//./[.]}[.][^-]*(-[0-9]+)?-cloud-amd64$" |
		sort -V | tail -n 1)
	[[ -n $package ]]
	package=$({ apt-cache "${APT[@]}" pkgnames "linux-binary${package#linux-image}" && echo "$package"; } | head -n 1)
	apt-get "${APT[@]}" download "$package"
	dpkg -x "$package"_*.deb unpacked
	find unpacked/boot unpacked/usr/lib/modules -name 'vmlinuz*' -exec mv {} "vmlinuz-$1" ';' 2>/dev/null || true
	echo "$2" >"package-$1"
	rm -r unpacked "$package"_*.deb
	[[ -f vmlinuz-$1 ]]
}

if ! have "${SERIES[@]}" || ! qemu_works; then
	echo 'cannot install QEMU 8 or later, or the kernels to boot (output: deps/kernels.log)' >lack
	add_suites bookworm bookworm-backports
	qemu_works || DEBIAN_FRONTEND=noninteractive \
		apt-get "${APT[@]}" -y --no-install-recommends -t bookworm-backports install qemu-system-x86
	qemu_works
	for series in "${SERIES[@]}"; do
		[[ -f vmlinuz-$series ]] || fetch_kernel "$series" "${SUITES[$series]}"
	done
fi
for series in "${MORE[@]}"; do
	[[ ! -f vmlinuz-$series && ! -f none-$series ]] || continue
	rm -rf apt sources.list
	APT=(-q -o "Dir::State::Lists=$PWD/apt")
	if ! add_suites "${SUITES[$series]}" || ! fetch_kernel "$series" "${SUITES[$series]}"; then
		echo "the mirror has no Linux $series" | tee "none-$series" >&2
	fi
done
rm -rf apt sources.list lack
