/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many instructions the verifier looked at for each BPF program that this process holds. A program is known by its
 * function's name. Linux 5.15 does not count them.
 */
#ifndef VERIFIED_H
#define VERIFIED_H

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <dirent.h>
#include "unit.h"

#define VERIFIED_LIMIT 1000000 /* BPF_COMPLEXITY_LIMIT_INSNS of the kernel */

static struct verified {
	char name[64];
	unsigned most;
} verified[128];

static unsigned nverified;
static unsigned ncpu_stacks; /* programs at a uprobe that keep their stack in memory of the CPU */

/* Programs of one object have the same types, which are read once. */
static struct btf *verified_types(__u32 id)
{
	static struct btf *types;
	static __u32 its;

	if (id && id == its)
		return types;
	btf__free(types);
	types = id ? btf__load_from_kernel_by_id(id) : NULL;
	its = types ? id : 0;
	return types;
}

/* Returns the name of the program's function, which the kernel's own name of a program may truncate. */
static const char *verified_name(const struct bpf_prog_info *info, const struct bpf_func_info *func)
{
	const struct btf *types = verified_types(info->btf_id);
	const struct btf_type *its = types ? btf__type_by_id(types, func->type_id) : NULL;

	return its ? btf__name_by_offset(types, its->name_off) : info->name;
}

static void verified_add(const char *name, unsigned n)
{
	unsigned i = 0;

	while (i < nverified && strcmp(verified[i].name, name))
		i++;
	if (i == sizeof(verified) / sizeof(verified[0]))
		return;
	snprintf(verified[i].name, sizeof(verified[i].name), "%s", name);
	verified[i].most = n > verified[i].most ? n : verified[i].most;
	nverified += i == nverified;
}

/* Counts a program whose machine code adds the CPU's base to the frame pointer: add %gs:..., %r9. */
static void verified_stack(int fd, __u32 type)
{
	static const unsigned char add[] = {0x65, 0x4c, 0x03, 0x0c, 0x25};
	static unsigned char code[1 << 20];
	struct bpf_prog_info info = {.jited_prog_insns = (uintptr_t)code, .jited_prog_len = sizeof(code)};
	__u32 size = sizeof(info);

	if (type == BPF_PROG_TYPE_KPROBE && !bpf_obj_get_info_by_fd(fd, &info, &size))
		ncpu_stacks += !!memmem(code, info.jited_prog_len, add, sizeof(add));
}

static void verified_prog(int fd)
{
	struct bpf_func_info func = {0};
	struct bpf_prog_info info = {
		.nr_func_info = 1, .func_info = (uintptr_t)&func, .func_info_rec_size = sizeof(func)};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return;
	verified_add(verified_name(&info, &func), info.verified_insns);
	verified_stack(fd, info.type);
}

/* Adds every program of which this process has a descriptor now. */
static void verified_now(void)
{
	char path[64], what[64];
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");
	ssize_t n;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.16s", entry->d_name);
		n = readlink(path, what, sizeof(what) - 1);
		what[n < 0 ? 0 : n] = '\0';
		if (!strcmp(what, "anon_inode:bpf-prog"))
			verified_prog(atoi(entry->d_name));
	}
	if (dir)
		closedir(dir);
}

/* Prints a line for each program. Returns the largest number, or 0 if the kernel does not count. */
static unsigned verified_print(void)
{
	unsigned i, most = 0;

	for (i = 0; i < nverified; i++) {
		printf("# verified %s %u\n", verified[i].name, verified[i].most);
		most = verified[i].most > most ? verified[i].most : most;
	}
	return most;
}

#endif
