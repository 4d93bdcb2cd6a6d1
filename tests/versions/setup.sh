#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks other versions of MXNet under DIRECTORY. PYTHONPATH=DIRECTORY/VERSION selects one for the tests' own Python: the
# wheels are pure Python plus one library. Names versions that cannot be downloaded; the tests on them are skipped.
# usage: tests/versions/setup.sh DIRECTORY PYTHON
set -euo pipefail
DIR=$1 PYTHON=$2

# package, version, the part to unpack: "all", or one file. user/adapter/mxnet.c has their build-ids.
VERSIONS=(
	"mxnet 2.0.0b1 all"
	"mxnet 1.8.0.post0 all"
	"mxnet 1.7.0.post2 all"
	"mxnet-mkl 1.6.0 all"
	"mxnet 1.6.0 all"
	"mxnet 1.5.1.post0 all"
	"mxnet-cu112 1.9.1 mxnet/libmxnet.so"
)

# The name of a version in DIRECTORY and in the tests.
label() { [[ $1 == mxnet ]] && echo "$2" || echo "${1#mxnet-}-$2"; }

download() { # PACKAGE VERSION
	"$PYTHON" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: \
		--python-version 3.8 --platform manylinux2014_x86_64 --platform manylinux1_x86_64 --platform any \
		-d "$DIR/wheels" "$1==$2"
}

unpack() { # WHEEL FILE DIRECTORY
	"$PYTHON" - "$@" <<-'EOF'
		import sys, zipfile
		wheel, wanted, to = sys.argv[1:]
		with zipfile.ZipFile(wheel) as z:
		    z.extractall(to, [n for n in z.namelist() if wanted in ('all', n)])
	EOF
}

get() { # PACKAGE VERSION FILE
	local to
	to=$DIR/$(label "$1" "$2")
	[[ -f $to/stamp ]] && return 0
	rm -rf "$to"
	wheel() { find "$DIR/wheels" -name "${1//-/_}-$2-*.whl" 2>/dev/null | head -n 1; }
	[[ -n $(wheel "$@") ]] || download "$1" "$2" || return 1
	unpack "$(wheel "$@")" "$3" "$to" && touch "$to/stamp"
	[[ $3 == all ]] || rm -f "$(wheel "$@")" # it is larger than all the others together
}

mkdir -p "$DIR/wheels"
for v in "${VERSIONS[@]}"; do
	read -r package version file <<<"$v"
	get "$package" "$version" "$file" || echo "skipping the tests on $package $version: download failed" >&2
done
