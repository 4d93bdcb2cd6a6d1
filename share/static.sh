#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names a static library that is missing, and puts those into DIR that Debian's packages lack: libcjson.a, libZydis.a and
# libmicrohttpd.a. The last one is without TLS: that of Debian needs GnuTLS, which has no static library. The script compiles them
# from Debian's source packages, which apt-get downloads through the mirror that this machine is configured for, with lists of its
# own. Quick if they are there, so they can also be put there by hand.
# usage: share/static.sh DIR
set -euo pipefail
mkdir -p "$1"
cd -P "$1"
CC=${CC:-cc}
ARCHIVES=(libcjson.a libZydis.a libmicrohttpd.a)
declare -A SOURCE=([libcjson.a]=cjson [libZydis.a]=zydis [libmicrohttpd.a]=libmicrohttpd)
declare -A HEADER=([libcjson.a]=cJSON.h [libZydis.a]=Zydis/Zydis.h [libmicrohttpd.a]=microhttpd.h)
declare -A PACKAGE=([bpf]=libbpf-dev [elf]=libelf-dev [dw]=libdw-dev [z]=zlib1g-dev [bz2]=libbz2-dev [lzma]=liblzma-dev [zstd]=libzstd-dev)
APT=(-q -o "Dir::State::Lists=$PWD/apt" -o "Dir::Etc::SourceList=$PWD/sources.list" -o "Dir::Etc::SourceParts=/dev/null"
	-o APT::Sandbox::User=root)

die() {
	printf 'static: error: %s\n' "$*" >&2
	exit 1
}

have() { # LIBRARY: here, or where the compiler finds it
	local found
	[[ ! -s $1 ]] || return 0
	found=$($CC -print-file-name="$1")
	[[ $found == */* ]] && { [[ $1 != libmicrohttpd.a ]] || ! grep -q gnutls_ "$found"; }
}

# shellcheck disable=SC2016 # $(...) is apt's
add_lists() {
	local lists
	lists=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' |
		awk '$1 !~ /-/ && $2 == "main" && !n++ { print $3, $1, "main" }')
	[[ -n $lists ]]
	mkdir -p apt/partial
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $lists" >sources.list
	apt-get "${APT[@]}" update
}

unpack() { # SOURCE_PACKAGE DIRECTORY
	rm -rf "$2" && mkdir "$2"
	(cd "$2" && apt-get "${APT[@]}" source --download-only "$1" && tar -xf ./*.orig.tar.* --strip-components=1)
}

# The sources must be of the version whose header mxbpf includes.
same_header() { # HEADER DIRECTORY
	local ours
	ours=$(echo "#include <$1>" | $CC -E -I/usr/include/cjson -M - | tr ' ' '\n' | grep "/$1\$")
	cmp -s "$ours" "$(find "$2" -path "*/$1" | head -n 1)"
}

# Its own build compiles it, because it configures much. The parts that mxbpf does not use are left out. It refuses a path with a
# blank.
compile_http() { # ARCHIVE DIRECTORY
	local at flags
	at=$(mktemp -d)
	flags="-O2 -fPIE -ffile-prefix-map=$at/="
	cp -a "$2"/. "$at"
	(cd "$at" && ./configure -q CC="$CC" CFLAGS="$flags" --disable-shared --disable-https --disable-curl --disable-doc --disable-examples \
		--disable-nls --disable-messages --disable-postprocessor --disable-dauth --disable-bauth --disable-httpupgrade >/dev/null &&
		env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C src/microhttpd LIBTOOLFLAGS=--silent libmicrohttpd.la)
	mv "$at/src/microhttpd/.libs/$1" "$1"
	rm -rf "$at"
}

compile() { # ARCHIVE DIRECTORY
	local c sources=("$2"/src/*.c)
	[[ $1 != libmicrohttpd.a ]] || { compile_http "$@"; return; }
	[[ $1 != libcjson.a ]] || sources=("$2/cJSON.c")
	mkdir "$2/o"
	for c in "${sources[@]}"; do
		$CC -O2 -fPIE -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD -I"$2/include" -I"$2/src" -ffile-prefix-map="$PWD/"= -c "$c" \
			-o "$2/o/$(basename "$c" .c).o"
	done
	ar rcsD "$1.new" "$2"/o/*.o
	mv "$1.new" "$1"
}

for library in $("${PKG_CONFIG:-pkg-config}" --static --libs libbpf libelf libdw | grep -o -- '-l[a-z0-9]*' | cut -c 3- | sort -u); do
	[[ -z ${PACKAGE[$library]:-} ]] || have "lib$library.a" || die "lib$library.a is missing: apt-get install ${PACKAGE[$library]}"
done
for archive in "${ARCHIVES[@]}"; do
	have "$archive" && continue
	source=${SOURCE[$archive]}
	by_hand="to build without it, put $archive into $PWD"
	command -v apt-get >/dev/null || die "$archive is missing, and this is not a Debian system; $by_hand"
	{ { [[ -f sources.list ]] || add_lists; } && unpack "$source" "$source"; } >apt.log 2>&1 ||
		{ tail -n 5 apt.log >&2; rm -f sources.list; die "cannot download Debian's source package $source (output: $PWD/apt.log); $by_hand"; }
	same_header "${HEADER[$archive]}" "$source" ||
		die "Debian's source package $source is not of the version that is installed; $by_hand"
	compile "$archive" "$source"
	rm -rf "$source"
done
