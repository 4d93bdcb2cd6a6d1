// SPDX-License-Identifier: Apache-2.0
/* The program's own marks that are no spans: its counters and moments, those of one name added up. */
#include "feature/marks/marks.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What was set later is the last: at one moment, what the counter itself counts as later. */
static bool is_later(const struct mxbpf_value *a, const struct mxbpf_value *b)
{
	return a->h.ts_ns != b->h.ts_ns ? a->h.ts_ns > b->h.ts_ns : a->seq > b->seq;
}

void marks_value_merge(struct mxbpf_value *to, const struct mxbpf_value *from)
{
	if (!from->count)
		return;
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (!to->count || from->max > to->max)
		to->max = from->max;
	if (!to->count || is_later(from, to)) {
		to->h.ts_ns = from->h.ts_ns;
		to->seq = from->seq;
		to->value = from->value;
	}
	add_sat(&to->count, from->count);
}

static int value_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_value *v = (const void *)rec;
	bool added;
	struct mxbpf_value *r = mdl_row_put(&m->value_index, &m->values, v->name_id, v->h.tgid, sizeof(*r), &added);

	if (!r || (added && mdl_expect_name(m, v->name_id)))
		return -ENOMEM;
	if (added) {
		*r = *v;
		r->h.size = sizeof(*r); /* a newer one is longer */
		r->count = 0;
		r->tid = 0;
	}
	marks_value_merge(r, v);
	return 0;
}

void marks_instant_merge(struct mxbpf_instant *to, const struct mxbpf_instant *from)
{
	const uint64_t last_ns = from->last_ns > from->h.ts_ns ? from->last_ns : from->h.ts_ns;

	if (!to->count || from->h.ts_ns < to->h.ts_ns)
		to->h.ts_ns = from->h.ts_ns;
	if (last_ns > to->last_ns)
		to->last_ns = last_ns;
	add_sat(&to->count, from->count);
}

static int instant_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_instant *v = (const void *)rec;
	const uint64_t kind = (uint64_t)v->h.tgid << 32 | (uint64_t)v->what << 8 | v->scope;
	bool added;
	struct mxbpf_instant *r = mdl_row_put(&m->instant_index, &m->instants, v->name_id, kind, sizeof(*r), &added);

	if (!r || (added && mdl_expect_name(m, v->name_id)))
		return -ENOMEM;
	if (added) {
		*r = *v;
		r->h.size = sizeof(*r);
		r->count = 0;
		r->tid = 0;
	}
	marks_instant_merge(r, v);
	return 0;
}

void extent_add(struct mdl_row *r, uint64_t first_ns, uint64_t last_ns)
{
	if (!r->last_ns || first_ns < r->first_ns)
		r->first_ns = first_ns;
	if (last_ns > r->last_ns)
		r->last_ns = last_ns;
}

/* What names no row is skipped. */
static int extent_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_extent *a = (const void *)rec;
	struct mdl_row *r = row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

	if (r)
		extent_add(r, a->first_ns, a->last_ns);
	return 0;
}

int extent_emit(const struct mdl_row *r, struct buf *out)
{
	const struct mxbpf_agg_extent a = {
		.h = {.kind = MXBPF_AGG_EXTENT, .size = sizeof(a), .tgid = r->tgid},
		.name_id = r->id,
		.first_ns = r->first_ns,
		.last_ns = r->last_ns,
		.device = r->device,
		.cls = r->cls,
	};

	return r->last_ns ? buf_put(out, &a, sizeof(a)) : 0;
}

double marks_rate(const struct mdl_row *r)
{
	return r->last_ns > r->first_ns ? (double)r->count * 1e9 / (double)(r->last_ns - r->first_ns) : 0;
}

static int marks_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&m->values, void *); i++)
		err = buf_put(out, *buf_at(&m->values, void *, i), sizeof(struct mxbpf_value));
	for (i = 0; !err && i < buf_count(&m->instants, void *); i++)
		err = buf_put(out, *buf_at(&m->instants, void *, i), sizeof(struct mxbpf_instant));
	return err;
}

const struct mxbpf_value *const *marks_values(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->values, void *);
	return (const void *)m->values.data;
}

const struct mxbpf_instant *const *marks_instants(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->instants, void *);
	return (const void *)m->instants.data;
}

static void rows_fini(struct buf *rows)
{
	size_t i;

	for (i = 0; i < buf_count(rows, void *); i++)
		free(*buf_at(rows, void *, i));
	buf_fini(rows);
}

static void marks_fini(struct mdl *m)
{
	rows_fini(&m->values);
	rows_fini(&m->instants);
	hash_fini(&m->value_index);
	hash_fini(&m->instant_index);
}

const struct mdl_feature feature_marks = {
	.kinds = {{MXBPF_INSTANT, instant_fold}, {MXBPF_VALUE, value_fold}, {MXBPF_AGG_EXTENT, extent_fold}},
	.emit = marks_emit,
	.fini = marks_fini,
};
