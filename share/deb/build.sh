#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes O/mxbpf_VERSION_ARCH.deb of what `make install` has put into O/deb. `make deb` runs it. debhelper would do no more for a
# single binary, and need as many lines. The package of the static binary depends on no other.
# usage: share/deb/build.sh O BINARY VERSION     environment: SOURCE_DATE_EPOCH
set -euo pipefail
O=$(realpath "$1") BINARY=$2 VERSION=$3
HERE=$(realpath "$(dirname "$0")")
REPO=$HERE/../..
STAGE=$O/deb
DOC=$STAGE/usr/share/doc/mxbpf
ARCH=$(dpkg --print-architecture)
MAINTAINER=$("$REPO/share/maintainer.sh")

copyright() {
	cat <<-EOF
		mxbpf is Copyright 2026 the mxbpf developers, under the Apache License 2.0, whose text is in
		/usr/share/common-licenses/Apache-2.0 on Debian systems.

		The programs that run in the kernel (bpf/) are under the GNU General Public License, version 2, whose text is in
		/usr/share/common-licenses/GPL-2, or the BSD 2-clause licence.

		/usr/share/doc/mxbpf/licences has the licences of libraries that are linked into the program or built into its page,
		and /usr/share/doc/mxbpf/mxbpf.spdx.json is the list of them.
	EOF
}

changelog() {
	cat <<-EOF
		mxbpf ($VERSION) unstable; urgency=medium

		  * Version $VERSION of mxbpf.

		 -- $MAINTAINER  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
	EOF
}

# dpkg-shlibdeps wants a source package.
depends() {
	local work=$O/deb.shlibs
	rm -rf "$work"
	mkdir -p "$work/debian"
	printf 'Source: mxbpf\n\nPackage: mxbpf\nArchitecture: any\n' >"$work/debian/control"
	(cd "$work" && dpkg-shlibdeps -O --warnings=0 "$STAGE/usr/bin/mxbpf" | sed -n 's/^shlibs:Depends=//p')
	rm -rf "$work"
}

control() {
	local depends='' recommends=''
	[[ $BINARY == *-static ]] || { depends=$(depends) recommends='libcurl4 | libcurl4t64'; } # loaded when it is needed
	cat <<-EOF
		Package: mxbpf
		Version: $VERSION
		Architecture: $ARCH
		Maintainer: $MAINTAINER
		Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$STAGE" | cut -f 1)
		${depends:+Depends: $depends}
		${recommends:+Recommends: $recommends}
		Suggests: prometheus-node-exporter
		Section: devel
		Priority: optional
		Description: profiler of running deep-learning jobs
		 mxbpf attaches to running, unmodified jobs on PyTorch and MXNet and shows
		 their bottlenecks in operators, iterations, waits for data, memory, GPUs and
		 the kernel's scheduler. It uses BPF, and stops no job.
		 .
		 The service mxbpf-serve, which is not enabled at installation, keeps metrics
		 of all jobs of a host for Prometheus.
	EOF
}

"$REPO/share/stage.sh" "$STAGE" "$O/$BINARY" "$VERSION"
copyright >"$DOC/copyright"
changelog | gzip -9 -n >"$DOC/changelog.gz"
mkdir "$STAGE/DEBIAN"
control | grep . >"$STAGE/DEBIAN/control"
echo /etc/mxbpf/serve.conf >"$STAGE/DEBIAN/conffiles"
(cd "$STAGE" && find etc usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$STAGE/DEBIAN/md5sums"
install -m 755 "$HERE/postinst" "$HERE/prerm" "$HERE/postrm" "$STAGE/DEBIAN"
chmod -R u=rwX,go=rX "$STAGE"
dpkg-deb --root-owner-group -Zxz --build "$STAGE" "$O/mxbpf_${VERSION}_$ARCH.deb" >/dev/null
