// SPDX-License-Identifier: Apache-2.0
/* --omp: times of OpenMP teams, by the operator that opened the parallel region. */
#include "feature/omp/omp.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

#define NOTABLE 20 /* percent of the threads' time: a longer wait gets a sentence */

/* The parallel regions of one span name. */
struct team {
	struct view_text op, name; /* op: without data if no call was open */
	struct mxbpf_team t;
	bool migrated;
	double cpu, queue, late, barrier; /* shares of the threads' time */
};

struct teams {
	struct view_list list;
	struct mxbpf_team sum; /* of all rows */
	uint32_t cpus;
};

static int by_name(const void *va, const void *vb)
{
	const struct team *a = va, *b = vb;
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	if (order)
		return order;
	if (a->t.cls != b->t.cls)
		return a->t.cls < b->t.cls ? -1 : 1;
	return a->t.h.tgid < b->t.h.tgid ? -1 : a->t.h.tgid > b->t.h.tgid;
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct team *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	bool count = opts->sort == VIEW_SORT_COUNT;
	uint64_t ka = count ? a->t.regions : a->t.threads_ns, kb = count ? b->t.regions : b->t.threads_ns;

	if (opts->sort != VIEW_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return by_name(a, b);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A recording is untrusted, so each number is capped at the threads' time: the sum cannot overflow. */
static uint64_t queue_ns(const struct mxbpf_team *t)
{
	return least(t->runq_ns, t->threads_ns) + least(t->late_runq_ns, t->threads_ns);
}

static uint64_t late_ns(const struct mxbpf_team *t)
{
	return t->late_ns - least(t->late_runq_ns, t->late_ns);
}

static struct team row_of(const struct mdl *m, const struct mxbpf_team *t)
{
	struct team r = {
		.t = *t,
		.migrated = t->flags & MXBPF_TEAM_MIGRATED,
		.cpu = share(t->cpu_ns, t->threads_ns),
		.queue = share(queue_ns(t), t->threads_ns),
		.late = share(late_ns(t), t->threads_ns),
		.barrier = share(t->barrier_ns, t->threads_ns),
	};
	static const char outside[] = "(outside of operators)";

	r.name.data = mdl_name(m, t->name_id, &r.name.len);
	if (t->cls)
		r.op = r.name;
	else
		r.name = (struct view_text){outside, strlen(outside)};
	return r;
}

static int make(const struct view *s, void *table)
{
	struct teams *t = table;
	const struct mxbpf_team *const *all = omp_teams(s->in->model, &t->list.all);
	struct team *r = calloc(t->list.all + 1, sizeof(*r));
	size_t i;

	t->cpus = s->in->session->team_cpus;
	t->list.rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->list.all; i++)
		r[i] = row_of(s->in->model, all[i]);
	qsort_r(r, t->list.all, sizeof(*r), by_opts, (void *)s->opts);
	for (i = 0; i < t->list.all; i++)
		omp_team_merge(&t->sum, &r[i].t);
	return 0;
}

/* Writes advice on the sum of all rows. */
static void below(struct view *s, const void *table, const char *prefix)
{
	const struct mxbpf_team *sum = &((const struct teams *)table)->sum;
	const int queue = (int)(100 * share(queue_ns(sum), sum->threads_ns));
	const int apart = (int)(100 * (share(late_ns(sum), sum->threads_ns) + share(sum->barrier_ns, sum->threads_ns)));
	unsigned cpus = s->in->session->team_cpus;
	char ns[24];

	if (queue >= NOTABLE && sum->threads > cpus)
		out_printf(s->out,
			   "%steam waits for a CPU %d %% of its threads' time: up to %u threads share %u CPU%s; "
			   "OMP_NUM_THREADS=%u gives each its own\n",
			   prefix, queue, sum->threads, cpus, cpus == 1 ? "" : "s", cpus);
	else if (queue >= NOTABLE)
		out_printf(s->out, "%steam waits for a CPU %d %% of its threads' time: other threads run on its CPUs\n",
			   prefix, queue);
	if (apart >= NOTABLE)
		out_printf(s->out,
			   "%sthreads wait for each other %d %% of their time: before they start, and at the barrier\n",
			   prefix, apart);
	if (sum->spun_ns > sum->cpu_ns)
		out_printf(s->out,
			   "%steam spins: %s of CPU time without work is more than that with work; "
			   "OMP_WAIT_POLICY=passive lets it sleep\n",
			   prefix, fmt_ns(sum->spun_ns, ns));
	if (sum->flags & MXBPF_TEAM_MIGRATED)
		out_printf(s->out,
			   "%sthreads changed their CPU at work: each of their CPU times may be wrong by a tick of the "
			   "kernel\n",
			   prefix);
}

static void above(struct view *s, const void *table, const char *prefix)
{
	const struct teams *t = table;
	char ns[2][24];

	out_printf(s->out, "%sOpenMP teams: ", prefix);
	if (!t->list.n) {
		out_puts(s->out, "no parallel region seen\n");
		return;
	}
	out_printf(s->out, "%s of CPU time of %s of their threads' time, in ", fmt_ns(t->sum.cpu_ns, ns[0]),
		   fmt_ns(t->sum.threads_ns, ns[1]));
	view_put_rows(s, &t->list);
	out_puts(s->out, "\n");
}

static bool when(const struct view *s)
{
	return s->in->session->team_cpus;
}

#define ROW struct teams
static const struct view_column totals[] = {
	{"cpus", "", NULL, VIEW_COUNT, AT(cpus), .help = "number of CPUs that the process may use"},
	{0},
};
#undef ROW

#define ROW struct team
static const struct view_column columns[] = {
	{"name", "", NULL, VIEW_TEXT, AT(op), VIEW_NULL,
	 .help = "operator or call that opened the regions; null: none was open"},
	{NULL, "name", "name", VIEW_TEXT, AT(name)},
	PID_COLUMN(t.h.tgid),
	{"regions", "count", "regions", VIEW_COUNT, AT(t.regions), .name_min = 16},
	{"threads", NULL, "threads", VIEW_COUNT, AT(t.threads), .help = "number of threads of the largest team"},
	{"wall_ns", "total_ns", "wall", VIEW_NS, AT(t.dur_ns), .name_min = 12},
	{"threads_ns", NULL, NULL, VIEW_NS, AT(t.threads_ns), .help = "wall time of each region times its threads"},
	{"cpu_ns", "team_cpu_ns", "team CPU", VIEW_NS, AT(t.cpu_ns), .help = "time at work on a CPU"},
	{NULL, NULL, "CPU", VIEW_SHARE, AT(cpu), .help = "part of threads_ns at work on a CPU"},
	{NULL, NULL, "queue", VIEW_SHARE, AT(queue), .help = "part of threads_ns that waited for a CPU"},
	{"runq_ns", "team_runq_ns", NULL, VIEW_NS, AT(t.runq_ns),
	 .help = "time at work in which the thread waited for a CPU"},
	{"work_ns", "team_work_ns", NULL, VIEW_NS, AT(t.work_ns),
	 .help = "time at work; in the part that is neither cpu_ns nor runq_ns the threads were blocked"},
	{"late_ns", "team_late_ns", NULL, VIEW_NS, AT(t.late_ns),
	 .help = "from the region's start until each thread began"},
	{"late_runq_ns", "team_late_runq_ns", NULL, VIEW_NS, AT(t.late_runq_ns),
	 .help = "part of late_ns in which the thread waited for a CPU"},
	{NULL, NULL, "late", VIEW_SHARE, AT(late),
	 .help = "part of threads_ns before each thread began, without waits for a CPU"},
	{"barrier_ns", "team_barrier_ns", NULL, VIEW_NS, AT(t.barrier_ns),
	 .help = "from the end of each thread's work to the end of the region"},
	{NULL, NULL, "barrier", VIEW_SHARE, AT(barrier), .help = "barrier_ns as a part of threads_ns"},
	{"spun_ns", "team_spun_ns", "spun", VIEW_NS, AT(t.spun_ns), .name_min = 20,
	 .help = "CPU time without work: while threads wait, and while the team starts"},
	{"migrated", "", NULL, VIEW_BOOL, AT(migrated),
	 .help = "threads changed their CPU at work; cpu_ns may be wrong by a tick of the kernel for each of them"},
	{0},
};

const struct view_sheet sheet_omp = {
	.title = "OpenMP teams",
	.help = "Requires --omp: parallel regions of OpenMP.",
	.row_help = "late_ns + work_ns + barrier_ns is threads_ns; with them the team's efficiency is cpu_ns / "
		    "threads_ns",
	.member = "teams",
	.list = "operators",
	.csv = "teams",
	.columns = columns,
	.totals = totals,
	.row_bytes = sizeof(struct team),
	.table_bytes = sizeof(struct teams),
	.when = when,
	.make = make,
	.above = above,
	.below = below,
};
