// SPDX-License-Identifier: Apache-2.0
/* Rows of work for GPUs, which launches are added to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "feature/activity/state.h"

#define ROWS_MAX (1u << 14) /* of 2.8 KB */

#define ROW struct activity_join
static const struct tbl_column columns[] = {
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "launches", .type = TBL_COUNT, SUM_AT(launches)},
	{.stored = "without_work", .type = TBL_COUNT, SUM_AT(without_work)},
	{.stored = "late_launches", .type = TBL_COUNT, SUM_AT(late_launches)},
	{.stored = "late_spans", .type = TBL_COUNT, SUM_AT(late_spans)},
	{0},
};
#undef ROW
const struct tbl_def activity_joins_table = {
	.name = "gpu joins", .row_bytes = sizeof(struct activity_join), .columns = columns};

struct activity_join *work_counts(struct mdl *m, uint32_t tgid)
{
	return mdl_table_row(m, &feature_activity, &activity_joins_table, &(struct activity_join){.tgid = tgid});
}

struct activity_work *work_row_at(const struct join *j, uint32_t place)
{
	return *buf_at(&j->rows, struct activity_work *, place - 1);
}

/* A stack has a row for each name of its owners. */
static uint64_t activity_fold_work_key_of(const struct mxbpf_agg_gpu_work *a)
{
	return a->of == MXBPF_WORK_OF_LAYER   ? a->layer_id
	       : a->of == MXBPF_WORK_OF_STACK ? a->stack_id ^ a->name_id * 0x9e3779b97f4a7c15ull
	       : a->of == MXBPF_WORK_OF_GRAPH ? a->graph
					      : a->name_id;
}

static uint64_t kind_of_row(const struct mxbpf_agg_gpu_work *a)
{
	return (uint64_t)a->h.tgid << 32 | (uint64_t)a->of << 16 | (uint64_t)a->cls << 8 | (a->user != 0);
}

static int row_add(struct mdl *m, struct join *j, const struct mxbpf_agg_gpu_work *like)
{
	struct activity_work *r = mem_zalloc(sizeof(*r));

	if (!r || ((like->of == MXBPF_WORK_OF_CALLS || like->name_id) && mdl_expect_name(m, like->name_id)) ||
	    buf_put(&j->rows, &r, sizeof(r))) {
		mem_free(r);
		return -ENOMEM;
	}
	r->a = (struct mxbpf_agg_gpu_work){
		.h = {.kind = MXBPF_AGG_GPU_WORK, .size = sizeof(r->a), .tgid = like->h.tgid},
		.name_id = like->name_id,
		.layer_id = like->layer_id,
		.stack_id = like->stack_id,
		.graph = like->graph,
		.of = like->of,
		.cls = like->cls,
		.user = like->user != 0,
	};
	return 0;
}

/* *place receives 1 + the index of the row, or 0 if there are too many rows. */
int work_row(struct mdl *m, struct join *j, const struct mxbpf_agg_gpu_work *like, uint32_t *place)
{
	const size_t n = buf_count(&j->rows, void *);
	const uint64_t *known = hash_get(&j->row_index, activity_fold_work_key_of(like), kind_of_row(like));
	uint64_t *at;

	*place = known ? (uint32_t)*known : 0;
	if (*place || n >= ROWS_MAX)
		return 0;
	at = hash_put(&j->row_index, activity_fold_work_key_of(like), kind_of_row(like));
	if (!at || row_add(m, j, like))
		return -ENOMEM;
	*at = *place = (uint32_t)n + 1;
	return 0;
}

int work_row_of_kind(struct mdl *m, struct join *j, uint32_t tgid, enum mxbpf_gpu_work_of of, uint32_t graph,
		     uint32_t *place)
{
	const struct mxbpf_agg_gpu_work like = {.h.tgid = tgid, .of = (uint8_t)of, .graph = graph};

	return work_row(m, j, &like, place);
}

void work_add(struct mxbpf_gpu_work *to, const struct mxbpf_gpu_work *from)
{
	add_sat(&to->launches, from->launches);
	add_sat(&to->kernels, from->kernels);
	add_sat(&to->copies, from->copies);
	add_sat(&to->gpu_ns, from->gpu_ns);
	add_sat(&to->bytes, from->bytes);
}

