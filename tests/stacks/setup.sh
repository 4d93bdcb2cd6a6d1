#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs other CPythons for ../stacks.bats and ../agent_script.bats as DIR/VERSION/python. They are Debian's other releases,
# unpacked, through the mirror that apt is configured for, with lists of their own, so the machine's configuration stays. Quick
# if all is there.
# usage: setup.sh DIR
# Tests use a free-threaded build if somebody has put one at DIR/3.14t/python. No release of Debian has it.
set -euo pipefail
mkdir -p "$1"
cd -P "$1"
APT=(-q -o "Dir::State::Lists=$PWD/apt" -o "Dir::Etc::SourceList=$PWD/sources.list" -o "Dir::Etc::SourceParts=/dev/null")
VERSIONS=(3.9 3.13 3.14 3.15)
declare -A SUITE=([3.9]=bullseye [3.13]=trixie [3.14]=forky [3.15]=forky)
# A newer release needs its own C library. An older one runs with this machine's.
declare -A LIBRARIES=([3.9]='libffi7 libssl1.1' [3.13]='libc6 libgcc-s1 libstdc++6 libffi8 libssl3t64 libexpat1 zlib1g'
	[3.14]='libc6 libgcc-s1 libstdc++6 libffi8 libssl3t64 libexpat1 zlib1g'
	[3.15]='libc6 libgcc-s1 libstdc++6 libffi8 libssl3t64 libexpat1 zlib1g')

# shellcheck disable=SC2016 # $(...) is apt's
mirror() {
	apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' | awk '$1 !~ /-/ && $2 == "main" && !n++ { print $3 }'
}

add_lists() {
	local from version
	from=$(mirror)
	[[ -n $from ]]
	mkdir -p apt/partial
	for version in "${VERSIONS[@]}"; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from ${SUITE[$version]} main"
	done | sort -u >sources.list
	apt-get "${APT[@]}" update
}

unpack() { # VERSION
	local version=$1 package packages
	read -ra packages <<<"python$version-minimal libpython$version-minimal libpython$version-stdlib ${LIBRARIES[$version]}"
	mkdir -p "$version/tree"
	for package in "${packages[@]}"; do
		(cd "$version" && apt-get "${APT[@]}" download "$package/${SUITE[$version]}")
		dpkg -x "$version/$package"_*.deb "$version/tree"
		rm "$version/$package"_*.deb
	done
}

# Writes a program that finds its files beside it, because the tests also run where the folder has another name.
starter() { # VERSION
	local lib=usr/lib/x86_64-linux-gnu start="\"\$tree/usr/bin/python$1\"" env="PYTHONHOME=\"\$tree/usr\""
	if [[ -e $1/tree/$lib/ld-linux-x86-64.so.2 ]]; then
		start="\"\$tree/$lib/ld-linux-x86-64.so.2\" --library-path \"\$tree/$lib\" $start"
	else
		env+=" LD_LIBRARY_PATH=\"\$tree/$lib\""
	fi
	# shellcheck disable=SC2016 # for that program
	printf '#!/bin/sh\ntree=${0%%/*}/tree\nexec env %s %s "$@"\n' "$env" "$start" >"$1/python.new"
	chmod +x "$1/python.new"
	"$PWD/$1/python.new" -c 'import asyncio, ctypes, threading'
	mv "$1/python.new" "$1/python"
}

for version in "${VERSIONS[@]}"; do
	[[ ! -x $version/python ]] || continue
	[[ -f sources.list ]] || add_lists
	unpack "$version"
	starter "$version"
done
rm -rf apt sources.list
