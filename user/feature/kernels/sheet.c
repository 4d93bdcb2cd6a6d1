// SPDX-License-Identifier: Apache-2.0
/* Hardware counters of chosen kernels. */
#include <math.h>
#include <stdio.h>

#include "base/fmt.h"
#include "feature/kernels/kernels.h"
#include "view/gpu.h"

#define SHORT_NAME 256

/* Numbers of counters in records: counters[] in agent/cupti/cupti_ranges.c has the same order. */
enum { DURATION, SM, OCCUPANCY, ISSUE, TENSOR, L1, DRAM, DRAM_BYTES, L2, SM_THROUGHPUT, FMA, L2_THROUGHPUT };

struct row {
	struct kernels_row a;
	struct view_text name, owner;
	bool measured; /* true; outputs lack a counter that is NAN */
	uint64_t avg_ns, dram_bytes;
	double sm, occupancy, issue, tensor, l1, dram, l2, sm_throughput, fma, l2_throughput; /* NAN: not measured */
	char short_name[SHORT_NAME], owner_text[VIEW_LABEL_BYTES];
};

struct table {
	struct view_list list;
	struct kernels_row sum;
	bool processes, replayed;
};

/* The mean of a percentage, as a part of 1. */
static double part(const struct kernels_row *a, unsigned number)
{
	const struct kernels_counter *c = &a->counters[number];

	return c->n ? (double)c->sum / (double)c->n / 1e5 : NAN;
}

static uint64_t mean(const struct kernels_row *a, unsigned number)
{
	const struct kernels_counter *c = &a->counters[number];

	return c->n ? c->sum / c->n / 1000 : TBL_UNKNOWN;
}

static void kernels_fill(const struct view *s, void *row)
{
	struct row *r = row;
	const struct kernels_row *a = &r->a;

	r->measured = true;
	r->avg_ns = mean(a, DURATION);
	r->dram_bytes = mean(a, DRAM_BYTES);
	r->sm = part(a, SM);
	r->occupancy = part(a, OCCUPANCY);
	r->issue = part(a, ISSUE);
	r->tensor = part(a, TENSOR);
	r->l1 = part(a, L1);
	r->dram = part(a, DRAM);
	r->l2 = part(a, L2);
	r->sm_throughput = part(a, SM_THROUGHPUT);
	r->fma = part(a, FMA);
	r->l2_throughput = part(a, L2_THROUGHPUT);
	r->name.data = mdl_name(s->in->model, a->name_id, &r->name.len);
}

static int by_launches(const void *va, const void *vb, void *opts)
{
	const struct row *a = va, *b = vb;
	int order;

	if (a->a.launches != b->a.launches)
		return a->a.launches < b->a.launches ? 1 : -1;
	order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->a.tgid < b->a.tgid ? -1 : a->a.tgid > b->a.tgid;
}

/* Short names are in the rows, which do not move any more. */
static void kernels_finish(const struct view *s, void *table)
{
	struct table *t = table;
	struct row *r = t->list.rows;
	size_t i;

	t->processes = view_by_processes(s->opts->by);
	gpu_show_empty(s, &t->list);
	for (i = 0; i < t->list.all; i++) {
		if (t->list.people)
			r[i].name = gpu_short_kernel(r[i].name, r[i].short_name, sizeof(r[i].short_name));
		if (t->processes)
			r[i].owner = view_word(gpu_owner(s, r[i].a.tgid, r[i].owner_text));
		t->replayed |= !isnan(r[i].l2) || !isnan(r[i].sm_throughput);
	}
}

static void kernels_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char n[32], text[96];

	snprintf(text, sizeof(text), "Hardware counters of kernels: %s launches measured, in",
		 fmt_count(t->sum.launches, n));
	gpu_put_title(s, &t->list, prefix, text);
}

