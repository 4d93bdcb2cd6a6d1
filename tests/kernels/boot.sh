#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots a kernel under QEMU with nothing but busybox, mxbpf, its tests and guest.sh, and waits until it has powered off.
# usage: boot.sh KERNEL DIR TASK...     DIR gets what each task left (see guest.sh), and the guest's console. Of the
# environment: MXBPF and O, as in helpers.bash
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1 dir=$2
shift 2
root=$dir/root

add() { # FILE [NAME]: with its shared libraries
	local f
	install -D "$1" "$root${2:-$1}"
	for f in $(ldd "$1" 2>/dev/null | grep -oE '/[^ ]+'); do
		[[ -e $root$f ]] || install -D "$f" "$root$f"
	done
}

mkdir -p "$root"/{bin,dev,out,proc,sys,tmp}
add "$(command -v busybox)" /bin/busybox
add "$MXBPF" /bin/mxbpf
add "$O/toy/toy" /toy/toy
add "$O/toy/hang" /toy/hang
add "$O/toy/libmxnet.so" /toy/libmxnet.so
add "$O/toy/omp/libtorch_cpu.so" /toy/omp/libtorch_cpu.so
add "$O/toy/inject_agent.so" /toy/inject_agent.so
add "$O/prog/inject_target" /prog/inject_target
for unit in test_account_kernel test_attach_kernel test_inject_kernel test_programs_kernel test_stack_kernel; do
	add "$O/unit/$unit" "/bin/$unit"
done
install "$here/guest.sh" "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$dir/initrd"

# The second serial line carries one archive after the other, a task's each; the last one may be cut. What the kernel does not
# know on its command line is init's environment. Without KVM, so that it is the same on every machine. With erms and fsrm
# the kernel copies byte by byte, which QEMU emulates so: loading programs takes 1.7 times as long. Without what hardens the
# kernel, which is dear under emulation, the tasks take 0.7 of the CPU time. A root's programs are verified alike with it.
light='mitigations=off init_on_alloc=0 audit=0 randomize_kstack_offset=off'
status=0
timeout -k 5 2700 qemu-system-x86_64 -accel tcg,thread=multi -M pc -cpu max,la57=off,erms=off,fsrm=off -smp 2 -m 1024 \
	-nodefaults -no-user-config -display none -no-reboot -serial "file:$dir/console" -serial "file:$dir/out.tar" \
	-kernel "$kernel" -initrd "$dir/initrd" \
	-append "console=ttyS0 quiet panic=-1 oops=panic nokaslr no_timer_check tsc=reliable $light TASKS=$(IFS=,; echo "$*")" </dev/null || status=$?
tar -C "$dir" --ignore-zeros -xf "$dir/out.tar"
exit "$status"
