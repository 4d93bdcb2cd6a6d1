#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The Debian package with its service and its list of what is linked. dpkg installs it into a copy-on-write view of this machine, so that the
# package's dependencies are judged by the real database, and the machine stays as it is.

load helpers
load packages

setup_file() {
	local arch
	[[ $(id -u) == 0 ]] || skip "needs root"
	command -v dpkg-shlibdeps >/dev/null || skip "not a Debian system, or dpkg-dev is missing"
	cd "$BATS_FILE_TMPDIR" || return 1
	arch=$(dpkg --print-architecture)
	make_static deb PACKAGE_VERSION=0.9 || return 1
	mv "$O/mxbpf_0.9_$arch.deb" 0.9.deb || return 1
	dpkg-deb -R 0.9.deb newer && sed -i 's/^Version: 0.9$/Version: 0.10/' newer/DEBIAN/control && dpkg-deb -Zgzip -b newer 0.10.deb
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	DEB=$BATS_FILE_TMPDIR/0.9.deb NEWER=$BATS_FILE_TMPDIR/0.10.deb
}

@test "The package is installed, runs, is upgraded, removed and purged, and leaves nothing" {
	# shellcheck disable=SC2016 # for that shell
	on_a_copy '
		install() { dpkg --no-triggers "$@"; }
		install -i 0.9.deb
		[[ $(mxbpf --version) == "mxbpf "* && $(command -v mxbpf) == /usr/bin/mxbpf ]]
		mxbpf check >/dev/null || (($? == 4))
		if [[ -x /usr/bin/systemd-analyze ]]; then
			[[ -z $(systemd-analyze verify --man=no /lib/systemd/system/mxbpf-serve.service 2>&1) ]] # it succeeds with warnings
			systemd-analyze security --offline=yes --threshold=35 /lib/systemd/system/mxbpf-serve.service >/dev/null
		fi
		gzip -t /usr/share/man/man1/mxbpf.1.gz
		for file in alerts.yml grafana.json report.schema.json; do [[ -s /usr/share/mxbpf/$file ]]; done
		bash -n /usr/share/bash-completion/completions/mxbpf
		[[ $(<called) == "systemctl --system daemon-reload" ]] # neither enabled nor started
		[[ ! -e /etc/systemd/system/multi-user.target.wants/mxbpf-serve.service ]]
		rm called

		echo interval=5s >>/etc/mxbpf/serve.conf
		: >active
		install -i 0.10.deb
		[[ $(dpkg-query -W -f "\${Version}" mxbpf) == 0.10 ]]
		grep -qx interval=5s /etc/mxbpf/serve.conf
		grep -qx "deb-systemd-invoke restart mxbpf-serve.service" called
		rm called

		mkdir -p /var/lib/prometheus/node-exporter /var/lib/mxbpf /etc/systemd/system/multi-user.target.wants
		: >/var/lib/prometheus/node-exporter/mxbpf.prom
		: >/var/lib/mxbpf/mxbpf-20261126T031207Z-hang.mxd
		ln -s /lib/systemd/system/mxbpf-serve.service /etc/systemd/system/multi-user.target.wants
		install -r mxbpf
		[[ $(head -n 1 called) == "deb-systemd-invoke stop mxbpf-serve.service" && $(tail -n 1 called) == *daemon-reload ]]
		[[ ! -e /usr/bin/mxbpf && ! -e /var/lib/prometheus/node-exporter/mxbpf.prom ]]
		grep -qx interval=5s /etc/mxbpf/serve.conf
		[[ -e /var/lib/mxbpf ]]
		install -P mxbpf
	' "$DEB" "$NEWER"
	grep -v -e ^var/lib/dpkg/ -e ^var/log/dpkg[.]log$ left | expect_nothing
}

need_checkers() {
	[[ -x $O/deps/share/bin/pyspdxtools ]] && return 0
	echo "no SPDX tools at $O/deps/share: run tests/setup.sh" >&2
	return 1
}

# Names of packages with a relationship to mxbpf.
related() { # RELATIONSHIP FILE
	jq -r --arg how "$1" '[.relationships[] | select(.relationshipType == $how and .spdxElementId == "SPDXRef-Package-mxbpf").relatedSpdxElement] as $ids
		| .packages[] | select(.SPDXID | IN($ids[])).name' "$2" | sort
}

@test "The list of what is linked is SPDX, and has what the linker took, what is vendored and the sums of the installed file" {
	local list=root/usr/share/doc/mxbpf/mxbpf.spdx.json sum needed
	need_checkers
	dpkg-deb -x "$DEB" root
	"$O/deps/share/bin/pyspdxtools" -i "$list"
	needed=$(readelf -dW root/usr/bin/mxbpf | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r sum; do
		dpkg-query -S "*/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/$sum" | cut -d : -f 1 | head -n 1
	done | sort -u)
	expect_same "$needed" "$(related DYNAMIC_LINK "$list")"
	related STATIC_LINK "$list" >static
	grep -qx libiberty-dev static
	(cd "$REPO/vendor" && printf '%s\n' */) | tr -d / | comm -23 - static | expect_nothing
	[[ $(related CONTAINS "$list" | wc -l) == "$(jq '.components | length' "$REPO/share/page/sbom.cdx.json")" ]]
	sum=$(sha256sum <root/usr/bin/mxbpf | cut -c -64)
	jq -e --arg sum "$sum" '.files[0].checksums | any(.checksumValue == $sum)' "$list"
	jq -e 'all(.packages[]; .licenseDeclared != "NOASSERTION")' "$list"
}

@test "Two packages of the same tree are identical byte for byte" {
	make_static deb PACKAGE_VERSION=0.9
	cmp "$DEB" "$O"/mxbpf_0.9_*.deb
	rm "$O"/mxbpf_0.9_*.deb
}

@test "mxbpf accepts the options of the service" {
	# Each option, also those that are comments.
	sed -n -e 's|/var/lib/[a-z/-]*|./|; s|/run/mxbpf/||; s/^#*\([a-z-]* = \)/\1/p' "$REPO/share/serve/serve.conf" >serve.conf
	cat serve.conf
	(($(wc -l <serve.conf) == 8))
	expect_run 3 timeout 60 "$MXBPF" serve --config serve.conf --pid 4194304
}
