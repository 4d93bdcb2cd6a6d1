// SPDX-License-Identifier: Apache-2.0
/* Processes that shared the CPUs with the job. Only the page shows them one by one; findings name the largest. */
#include "feature/neighbours/neighbours.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/sheet.h"

#define SHOWN 20

struct row {
	struct view_text name, whose;
	uint64_t pid, cpu_ns;
	double cpus;
};

static int neighbours_by_time(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	return a->cpu_ns > b->cpu_ns ? -1 : a->cpu_ns < b->cpu_ns;
}

static int neighbours_make(const struct view *s, void *table)
{
	struct view_list *t = table;
	size_t n, i;
	const struct mxbpf_neighbour *all = neighbours_rows(s->in->model, &n);
	struct row *r = calloc(n + 1, sizeof(*r));

	t->rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (!all[i].cpu_ns)
			continue;
		r[t->all++] =
			(struct row){.name = {all[i].comm, strnlen(all[i].comm, sizeof(all[i].comm))},
				     .whose = view_word(all[i].job ? "the job" : "other"),
				     .pid = all[i].h.tgid,
				     .cpu_ns = all[i].cpu_ns,
				     .cpus = all[i].elapsed_ns ? (double)all[i].cpu_ns / (double)all[i].elapsed_ns : 0};
	}
	qsort(r, t->all, sizeof(*r), neighbours_by_time);
	t->all = t->all < SHOWN ? t->all : SHOWN;
	return 0;
}

static void neighbours_above(struct view *s, const void *table, const char *prefix)
{
	(void)table;
	out_printf(s->out, "%sThe processes with the most CPU time in the window, at most %d\n", prefix, SHOWN);
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{NULL, NULL, "process", TBL_TEXT, AT(name), .help = "name of its main thread"},
	{NULL, NULL, "pid", TBL_COUNT, AT(pid)},
	{NULL, NULL, "of", TBL_TEXT, AT(whose), .help = "the job: what is profiled, and its descendants"},
	{NULL, NULL, "CPU time", TBL_NS, AT(cpu_ns), .help = "of all its threads, in steps of 10 ms"},
	{NULL, NULL, "CPUs", TBL_RATIO, AT(cpus), .digits = 2, .help = "that it kept busy in the mean"},
	{0},
};

const struct view_sheet sheet_neighbours = {
	.title = "Who used the CPUs",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct view_list),
	.whole = true,
	.if_any = true,
	.at_end = true,
	.make = neighbours_make,
	.above = neighbours_above,
};
