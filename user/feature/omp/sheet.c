// SPDX-License-Identifier: Apache-2.0
/* --omp: times of OpenMP teams, by the operator that opened the parallel region. */
#include "feature/omp/omp.h"

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

#define NOTABLE 20 /* percent of the threads' time: a longer wait gets a sentence */

/* The parallel regions of one span name. */
struct team {
	struct mxbpf_team t;
	struct view_text op, name; /* op: without data if no call was open */
	bool migrated;
	double cpu, queue, late, barrier; /* shares of the threads' time */
};

struct teams {
	struct view_list list;
	struct mxbpf_team sum; /* of all rows */
	uint32_t cpus;
};

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

static void omp_fill(const struct view *s, void *row)
{
	static const char outside[] = "(outside of operators)";
	struct team *r = row;
	const struct mxbpf_team *t = &r->t;

	r->migrated = t->flags & MXBPF_TEAM_MIGRATED;
	r->cpu = share(t->cpu_ns, t->threads_ns);
	r->queue = share(queue_ns(t), t->threads_ns);
	r->late = share(late_ns(t), t->threads_ns);
	r->barrier = share(t->barrier_ns, t->threads_ns);
	r->name.data = mdl_name(s->in->model, t->name_id, &r->name.len);
	if (t->cls)
		r->op = r->name;
	else
		r->name = view_word(outside);
}

static void omp_finish(const struct view *s, void *table)
{
	((struct teams *)table)->cpus = s->in->session->team_cpus;
}

/* Writes advice on the sum of all rows. */
static void omp_below(struct view *s, const void *table, const char *prefix)
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

static void omp_above(struct view *s, const void *table, const char *prefix)
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

static bool omp_when(const struct view *s)
{
	return s->in->session->team_cpus;
}

#define ROW struct teams
static const struct tbl_column totals[] = {
	{"cpus", "", NULL, TBL_COUNT, AT(cpus), .help = "number of CPUs that the process may use"},
	{0},
};
#undef ROW

#define ROW struct team
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(t.name_id)},
	{.stored = "class", .type = TBL_COUNT, KEY_AT(t.cls), .limit = MXBPF_CLASS_MAX - 1},
	{.stored = "flags", .type = TBL_COUNT, OR_AT(t.flags)},
	{"name", "", NULL, TBL_TEXT, AT(op), TBL_NULL,
	 .help = "operator or call that opened the regions; null: none was open"},
	{NULL, "name", "name", TBL_TEXT, AT(name)},
	PID_COLUMN(t.h.tgid, .merge = TBL_IS_KEY),
	{"regions", "count", "regions", TBL_COUNT, SUM_AT(t.regions), .flags = TBL_BY_COUNT, .name_min = 16},
	{"threads", NULL, "threads", TBL_COUNT, MAX_AT(t.threads), .help = "number of threads of the largest team"},
	{"wall_ns", "total_ns", "wall", TBL_NS, SUM_AT(t.dur_ns), .name_min = 12},
	{"threads_ns", NULL, NULL, TBL_NS, SUM_AT(t.threads_ns), .flags = TBL_BY_TIME,
	 .help = "wall time of each region times its threads"},
	{"cpu_ns", "team_cpu_ns", "team CPU", TBL_NS, SUM_AT(t.cpu_ns), .help = "time at work on a CPU"},
	{NULL, NULL, "CPU", TBL_SHARE, AT(cpu), .help = "part of threads_ns at work on a CPU"},
	{NULL, NULL, "queue", TBL_SHARE, AT(queue), .help = "part of threads_ns that waited for a CPU"},
	{"runq_ns", "team_runq_ns", NULL, TBL_NS, SUM_AT(t.runq_ns),
	 .help = "time at work in which the thread waited for a CPU"},
	{"work_ns", "team_work_ns", NULL, TBL_NS, SUM_AT(t.work_ns),
	 .help = "time at work; in the part that is neither cpu_ns nor runq_ns the threads were blocked"},
	{"late_ns", "team_late_ns", NULL, TBL_NS, SUM_AT(t.late_ns),
	 .help = "from the region's start until each thread began"},
	{"late_runq_ns", "team_late_runq_ns", NULL, TBL_NS, SUM_AT(t.late_runq_ns),
	 .help = "part of late_ns in which the thread waited for a CPU"},
	{NULL, NULL, "late", TBL_SHARE, AT(late),
	 .help = "part of threads_ns before each thread began, without waits for a CPU"},
	{"barrier_ns", "team_barrier_ns", NULL, TBL_NS, SUM_AT(t.barrier_ns),
	 .help = "from the end of each thread's work to the end of the region"},
	{NULL, NULL, "barrier", TBL_SHARE, AT(barrier), .help = "barrier_ns as a part of threads_ns"},
	{"spun_ns", "team_spun_ns", "spun", TBL_NS, SUM_AT(t.spun_ns), .name_min = 20,
	 .help = "CPU time without work: while threads wait, and while the team starts"},
	{"migrated", "", NULL, TBL_BOOL, AT(migrated),
	 .help = "threads changed their CPU at work; cpu_ns may be wrong by a tick of the kernel for each of them"},
	{0},
};

const struct tbl_def omp_teams = {.name = "teams", .row_bytes = sizeof(struct mxbpf_team), .columns = columns};

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
	.when = omp_when,
	.stored = &omp_teams,
	.feature = &feature_omp,
	.sum_at = offsetof(struct teams, sum),
	.fill = omp_fill,
	.finish = omp_finish,
	.above = omp_above,
	.below = omp_below,
};
