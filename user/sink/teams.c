// SPDX-License-Identifier: Apache-2.0
/* --omp: what the teams of OpenMP's threads did for the operators that opened their regions. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64
#define NOTABLE	   20 /* percent of the threads' time from which on a wait is worth a sentence */

static int by_name(const void *va, const void *vb)
{
	const struct snk_team *a = va, *b = vb;
	int order = snk_name_cmp(a->name, a->len, b->name, b->len);

	if (order)
		return order;
	if (a->t.cls != b->t.cls)
		return a->t.cls < b->t.cls ? -1 : 1;
	return a->t.h.tgid < b->t.h.tgid ? -1 : a->t.h.tgid > b->t.h.tgid;
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct snk_team *a = va, *b = vb;
	const struct snk_opts *opts = vopts;
	bool count = opts->sort == SNK_SORT_COUNT;
	uint64_t ka = count ? a->t.regions : a->t.threads_ns, kb = count ? b->t.regions : b->t.threads_ns;

	if (opts->sort != SNK_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return by_name(a, b);
}

int snk_teams(const struct snk *s, struct snk_team **rows, size_t *n)
{
	const struct mxbpf_team *const *all = mdl_teams(s->in->model, n);
	struct snk_team *r = calloc(*n + 1, sizeof(*r));
	size_t i;

	*rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < *n; i++) {
		r[i].t = *all[i];
		r[i].name = mdl_name(s->in->model, all[i]->name_id, &r[i].len);
		if (!all[i]->cls) {
			r[i].name = "(outside of operators)";
			r[i].len = strlen(r[i].name);
		}
	}
	qsort_r(r, *n, sizeof(*r), by_opts, (void *)s->opts);
	return 0;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Numbers of a file may be anything. */
static uint64_t queue_ns(const struct mxbpf_team *t)
{
	return least(t->runq_ns, t->threads_ns) + least(t->late_runq_ns, t->threads_ns);
}

static int add_row(struct snk_grid *g, const struct snk_team *r)
{
	const uint64_t ns[] = {r->t.dur_ns, r->t.cpu_ns};
	const uint64_t parts[] = {r->t.cpu_ns, queue_ns(&r->t), r->t.late_ns - least(r->t.late_runq_ns, r->t.late_ns),
				  r->t.barrier_ns};
	char cell[CELL_BYTES];
	int err = snk_grid_add(g, r->name, r->len);
	size_t i;

	snprintf(cell, sizeof(cell), "%" PRIu64, (uint64_t)r->t.regions);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	snprintf(cell, sizeof(cell), "%u", r->t.threads);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	for (i = 0; !err && i < sizeof(ns) / sizeof(ns[0]); i++) {
		fmt_ns(ns[i], cell);
		err = snk_grid_add(g, cell, strlen(cell));
	}
	for (i = 0; !err && i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(cell, sizeof(cell), "%.0f%%", 100 * share(parts[i], r->t.threads_ns));
		err = snk_grid_add(g, cell, strlen(cell));
	}
	fmt_ns(r->t.spun_ns, cell);
	return err ? err : snk_grid_add(g, cell, strlen(cell));
}

/* What the whole says, in words that a person can act on. */
static void put_why(struct snk *s, const struct snk_teams *t, const char *prefix)
{
	const struct mxbpf_team *sum = &t->sum;
	const uint64_t late_ns = sum->late_ns - least(sum->late_runq_ns, sum->late_ns);
	const int queue = (int)(100 * share(queue_ns(sum), sum->threads_ns));
	const int apart = (int)(100 * (share(late_ns, sum->threads_ns) + share(sum->barrier_ns, sum->threads_ns)));
	unsigned cpus = s->in->session->team_cpus;
	char ns[24];

	if (queue >= NOTABLE && sum->threads > cpus)
		out_printf(s->out,
			   "%steam waits for a CPU %d %% of its threads' time: up to %u threads share %u CPU%s; "
			   "OMP_NUM_THREADS=%u gives each its own\n",
			   prefix, queue, sum->threads, cpus, cpus == 1 ? "" : "s", cpus);
	else if (queue >= NOTABLE)
		out_printf(s->out, "%steam waits for a CPU %d %% of its threads' time: others run on them\n", prefix,
			   queue);
	if (apart >= NOTABLE)
		out_printf(s->out,
			   "%steam waits for each other %d %% of its threads' time: until they begin, and at the "
			   "barrier\n",
			   prefix, apart);
	if (sum->spun_ns > sum->cpu_ns)
		out_printf(s->out,
			   "%steam spins: %s of CPU time without work, more than with it; OMP_WAIT_POLICY=passive lets "
			   "it sleep\n",
			   prefix, fmt_ns(sum->spun_ns, ns));
	if (sum->flags & MXBPF_TEAM_MIGRATED)
		out_printf(
			s->out,
			"%sthreads changed their CPU at work: their CPU times are up to a tick of the kernel's off\n",
			prefix);
}

int snk_put_teams(struct snk *s, const struct snk_teams *t, const char *prefix)
{
	struct snk_grid g = {
		.cols = {{"name", .left = true},
			 {"regions", .name_min = 16},
			 {"threads"},
			 {"wall", .name_min = 12},
			 {"team CPU"},
			 {"CPU"},
			 {"queue"},
			 {"late"},
			 {"barrier"},
			 {"spun", .name_min = 20}},
		.ncols = 10,
		.prefix = prefix,
	};
	unsigned width = (s->opts->width ? s->opts->width : SNK_WIDTH) - (unsigned)strlen(prefix);
	char ns[2][24];
	size_t i;
	int err = 0;

	out_printf(s->out, "%sOpenMP teams: ", prefix);
	if (!t->nrows)
		out_puts(s->out, "no parallel region seen\n");
	else
		out_printf(s->out, "%s of CPU time of %s of their threads' time, in %zu row%s%s\n",
			   fmt_ns(t->sum.cpu_ns, ns[0]), fmt_ns(t->sum.threads_ns, ns[1]), t->nrows_all,
			   t->nrows_all == 1 ? "" : "s", t->nrows < t->nrows_all ? ", not all of them shown" : "");
	for (i = 0; !err && i < t->nrows; i++)
		err = add_row(&g, &t->rows[i]);
	if (!err && t->nrows)
		snk_grid_print(&g, width, s->out);
	snk_grid_fini(&g);
	put_why(s, t, prefix);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
