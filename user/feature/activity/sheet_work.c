// SPDX-License-Identifier: Apache-2.0
/* Work that operators and other calls, modules and layers gave to GPUs. */
#include "feature/activity/sheet.h"
#include "feature/activity/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "view/priv.h"

enum caller {
	CALLER_OPERATOR = 1,
	CALLER_CALL,
	CALLER_ANNOTATION,
	CALLER_OUTSIDE,
	CALLER_UNKNOWN,
};
static const char *const kinds[] = {
	[CALLER_OPERATOR] = "operator",	    [CALLER_CALL] = "call",	    [CALLER_ANNOTATION] = "annotation",
	[CALLER_OUTSIDE] = "no call known", [CALLER_UNKNOWN] = "no launch",
};

struct work {
	struct view_text name, owner;
	struct mxbpf_agg_gpu_work a;
	uint64_t latency_avg_ns, latency_p50_ns, latency_max_ns; /* TBL_UNKNOWN: no launch has a latency */
	double share;
	uint8_t kind;
	uint64_t graph_ns; /* the part of a.self that graphs have run */
	char owner_text[VIEW_LABEL_BYTES];
};

struct works {
	struct view_list list;
	uint64_t self_ns; /* of all rows */
	bool copies;	  /* some row has copies */
	bool graphs;	  /* some row has work in graphs */
	bool processes;	  /* people see whose row it is */
};

static int activity_sheet_work_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct work *a = va, *b = vb;
	const struct gpu_keys ka = {a->a.total.gpu_ns, a->a.self.gpu_ns,  a->a.total.kernels, a->latency_avg_ns,
				    a->a.total.gpu_ns, a->latency_max_ns, a->latency_max_ns};
	const struct gpu_keys kb = {b->a.total.gpu_ns, b->a.self.gpu_ns,  b->a.total.kernels, b->latency_avg_ns,
				    b->a.total.gpu_ns, b->latency_max_ns, b->latency_max_ns};
	const int order = gpu_order(vopts, &ka, &kb, &a->name, &b->name);

	if (order)
		return order;
	if (a->a.cls != b->a.cls || a->a.user != b->a.user)
		return a->a.cls != b->a.cls ? a->a.cls - b->a.cls : a->a.user - b->a.user;
	return a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

static uint8_t caller_of(const struct mxbpf_agg_gpu_work *a)
{
	if (a->of == MXBPF_WORK_OF_OUTSIDE)
		return CALLER_OUTSIDE;
	if (a->of == MXBPF_WORK_OF_UNKNOWN)
		return CALLER_UNKNOWN;
	if (a->user || a->cls == MXBPF_CLASS_TASK || a->cls == MXBPF_CLASS_FRAME || a->cls == MXBPF_CLASS_EVENT ||
	    a->cls == MXBPF_CLASS_STEP)
		return CALLER_ANNOTATION;
	return a->cls == MXBPF_CLASS_OPERATOR || a->cls == MXBPF_CLASS_KERNEL ? CALLER_OPERATOR : CALLER_CALL;
}

static bool is_nothing(const struct mxbpf_gpu_work *w)
{
	return !w->launches && !w->kernels && !w->copies && !w->gpu_ns;
}

static void fill_name(const struct view *s, struct work *r)
{
	switch (r->a.of) {
	case MXBPF_WORK_OF_CALLS:
		r->name.data = mdl_name(s->in->model, r->a.name_id, &r->name.len);
		break;
	case MXBPF_WORK_OF_LAYER:
		r->name.data = mdl_text(s->in->model, MXBPF_NAME_LAYER, r->a.layer_id, &r->name.len);
		r->name = r->name.data ? r->name : view_word("[unknown]");
		break;
	case MXBPF_WORK_OF_STACK:
		r->name.data = mdl_text(s->in->model, MXBPF_NAME_STACK, r->a.stack_id, &r->name.len);
		r->name.data = view_module_line(r->name.data ? r->name.data : "", &r->name.len);
		break;
	case MXBPF_WORK_OF_OUTSIDE:
		r->name = view_word("[outside of calls]");
		break;
	case MXBPF_WORK_OF_UNKNOWN:
		r->name = view_word("[launch not seen]");
		break;
	}
}

