// SPDX-License-Identifier: Apache-2.0
/* The table "spans": every call that the recording has. The other tables of single records are written with it. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "feature/cost/cost.h"
#include "view/dataset/dataset.h"

/* Files that are written at once. A recording of more hosts and ranks is read several times, so memory has a limit. */
#define FILES_AT_ONCE 16

struct span {
	uint64_t recording, start_ns, total_ns, self_ns, raw_total_ns, raw_self_ns, cpu, on_cpu_ns, runq_ns, blocked_ns;
	struct view_text name, category, layer, shapes, types;
	uint32_t device, tgid, tid, end_tid;
	int64_t alloc_bytes, self_alloc_bytes;
	bool account, unwound, annotation;
};

#define ROW	    struct span
#define HAS(member) .has = offsetof(ROW, member)
static const struct tbl_column columns[] = {
	{"recording", NULL, NULL, TBL_COUNT, AT(recording)},
	{"start", NULL, NULL, TBL_MOMENT, AT(start_ns)},
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"category", NULL, NULL, TBL_TEXT, AT(category)},
	{"total_ns", NULL, NULL, TBL_NS, AT(total_ns)},
	{"self_ns", NULL, NULL, TBL_NS, AT(self_ns)},
	/* With what watching cost. Their sums are those of the rows of "calls", to the nanosecond. */
	{"raw_total_ns", NULL, NULL, TBL_NS, AT(raw_total_ns)},
	{"raw_self_ns", NULL, NULL, TBL_NS, AT(raw_self_ns)},
	{"pid", NULL, NULL, TBL_COUNT, AT(tgid)},
	{NULL, NULL, NULL, TBL_PID, AT(tgid)},
	{"thread", NULL, NULL, TBL_COUNT, AT(tid)},
	{"end_thread", NULL, NULL, TBL_COUNT, AT(end_tid)},
	{"device", NULL, NULL, TBL_DEVICE, AT(device)},
	{"cpu", NULL, NULL, TBL_COUNT, AT(cpu), TBL_NULL, HAS(account)},
	{"account_on_cpu_ns", NULL, NULL, TBL_NS, AT(on_cpu_ns), HAS(account)},
	{"account_runq_ns", NULL, NULL, TBL_NS, AT(runq_ns), HAS(account)},
	{"account_blocked_ns", NULL, NULL, TBL_NS, AT(blocked_ns), HAS(account)},
	{"alloc_bytes", NULL, NULL, TBL_BYTES, AT(alloc_bytes), TBL_SIGNED},
	{"self_alloc_bytes", NULL, NULL, TBL_BYTES, AT(self_alloc_bytes), TBL_SIGNED},
	{"shapes", NULL, NULL, TBL_RAW, AT(shapes)},
	{"types", NULL, NULL, TBL_RAW, AT(types)},
	{"layer", NULL, NULL, TBL_TEXT, AT(layer)},
	{"unwound", NULL, NULL, TBL_BOOL, AT(unwound)},
	{"annotation", NULL, NULL, TBL_BOOL, AT(annotation)},
	{0},
};
#undef ROW

static struct view_text args_line(const struct mdl *m, uint64_t args_id, enum view_args_line i)
{
	struct view_text text = {0};

	if (args_id)
		text.data = view_args_line(m, args_id, i, &text.len);
	return text;
}

static struct span spans_row_of(const struct dataset *d, const struct mxbpf_span *s)
{
	const struct mdl *m = d->s.in->model;
	struct span row = {
		.recording = d->recording,
		.start_ns = s->h.ts_ns,
		.total_ns = s->dur_ns,
		.self_ns = s->self_ns,
		.cpu = s->cpu == MXBPF_CPU_NONE ? TBL_UNKNOWN : s->cpu,
		.on_cpu_ns = s->account.on_cpu_ns,
		.runq_ns = s->account.runq_ns,
		.blocked_ns = s->account.blocked_ns,
		.category = view_word(mdl_category(s->cls)),
		.shapes = args_line(m, s->args_id, VIEW_ARGS_DIMS),
		.types = args_line(m, s->args_id, VIEW_ARGS_TYPES),
		.device = s->device,
		.tgid = s->h.tgid,
		.tid = s->tid,
		.end_tid = s->end_tid,
		.alloc_bytes = s->alloc_bytes,
		.self_alloc_bytes = s->self_alloc_bytes,
		.account = s->flags & MXBPF_SPAN_ACCOUNT,
		.unwound = s->flags & MXBPF_SPAN_UNWOUND,
		.annotation = mxbpf_traits(s) & MXBPF_TRAIT_USER,
	};

	row.name.data = mdl_name(m, s->name_id, &row.name.len);
	if (s->layer_id)
		row.layer.data = view_layer(m, d->s.opts, s->layer_id, &row.layer.len);
	return row;
}

static int on_record(struct view *s, const struct mxbpf_rec *r)
{
	struct dataset *d = (struct dataset *)s;
	uint64_t raw_total_ns, raw_self_ns;
	struct mxbpf_span span;
	struct span row;

	if (r->kind == MXBPF_ACTIVITY)
		return dataset_activity(d, r);
	if (r->kind == MXBPF_LAUNCH)
		return dataset_launch(d, r);
	if (r->kind != MXBPF_SPAN)
		return 0;
	kind_span(r, &span);
	raw_total_ns = span.dur_ns;
	raw_self_ns = span.self_ns;
	cost_take_span(s->in->model, &span, s->in->session);
	row = spans_row_of(d, &span);
	row.raw_total_ns = raw_total_ns;
	row.raw_self_ns = raw_self_ns;
	return dataset_table_row(&d->spans, &row);
}

static int begin_table(struct dataset_table *t, struct dataset *d, const char *name, const struct tbl_column *of,
		       size_t from)
{
	const int err = dataset_table_begin(t, d, name);

	t->from = from;
	t->to = from + FILES_AT_ONCE;
	dataset_table_columns(t, of, NULL);
	return err;
}

/* Writes the tables of some hosts and ranks. */
static int one_pass(struct dataset *d, size_t from, uint64_t *done, uint64_t of)
{
	int err = begin_table(&d->spans, d, "spans", columns, from);

	err = err ? err : begin_table(&d->activities, d, "activities", dataset_activity_columns, from);
	err = err ? err : begin_table(&d->launches, d, "launches", dataset_launch_columns, from);
	err = err ? err : view_pass(&d->s, on_record, done, of);
	err = dataset_table_end(&d->spans, err);
	err = dataset_table_end(&d->activities, err);
	return dataset_table_end(&d->launches, err);
}

int dataset_records(struct dataset *d)
{
	const size_t n = dataset_nparts(d), passes = (n + FILES_AT_ONCE - 1) / FILES_AT_ONCE;
	const uint64_t of = d->s.in->source->total_bytes * passes;
	uint64_t done = 0;
	size_t from;
	int err = 0;

	for (from = 0; !err && from < n; from += FILES_AT_ONCE)
		err = one_pass(d, from, &done, of);
	return err;
}
