#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the licences of the libraries that are linked into a binary, vendored or built into its page to DIR. The binary's list of
# what is linked (share/sbom.py) names the Debian packages, whose copyright files are copied, with the texts that these only name,
# because each Debian has them.
# usage: share/licences.sh SPDX DIR
set -euo pipefail
REPO=$(realpath "$(dirname "$0")/..")
SPDX=$1 DIR=$2

python3 -c 'import json, sys
spdx = json.load(sys.stdin)
linked = {r["relatedSpdxElement"] for r in spdx["relationships"] if r["relationshipType"] == "STATIC_LINK"}
print("\n".join(p["name"] for p in spdx["packages"] if p["SPDXID"] in linked))' <"$SPDX" | while read -r package; do
	file=/usr/share/doc/$package/copyright
	[[ ! -e $file ]] || install -D -m 644 "$file" "$DIR/$package"
done
for file in "$REPO"/share/page/vendor/*LICENSE* "$REPO"/vendor/*/*LICENSE* "$REPO"/vendor/*/*NOTICE*; do
	install -D -m 644 -T "$file" "$DIR/$(basename "$(dirname "$file")")-$(basename "$file")"
done
grep -hoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$DIR"/* | sort -u | while read -r file; do
	[[ ! -f $file ]] || install -m 644 "$file" "$DIR"
done
install -m 644 "$REPO/LICENSE" "$DIR"