static void activity_sheet_work_fill(const struct view *s, struct work *r, const struct activity_work *of)
{
	const struct mdl_extent extent = {of->a.latencies, 0, of->a.latency_max_ns};

	r->a = of->a;
	if (r->a.of == MXBPF_WORK_OF_OUTSIDE || r->a.of == MXBPF_WORK_OF_UNKNOWN)
		r->a.total = r->a.self;
	r->kind = caller_of(&r->a);
	r->latency_avg_ns = r->latency_p50_ns = r->latency_max_ns = TBL_UNKNOWN;
	if (of->a.latencies) {
		r->latency_avg_ns = of->a.latency_ns / of->a.latencies;
		r->latency_p50_ns = mdl_hist_percentile(of->hist, &extent, 0.50);
		r->latency_max_ns = mdl_hist_percentile(of->hist, &extent, 1.00);
	}
	fill_name(s, r);
}

static bool belongs(const struct mxbpf_agg_gpu_work *a, enum mxbpf_gpu_work_of of)
{
	if (is_nothing(&a->total) && is_nothing(&a->self))
		return false;
	return a->of == of ||
	       (of == MXBPF_WORK_OF_CALLS && (a->of == MXBPF_WORK_OF_OUTSIDE || a->of == MXBPF_WORK_OF_UNKNOWN));
}

/* After sorting, which moves the texts. */
static void put_owners(const struct view *s, struct works *t)
{
	struct work *r = t->list.rows;
	size_t i;

	for (i = 0; t->processes && i < t->list.all; i++)
		r[i].owner = view_word(gpu_owner(s, r[i].a.h.tgid, r[i].owner_text));
}

static int make_of(const struct view *s, struct works *t, enum mxbpf_gpu_work_of of)
{
	size_t n, i;
	const struct activity_work *const *all = activity_work_rows(s->in->model, &n);
	struct work *r = calloc(n + 1, sizeof(*r)), *last = r;

	t->list.rows = r;
	t->processes = view_by_processes(s->opts->by);
	gpu_show_empty(s, &t->list);
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (!belongs(&all[i]->a, of))
			continue;
		activity_sheet_work_fill(s, last, all[i]);
		add_sat(&t->self_ns, last->a.self.gpu_ns);
		t->copies |= last->a.total.copies;
		last++;
	}
	t->list.all = (size_t)(last - r);
	for (i = 0; i < t->list.all; i++)
		r[i].share = t->self_ns ? (double)r[i].a.self.gpu_ns / (double)t->self_ns : 0;
	qsort_r(r, t->list.all, sizeof(*r), activity_sheet_work_by_opts, (void *)s->opts);
	put_owners(s, t);
	return 0;
}

/* ---- operators and other calls */

static int make_work(const struct view *s, void *table)
{
	struct works *t = table;
	const int err = make_of(s, t, MXBPF_WORK_OF_CALLS);
	struct work *r = t->list.rows;
	struct hash sums = {0};
	size_t i;

	if (err || gpu_graph_sums(s->in->model, &sums)) {
		hash_fini(&sums);
		return err ? err : -ENOMEM;
	}
	for (i = 0; i < t->list.all; i++) {
		r[i].graph_ns = gpu_graph_sum(&sums, &r[i].a);
		t->graphs |= r[i].graph_ns;
	}
	hash_fini(&sums);
	return 0;
}

static void above_work(struct view *s, const void *table, const char *prefix)
{
	const struct works *t = table;
	char ns[24], text[96];

	snprintf(text, sizeof(text), "Operators on the GPU: %s in", fmt_ns(t->self_ns, ns));
	gpu_put_title(s, &t->list, prefix, text);
}

