#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints who maintains the packages, as "Name <address>": MAINTAINER, or DEBFULLNAME and DEBEMAIL as Debian's tools have them, or the
# author of the last commit. Whoever uses a package writes to this address, so it cannot be one of the machine itself.
set -euo pipefail
who=${MAINTAINER:-}
[[ -n $who || -z ${DEBEMAIL:-} ]] || who="${DEBFULLNAME:-mxbpf} <$DEBEMAIL>"
[[ -n $who ]] || who=$(git -C "$(dirname "$0")" -c safe.directory='*' log -1 --format='%an <%ae>' 2>/dev/null) || true
[[ $who =~ ^[^\<\>]+' <'[^\<\>@[:space:]]+@([A-Za-z0-9-]+[.])+[A-Za-z]{2,}'>'$ && ! $who =~ [@.](localdomain|localhost|local|invalid)'>'$ ]] || {
	echo "maintainer: error: '$who' is no name and address that others can write to; say MAINTAINER='Name <name@example.org>'" >&2
	exit 1
}
printf '%s\n' "$who"
