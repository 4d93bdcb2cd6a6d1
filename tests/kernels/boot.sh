#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots a kernel under QEMU with only busybox, mxbpf, its tests and guest.sh, and waits until it has powered off.
# usage: boot.sh KERNEL DIR TASK...     DIR gets the files of each task (see guest.sh) and the guest's console.
# environment: MXBPF and O, as in helpers.bash; MONITOR: a socket for QEMU's monitor
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1 dir=$2
shift 2
root=$dir/root

add() { # FILE [NAME]: adds it with its shared libraries
	local f
	install -D "$1" "$root${2:-$1}"
	{ ldd "$1" 2>/dev/null || true; } | sed -nE 's|.*[[:space:]](/(usr/(local/)?)?lib[^ ]*) .*|\1|p' | while read -r f; do
		[[ -e $root$f ]] || install -D "$f" "$root$f"
	done
}

mkdir -p "$root"/{bin,dev,out,proc,sys,tmp}
add "$(command -v busybox)" /bin/busybox
add "$MXBPF" /bin/mxbpf
add "$O/libmxbpf.so" /libmxbpf.so
strip --strip-debug "$root/libmxbpf.so"
add "$O/toy/toy" /toy/toy
add "$O/toy/hang" /toy/hang
add "$O/toy/libmxnet.so" /toy/libmxnet.so
add "$O/toy/omp/libtorch_cpu.so" /toy/omp/libtorch_cpu.so
add "$O/toy/inject_agent.so" /toy/inject_agent.so
add "$O/prog/inject_target" /prog/inject_target
add "$O/prog/blocked" /prog/blocked
for unit in account attach inject programs sessions stack watch; do
	add "$O/unit/test_${unit}_kernel" "/bin/test_${unit}_kernel"
done
install "$here/guest.sh" "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$dir/initrd"

# The second serial line carries one archive per task, of which the last may be truncated. The kernel passes unknown arguments
# of its command line to init as environment. TCG instead of KVM behaves the same on every machine. With erms and fsrm the
# kernel copies by string instructions, which QEMU emulates byte by byte: loading programs would take 1.7 times as long.
# Without hardening, which emulation makes slow, the tasks take 0.7 of the CPU time. Root's programs are verified the same.
light='mitigations=off init_on_alloc=0 audit=0 randomize_kstack_offset=off'
monitor=()
[[ -z ${MONITOR:-} ]] || monitor=(-qmp "unix:$MONITOR,server=on,wait=off")
status=0
timeout -k 5 2700 qemu-system-x86_64 -accel tcg,thread=multi -M pc -cpu max,la57=off,erms=off,fsrm=off -smp 2 -m 1024 \
	-nodefaults -no-user-config -display none -no-reboot "${monitor[@]}" -serial "file:$dir/console" -serial "file:$dir/out.tar" \
	-kernel "$kernel" -initrd "$dir/initrd" \
	-append "console=ttyS0 quiet panic=-1 oops=panic nokaslr no_timer_check tsc=reliable $light TASKS=$(IFS=,; echo "$*")" </dev/null || status=$?
tar -C "$dir" --ignore-zeros -xf "$dir/out.tar"
exit "$status"
