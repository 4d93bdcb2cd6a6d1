// SPDX-License-Identifier: Apache-2.0
/*
 * Allocations that failed. A program may catch the exception and try again for ever, so few are kept: the first ones,
 * and the last one, because a process often ends after it.
 */
#include "feature/memory/failed.h"
#include "feature/memory/memory.h"

#include <errno.h>
#include <string.h>

/* Returns a place for one more failure, which may be that of the last one. NULL: out of memory. */
static struct memory_failure *memory_place(struct memory_failed *to)
{
	const size_t n = buf_count(&to->list, struct memory_failure);
	struct memory_failure *at = n < MEMORY_FAILED_MAX ? buf_add(&to->list, sizeof(*at))
							  : buf_at(&to->list, struct memory_failure, n - 1);

	if (at)
		*at = (struct memory_failure){0};
	return at;
}

/* Keeps the holders sorted, and lets go of the one with the least. */
static void put_holder(struct memory_failure *at, const struct mxbpf_mem_holder *h)
{
	unsigned i = MEMORY_HOLDERS_MAX - 1;

	if (at->nholders < MEMORY_HOLDERS_MAX)
		i = at->nholders++;
	else if (at->holders[i].bytes >= h->bytes)
		return;
	for (; i && at->holders[i - 1].bytes < h->bytes; i--)
		at->holders[i] = at->holders[i - 1];
	at->holders[i] = *h;
	at->holders[i].h.size = sizeof(*h); /* a newer version has a longer record */
}

static void put_owner(struct memory_failure *at, const struct mxbpf_mem_owner *o)
{
	const struct mxbpf_mem_holder h = {
		.h = {.kind = MXBPF_MEM_HOLDER, .size = sizeof(h), .tgid = at->f.h.tgid, .ts_ns = at->f.h.ts_ns},
		.name_id = o->name_id,
		.layer_id = o->layer_id,
		.stack_id = o->stack_id,
		.bytes = o->live_bytes,
		.blocks = o->live_blocks,
		.device = o->device,
		.tid = at->f.tid,
		.cls = o->cls,
		.flags = o->flags,
	};

	add_sat_any(&at->f.live_bytes, h.bytes);
	if (h.bytes > 0)
		put_holder(at, &h);
}

int memory_failed_add(struct mdl *m, struct memory_failed *to, const struct mxbpf_alloc *a)
{
	struct memory_failure *at = memory_place(to);
	const struct mxbpf_mem_owner *o;
	size_t i;

	if (!at || mdl_expect_name(m, a->name_id))
		return -ENOMEM;
	at->f = (struct mxbpf_mem_failed){
		.h = {.kind = MXBPF_MEM_FAILED, .size = sizeof(at->f), .tgid = a->h.tgid, .ts_ns = a->h.ts_ns},
		.wanted_bytes = a->wanted_bytes,
		.total_bytes = a->total_bytes,
		.pool_bytes = a->pool_bytes,
		.name_id = a->name_id,
		.layer_id = a->layer_id,
		.stack_id = a->stack_id,
		.nr = ++to->n,
		.device = a->device,
		.tid = a->tid,
		.cls = a->cls,
		.flags = a->flags & MXBPF_ALLOC_UNCOUNTED,
	};
	for (i = 0; (o = memory_owner(m, i)); i++)
		if (o->device == a->device && o->h.tgid == a->h.tgid && !(o->flags & MXBPF_MEM_OWNER_BEFORE))
			put_owner(at, o);
	return 0;
}

int memory_failed_fold(struct mdl *m, struct memory_failed *to, const struct mxbpf_rec *rec)
{
	const size_t n = buf_count(&to->list, struct memory_failure);
	const struct mxbpf_mem_failed *f = (const void *)rec;
	const struct mxbpf_mem_holder *h = (const void *)rec;
	struct memory_failure *at;

	if (mdl_expect_name(m, rec->kind == MXBPF_MEM_FAILED ? f->name_id : h->name_id))
		return -ENOMEM;
	if (rec->kind == MXBPF_MEM_HOLDER) {
		if (n)
			put_holder(buf_at(&to->list, struct memory_failure, n - 1), h);
		return 0;
	}
	at = memory_place(to);
	if (!at)
		return -ENOMEM;
	at->f = *f;
	at->f.h.size = sizeof(*f); /* a newer version has a longer record */
	to->n = f->nr > to->n ? f->nr : to->n + 1;
	return 0;
}

int memory_failed_emit(const struct memory_failed *of, struct buf *out)
{
	const struct memory_failure *f;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&of->list, struct memory_failure); i++) {
		f = buf_at(&of->list, const struct memory_failure, i);
		err = buf_put(out, &f->f, sizeof(f->f));
		err = err ? err : buf_put(out, f->holders, f->nholders * sizeof(f->holders[0]));
	}
	return err;
}

int memory_failed_copy(struct memory_failed *to, const struct memory_failed *from)
{
	struct memory_failure *at;
	size_t i;

	for (i = 0; i < buf_count(&from->list, struct memory_failure); i++) {
		at = memory_place(to);
		if (!at)
			return -ENOMEM;
		*at = *buf_at(&from->list, const struct memory_failure, i);
	}
	to->n += from->n;
	return 0;
}

void memory_failed_fini(struct memory_failed *f)
{
	buf_fini(&f->list);
	*f = (struct memory_failed){0};
}