uint64_t work_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void work_sub(struct mxbpf_gpu_work *to, const struct mxbpf_gpu_work *from)
{
	to->launches = work_less(to->launches, from->launches);
	to->kernels = work_less(to->kernels, from->kernels);
	to->copies = work_less(to->copies, from->copies);
	to->gpu_ns = work_less(to->gpu_ns, from->gpu_ns);
	to->bytes = work_less(to->bytes, from->bytes);
}

void work_latency_add(struct activity_work *r, uint64_t ns)
{
	add_sat(&r->a.latencies, 1);
	add_sat(&r->a.latency_ns, ns);
	r->a.latency_max_ns = ns > r->a.latency_max_ns ? ns : r->a.latency_max_ns;
	add_sat(&r->hist[mxbpf_bucket(ns)], 1);
}

/* The largest latency stays: an operator that had a launch for a moment shows at most one that is too large. */
void work_latency_sub(struct activity_work *r, uint64_t ns)
{
	r->a.latencies = work_less(r->a.latencies, 1);
	r->a.latency_ns = work_less(r->a.latency_ns, ns);
	r->hist[mxbpf_bucket(ns)] = work_less(r->hist[mxbpf_bucket(ns)], 1);
	r->a.latency_max_ns = r->a.latencies ? r->a.latency_max_ns : 0;
}

/* ---- the state */

int join_fold_work(struct mdl *m, struct join *j, const struct mxbpf_agg_gpu_work *a)
{
	struct activity_work *r;
	uint32_t place;

	if (work_row(m, j, a, &place))
		return -ENOMEM;
	if (!place)
		return 0;
	r = work_row_at(j, place);
	work_add(&r->a.total, &a->total);
	work_add(&r->a.self, &a->self);
	add_sat(&r->a.latencies, a->latencies);
	add_sat(&r->a.latency_ns, a->latency_ns);
	r->a.latency_max_ns = a->latency_max_ns > r->a.latency_max_ns ? a->latency_max_ns : r->a.latency_max_ns;
	mdl_hist_fold(r->hist, (const void *)(a + 1), a->nbuckets);
	return 0;
}

static bool has_work(const struct mxbpf_gpu_work *w)
{
	return w->launches || w->kernels || w->copies || w->gpu_ns;
}

int join_emit(const struct join *j, struct buf *out)
{
	struct mxbpf_agg_gpu_work a;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&j->rows, void *); i++) {
		const struct activity_work *r = work_row_at(j, (uint32_t)i + 1);

		a = r->a;
		if (has_work(&a.total) || has_work(&a.self))
			err = mdl_hist_emit(r->hist, &a, sizeof(a), &a.nbuckets, out);
	}
	for (i = 0; !err && i < buf_count(&j->graphs.rows, struct mxbpf_agg_gpu_graph); i++) {
		const struct mxbpf_agg_gpu_graph *g = buf_at(&j->graphs.rows, struct mxbpf_agg_gpu_graph, i);

		err = has_work(&g->sum) ? buf_put(out, g, sizeof(*g)) : 0;
	}
	return err;
}

/* The copy lacks spans, launches and activities that wait. */
int join_copy(struct join *to, const struct join *from)
{
	struct activity_work *r;
	size_t i;
	int err = hash_copy(&to->row_index, &from->row_index);

	for (i = 0; !err && i < buf_count(&from->rows, void *); i++) {
		r = mem_alloc(sizeof(*r));
		if (!r || buf_put(&to->rows, &r, sizeof(r))) {
			mem_free(r);
			return -ENOMEM;
		}
		*r = *work_row_at(from, (uint32_t)i + 1);
	}
	to->on = from->on;
	err = err ? err : mdl_items_copy(&to->slot_index, &to->slots, &from->slot_index, &from->slots);
	err = err ? err : hash_copy(&to->last_slots, &from->last_slots);
	return err ? err : graphs_copy(&to->graphs, &from->graphs);
}

void work_clear(struct join *j)
{
	struct activity_work *r;
	size_t i;

	graphs_clear(&j->graphs);
	for (i = 0; i < buf_count(&j->rows, void *); i++) {
		r = work_row_at(j, (uint32_t)i + 1);
		memset(&r->a.total, 0, sizeof(r->a.total));
		memset(&r->a.self, 0, sizeof(r->a.self));
		memset(r->hist, 0, sizeof(r->hist));
		r->a.latencies = r->a.latency_ns = r->a.latency_max_ns = 0;
	}
}
