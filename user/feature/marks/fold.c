// SPDX-License-Identifier: Apache-2.0
/* Adds user annotations up by name: user counters, instants, and the first start and last end of annotated spans. */
#include "feature/marks/marks.h"

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

const struct mxbpf_value *marks_values(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_marks, &marks_values_table, n);
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

const char *marks_domain(const struct mdl *m, uint64_t name_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_DOMAIN, name_id, len);

	*len = text ? *len : 0;
	return text ? text : "";
}

const struct mdl_feature feature_marks = {
	.trace = &marks_trace,
	.tables = {{&marks_values_table, MXBPF_VALUE}, {&marks_instants_table}},
	.kinds = {{MXBPF_INSTANT, instant_fold}, {MXBPF_AGG_EXTENT, extent_fold}},
	.span = marks_span,
	.emit_row = extent_emit_row,
	.merge_row = marks_merge_row,
};
