#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a CPython for musl from Debian's source as DIR/musl/python, with the modules that ../stacks.bats needs. Quick if it is
# there. Takes about two minutes.
# usage: setup_musl.sh DIR
set -euo pipefail
[[ ! -x $1/musl/python ]] || exit 0
command -v musl-gcc >/dev/null || { echo 'no musl-gcc: apt-get install musl-tools'; exit 0; }
mkdir -p "$1/musl/lists/partial"
cd -P "$1/musl"
APT=(-q -o "Dir::State::Lists=$PWD/lists" -o "Dir::Etc::SourceList=$PWD/sources.list" -o "Dir::Etc::SourceParts=/dev/null")
# shellcheck disable=SC2016 # $(...) is apt's
from=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' | awk '$1 !~ /-/ && $2 == "main" && !n++ { print $3 }')
[[ -n $from ]]
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from bookworm main" >sources.list
apt-get "${APT[@]}" update
apt-get "${APT[@]}" --download-only source python3.11
rm -rf source
mkdir source
tar -xzf python3.11_*.orig.tar.gz --strip-components=1 -C source
cd source
# musl-gcc tells the machine's own name of the platform, which is that of glibc.
# shellcheck disable=SC2016 # for that program
printf '#!/bin/sh\ncase "$*" in *--print-multiarch*) echo x86_64-linux-musl; exit ;; esac\nexec musl-gcc "$@"\n' >cc
chmod +x cc
cat >Modules/Setup.local <<'END'
*static*
select selectmodule.c
math mathmodule.c
array arraymodule.c
_struct _struct.c
_socket socketmodule.c
_posixsubprocess _posixsubprocess.c
_contextvars _contextvarsmodule.c
unicodedata unicodedata.c
END
./configure CC="$PWD/cc" CFLAGS='-O1 -g0' --without-ensurepip --disable-test-modules
make -j"$(nproc)" python
cd ..
# shellcheck disable=SC2016 # for that program
printf '#!/bin/sh\nsource=${0%%/*}/source\nPYTHONHOME=$source PYTHONPATH=$PYTHONPATH:$source/Lib exec "$source/python" "$@"\n' >python.new
chmod +x python.new
./python.new -c 'import asyncio, threading'
mv python.new python
rm -rf lists sources.list python3.11_*
