#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs other CPythons for ../stacks.bats and ../agent_script.bats as DIR/VERSION/python. They are Debian's other releases,
# unpacked, through the mirror that apt is configured for, with lists of their own, so the machine's configuration stays. Quick
# if all is there.
# Debian has no free-threaded ones. They are built from its source packages, in 2 minutes of CPU time each, where the mirror has them.
# usage: setup.sh DIR
set -euo pipefail
mkdir -p "$1"
cd -P "$1"
APT=(-q -o "Dir::State::Lists=$PWD/apt" -o "Dir::Etc::SourceList=$PWD/sources.list" -o "Dir::Etc::SourceParts=/dev/null")
VERSIONS=(3.9 3.13 3.14 3.15)
FREE_THREADED=(3.13t 3.14t)
declare -A SUITE=([3.9]=bullseye [3.13]=trixie [3.14]=forky [3.15]=forky [3.13t]=trixie [3.14t]=forky)
# A newer release needs its own C library. An older one runs with this machine's.
declare -A LIBRARIES=([3.9]='libffi7 libssl1.1' [3.13]='libc6 libgcc-s1 libstdc++6 libffi8 libssl3t64 libexpat1 zlib1g'
	[3.14]='libc6 libgcc-s1 libstdc++6 libffi8 libssl3t64 libexpat1 zlib1g'
	[3.15]='libc6 libgcc-s1 libstdc++6 libffi8 libssl3t64 libexpat1 zlib1g')
# Modules that no test needs.
WITHOUT=(py_cv_module_{_blake2,_bz2,_codecs_{cn,hk,iso2022,jp,kr,tw},_csv,_curses,_curses_panel,_dbm,_decimal,_elementtree}"=n/a"
	py_cv_module_{_gdbm,_hashlib,_hmac,_interpchannels,_interpqueues,_interpreters,_lsprof,_lzma,_md5,_multibytecodec}"=n/a"
	py_cv_module_{_remote_debugging,_sha1,_sha3,_sqlite3,_ssl,_statistics,_tkinter,_uuid,_zoneinfo,_zstd}"=n/a"
	py_cv_module_{cmath,pyexpat,readline,syslog,xxsubtype}"=n/a")

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
	for version in "${FREE_THREADED[@]}"; do
		echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from ${SUITE[$version]} main"
	done | sort -u >>sources.list
	apt-get "${APT[@]}" update || echo 'the mirror has no sources'
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

build() { # VERSION
	rm -rf "$1" && mkdir -p "$1/source" && (
		cd "$1/source" &&
			apt-get "${APT[@]}" source --download-only --tar-only "python${1%t}/${SUITE[$1]}" &&
			tar -xf ./*.orig.tar.xz --strip-components=1 && touch ../tried &&
			./configure -q --disable-gil --with-ensurepip=no --disable-test-modules OPT=-O1 "${WITHOUT[@]}" &&
			env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL nice make -s -j2 python sharedmods &&
			cp -rL build .. && rm -r Lib/test && mv Lib pybuilddir.txt python .. && ../python -c 'import asyncio, ctypes, threading'
	) && rm -r "$1/source" "$1/tried"
}

for version in "${VERSIONS[@]}"; do
	[[ ! -x $version/python ]] || continue
	[[ -f sources.list ]] || add_lists
	unpack "$version"
	starter "$version"
done
for version in "${FREE_THREADED[@]}"; do
	[[ ! -x $version/python ]] || continue
	if [[ ! -e $version/failed ]]; then
		[[ -f sources.list ]] || add_lists
		build "$version" || { [[ ! -e $version/tried ]] || touch "$version/failed"; rm -rf "$version/source" "$version/python"; }
	fi
	[[ -x $version/python ]] || echo "CPython $version could not be built; to try again: rm -r $PWD/$version"
done
rm -rf apt sources.list