/* Writes how many launches and activities could not be joined, by cause. */
static void below_work(struct view *s, const void *table, const char *prefix)
{
	size_t n, i;
	const struct activity_join *all = activity_joins(s->in->model, &n);
	struct activity_join sum = {.launches = 0};
	char text[32];

	for (i = 0; i < n; i++) {
		add_sat(&sum.without_work, all[i].without_work);
		add_sat(&sum.late_launches, all[i].late_launches);
		add_sat(&sum.late_spans, all[i].late_spans);
	}
	if (sum.without_work)
		out_printf(s->out, "%s%s launch%s without an activity, which was lost or had not ended\n", prefix,
			   fmt_count(sum.without_work, text), sum.without_work == 1 ? "" : "es");
	if (sum.late_launches)
		out_printf(s->out, "%s%s launch%s arrived after the calls of that time were forgotten\n", prefix,
			   fmt_count(sum.late_launches, text), sum.late_launches == 1 ? "" : "es");
	if (sum.late_spans)
		out_printf(s->out, "%s%s call%s took so long that the first launches were forgotten\n", prefix,
			   fmt_count(sum.late_spans, text), gpu_plural(sum.late_spans));
}

#define ROW	     struct work
#define SEEN(member) .shown = offsetof(struct works, member)
static const struct tbl_column work_columns[] = {
	{"name", NULL, "operator", TBL_TEXT, AT(name)},
	{"kind", NULL, "kind", TBL_WORD, AT(kind), WORDS(kinds), .name_min = 26,
	 .help = "operator, another call, or user annotation; \"no call known\": no call enclosed the launch; \"no "
		 "launch\": activities whose launch was not seen"},
	GPU_OWNER_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"launches", NULL, "launches", TBL_COUNT, SUM_AT(a.total.launches), .name_min = 24,
	 .help = "launches of kernels, copies, sets and CUDA graphs in these calls, nested calls included"},
	{"kernels", NULL, "kernels", TBL_COUNT, SUM_AT(a.total.kernels),
	 .help = "kernels that they launched, nested calls included"},
	{"gpu_total_ns", NULL, "gpu total", TBL_NS, SUM_AT(a.total.gpu_ns), TBL_TIGHT,
	 .help = "time on the GPU of what they launched, nested calls included"},
	{"gpu_self_ns", NULL, "gpu self", TBL_NS, SUM_AT(a.self.gpu_ns), TBL_TIGHT,
	 .help = "the part of it that no nested operator launched"},
	{"graphs_ns", NULL, "in graphs", TBL_NS, SUM_AT(graph_ns), TBL_TIGHT | TBL_DASH, SEEN(graphs), .name_min = 14,
	 .help = "the part of gpu self that CUDA graphs ran which these calls had captured"},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1, .name_min = 12, .help = "gpu self as part of all"},
	{"self_kernels", NULL, NULL, TBL_COUNT, SUM_AT(a.self.kernels),
	 .help = "kernels that no nested operator launched"},
	{"copies", NULL, NULL, TBL_COUNT, SUM_AT(a.total.copies)},
	{"copied_bytes", NULL, "copied", TBL_BYTES, SUM_AT(a.total.bytes), TBL_DASH, SEEN(copies), .name_min = 20,
	 .help = "bytes of the copies that they launched, nested calls included"},
	{"latency_avg_ns", NULL, "latency", TBL_NS, AT(latency_avg_ns), TBL_TIGHT | TBL_NULL, .name_min = 16,
	 .help = "mean time from the begin of a launch to the begin of its first activity, of their own launches"},
	{"latency_p50_ns", NULL, "lat p50", TBL_NS, AT(latency_p50_ns), TBL_TIGHT | TBL_NULL, .name_min = 30},
	{"latency_max_ns", NULL, "lat max", TBL_NS, AT(latency_max_ns), TBL_TIGHT | TBL_NULL, .name_min = 28},
	{0},
};

const struct view_sheet sheet_gpu_work = {
	.title = "Operators on the GPU",
	.help = "Work that operators and other calls launched on GPUs. Work belongs to the calls that enclose its "
		"launch; "
		"its own caller is the innermost operator, else the innermost other call, else the innermost user "
		"annotation. Absent if there is none.",
	.list_help = "work on GPUs by the call that launched it",
	.member = "gpu",
	.list = "operators",
	.csv = "Operators on the GPU",
	.columns = work_columns,
	.row_bytes = sizeof(struct work),
	.table_bytes = sizeof(struct works),
	.if_any = true,
	.when = gpu_when,
	.make = make_work,
	.above = above_work,
	.below = below_work,
};

/* ---- modules and layers */

