// SPDX-License-Identifier: Apache-2.0
/* Memory statistics of the runtime: bytes allocated and freed on each device. */
#include "feature/cost/cost.h"
#include "feature/memory/memory.h"
#include <errno.h>
#include <stdlib.h>

#include "view/priv.h"
#include "view/sheet.h"

struct mem {
	struct mdl_mem_row m;
	struct view_text process;
	char label[VIEW_LABEL_BYTES];
};

struct mems {
	struct view_list list;
	bool processes;
};

static int memory_sheet_devices_by_device(const void *va, const void *vb)
{
	const struct mem *a = va, *b = vb;

	if (a->m.device != b->m.device)
		return a->m.device < b->m.device ? -1 : 1;
	return a->m.tgid < b->m.tgid ? -1 : a->m.tgid > b->m.tgid;
}

static int memory_sheet_devices_make(const struct view *s, void *table)
{
	struct mems *t = table;
	const struct mdl_mem_row *const *all = mdl_mem_rows(s->in->model, &t->list.all);
	struct mem *r = calloc(t->list.all + 1, sizeof(*r));
	size_t i;

	t->processes = view_by_processes(s->opts->by);
	t->list.title = s->in->session->mem_title;
	t->list.rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->list.all; i++)
		r[i].m = *all[i];
	qsort(r, t->list.all, sizeof(*r), memory_sheet_devices_by_device);
	for (i = 0; i < t->list.all; i++)
		r[i].process = view_word(view_process_label(s, r[i].m.tgid, r[i].label));
	return 0;
}

/* Allocations before the attach are unknown, so live and peak are not totals of the device. */
static void memory_sheet_devices_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	out_puts(s->out, prefix);
	view_put_safe(s->out, t->title, strlen(t->title));
	if (cost_lacks_memory(s->in->model))
		out_puts(s->out, ": calls in slices alone, so live and peak are not those of the window\n");
	else
		out_puts(s->out, t->n ? ": live and peak count from the start of the window\n" : ": nothing seen\n");
}

static bool memory_sheet_devices_when(const struct view *s)
{
	return s->in->session->mem_title;
}

/* While calls are recorded in slices alone, the sums are of the slices. */
static bool counts_all(const struct view *s)
{
	return !cost_lacks_memory(s->in->model);
}

#define ROW struct mem
static const struct tbl_column columns[] = {
	{NULL, NULL, "process", TBL_TEXT, AT(process), .shown = offsetof(struct mems, processes)},
	{"device", NULL, "device", TBL_DEVICE, AT(m.device)},
	PID_COLUMN(m.tgid),
	{"allocs", NULL, "allocs", TBL_COUNT, SUM_AT(m.allocs)},
	{"frees", NULL, "frees", TBL_COUNT, SUM_AT(m.frees)},
	{"alloc_bytes", NULL, "allocated", TBL_BYTES, SUM_AT(m.alloc_bytes)},
	{"free_bytes", NULL, "freed", TBL_BYTES, SUM_AT(m.free_bytes)},
	{NULL, NULL, NULL, TBL_BYTES, AT(m.alloc_bytes), .asked = counts_all,
	 .metric = METRIC("mxbpf_memory_allocated_bytes", "Memory that the runtime allocated")},
	{"live_bytes", NULL, "live", TBL_BYTES, MAX_AT(m.live_bytes),
	 .help = "from the start of the window; never below 0"},
	{"peak_bytes", NULL, "peak", TBL_BYTES, MAX_AT(m.peak_bytes), .help = "highest live_bytes"},
	{0},
};

const struct view_sheet sheet_memory_totals = {
	.title = "memory",
	.help = "What the runtime allocated and freed on each device.",
	.def = "memory",
	.csv = "memory",
	.columns = columns,
	.row_bytes = sizeof(struct mem),
	.table_bytes = sizeof(struct mems),
	.whole = true,
	.when = memory_sheet_devices_when,
	.make = memory_sheet_devices_make,
	.above = memory_sheet_devices_above,
};
