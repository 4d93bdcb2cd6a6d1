// SPDX-License-Identifier: Apache-2.0
/* Finds the call of the tables for a function: the one whose probe is in that function. */
#include <errno.h>
#include <stdlib.h>

#include "elf/elf.h"
#include "elf/unwind.h"
#include "now/priv.h"

struct call {
	const struct tgt_lib *lib;
	uint64_t va;
	const struct plan_probe *probe;
	uint32_t func;
};

static int order(const struct call *a, const struct tgt_lib *lib, uint64_t va)
{
	if (a->lib != lib)
		return a->lib < lib ? -1 : 1;
	return a->va < va ? -1 : a->va > va;
}

static int calls_by_place(const void *a, const void *b)
{
	const struct call *y = b;

	return order(a, y->lib, y->va);
}

static int calls_add(struct calls *c, const struct call *call)
{
	return call->lib && call->lib->elf ? buf_put(&c->entries, call, sizeof(*call)) : 0;
}

/* Adds functions that are probed in a function they call. The return address tells which one it was. */
static int add_callers(struct calls *c)
{
	const struct plan *p = c->plan;
	const struct plan_probe *probe = NULL;
	size_t i;
	int err = 0;

	for (i = 0; i < p->nprobes; i++)
		if (p->probes[i].wanted && !p->probes[i].reason[0] && p->probes[i].row->row.by_caller)
			probe = &p->probes[i];
	for (i = 0; probe && !err && i < buf_count(&p->callers, struct plan_caller); i++) {
		const struct plan_caller *at = buf_at(&p->callers, struct plan_caller, i);

		err = calls_add(c, &(struct call){p->lib, at->return_va, probe, at->cookie & MXBPF_FUNC_MASK});
	}
	return err;
}

int calls_init(struct calls *c, const struct plan *p)
{
	size_t i;
	int err = 0;

	*c = (struct calls){.plan = p};
	for (i = 0; !err && i < buf_count(&p->sites, struct plan_site); i++) {
		const struct plan_site *s = buf_at(&p->sites, struct plan_site, i);
		struct call call = {.lib = s->lib, .probe = s->probe, .func = s->cookie & MXBPF_FUNC_MASK};

		/* A probe in another function is not a call of this one. */
		if (s->row->action != MXBPF_ACT_OPEN || s->row->at_call_site || s->row->by_caller || !s->lib->elf ||
		    elf_off_va(s->lib->elf, s->off, &call.va))
			continue;
		err = calls_add(c, &call);
	}
	err = err ? err : add_callers(c);
	if (!err && c->entries.len)
		qsort(c->entries.data, buf_count(&c->entries, struct call), sizeof(struct call), calls_by_place);
	return err;
}

void calls_find(const struct calls *c, struct now_frame *f)
{
	size_t lo = 0, n = buf_count(&c->entries, struct call), hi = n, mid;
	const struct call *call;
	struct elf_fde fde;

	if (!f->lib || !f->lib->elf || elf_fde_find(f->lib->elf, f->va, &fde, NULL))
		return;
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (order(buf_at(&c->entries, struct call, mid), f->lib, fde.start_va) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	call = buf_at(&c->entries, struct call, lo);
	if (lo == n || call->lib != f->lib || call->va >= fde.end_va)
		return;
	f->call = plan_func_name(c->plan, call->probe, call->func);
	f->named = f->call != call->probe->row->name;
	f->cls = (enum mxbpf_class)call->probe->row->row.cls;
}

void calls_fini(struct calls *c)
{
	buf_fini(&c->entries);
}
