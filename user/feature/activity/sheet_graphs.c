// SPDX-License-Identifier: Apache-2.0
/* CUDA graphs, and the operators that captured them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/activity/sheet.h"

#define PARTS_MAX  8  /* operators of a graph that programs see */
#define SHOWN_MAX  3  /* that people see */
#define NAME_BYTES 28 /* of each of them */

static const char *const captured[] = {
	[MXBPF_CAPTURED_BY] = "operator",
	[MXBPF_CAPTURED_OUTSIDE] = "no operator",
	[MXBPF_CAPTURED_UNSEEN] = "not seen",
};

struct part {
	struct view_text name;
	uint64_t kernels, gpu_ns;
	uint8_t captured;
};

struct row {
	struct view_text name, owner, text;
	struct mxbpf_agg_gpu_work a;
	struct view_list by;
	struct part parts[PARTS_MAX];
	uint64_t unseen_ns;
	char name_text[32], owner_text[VIEW_LABEL_BYTES], parts_text[SHOWN_MAX * (NAME_BYTES + 8)];
};

struct table {
	struct view_list list;
	bool copies;	/* some row has copies */
	bool processes; /* people see whose row it is */
	uint64_t unseen_ns, outside_ns;
};

/* ---- for the table of operators */

static uint64_t calls_key(uint32_t tgid, uint8_t cls, uint8_t user)
{
	return (uint64_t)tgid << 16 | (uint64_t)cls << 8 | (user != 0);
}

int gpu_graph_sums(const struct mdl *m, struct hash *sums)
{
	size_t n, i;
	const struct mxbpf_agg_gpu_graph *all = activity_graphs(m, &n);
	uint64_t *ns;

	for (i = 0; i < n; i++) {
		if (all[i].captured != MXBPF_CAPTURED_BY)
			continue;
		ns = hash_put(sums, all[i].name_id, calls_key(all[i].h.tgid, all[i].cls, all[i].user));
		if (!ns)
			return -ENOMEM;
		add_sat(ns, all[i].sum.gpu_ns);
	}
	return 0;
}

uint64_t gpu_graph_sum(const struct hash *sums, const struct mxbpf_agg_gpu_work *row)
{
	const uint64_t *ns = row->of == MXBPF_WORK_OF_CALLS
				     ? hash_get(sums, row->name_id, calls_key(row->h.tgid, row->cls, row->user))
				     : NULL;

	return ns ? *ns : 0;
}

/* ---- rows */

static int activity_sheet_graphs_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct row *a = va, *b = vb;
	const struct gpu_keys ka = {.total_ns = a->a.total.gpu_ns, .count = a->a.total.kernels};
	const struct gpu_keys kb = {.total_ns = b->a.total.gpu_ns, .count = b->a.total.kernels};
	const int order = gpu_order(vopts, &ka, &kb, &a->name, &b->name);

	return order ? order : a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

/* Keeps the operators with the most time, in order. */
static void keep_part(struct row *r, const struct part *p)
{
	size_t i = r->by.n;

	if (i == PARTS_MAX && r->parts[i - 1].gpu_ns >= p->gpu_ns)
		return;
	i -= i == PARTS_MAX;
	for (; i && r->parts[i - 1].gpu_ns < p->gpu_ns; i--)
		r->parts[i] = r->parts[i - 1];
	r->parts[i] = *p;
	r->by.n += r->by.n < PARTS_MAX;
}

static void fill_parts(const struct view *s, struct table *t, struct row *r)
{
	size_t n, i;
	const struct mxbpf_agg_gpu_graph *all = activity_graphs(s->in->model, &n);

	for (i = 0; i < n; i++) {
		struct part p = {
			.kernels = all[i].sum.kernels, .gpu_ns = all[i].sum.gpu_ns, .captured = all[i].captured};

		if (all[i].h.tgid != r->a.h.tgid || all[i].graph != r->a.graph || !p.gpu_ns)
			continue;
		if (p.captured == MXBPF_CAPTURED_BY)
			p.name.data = mdl_name(s->in->model, all[i].name_id, &p.name.len);
		else
			add_sat(p.captured == MXBPF_CAPTURED_UNSEEN ? &t->unseen_ns : &t->outside_ns, p.gpu_ns);
		r->unseen_ns += p.captured == MXBPF_CAPTURED_UNSEEN ? p.gpu_ns : 0;
		keep_part(r, &p);
	}
}

/* "aten::mm 60%, aten::relu 31%, [no operator] 9%" */
static void activity_put_parts(struct row *r)
{
	size_t i, at = 0, len;
	const struct part *p;

	for (i = 0; i < r->by.n && i < SHOWN_MAX; i++) {
		p = &r->parts[i];
		len = p->name.len < NAME_BYTES ? p->name.len : NAME_BYTES;
		while (len && len < p->name.len && (p->name.data[len] & 0xc0) == 0x80)
			len--; /* not within a character */
		at += (size_t)snprintf(r->parts_text + at, sizeof(r->parts_text) - at, "%s%.*s %.0f%%", i ? ", " : "",
				       p->name.data ? (int)len : NAME_BYTES,
				       p->name.data			      ? p->name.data
				       : p->captured == MXBPF_CAPTURED_UNSEEN ? "[capture not seen]"
									      : "[no operator]",
				       r->a.total.gpu_ns ? 100 * (double)p->gpu_ns / (double)r->a.total.gpu_ns : 0);
		at = at < sizeof(r->parts_text) ? at : sizeof(r->parts_text) - 1;
	}
	r->text = at ? view_word(r->parts_text) : (struct view_text){0};
}

