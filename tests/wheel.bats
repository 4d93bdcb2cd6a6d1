#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The wheel, as the installers of Python install it. Nothing is downloaded.

load helpers

setup_file() {
	make_static wheel || return 1
	mv "$O"/mxbpf-*.whl "$BATS_FILE_TMPDIR"
}

setup() {
	INSTALL=$O/deps/install/bin
	[[ -x $INSTALL/uv ]] || { echo "no uv at $INSTALL: run tests/setup.sh" >&2; return 1; }
	WHEEL=$(echo "$BATS_FILE_TMPDIR"/mxbpf-*.whl)
	VERSION=$(<"$REPO/VERSION")
	export HOME=$BATS_TEST_TMPDIR PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_OFFLINE=1 UV_NO_INDEX=1 UV_CACHE_DIR=$BATS_TEST_TMPDIR/uv
	cd "$BATS_TEST_TMPDIR" || return 1
}

# Succeeds if an installed program has the version of this tree.
runs() { # PROGRAM
	[[ $("$1" --version) == "mxbpf $VERSION" ]]
}

@test "pip installs the wheel, also that of Ubuntu 22.04, Rocky 9 and Amazon Linux 2023, and pipx and uv install it" {
	local version
	python3 -m venv new
	new/bin/pip -q install "$WHEEL"
	runs new/bin/mxbpf
	new/bin/python -c "import mxbpf"
	[[ $(new/bin/python -m mxbpf --version) == "mxbpf $VERSION" ]]
	for version in 21.3.1 22.0.2; do
		"$INSTALL/uv" -q venv --python python3 "old-$version"
		"$INSTALL/uv" -q pip install --python "old-$version" --find-links "$O/deps/wheels" "pip==$version"
		[[ $("old-$version/bin/pip" --version) == "pip $version "* ]]
		"old-$version/bin/pip" -q install "$WHEEL"
		runs "old-$version/bin/mxbpf"
	done
	PIPX_HOME=$PWD/pipx PIPX_BIN_DIR=$PWD/bin "$INSTALL/pipx" install --python "$(command -v python3)" "$WHEEL"
	runs bin/mxbpf
	cmp "$O/mxbpf.1" pipx/venvs/mxbpf/share/man/man1/mxbpf.1
	cmp "$REPO/share/skill/SKILL.md" pipx/venvs/mxbpf/share/mxbpf/SKILL.md
	[[ $("$INSTALL/uvx" --from "$WHEEL" mxbpf --version) == "mxbpf $VERSION" ]]
}

@test "The wheel fits Alpine and glibc 2.17 and later, and no other kind of machine" {
	local platform
	fits() { "$INSTALL/uv" -q pip install --no-deps --find-links "$BATS_FILE_TMPDIR" --python-platform "$1" --target "$1" mxbpf; }
	for platform in x86_64-unknown-linux-musl x86_64-manylinux_2_17 x86_64-manylinux_2_28 x86_64-unknown-linux-gnu; do
		fits "$platform"
	done
	for platform in aarch64-unknown-linux-gnu aarch64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-msvc; do
		expect_error 1 'no wheels with a matching platform tag' fits "$platform"
	done
}

@test "The wheel has the stripped static program, the sums of all files, valid metadata, the licences and the list of what is linked" {
	local info
	"$INSTALL/wheel" unpack "$WHEEL" # it checks the sums
	info=mxbpf-$VERSION/mxbpf-$VERSION.dist-info
	cmp "mxbpf-$VERSION/mxbpf-$VERSION.data/scripts/mxbpf" "$O/portable/mxbpf"
	run ! grep -E 'INTERP|NEEDED' <(readelf -ldW "$O/portable/mxbpf")
	run ! grep -F .symtab <(readelf -SW "$O/portable/mxbpf")
	"$INSTALL/python" - "$info" <<-'EOF'
		import os, sys
		from packaging import metadata
		from packaging.metadata import Metadata
		info = sys.argv[1]
		meta = Metadata.from_email(open(info + '/METADATA', 'rb').read(), validate=True)
		assert meta.name == 'mxbpf' and meta.license_expression
		assert sorted(meta.license_files) == sorted(os.listdir(info + '/licenses')), meta.license_files
		assert '](docs' not in meta.description and len(meta.description) > 3000
	EOF
	"$O/deps/share/bin/pyspdxtools" -i "$info/sboms/mxbpf.spdx.json"
	[[ $(jq -r '.files[0].checksums[] | select(.algorithm == "SHA256").checksumValue' "$info/sboms/mxbpf.spdx.json") == \
		"$(sha256sum <"$O/portable/mxbpf" | cut -c -64)" ]]
	# Each library that is linked statically has a licence.
	jq -r '[.relationships[] | select(.relationshipType == "STATIC_LINK").relatedSpdxElement] as $ids
		| .packages[] | select(.SPDXID | IN($ids[])).name' "$info/sboms/mxbpf.spdx.json" | while read -r library; do
		[[ $library == flatcc ]] || ls "$info/licenses" | grep -F "$library"
	done
}

@test "Two wheels of the same tree are identical byte for byte" {
	make_static wheel
	cmp "$WHEEL" "$O"/mxbpf-*.whl
	rm "$O"/mxbpf-*.whl
}

@test "From an empty environment it is two commands to the table of a running job" {
	need_root
	start_toy 200 3
	"$INSTALL/uv" -q venv --python python3 env
	"$INSTALL/uv" -q pip install --python env "$WHEEL"
	MXBPF=$PWD/env/bin/mxbpf
	start_mxbpf --pid "$READY_PID" --api all --format json
	end_ready
	same_counts "$(out toy)" "$(out mxbpf)"
}

@test "Who may not attach is told the command that sudo finds" {
	need_root
	mkdir bin
	cp "$MXBPF" bin
	chmod 711 . # for the other user
	expect_error 4 "use sudo $PWD/bin/mxbpf\$" env PATH="$PWD/bin:$PATH" setpriv --reuid 65534 --clear-groups mxbpf --pid $$
}
