# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For lack.sh and calls.sh: what a command printed and which files it wrote, without a fault (want) and with one.

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2

# Runs a command in a new folder. Its output and its files are then in out, err and files.
in_folder() { # COMMAND...
	local status=0
	rm -rf here && mkdir here
	(cd here && timeout 60 "$@" >../out 2>../err) || status=$?
	(cd here && find . -type f -exec sha256sum {} + | sort) >files
	return "$status"
}

keep_result() { mv out want && mv files want_files; }

same_result() { cmp -s out want && cmp -s files want_files; }

# After a failure there may be files, but only whole ones, and a data set names no recording whose other files may be missing.
no_part_is_left() { ! grep -vxFf want_files files && ! grep recordings/ files; }
