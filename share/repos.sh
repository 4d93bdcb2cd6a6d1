#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes O/repos: a repository for apt and one for dnf and zypper, both signed, with the public key and a file for each of the two
# that names the repository. Any server of files can hand out this folder.
# usage: share/repos.sh O     environment: KEY=ID of a key of gpg, MAINTAINER='Name <name@example.org>', URL=where the folder
#                             will be (default: where it is made)
set -euo pipefail

die() {
	printf 'repos: error: %s\n' "$*" >&2
	exit 2
}

[[ -n ${KEY:-} && -n ${MAINTAINER:-} ]] ||
	die "KEY and MAINTAINER are needed: make repos KEY=ID-of-a-key MAINTAINER='Name <name@example.org>' [URL=https://example.org/mxbpf]"
"$(dirname "$0")/maintainer.sh" >/dev/null || exit 2
for program in reprepro createrepo_c rpmsign gpg; do
	command -v "$program" >/dev/null || die "$program is missing; install it: sudo apt-get install reprepro createrepo-c rpm gnupg"
done
[[ $KEY =~ ^(0x)?[0-9A-Fa-f]{16,40}$ ]] || die "KEY '$KEY' is not the long ID or the fingerprint of a key"
gpg --batch --list-secret-keys "$KEY" >/dev/null 2>&1 || die "gpg has no secret key '$KEY' (gpg --list-secret-keys lists them)"

mkdir -p "$1"
O=$(realpath "$1")
REPOS=$O/repos
URL=${URL:-file://${REPOS// /%20}}
VERSION=$(<"$(dirname "$0")/../VERSION")
rm -rf "$REPOS" && mkdir -p "$REPOS"/{apt/conf,rpm}
export MAINTAINER
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory -C "$(dirname "$0")/.." O="$O" STATIC=1 PACKAGE_VERSION="$VERSION" deb rpm

gpg --batch --armor --export "$KEY" >"$REPOS/mxbpf.asc"

cat >"$REPOS/apt/conf/distributions" <<-CONF
	Origin: mxbpf
	Label: mxbpf
	Codename: stable
	Suite: stable
	Architectures: amd64
	Components: main
	Description: mxbpf for any Debian and Ubuntu
	SignWith: $KEY
CONF
reprepro --silent -b "$REPOS/apt" includedeb stable "$O"/mxbpf_"$VERSION"_*.deb
rm -r "$REPOS/apt/conf" "$REPOS/apt/db" # the next version is made into a new folder

cp "$O"/mxbpf-"$VERSION"-1.*.rpm "$REPOS/rpm"
GPG_TTY=${GPG_TTY:-$(tty || true)} rpmsign --define "_gpg_name $KEY" --define "__gpg $(command -v gpg)" --addsign "$REPOS"/rpm/*.rpm >/dev/null
createrepo_c --quiet --no-database "$REPOS/rpm"
gpg --batch --local-user "$KEY" --armor --detach-sign "$REPOS/rpm/repodata/repomd.xml"

cat >"$REPOS/mxbpf.sources" <<-SOURCES
	# /etc/apt/sources.list.d/mxbpf.sources; the key belongs into /etc/apt/keyrings.
	Types: deb
	URIs: $URL/apt
	Suites: stable
	Components: main
	Architectures: amd64
	Signed-By: /etc/apt/keyrings/mxbpf.asc
SOURCES
cat >"$REPOS/mxbpf.repo" <<-REPO
	# /etc/yum.repos.d/mxbpf.repo; for zypper /etc/zypp/repos.d/mxbpf.repo
	[mxbpf]
	name=mxbpf
	baseurl=$URL/rpm
	enabled=1
	gpgcheck=1
	repo_gpgcheck=1
	gpgkey=$URL/mxbpf.asc
REPO
echo "$REPOS"
