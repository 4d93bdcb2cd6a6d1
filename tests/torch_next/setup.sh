#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks the newest PyTorch of PyPI for the tests: the wheel for CUDA without NVIDIA's libraries, for which stubs.py makes others. Other
# packages are those of the tests' own PyTorch. Downloads some 540 MB once.
#
# usage: tests/torch_next/setup.sh DIRECTORY PYTHON [VERSION]
#   DIRECTORY   gets bin/python
#   PYTHON      the Python of the tests' own PyTorch
#   VERSION     another PyTorch than that of the tests
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
VERSION=${3:-2.15.0}
DIR=$1 PYTHON=$2

[[ -x $DIR/bin/python && $(cat "$DIR/stamp" 2>/dev/null) == "$VERSION $(cksum <"$HERE/stubs.py")" ]] && exit
echo "unpacking PyTorch $VERSION under $DIR"
rm -rf "${DIR:?}/site" "$DIR/stubs" "${DIR:?}/bin" "$DIR/stamp"
mkdir -p "$DIR/wheel" "$DIR/bin"
# A machine's pip may have limits for versions of packages that it keeps; this is none of them.
compgen -G "$DIR/wheel/torch-$VERSION-*.whl" >/dev/null ||
	PIP_CONFIG_FILE=/dev/null PIP_CONSTRAINT='' PIP_CACHE_DIR="$DIR/cache" "$PYTHON" -m pip -q download --no-deps --only-binary :all: -d "$DIR/wheel" "torch==$VERSION"
"$PYTHON" -m zipfile -e "$DIR/wheel/torch-$VERSION"-*.whl "$DIR/site"
rm -rf "$DIR/cache" "$DIR/wheel"
python3 "$HERE/stubs.py" "$DIR/site/torch/lib" "$DIR/stubs"
cat >"$DIR/bin/python" <<-EOF
	#!/bin/sh
	export LD_LIBRARY_PATH="$DIR/stubs" PYTHONPATH="$DIR/site"
	exec "$PYTHON" "\$@"
EOF
chmod +x "$DIR/bin/python"
"$DIR/bin/python" -c "import torch; assert torch.__version__.startswith('$VERSION')"
echo "$VERSION $(cksum <"$HERE/stubs.py")" >"$DIR/stamp"
