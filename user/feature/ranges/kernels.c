// SPDX-License-Identifier: Apache-2.0
/* Kernels of GPUs by the range in which they were launched (--by range). */
#include <errno.h>
#include <string.h>

#include "feature/ranges/state.h"

#define ROWS_MAX (1u << 16) /* 4.5 MiB */

static int add(struct mdl *m, const struct mxbpf_agg_range *from)
{
	struct ranges_state *s = mdl_state(m, &feature_ranges);
	const uint64_t of = from->range_id ^ (uint64_t)from->h.tgid << 32;
	struct mxbpf_agg_range *r;
	bool added;

	if (!s)
		return -ENOMEM;
	if (buf_count(&s->kernels, struct mxbpf_agg_range) >= ROWS_MAX &&
	    !hash_get(&s->kernel_index, from->name_id, of))
		return 0;
	r = mdl_item_put(&s->kernel_index, &s->kernels, from->name_id, of, sizeof(*r), &added);
	if (!r || mdl_expect_name(m, from->name_id) || mdl_expect_name(m, from->range_id))
		return -ENOMEM;
	if (added) {
		*r = *from;
		r->h.size = sizeof(*r);
		return 0;
	}
	r->min_ns = from->min_ns < r->min_ns ? from->min_ns : r->min_ns;
	r->max_ns = from->max_ns > r->max_ns ? from->max_ns : r->max_ns;
	add_sat(&r->count, from->count);
	add_sat(&r->total_ns, from->total_ns);
	return 0;
}

int ranges_kernel(struct mdl *m, const struct ranges_launch *l, uint64_t name_id, uint64_t dur_ns)
{
	const struct mxbpf_range *around;
	struct mxbpf_agg_range r = {.h = {.kind = MXBPF_AGG_RANGE, .size = sizeof(r), .tgid = l->tgid},
				    .name_id = name_id,
				    .count = 1,
				    .total_ns = dur_ns,
				    .min_ns = dur_ns,
				    .max_ns = dur_ns};

	if (!mdl_tells_ranges(m))
		return 0;
	around = ranges_around(m, l->tgid, l->tid, l->ns, l->ns + 1);
	r.range_id = around ? around->name_id : 0;
	return add(m, &r);
}

int ranges_fold_kernel(struct mdl *m, const struct mxbpf_rec *rec)
{
	return add(m, (const void *)rec);
}

const struct mxbpf_agg_range *ranges_kernels(const struct mdl *m, size_t *n)
{
	const struct ranges_state *s = mdl_state_of(m, &feature_ranges);

	*n = s ? buf_count(&s->kernels, struct mxbpf_agg_range) : 0;
	return s ? (const void *)s->kernels.data : NULL;
}

int ranges_emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_agg_range *r = ranges_kernels(m, &n);

	return buf_put(out, r, n * sizeof(*r));
}

int ranges_copy(struct mdl *to, const struct mdl *from)
{
	const struct ranges_state *f = mdl_state_of(from, &feature_ranges);
	struct ranges_state *t = mdl_state(to, &feature_ranges);

	return t ? mdl_items_copy(&t->kernel_index, &t->kernels, &f->kernel_index, &f->kernels) : -ENOMEM;
}
