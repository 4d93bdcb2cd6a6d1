// SPDX-License-Identifier: Apache-2.0
/* Adds user annotations up by name: user counters, instants, and the first start and last end of annotated spans. */
#include "feature/marks/marks.h"

#include <errno.h>

struct state {
	struct hash value_index; /* (name_id, tgid) -> struct mxbpf_value * */
	struct buf values;	 /* struct mxbpf_value *, owned */
};

/* Returns whether a was set after b. Values of the same time are ordered by the sequence number of the counter. */
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
	struct state *state = mdl_state(m, &feature_marks);
	struct mxbpf_value *r;
	bool added;

	if (!state)
		return -ENOMEM;
	r = mdl_expect_name(m, v->name_id)
		    ? NULL
		    : mdl_row_put(&state->value_index, &state->values, v->name_id, v->h.tgid, sizeof(*r), &added);
	if (!r)
		return -ENOMEM;
	if (added) {
		*r = *v;
		r->h.size = sizeof(*r); /* a newer version has a longer record */
		r->count = 0;
		r->tid = 0;
	}
	marks_value_merge(r, v);
	return 0;
}

static int instant_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_instant row = *(const struct mxbpf_instant *)rec;

	row.last_ns = row.last_ns > rec->ts_ns ? row.last_ns : rec->ts_ns;
	return mdl_table_add(m, &feature_marks, &marks_instants_table, &row);
}

static void extent_add(struct mdl_row *r, uint64_t first_ns, uint64_t last_ns)
{
	if (!r->last_ns || first_ns < r->first_ns)
		r->first_ns = first_ns;
	if (last_ns > r->last_ns)
		r->last_ns = last_ns;
}

/* The record belongs to an AGG record before it. Without that one there is no row, and the record is skipped. */
static int extent_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_extent *a = (const void *)rec;
	struct mdl_row *r = mdl_row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

	if (r)
		extent_add(r, a->first_ns, a->last_ns);
	return 0;
}

static int extent_emit_row(const struct mdl_row *r, struct buf *out)
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

const struct mxbpf_value *const *marks_values(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_marks);

	*n = state ? buf_count(&state->values, void *) : 0;
	return state ? (const void *)state->values.data : NULL;
}

const struct mxbpf_instant *marks_instants(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_marks, &marks_instants_table, n);
}

static int marks_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	if (s->flags & MXBPF_SPAN_USER)
		extent_add(row, s->h.ts_ns, s->h.ts_ns + s->dur_ns);
	return 0;
}

static void marks_merge_row(struct mdl_row *to, const struct mdl_row *from)
{
	if (from->last_ns)
		extent_add(to, from->first_ns, from->last_ns);
}

static int marks_emit(const struct mdl *m, struct buf *out)
{
	const struct state *state = mdl_state_of(m, &feature_marks);

	return mdl_rows_emit(&state->values, sizeof(struct mxbpf_value), out);
}

static int marks_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_marks);
	struct state *t = mdl_state(to, &feature_marks);

	if (!t)
		return -ENOMEM;
	return mdl_rows_copy(&t->value_index, &t->values, &f->value_index, &f->values, sizeof(struct mxbpf_value));
}

/* A process that only sets counters has no other rows. */
static int marks_processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	size_t i, n;
	const struct mxbpf_value *const *values = marks_values(m, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = fn(ctx, values[i]->h.tgid);
	return err;
}

static void marks_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_marks);

	mdl_rows_fini(&state->value_index, &state->values);
}

const char *marks_domain(const struct mdl *m, uint64_t name_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_DOMAIN, name_id, len);

	*len = text ? *len : 0;
	return text ? text : "";
}

const struct mdl_feature feature_marks = {
	.trace = &marks_trace,
	.state_bytes = sizeof(struct state),
	.tables = {{&marks_instants_table}},
	.kinds = {{MXBPF_INSTANT, instant_fold}, {MXBPF_VALUE, value_fold}, {MXBPF_AGG_EXTENT, extent_fold}},
	.span = marks_span,
	.emit_row = extent_emit_row,
	.merge_row = marks_merge_row,
	.emit = marks_emit,
	.copy = marks_copy,
	.processes = marks_processes,
	.fini = marks_fini,
};
