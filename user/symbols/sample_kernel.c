// SPDX-License-Identifier: Apache-2.0
/* Reads /proc/kallsyms. Without the right to see addresses, all of them are 0 there. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/sample_priv.h"

struct kernel_func {
	uint64_t addr;
	uint64_t name; /* offset in names */
};

static int cmp(const void *a, const void *b)
{
	const struct kernel_func *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void sample_kernel_read_all(struct kernel *k)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	struct kernel_func fn;
	char line[512], name[256], type;

	k->read = true;
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %c %255s", &fn.addr, &type, name) != 3 || !strchr("tTwW", type) ||
		    !fn.addr)
			continue;
		fn.name = k->names.len;
		if (buf_put(&k->names, name, strlen(name) + 1) || buf_put(&k->funcs, &fn, sizeof(fn)))
			break;
	}
	fclose(f);
	if (k->funcs.len)
		qsort(k->funcs.data, buf_count(&k->funcs, struct kernel_func), sizeof(fn), cmp);
}

const char *kernel_name(struct kernel *k, uint64_t addr)
{
	size_t lo = 0, hi, mid;

	if (!k->read)
		sample_kernel_read_all(k);
	hi = buf_count(&k->funcs, struct kernel_func);
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (buf_at(&k->funcs, struct kernel_func, mid)->addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? k->names.data + buf_at(&k->funcs, struct kernel_func, lo - 1)->name : NULL;
}

void kernel_fini(struct kernel *k)
{
	buf_fini(&k->funcs);
	buf_fini(&k->names);
}