/* After sorting, which moves the texts. */
static void activity_sheet_graphs_put_texts(const struct view *s, const struct table *t, struct row *r)
{
	snprintf(r->name_text, sizeof(r->name_text), "graph %" PRIu32, r->a.graph);
	r->name = view_word(r->name_text);
	if (t->processes)
		r->owner = view_word(gpu_owner(s, r->a.h.tgid, r->owner_text));
	activity_put_parts(r);
	r->by.rows = r->parts;
	r->by.all = r->by.n;
}

static int activity_make(const struct view *s, void *table)
{
	size_t n, i, graphs = 0;
	const struct activity_work *const *all = activity_work_rows(s->in->model, &n);
	struct table *t = table;
	struct row *r;

	for (i = 0; i < n; i++)
		graphs += all[i]->a.of == MXBPF_WORK_OF_GRAPH;
	t->list.rows = r = calloc(graphs + 1, sizeof(*r));
	t->processes = view_by_processes(s->opts->by);
	gpu_show_empty(s, &t->list);
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (all[i]->a.of != MXBPF_WORK_OF_GRAPH || (!all[i]->a.total.gpu_ns && !all[i]->a.total.launches))
			continue;
		r[t->list.all].a = all[i]->a;
		t->copies |= all[i]->a.total.copies;
		fill_parts(s, t, &r[t->list.all]);
		activity_sheet_graphs_put_texts(s, t, &r[t->list.all++]);
	}
	qsort_r(r, t->list.all, sizeof(*r), activity_sheet_graphs_by_opts, (void *)s->opts);
	for (i = 0; i < t->list.all; i++)
		activity_sheet_graphs_put_texts(s, t, &r[i]);
	return 0;
}

/* ---- the table */

static void activity_sheet_graphs_above(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "CUDA graphs:");
}

/* Says why work of graphs is under the operators that launched them alone. */
static void activity_sheet_graphs_below(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char ns[24];

	if (t->unseen_ns)
		out_printf(s->out,
			   "%s%s is under the operators that launched the graphs, because the capture was not seen: it "
			   "was before mxbpf recorded, or CUPTI does not tell\n",
			   prefix, fmt_ns(t->unseen_ns, ns));
	if (t->outside_ns)
		out_printf(s->out,
			   "%s%s is under the operators that launched the graphs, because no operator was open when it "
			   "was captured\n",
			   prefix, fmt_ns(t->outside_ns, ns));
}

#define ROW struct part
static const struct tbl_column part_columns[] = {
	{"name", NULL, NULL, TBL_TEXT, AT(name), TBL_NULL},
	{"captured", NULL, NULL, TBL_WORD, AT(captured), WORDS(captured),
	 .help = "operator: name captured it; no operator: no call enclosed the capture; not seen: the capture was not "
		 "recorded"},
	{"kernels", NULL, NULL, TBL_COUNT, AT(kernels)},
	{"gpu_ns", NULL, NULL, TBL_NS, AT(gpu_ns)},
	{0},
};
#undef ROW

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{"name", NULL, "graph", TBL_TEXT, AT(name)},
	{"graph", "", NULL, TBL_COUNT, AT(a.graph), .help = "its number, as CUPTI gives it"},
	GPU_OWNER_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"launches", NULL, "launches", TBL_COUNT, SUM_AT(a.total.launches), .help = "launches of the whole graph"},
	{"kernels", NULL, "kernels", TBL_COUNT, SUM_AT(a.total.kernels)},
	{"gpu_total_ns", NULL, "gpu total", TBL_NS, SUM_AT(a.total.gpu_ns), TBL_TIGHT},
	{"unseen_ns", NULL, NULL, TBL_NS, SUM_AT(unseen_ns),
	 .help = "the part of it whose capture was not recorded, so that no operator has it but the one that launched "
		 "the graph"},
	{"copied_bytes", NULL, "copied", TBL_BYTES, SUM_AT(a.total.bytes), TBL_DASH, SEEN(copies)},
	{NULL, NULL, "captured by", TBL_TEXT, AT(text), TBL_NULL},
	{"by", "gpu.graphs.by", NULL, TBL_LIST, AT(by), .columns = part_columns, .item_bytes = sizeof(struct part),
	 .help = "operators that captured the most of it, at most eight"},
	{0},
};

const struct view_sheet sheet_gpu_graphs = {
	.title = "CUDA graphs",
	.help = "Work on GPUs by CUDA graph. It belongs to the operators that captured it; total times of the "
		"operators "
		"that launch the graphs have it as well. Absent if there is none.",
	.list_help = "work on GPUs by CUDA graph",
	.member = "gpu",
	.list = "graphs",
	.csv = "CUDA graphs",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.make = activity_make,
	.left_out = "CUDA graphs",
	.above = activity_sheet_graphs_above,
	.below = activity_sheet_graphs_below,
};
