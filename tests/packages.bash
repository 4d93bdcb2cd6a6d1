# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests that install packages: `load packages`.

# Runs a script that may change any file of the machine, because it works on a copy; `left` then names the files that it
# changed. `systemctl` and `deb-systemd-invoke` only write down how they are called, and a service is active if there is a file
# `active`.
on_a_copy() { # SCRIPT FILES...
	mkdir -p layer view calls
	cat >calls/systemctl <<-EOF
		#!/bin/sh
		case " \$* " in *' is-active '*) [ -e /tmp/active ]; exit ;; esac
		echo "\${0##*/} \$*" >>/tmp/called
	EOF
	cp calls/systemctl calls/deb-systemd-invoke
	chmod +x calls/*
	# shellcheck disable=SC2016 # for that shell
	unshare -m bash -ec '
		mount -t tmpfs none layer
		mkdir layer/upper layer/work
		mount -t overlay -o lowerdir=/,upperdir=layer/upper,workdir=layer/work none view
		mount -t proc none view/proc
		mount --bind /sys view/sys
		mount --bind /dev view/dev
		mount -t tmpfs none view/tmp
		mount -t tmpfs none view/run
		mkdir -p view/run/systemd/system view/tmp/calls
		cp calls/* view/tmp/calls
		cp -r "${@:2}" view/tmp
		export PATH=/tmp/calls:$PATH LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
		chroot view bash -exc "cd /tmp; $1"
		cd layer/upper
		find . ! -type d -printf "%P\\n" >"$OLDPWD/left"' bash "$@"
}

expect_nothing() { ! grep .; }
