// SPDX-License-Identifier: Apache-2.0
/* Rows of calls and of devices: how they are found, made and added up. */
#include "model/priv.h"

#include <errno.h>

#include "mxbpf_name.h"

/* A program has few names, but it can have any number of shapes, stacks and threads. */
static bool has_details(const struct mxbpf_group *g)
{
	return g->args_id || g->stack_id || g->layer_id || g->tid || g->range_id;
}

static struct mdl_row *row_add(struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device)
{
	const struct mxbpf_group *g = group_find(m, id);
	uint64_t *nrows = hash_put(&m->nrows, tgid, 0);
	struct mdl_row *r;
	bool added;

	if (!nrows)
		return NULL;
	if (*nrows >= MDL_ROWS_MAX && id != MXBPF_NAME_MORE)
		return row_get(m, cls, MXBPF_NAME_MORE, tgid, device);
	if (mdl_expect_name(m, g ? g->name_id : id) || (g && g->range_id && mdl_expect_name(m, g->range_id)))
		return NULL;
	r = mdl_row_put(&m->row_index[cls], &m->rows[cls], id, (uint64_t)tgid << 32 | device, sizeof(*r), &added);
	if (!added)
		return r;
	++*nrows;
	*r = (struct mdl_row){.tgid = tgid, .device = device, .cls = (uint8_t)cls, .id = id, .name_id = id};
	if (g) {
		r->name_id = g->name_id;
		r->args_id = g->args_id;
		r->stack_id = g->stack_id;
		r->layer_id = g->layer_id;
		r->range_id = g->range_id;
		r->tid = g->tid;
		r->traits = (uint8_t)g->traits;
		m->ngrouped += has_details(g);
	}
	return r;
}

struct mdl_row *mdl_row_find(const struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device)
{
	uint64_t *slot = hash_get(&m->row_index[cls], id, (uint64_t)tgid << 32 | device);

	/* The value is 0 if there was no memory for the row when the slot was made. */
	return slot ? (void *)(uintptr_t)*slot : NULL;
}

struct mdl_row *row_get(struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device)
{
	struct mdl_row *r = mdl_row_find(m, cls, id, tgid, device);

	return r ? r : row_add(m, cls, id, tgid, device);
}

static struct mdl_row *row_of_group(struct mdl *m, const struct mxbpf_span *s, struct mxbpf_group *g)
{
	struct mdl_row *r;

	g->id = mdl_group_id(g);
	r = mdl_row_find(m, s->cls, g->id, s->h.tgid, s->device);
	if (r)
		return r;
	if (m->ngrouped >= MDL_GROUPED_MAX && has_details(g)) {
		struct mxbpf_group name = {.h.size = sizeof(name), .name_id = g->name_id, .traits = g->traits};

		m->tallies[s->cls][MXBPF_TALLY_UNGROUPED]++;
		return row_of_group(m, s, &name);
	}
	if (g->id != g->name_id && group_define(m, g))
		return NULL;
	return row_add(m, s->cls, g->id, s->h.tgid, s->device);
}

struct mdl_row *row_of_span(struct mdl *m, const struct mxbpf_span *s)
{
	struct mxbpf_group g = {
		.h.size = sizeof(g),
		.name_id = s->name_id,
		.args_id = s->args_id,
		.stack_id = s->stack_id,
		.layer_id = s->layer_id,
		.tid = m->tells_threads ? s->tid : 0,
		.traits = mxbpf_traits(s),
		.range_id = m->range_id,
	};

	return row_of_group(m, s, &g);
}

struct mdl_mem_row *mem_row(struct mdl *m, uint32_t tgid, uint32_t device)
{
	bool added;
	struct mdl_mem_row *r = mdl_row_put(&m->mem_index, &m->mem_rows, tgid, device, sizeof(*r), &added);

	if (added)
		*r = (struct mdl_mem_row){.tgid = tgid, .device = device};
	return r;
}

void mdl_row_widen(struct mdl_row *r, uint64_t min_ns, uint64_t max_ns)
{
	if (min_ns < r->min_ns || !r->count)
		r->min_ns = min_ns;
	if (max_ns > r->max_ns)
		r->max_ns = max_ns;
}

uint64_t mdl_row_avg(const struct mdl_row *r)
{
	return r->count ? r->total_ns / r->count : 0;
}

void mdl_row_merge_time(struct mdl_row *to, const struct mdl_row *from)
{
	add_sat(&to->total_ns, from->total_ns);
	add_sat(&to->self_ns, from->self_ns);
	add_sat_signed(&to->alloc_bytes, from->alloc_bytes);
	add_sat_signed(&to->self_alloc_bytes, from->self_alloc_bytes);
	account_merge(&to->account, &from->account);
}

void mdl_row_merge(struct mdl_row *to, const struct mdl_row *from)
{
	unsigned i;

	if (!from->count)
		return;
	mdl_row_widen(to, from->min_ns, from->max_ns);
	add_sat(&to->count, from->count);
	mdl_row_merge_time(to, from);
	add_sat(&to->nparts, from->nparts);
	add_sat(&to->nbulks, from->nbulks);
	features_merge_row(to, from);
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		add_sat(&to->hist[i], from->hist[i]);
}

void row_count_traits(struct mdl_row *r, uint64_t n)
{
	add_sat(&r->nparts, r->traits & MXBPF_TRAIT_PART ? n : 0);
	add_sat(&r->nbulks, r->traits & MXBPF_TRAIT_BULK ? n : 0);
}
