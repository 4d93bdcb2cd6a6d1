// SPDX-License-Identifier: Apache-2.0
/* Writes a model as records. A recording ends with them, so that its tables need not be folded from events again. */
#include "model/priv.h"

#include <errno.h>
#include <string.h>

/* Most rows allocate nothing. */
static int emit_row_mem(const struct mdl_row *r, struct buf *out)
{
	struct mxbpf_agg_mem a = {
		.h = {.kind = MXBPF_AGG_MEM, .size = sizeof(a), .tgid = r->tgid},
		.name_id = r->id,
		.alloc_bytes = r->alloc_bytes,
		.self_alloc_bytes = r->self_alloc_bytes,
		.device = r->device,
		.cls = r->cls,
	};

	return a.alloc_bytes || a.self_alloc_bytes ? buf_put(out, &a, sizeof(a)) : 0;
}

static int emit_row_account(const struct mdl_row *r, struct buf *out)
{
	static const struct mxbpf_account_sum none;
	struct mxbpf_agg_account a = {
		.h = {.kind = MXBPF_AGG_ACCOUNT, .size = sizeof(a), .tgid = r->tgid},
		.name_id = r->id,
		.device = r->device,
		.cls = r->cls,
		.sum = r->account,
	};

	return memcmp(&a.sum, &none, sizeof(none)) ? buf_put(out, &a, sizeof(a)) : 0;
}

int mdl_emit_row(const struct mdl_row *r, struct buf *out)
{
	struct mxbpf_agg a = {
		.h = {.kind = MXBPF_AGG, .tgid = r->tgid},
		.name_id = r->id,
		.count = r->count,
		.total_ns = r->total_ns,
		.self_ns = r->self_ns,
		.min_ns = r->min_ns,
		.max_ns = r->max_ns,
		.device = r->device,
		.cls = r->cls,
	};

	return mdl_hist_emit(r->hist, &a, sizeof(a), &a.nbuckets, out) || emit_row_mem(r, out) ||
			       emit_row_account(r, out) || features_emit_row(r, out)
		       ? -ENOMEM
		       : 0;
}

int mdl_emit_mem(const struct mdl_mem_row *r, struct buf *out)
{
	struct mxbpf_mem a = {
		.h = {.kind = MXBPF_MEM, .size = sizeof(a), .tgid = r->tgid},
		.allocs = r->allocs,
		.frees = r->frees,
		.alloc_bytes = r->alloc_bytes,
		.free_bytes = r->free_bytes,
		.live_bytes = r->live_bytes,
		.peak_bytes = r->peak_bytes,
		.low_bytes = r->low_bytes,
		.device = r->device,
	};

	return buf_put(out, &a, sizeof(a));
}

static int emit_tallies(const struct mdl *m, unsigned cls, struct buf *out)
{
	struct mxbpf_tally c = {.h = {.kind = MXBPF_TALLY, .size = sizeof(c)}, .cls = cls};
	int err = 0;

	for (c.id = 1; !err && c.id < TALLY_IDS; c.id++) {
		c.value = m->tallies[cls][c.id];
		if (c.value)
			err = buf_put(out, &c, sizeof(c));
	}
	return err;
}

int mdl_emit(const struct mdl *m, struct buf *out)
{
	int err = names_emit(m, out) || buf_put(out, m->groups.data, m->groups.len) ? -ENOMEM : 0;
	unsigned cls;
	size_t i;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		for (i = 0; !err && i < buf_count(&m->rows[cls], struct mdl_row *); i++)
			err = mdl_emit_row(*buf_at(&m->rows[cls], struct mdl_row *, i), out);
		if (!err)
			err = emit_tallies(m, cls, out);
	}
	for (i = 0; !err && i < buf_count(&m->mem_rows, struct mdl_mem_row *); i++)
		err = mdl_emit_mem(*buf_at(&m->mem_rows, struct mdl_mem_row *, i), out);
	if (!err)
		err = buf_put(out, m->opens.data, m->opens.len);
	return err ? err : features_emit(m, out);
}
