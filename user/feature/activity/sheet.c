// SPDX-License-Identifier: Apache-2.0
/* Device activities (kernels, copies) by class and name. */
#include "feature/activity/activity.h"
#include <errno.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

struct activity {
	struct view_text name;
	struct mxbpf_agg_activity a;
	uint64_t mean_ns;
};

struct activities {
	struct view_list list;
	uint64_t count, total_ns; /* of all rows */
	uint64_t unlaunched;	  /* part of count: see struct mxbpf_agg_activity */
	bool devices;		  /* the rows have several devices */
};

static const char *const kinds[MXBPF_ACTIVITY_MAX] = {[MXBPF_ACTIVITY_KERNEL] = "kernel",
						      [MXBPF_ACTIVITY_COPY] = "copy",
						      [MXBPF_ACTIVITY_SET] = "set",
						      [MXBPF_ACTIVITY_SYNC] = "wait"};

static int by_name(const struct activity *a, const struct activity *b)
{
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	if (order)
		return order;
	if (a->a.cls != b->a.cls)
		return a->a.cls < b->a.cls ? -1 : 1;
	if (a->a.device != b->a.device)
		return a->a.device < b->a.device ? -1 : 1;
	return a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct activity *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	bool count = opts->sort == VIEW_SORT_COUNT;
	uint64_t ka = count ? a->a.count : a->a.total_ns, kb = count ? b->a.count : b->a.total_ns;

	if (opts->sort != VIEW_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return by_name(a, b);
}

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static int make(const struct view *s, void *table)
{
	struct activities *t = table;
	const struct mxbpf_agg_activity *all = activity_rows(s->in->model, &t->list.all);
	struct activity *r = calloc(t->list.all + 1, sizeof(*r));
	size_t i;

	t->list.rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->list.all; i++) {
		r[i].a = all[i];
		r[i].mean_ns = all[i].total_ns / all[i].count;
		r[i].name.data = mdl_name(s->in->model, all[i].name_id, &r[i].name.len);
		add(&t->count, all[i].count);
		add(&t->total_ns, all[i].total_ns);
		add(&t->unlaunched, all[i].unlaunched);
		t->devices |= all[i].device != all[0].device;
	}
	qsort_r(r, t->list.all, sizeof(*r), by_opts, (void *)s->opts);
	return 0;
}

static void above(struct view *s, const void *table, const char *prefix)
{
	const struct activities *t = table;
	char n[32], ns[24];

	out_printf(s->out, "%sGPU activities: %s, %s in all, in ", prefix, fmt_count(t->count, n),
		   fmt_ns(t->total_ns, ns));
	view_put_rows(s, &t->list);
	out_puts(s->out, "\n");
}

static void below(struct view *s, const void *table, const char *prefix)
{
	const struct activities *t = table;
	char n[32];

	if (t->unlaunched)
		out_printf(s->out, "%s         %s of them belong to no call, because their launch was not seen\n",
			   prefix, fmt_count(t->unlaunched, n));
}

/* False: a session does not know in advance whether the target uses a GPU. */
static bool when(const struct view *s)
{
	return false;
}

#define ROW	     struct activity
#define SEEN(member) .shown = offsetof(struct activities, member)
static const struct view_column columns[] = {
	{"name", NULL, "name", VIEW_TEXT, AT(name)},
	{"kind", NULL, "kind", VIEW_WORD, AT(a.cls), .name_min = 20, WORDS(kinds)},
	{"gpu", NULL, "gpu", VIEW_COUNT, AT(a.device), SEEN(devices), .help = "number of the GPU in the process"},
	PID_COLUMN(a.h.tgid),
	{"count", NULL, "calls", VIEW_COUNT, AT(a.count)},
	{"total_ns", NULL, "total", VIEW_NS, AT(a.total_ns), VIEW_TIGHT,
	 .help = "time on the GPU; activities of several streams overlap"},
	{NULL, NULL, "mean", VIEW_NS, AT(mean_ns), VIEW_TIGHT},
	{"min_ns", NULL, "min", VIEW_NS, AT(a.min_ns), VIEW_TIGHT, .name_min = 16},
	{"max_ns", NULL, "max", VIEW_NS, AT(a.max_ns), VIEW_TIGHT, .name_min = 12},
	{"bytes", NULL, "bytes", VIEW_BYTES, AT(a.bytes), VIEW_DASH, .help = "bytes copied or set; 0 for kernels"},
	{"unlaunched", NULL, NULL, VIEW_COUNT, AT(a.unlaunched),
	 .help = "number of activities whose launch was not seen; count includes them"},
	{0},
};

/* CSV has no activities: the columns of a series must be known before the first activity arrives. */
const struct view_sheet sheet_activity = {
	.title = "GPU activities",
	.help = "Activities of GPUs, by GPU, kind and name; absent if there are none.",
	.member = "activities",
	.columns = columns,
	.row_bytes = sizeof(struct activity),
	.table_bytes = sizeof(struct activities),
	.if_any = true,
	.when = when,
	.make = make,
	.above = above,
	.below = below,
};
