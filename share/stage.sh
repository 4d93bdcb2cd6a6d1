#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adds to what `make install PREFIX=/usr` has put into STAGE what packages have besides: the stripped program, the configuration of
# the service, the documentation, the licences, and the list of what is linked.
# usage: share/stage.sh STAGE BINARY VERSION     environment: SOURCE_DATE_EPOCH
set -euo pipefail
STAGE=$1 BINARY=$2 VERSION=$3
REPO=$(realpath "$(dirname "$0")/..")
DOC=$STAGE/usr/share/doc/mxbpf

install -m 755 "$BINARY" "$STAGE/usr/bin/mxbpf"
# The list of what is linked has the sums of the file that is installed.
strip --strip-unneeded --remove-section=.comment "$STAGE/usr/bin/mxbpf"
install -D -m 644 "$REPO/share/serve/serve.conf" "$STAGE/etc/mxbpf/serve.conf"
gzip -9 -n "$STAGE/usr/share/man/man1/mxbpf.1"
mkdir -p "$DOC"
"$REPO/share/sbom.py" "$BINARY" "$VERSION" "$STAGE/usr/bin/mxbpf" >"$DOC/mxbpf.spdx.json"
install -D -m 644 -t "$DOC/docs" "$REPO"/docs/*.md
install -m 644 "$REPO/README.md" "$REPO/CHANGELOG.md" "$DOC"
"$REPO/share/licences.sh" "$DOC/mxbpf.spdx.json" "$DOC/licences"
chmod -R u=rwX,go=rX "$STAGE"
