// SPDX-License-Identifier: Apache-2.0
/* Adds up the counters of measured launches by kernel. */
#include "feature/kernels/kernels.h"

#include <errno.h>

#define ROWS_MAX 4096 /* of 440 bytes */

struct state {
	struct hash index; /* (name, process) -> 1 + index in rows */
	struct buf rows;   /* struct mxbpf_agg_kernel_metrics */
};

static struct state *state_of(struct mdl *m)
{
	return mdl_state(m, &feature_kernels);
}

const struct mxbpf_agg_kernel_metrics *kernels_rows(const struct mdl *m, size_t *n)
{
	const struct state *t = mdl_state_of(m, &feature_kernels);

	*n = t ? buf_count(&t->rows, struct mxbpf_agg_kernel_metrics) : 0;
	return t ? (const void *)t->rows.data : NULL;
}

/* *row receives the row, or NULL if there are too many. Returns 0 or -ENOMEM. */
static int row_of(struct mdl *m, uint64_t name_id, uint32_t tgid, struct mxbpf_agg_kernel_metrics **row)
{
	struct state *t = state_of(m);
	bool added;

	*row = NULL;
	if (!t || mdl_expect_name(m, name_id))
		return -ENOMEM;
	if (!hash_get(&t->index, name_id, tgid) && buf_count(&t->rows, **row) >= ROWS_MAX)
		return 0;
	*row = mdl_item_put(&t->index, &t->rows, name_id, tgid, sizeof(**row), &added);
	if (!*row)
		return -ENOMEM;
	if (added)
		**row = (struct mxbpf_agg_kernel_metrics){
			.h = {.kind = MXBPF_AGG_KERNEL_METRICS, .size = sizeof(**row), .tgid = tgid},
			.name_id = name_id};
	return 0;
}

static void add_counter(struct mxbpf_kernel_counter *to, const struct mxbpf_kernel_counter *from)
{
	if (!from->n)
		return;
	to->min = to->n && to->min < from->min ? to->min : from->min;
	to->max = to->max > from->max ? to->max : from->max;
	add_sat(&to->n, from->n);
	add_sat(&to->sum, from->sum);
}

static void add_launches(struct mxbpf_agg_kernel_metrics *to, uint64_t launches, uint64_t held_ns, uint64_t longest_ns,
			 uint32_t passes)
{
	add_sat(&to->launches, launches);
	add_sat(&to->held_ns, held_ns);
	to->longest_ns = longest_ns > to->longest_ns ? longest_ns : to->longest_ns;
	to->passes = passes > to->passes ? passes : to->passes;
}

static int fold_metric(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_kernel_metric *from = (const void *)rec;
	const struct mxbpf_kernel_counter one = {.n = 1, .sum = from->milli, .min = from->milli, .max = from->milli};
	struct mxbpf_agg_kernel_metrics *row;
	const int err = row_of(m, from->name_id, from->h.tgid, &row);

	if (err || !row)
		return err;
	add_counter(&row->counters[from->number], &one);
	if (from->first)
		add_launches(row, 1, from->held_ns, from->held_ns, from->passes);
	return 0;
}

static int fold_row(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_kernel_metrics *from = (const void *)rec;
	struct mxbpf_agg_kernel_metrics *row;
	const int err = row_of(m, from->name_id, from->h.tgid, &row);
	unsigned i;

	if (err || !row)
		return err;
	for (i = 0; i < MXBPF_KERNEL_COUNTERS; i++)
		add_counter(&row->counters[i], &from->counters[i]);
	add_launches(row, from->launches, from->held_ns, from->longest_ns, from->passes);
	return 0;
}

/* ---- the state */

static int emit(const struct mdl *m, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_kernels);

	return buf_put(out, t->rows.data, t->rows.len);
}

static int copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_kernels);
	struct state *t = state_of(to);

	return t ? mdl_items_copy(&t->index, &t->rows, &f->index, &f->rows) : -ENOMEM;
}

static int processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct state *t = mdl_state_of(m, &feature_kernels);

	return mdl_items_processes(&t->rows, sizeof(struct mxbpf_agg_kernel_metrics), fn, ctx);
}

static void fini(struct mdl *m)
{
	struct state *t = state_of(m);

	mdl_items_fini(&t->index, &t->rows);
}

const struct mdl_feature feature_kernels = {
	.option = &kernels_option,
	.state_bytes = sizeof(struct state),
	.by_process = true,
	.kinds = {{MXBPF_KERNEL_METRIC, fold_metric}, {MXBPF_AGG_KERNEL_METRICS, fold_row}},
	.emit = emit,
	.copy = copy,
	.processes = processes,
	.fini = fini,
};
