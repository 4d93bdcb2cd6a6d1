/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's types that mxbpf's programs use. libbpf reads the kernel's whole BTF for each object that it loads,
 * 150,000 types, which takes 15 to 20 ms, and then looks through all of them. The programs use some thirty. They are
 * copied into a file in memory once, which takes a few milliseconds.
 */
#ifndef ATTACH_KERNEL_TYPES_H
#define ATTACH_KERNEL_TYPES_H

/*
 * Returns the path for btf_custom_path of struct bpf_object_open_opts. NULL: libbpf is to read the kernel's BTF itself,
 * because it is not there or has a kind of type that is not known here. Borrowed; valid until the process ends.
 */
const char *kernel_types_path(void);

#endif