static int by_module(const void *va, const void *vb)
{
	const struct work *a = va, *b = vb;
	const int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	return order ? order : a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

/* Adds the rows of stacks with the same module in a process. Stacks without a module are left out. */
static int make_modules(const struct view *s, void *table)
{
	struct works *t = table;
	const int err = make_of(s, t, MXBPF_WORK_OF_STACK);
	struct work *r = t->list.rows;
	size_t i, n = 0;

	if (err)
		return err;
	qsort(r, t->list.all, sizeof(*r), by_module);
	t->self_ns = 0;
	for (i = 0; i < t->list.all; i++) {
		if (!r[i].name.len)
			continue;
		add_sat(&t->self_ns, r[i].a.self.gpu_ns);
		if (n && !by_module(&r[n - 1], &r[i]))
			work_add(&r[n - 1].a.self, &r[i].a.self);
		else
			r[n++] = r[i];
	}
	t->list.all = n;
	for (i = 0; i < n; i++)
		r[i].share = t->self_ns ? (double)r[i].a.self.gpu_ns / (double)t->self_ns : 0;
	qsort_r(r, n, sizeof(*r), activity_sheet_work_by_opts, (void *)s->opts);
	put_owners(s, t);
	return 0;
}

static int make_layers(const struct view *s, void *table)
{
	return make_of(s, table, MXBPF_WORK_OF_LAYER);
}

static void above_modules(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Modules on the GPU:");
}

static void above_layers(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Layers on the GPU:");
}

static const struct tbl_column module_columns[] = {
	{"module", "name", "module", TBL_TEXT, AT(name)},
	GPU_OWNER_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"launches", NULL, "launches", TBL_COUNT, SUM_AT(a.self.launches)},
	{"kernels", NULL, "kernels", TBL_COUNT, SUM_AT(a.self.kernels)},
	{"gpu_self_ns", NULL, "gpu self", TBL_NS, SUM_AT(a.self.gpu_ns), TBL_TIGHT,
	 .help = "time on the GPU of what operators in calls of this module launched, without modules inside it"},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1, .name_min = 12},
	{"copied_bytes", NULL, "copied", TBL_BYTES, SUM_AT(a.self.bytes), TBL_DASH, SEEN(copies)},
	{0},
};

const struct view_sheet sheet_gpu_modules = {
	.title = "Modules on the GPU",
	.help = "Requires --py-stacks: work on GPUs by the innermost nn.Module of the Python stack; absent if there is "
		"none.",
	.list_help = "work on GPUs by module",
	.member = "gpu",
	.list = "modules",
	.csv = "Modules on the GPU",
	.columns = module_columns,
	.row_bytes = sizeof(struct work),
	.table_bytes = sizeof(struct works),
	.if_any = true,
	.when = gpu_when,
	.make = make_modules,
	.above = above_modules,
	.left_out = "modules on the GPU",
};

static const struct tbl_column layer_columns[] = {
	{"layer", "name", "layer", TBL_TEXT, AT(name)},
	GPU_OWNER_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"launches", NULL, "launches", TBL_COUNT, SUM_AT(a.total.launches)},
	{"kernels", NULL, "kernels", TBL_COUNT, SUM_AT(a.total.kernels)},
	{"gpu_total_ns", NULL, "gpu total", TBL_NS, SUM_AT(a.total.gpu_ns), TBL_TIGHT,
	 .help = "time on the GPU of what calls of the layer launched"},
	{"copied_bytes", NULL, "copied", TBL_BYTES, SUM_AT(a.total.bytes), TBL_DASH, SEEN(copies)},
	{0},
};

const struct view_sheet sheet_gpu_layers = {
	.title = "Layers on the GPU",
	.help = "Work on GPUs by layer, if calls have layers; absent if there is none.",
	.list_help = "work on GPUs by layer",
	.member = "gpu",
	.list = "layers",
	.csv = "Layers on the GPU",
	.columns = layer_columns,
	.row_bytes = sizeof(struct work),
	.table_bytes = sizeof(struct works),
	.if_any = true,
	.when = gpu_when,
	.make = make_layers,
	.above = above_layers,
	.left_out = "layers on the GPU",
};
