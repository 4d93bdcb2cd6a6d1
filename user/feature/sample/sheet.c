// SPDX-License-Identifier: Apache-2.0
/* --sample: samples of each operator, without samples in calls nested in it. */
#include "feature/sample/sample.h"

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Samples in calls of one name, without samples in calls nested in them. */
struct sample {
	struct sample_row r;
	struct view_text name, title; /* title: of its table; without data for samples outside all calls */
	double share;
	bool known; /* in which call; false: between slices */
};

struct samples {
	struct view_list list;
	uint64_t count; /* of all rows */
	uint64_t known; /* of those whose call is known */
	uint32_t hz;
};

static int most_first(const void *va, const void *vb, void *opts)
{
	const struct sample *a = va, *b = vb;
	int order;

	if (a->known != b->known)
		return a->known ? -1 : 1;
	if (a->r.count != b->r.count)
		return a->r.count > b->r.count ? -1 : 1;
	order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->r.tgid < b->r.tgid ? -1 : a->r.tgid > b->r.tgid;
}

static void sample_fill(const struct view *s, void *row)
{
	struct sample *r = row;

	r->known = !r->r.between;
	r->name = view_word(r->known ? VIEW_NO_OPERATOR : VIEW_BETWEEN_SLICES);
	if (!r->r.cls)
		return;
	r->name.data = mdl_name(s->in->model, r->r.name_id, &r->name.len);
	r->title = view_word(mdl_class_title(s->in->session, r->r.cls));
}

static void sample_finish(const struct view *s, void *table)
{
	struct samples *t = table;
	struct sample *r = t->list.rows;
	size_t i;

	t->hz = s->in->session->sample_hz;
	for (i = 0; i < t->list.all; i++) {
		add_sat(&t->count, r[i].r.count);
		if (r[i].known)
			add_sat(&t->known, r[i].r.count);
	}
	for (i = 0; i < t->list.all; i++)
		r[i].share = t->known ? (double)r[i].r.count / (double)t->known : 0;
}

static void sample_above(struct view *s, const void *table, const char *prefix)
{
	const struct samples *t = table;
	char n[32], ns[24];

	out_printf(s->out, "%ssamples at %u Hz: %s, so about %s on a CPU", prefix, t->hz, fmt_count(t->count, n),
		   fmt_ns(t->count * 1000000000 / t->hz, ns));
	if (t->known < t->count)
		out_printf(s->out, "; calls are known of the %s in slices (--exact: of all)", fmt_count(t->known, n));
	out_puts(s->out, "\n");
}

static bool sample_when(const struct view *s)
{
	return s->in->session->sample_hz;
}

#define ROW struct samples
static const struct tbl_column totals[] = {
	{"hz", "sample_hz", NULL, TBL_COUNT, AT(hz), .help = "samples a second of each CPU"},
	{"count", "", NULL, TBL_COUNT, AT(count),
	 .help = "samples of threads of the target; each stands for 1/hz seconds of CPU time"},
	{0},
};
#undef ROW

#define ROW struct sample
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(r.name_id)},
	{.stored = "class", .type = TBL_COUNT, KEY_AT(r.cls), .limit = MXBPF_CLASS_MAX - 1},
	{.stored = "between", .type = TBL_BOOL, KEY_AT(r.between), .limit = 1},
	{"name", NULL, "ran in", TBL_TEXT, AT(name),
	 .help = "name of the innermost open call; [no operator]: none was open; [between slices]: none was recorded"},
	{"table", "", NULL, TBL_TEXT, AT(title), TBL_NULL,
	 .help = "table that has the row of this call; null: no call was open"},
	PID_COLUMN(r.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "samples", TBL_COUNT, SUM_AT(r.count)},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .has = offsetof(struct sample, known), .digits = 1,
	 .help = "share of the samples whose call is known"},
	{0},
};

const struct tbl_def sample_table = {
	.name = "samples", .row_bytes = sizeof(struct sample_row), .adds_processes = true, .columns = columns};

const struct view_sheet sheet_sample = {
	.title = "samples",
	.help = "Requires --sample: calls in which the samples fell.",
	.member = "samples",
	.list = "ran_in",
	.csv = "samples",
	.columns = columns,
	.totals = totals,
	.row_bytes = sizeof(struct sample),
	.table_bytes = sizeof(struct samples),
	.when = sample_when,
	.stored = &sample_table,
	.feature = &feature_sample,
	.fill = sample_fill,
	.finish = sample_finish,
	.order = most_first,
	.above = sample_above,
};
