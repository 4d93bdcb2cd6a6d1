#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks a PyTorch of PyPI for the tests: the wheel for CUDA without what only a GPU needs, for which stubs.py makes other libraries.
# Other packages are those of the tests' own PyTorch. wheel.py downloads what is left of the wheel once: nearly all
# 540 MB of the newest one, whose libtorch_cuda.so has the classes that now_job.bats needs, and 160 MB of any other.
#
# usage: tests/torch_next/setup.sh DIRECTORY PYTHON VERSION
#   DIRECTORY   gets bin/python
#   PYTHON      the Python of the tests' own PyTorch
#   VERSION     of PyTorch; next: the newest that the tests know, previous: the one before it
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
DIR=$1 PYTHON=$2 VERSION=$3
UNUSED='torch/(bin/protoc|include/|lib/libtorch_(cuda|nvshmem))'
[[ $VERSION != next ]] || UNUSED='torch/(bin/protoc|include/|lib/libtorch_cuda_linalg)'
declare -A KNOWN=([next]=2.15.0 [previous]=2.14.1)
VERSION=${KNOWN[$VERSION]:-$VERSION}
STAMP="$VERSION $(echo "$UNUSED" | cat - "$HERE"/*.py | cksum)"
# A machine's pip may have limits for versions of packages that it keeps; this is none of them.
export PIP_CONFIG_FILE=/dev/null PIP_CONSTRAINT='' PIP_CACHE_DIR=$DIR/cache

unpack() { # UNUSED
	"$PYTHON" "$HERE/wheel.py" "$1" "$VERSION" "$DIR/site" && return
	echo "downloading the whole wheel, because no part of it can be read"
	"$PYTHON" -m pip -q download --no-deps --only-binary :all: -d "$DIR/wheel" "torch==$VERSION"
	"$PYTHON" "$HERE/wheel.py" "$1" "$VERSION" "$DIR/site" "$DIR/wheel/torch-$VERSION"-*.whl
}

works() {
	python3 "$HERE/stubs.py" "$DIR/site/torch/lib" "$DIR/stubs"
	"$DIR/bin/python" -c "import torch, torch.distributed; assert torch.__version__.startswith('$VERSION')"
}

[[ -x $DIR/bin/python && $(cat "$DIR/stamp" 2>/dev/null) == "$STAMP" ]] && exit
trap '[[ -f $DIR/stamp ]] || rm -rf "${DIR:?}/bin"' EXIT # without it, tests are skipped
echo "unpacking PyTorch $VERSION under $DIR"
rm -rf "${DIR:?}/site" "$DIR/stubs" "${DIR:?}/bin" "$DIR/stamp"
mkdir -p "$DIR/bin"
cat >"$DIR/bin/python" <<-EOF
	#!/bin/sh
	export LD_LIBRARY_PATH="$DIR/stubs" PYTHONPATH="$DIR/site"
	exec "$PYTHON" "\$@"
EOF
chmod +x "$DIR/bin/python"
unpack "$UNUSED"
works || { # a new version may need more
	rm -rf "$DIR/stubs"
	unpack 'torch/(bin/protoc|include/)'
	works
}
rm -rf "$DIR/cache" "$DIR/wheel"
echo "$STAMP" >"$DIR/stamp"
