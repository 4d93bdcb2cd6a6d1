// SPDX-License-Identifier: Apache-2.0
/*
 * Functions that a process has never called. An operator of PyTorch has a static variable, and C++ keeps for each in a
 * byte of memory whether it was made. So most of some 3,000 operators need no probe to see that nobody calls them.
 */
#include <errno.h>
#include <stdlib.h>

#include "insn/insn.h"
#include "plan/priv.h"

#define RANGE_MOST (8u << 20) /* bytes from the first guard to the last one */

/* The library of a process that is the same file. */
static struct tgt_lib *same_lib(struct tgt *t, const struct tgt_lib *lib)
{
	size_t i;

	for (i = 0; i < tgt_nlibs(t); i++)
		if (tgt_lib(t, i)->dev == lib->dev && tgt_lib(t, i)->ino == lib->ino)
			return tgt_lib(t, i);
	return NULL;
}

int plan_guards(const struct plan *p, struct tgt *t, uint64_t *guards)
{
	const struct tgt_lib *of = NULL;
	const struct plan_site *s;
	struct tgt_lib *lib = NULL;
	uint64_t va, guard;
	struct elf *f;
	size_t i;
	int err;

	for (i = 0; i < buf_count(&p->sites, struct plan_site); i++) {
		s = buf_at(&p->sites, struct plan_site, i);
		guards[i] = 0;
		if (s->row->action != MXBPF_ACT_OPEN || !plan_func_id(p, s))
			continue;
		lib = s->lib == of ? lib : same_lib(t, s->lib);
		of = s->lib;
		err = lib ? tgt_lib_elf(t, lib, &f, NULL) : -ENOENT;
		if (err)
			return err;
		if (!elf_off_va(f, s->off, &va) && !insn_guard(f, va, &guard))
			guards[i] = guard + lib->load_bias;
	}
	return 0;
}

int plan_guards_read(struct tgt *t, const uint64_t *guards, size_t n, bool *set)
{
	uint64_t first = UINT64_MAX, last = 0;
	uint8_t *bytes;
	size_t i;
	int err;

	for (i = 0; i < n; i++) {
		set[i] = false;
		if (!guards[i])
			continue;
		first = guards[i] < first ? guards[i] : first;
		last = guards[i] > last ? guards[i] : last;
	}
	if (first > last)
		return 0;
	if (last - first >= RANGE_MOST)
		return -E2BIG;
	bytes = malloc(last - first + 1);
	err = bytes ? tgt_read(t, first, bytes, last - first + 1) : -ENOMEM;
	for (i = 0; !err && i < n; i++)
		set[i] = guards[i] && bytes[guards[i] - first];
	free(bytes);
	return err;
}
