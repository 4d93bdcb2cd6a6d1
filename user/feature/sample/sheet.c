// SPDX-License-Identifier: Apache-2.0
/* --sample: samples of each operator, without samples in calls nested in it. */
#include "feature/sample/sample.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Samples in calls of one name, without samples in calls nested in them. */
struct sample {
	struct view_text name, title; /* title: of its table; without data for samples outside all calls */
	uint64_t count;
	double share;
	uint32_t tgid;
	bool known; /* in which call; false: between slices */
};

struct samples {
	struct view_list list;
	uint64_t count; /* of all rows */
	uint64_t known; /* of those whose call is known */
	uint32_t hz;
};

static int most_first(const void *va, const void *vb)
{
	const struct sample *a = va, *b = vb;
	int order;

	if (a->known != b->known)
		return a->known ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

static int make(const struct view *s, void *table)
{
	struct samples *t = table;
	const struct sample_row *all = sample_rows(s->in->model, &t->list.all);
	struct sample *r = calloc(t->list.all + 1, sizeof(*r));
	size_t i;

	t->hz = s->in->session->sample_hz;
	t->list.rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->list.all; i++) {
		r[i] = (struct sample){.name = view_word(all[i].between ? VIEW_BETWEEN_SLICES : VIEW_NO_OPERATOR),
				       .tgid = all[i].tgid,
				       .known = !all[i].between,
				       .count = all[i].count};
		add_sat(&t->count, all[i].count);
		if (!all[i].between)
			add_sat(&t->known, all[i].count);
		if (!all[i].cls)
			continue;
		r[i].name.data = mdl_name(s->in->model, all[i].name_id, &r[i].name.len);
		r[i].title = view_word(mdl_class_title(s->in->session, all[i].cls));
	}
	qsort(r, t->list.all, sizeof(*r), most_first);
	for (i = 0; i < t->list.all; i++)
		r[i].share = t->known ? (double)r[i].count / (double)t->known : 0;
	return 0;
}

static void above(struct view *s, const void *table, const char *prefix)
{
	const struct samples *t = table;
	char n[32], ns[24];

	out_printf(s->out, "%ssamples at %u Hz: %s, so about %s on a CPU", prefix, t->hz, fmt_count(t->count, n),
		   fmt_ns(t->count * 1000000000 / t->hz, ns));
	if (t->known < t->count)
		out_printf(s->out, "; calls are known of the %s in slices (--exact: of all)", fmt_count(t->known, n));
	out_puts(s->out, "\n");
}

static bool when(const struct view *s)
{
	return s->in->session->sample_hz;
}

#define ROW struct samples
static const struct view_column totals[] = {
	{"hz", "sample_hz", NULL, VIEW_COUNT, AT(hz), .help = "samples a second of each CPU"},
	{"count", "", NULL, VIEW_COUNT, AT(count),
	 .help = "samples of threads of the target; each stands for 1/hz seconds of CPU time"},
	{0},
};
#undef ROW

#define ROW struct sample
static const struct view_column columns[] = {
	{"name", NULL, "ran in", VIEW_TEXT, AT(name),
	 .help = "name of the innermost open call; [no operator]: none was open; [between slices]: none was recorded"},
	{"table", "", NULL, VIEW_TEXT, AT(title), VIEW_NULL,
	 .help = "table that has the row of this call; null: no call was open"},
	PID_COLUMN(tgid),
	{"count", NULL, "samples", VIEW_COUNT, AT(count)},
	{NULL, NULL, "share", VIEW_SHARE, AT(share), .has = offsetof(struct sample, known), .digits = 1,
	 .help = "share of the samples whose call is known"},
	{0},
};

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
	.when = when,
	.make = make,
	.above = above,
};
