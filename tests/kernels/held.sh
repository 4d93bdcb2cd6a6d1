#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds a virtual machine up while mxbpf counts the calls of the toy in it, and samples it: the machine's second CPU goes and comes,
# QEMU stops the machine for a second, QEMU is stopped itself, the machine sleeps. Every call must count, with a sane duration, and
# samples must come from the CPU that is back.
# usage: held.sh KERNEL [DIR]     DIR: gets the files of the guest (default: a temporary directory)
# environment: MXBPF and O, as in helpers.bash
# On a machine with much other work the guest's clocks run at a wrong speed, and mxbpf in it gives up waiting for files.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1
dir=${2:-$(mktemp -d)}
export MONITOR=$dir/monitor

fail() {
	echo "held.sh: $1; see $dir/held" >&2
	exit 1
}

"$here/hold.py" "$dir/console" "$MONITOR" >"$dir/holds" &
holder=$!
"$here/boot.sh" "$kernel" "$dir" held 2>"$dir/boot.log" || fail "the guest failed"
wait "$holder"
[[ $(<"$dir/holds") == $'stop\nfreeze' ]] || fail "the machine was not held up"
[[ $(<"$dir/held/sleeps") == 1 && -e $dir/held/worked ]] || fail "the machine did not sleep while the toy worked"
[[ $(<"$dir/held/status") == 0 ]] || fail "mxbpf ended with $(<"$dir/held/status")"
grep -q 'CPU 1 came online; its samples of about two seconds are missing' "$dir/held/mxbpf.err" || fail "the CPU that came back has no samples"
jq -es '
	(.[0].operator + .[0].MXNET_C_API) as $want | .[1] | [.tables[][] | select(.name)] as $rows |
	($rows | map(select(.name | in($want)) | {(.name): .count}) | add) == $want and .loss.attempted == .loss.stored and
	(.window.duration_ns < 60e9) and all($rows[]; .min_ns >= 0 and .max_ns < 10e9)' \
	<(grep '^{' "$dir/held/toy") "$dir/held/mxbpf.json" >/dev/null || fail "calls are lost or wrong"
jq -r '"held.sh: \(.loss.stored) events, \(.samples.count) samples in \(.window.duration_ns / 1e9) s"' "$dir/held/mxbpf.json"