static void kernels_below(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char held[24], longest[24];

	if (t->sum.passes > 1)
		out_printf(s->out, "%sCUPTI executed each measured kernel up to %u times, and restored its memory\n",
			   prefix, t->sum.passes);
	out_printf(s->out,
		   "%smeasuring held the launching threads up for %s in all, at most %s for a launch; operators and "
		   "iterations "
		   "have this time, too, and the measured kernels are in no other table\n",
		   prefix, fmt_ns(t->sum.held_ns, held), fmt_ns(t->sum.longest_ns, longest));
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
#define PART	     .has = offsetof(ROW, measured), .data_digits = 5, .cell = gpu_percent_cell
#define COUNTER(i)                                                                                                     \
	{.stored = "n" #i, .type = TBL_COUNT, SUM_AT(a.counters[i].n)},                                                \
	{                                                                                                              \
		.stored = "sum" #i, .type = TBL_COUNT, SUM_AT(a.counters[i].sum)                                       \
	}
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(a.name_id)},
	{"name", NULL, "kernel", TBL_TEXT, AT(name)},
	GPU_OWNER_COLUMN,
	PID_COLUMN(a.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "measured", TBL_COUNT, SUM_AT(a.launches), .name_min = 20,
	 .help = "launches that were measured"},
	{"passes", NULL, NULL, TBL_COUNT, MAX_AT(a.passes), .help = "how often CUPTI executed the kernel for a launch"},
	{"avg_ns", NULL, "avg", TBL_NS, AT(avg_ns), TBL_TIGHT | TBL_NULL,
	 .help = "gpu__time_duration.sum: its duration. All values are means of the measured launches"},
	{"multiprocessors", NULL, "SM", TBL_RATIO, AT(sm), PART,
	 .help = "sm__cycles_active: part of the time in which a multiprocessor had a warp"},
	{"occupancy", NULL, "occupancy", TBL_RATIO, AT(occupancy), PART, .name_min = 24,
	 .help = "sm__warps_active: warps that ran, as part of those that a busy multiprocessor has room for"},
	{"issue", NULL, "issue", TBL_RATIO, AT(issue), PART, .name_min = 28,
	 .help = "sm__inst_issued: instructions that were issued, as part of those that are possible"},
	{"tensor", NULL, "tensor", TBL_RATIO, AT(tensor), PART,
	 .help = "sm__pipe_tensor_cycles_active: part of the time in which the tensor cores computed"},
	{"fma", NULL, "FMA", TBL_RATIO, AT(fma), PART, SEEN(replayed), .name_min = 32,
	 .help = "sm__pipe_fma_cycles_active: part of the time in which the units of float32 computed"},
	{"sm_throughput", NULL, "SM peak", TBL_RATIO, AT(sm_throughput), PART, SEEN(replayed), .name_min = 32,
	 .help = "sm__throughput: what the multiprocessor did most of, as part of the most that is possible"},
	{"l1_hit", NULL, "L1 hit", TBL_RATIO, AT(l1), PART,
	 .help = "l1tex__t_sector_hit_rate: part of the accesses that the cache of a multiprocessor answered"},
	{"l2_hit", NULL, "L2 hit", TBL_RATIO, AT(l2), PART, SEEN(replayed), .name_min = 32,
	 .help = "lts__t_sector_hit_rate: the same of the GPU's cache"},
	{"l2_throughput", NULL, NULL, TBL_RATIO, AT(l2_throughput), PART,
	 .help = "lts__throughput: what the GPU's cache did, as part of the most that is possible"},
	{"dram", NULL, "DRAM", TBL_RATIO, AT(dram), PART,
	 .help = "dram__throughput: what the memory did, as part of the most that is possible"},
	{"dram_bytes", NULL, "moved", TBL_BYTES, AT(dram_bytes), TBL_NULL, .name_min = 24,
	 .help = "dram__bytes.sum: bytes that the memory read and wrote for a launch"},
	{"held_ns", NULL, "held up", TBL_NS, SUM_AT(a.held_ns), TBL_TIGHT,
	 .help = "time by which all measured launches held their threads up, with the kernels themselves"},
	{"held_max_ns", NULL, NULL, TBL_NS, MAX_AT(a.longest_ns), .help = "the longest of them"},
	COUNTER(0),
	COUNTER(1),
	COUNTER(2),
	COUNTER(3),
	COUNTER(4),
	COUNTER(5),
	COUNTER(6),
	COUNTER(7),
	COUNTER(8),
	COUNTER(9),
	COUNTER(10),
	COUNTER(11),
	{0},
};

const struct tbl_def kernels_table = {.name = "kernel counters",
				      .row_bytes = sizeof(struct kernels_row),
				      .adds_processes = true,
				      .of_process = true,
				      .columns = columns};

const struct view_sheet sheet_gpu_counters = {
	.title = "Hardware counters of kernels",
	.help = "Requires --gpu and --kernel-metrics: what the GPU counted in launches of chosen kernels.",
	.list_help = "hardware counters of chosen kernels; empty without --kernel-metrics",
	.member = "gpu",
	.list = "counters",
	.csv = "GPU counters",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.stored = &kernels_table,
	.feature = &feature_kernels,
	.fill = kernels_fill,
	.finish = kernels_finish,
	.order = by_launches,
	.sum_at = offsetof(struct table, sum),
	.above = kernels_above,
	.below = kernels_below,
};
