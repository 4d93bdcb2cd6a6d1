// SPDX-License-Identifier: Apache-2.0
/* Iterations: how long, where their time went, and which were the slowest and why. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES  64
#define WHY_BYTES   160
#define SLOWEST_MAX 8  /* unless --top says so */
#define NOTABLE	    10 /* percent of the median from which on it is worth a sentence what was longer */

const char *const snk_parts[MXBPF_STEP_PARTS] = {
	[MXBPF_PART_DATA] = "data",	  [MXBPF_PART_WAIT] = "wait", [MXBPF_PART_KVSTORE] = "kvstore",
	[MXBPF_PART_OPERATOR] = "inline", [MXBPF_PART_API] = "api",   [MXBPF_PART_OUTSIDE] = "outside",
};

const char *const snk_tolds[MXBPF_STEP_WHATS] = {
	[MXBPF_STEP_NONE] = "nothing",	[MXBPF_STEP_BACKWARD] = "backward",	   [MXBPF_STEP_KVSTORE] = "kvstore",
	[MXBPF_STEP_UPDATE] = "update", [MXBPF_STEP_OPTIMIZER] = "optimizer_step", [MXBPF_STEP_SAMPLED] = "sampled",
};

static const char *const ends[MXBPF_STEP_WHATS] = {
	[MXBPF_STEP_NONE] = "nothing",
	[MXBPF_STEP_BACKWARD] = "where a backward pass begins: no operator of an optimizer was seen",
	[MXBPF_STEP_KVSTORE] = "with the last call of the KVStore before the next backward pass",
	[MXBPF_STEP_UPDATE] = "with the optimizer's last operator before the next backward pass",
	[MXBPF_STEP_OPTIMIZER] = "with a step of the optimizer",
	[MXBPF_STEP_SAMPLED] = "as --iterations counts them",
};

static const char *const titles[MXBPF_STEP_PARTS] = {
	[MXBPF_PART_DATA] = "waits for data",	    [MXBPF_PART_WAIT] = "waits for the engine",
	[MXBPF_PART_KVSTORE] = "KVStore",	    [MXBPF_PART_OPERATOR] = "operators on its own thread",
	[MXBPF_PART_API] = "the rest of the C API", [MXBPF_PART_OUTSIDE] = "outside the runtime",
};

/* ---- what they add up to */

static int by_ns(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

/* The nearest rank; sorts them. */
static uint64_t percentile(uint64_t *ns, size_t n, unsigned percent)
{
	size_t rank = (n * percent + 99) / 100;

	qsort(ns, n, sizeof(*ns), by_ns);
	return n ? ns[rank ? rank - 1 : 0] : 0;
}

static uint64_t sum_sat(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void sum_part(struct snk_part *part, uint64_t *ns, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		part->total_ns = sum_sat(part->total_ns, ns[i]);
	part->p50_ns = percentile(ns, n, 50);
	part->max_ns = n ? ns[n - 1] : 0;
}

static bool is_known(const struct mxbpf_iteration *it)
{
	return it->flags & MXBPF_ITERATION_PARTS;
}

static void sum_parts(struct snk_loop *l, const struct mxbpf_iteration *it, size_t n, uint64_t *ns)
{
	struct snk_part busy = {0}, first = {0};
	size_t i, k = 0;
	unsigned part;

	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		for (i = k = 0; i < n; i++)
			if (is_known(&it[i]))
				ns[k++] = it[i].part_ns[part];
		sum_part(&l->parts[part], ns, k);
	}
	for (i = k = 0; i < n; i++)
		if (is_known(&it[i])) {
			l->known_ns = sum_sat(l->known_ns, it[i].dur_ns);
			ns[k++] = it[i].busy_ns;
		}
	l->known = k;
	sum_part(&busy, ns, k);
	l->busy_ns = busy.total_ns;
	for (i = k = 0; i < n; i++)
		if (is_known(&it[i]))
			ns[k++] = it[i].first_ns;
	sum_part(&first, ns, k);
	l->first_p50_ns = first.p50_ns;
}

static void sum_loop(struct snk_loop *l, const struct mxbpf_iteration *it, size_t n, uint64_t *ns)
{
	struct snk_part all = {0};
	size_t i;

	*l = (struct snk_loop){.tgid = it->h.tgid, .told = it->told, .missing = it->nr, .min_ns = UINT64_MAX};
	for (i = 0; i < n; i++) {
		ns[i] = it[i].dur_ns;
		l->min_ns = it[i].dur_ns < l->min_ns ? it[i].dur_ns : l->min_ns;
		l->missing = it[i].nr < l->missing ? it[i].nr : l->missing;
	}
	if (l->missing > UINT64_MAX - n) /* a file can say anything */
		l->missing = UINT64_MAX - n;
	l->count = n + l->missing;
	sum_part(&all, ns, n);
	l->total_ns = all.total_ns;
	l->max_ns = all.max_ns;
	l->p50_ns = all.p50_ns;
	l->p99_ns = percentile(ns, n, 99);
	sum_parts(l, it, n, ns);
}

static int by_length(const void *va, const void *vb)
{
	const struct mxbpf_iteration *a = *(const struct mxbpf_iteration *const *)va;
	const struct mxbpf_iteration *b = *(const struct mxbpf_iteration *const *)vb;

	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

int snk_iterations(const struct snk *s, struct snk_iterations *t)
{
	size_t n, i, k, top = s->opts->top ? s->opts->top : SLOWEST_MAX;
	const struct mxbpf_iteration *all = mdl_iterations(s->in->model, &n), **slowest;
	struct snk_loop *loops;
	uint64_t *ns;

	t->loops = loops = calloc(n + 1, sizeof(*loops));
	t->slowest = slowest = calloc(n + 1, sizeof(*slowest));
	t->nloops = 0;
	ns = calloc(n + 1, sizeof(*ns));
	if (!loops || !slowest || !ns) {
		free(ns);
		return -ENOMEM;
	}
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && all[k].h.tgid == all[i].h.tgid; k++)
			slowest[k] = &all[k];
		sum_loop(&loops[t->nloops++], &all[i], k - i, ns);
	}
	qsort(slowest, n, sizeof(*slowest), by_length);
	t->nslowest = n < top ? n : top;
	free(ns);
	return 0;
}

const struct snk_loop *snk_loop_of(const struct snk_iterations *t, const struct mxbpf_iteration *it)
{
	size_t i = 0;

	while (i + 1 < t->nloops && t->loops[i].tgid != it->h.tgid)
		i++;
	return &t->loops[i];
}

int snk_longer(const struct snk_loop *l, const struct mxbpf_iteration *it, uint64_t *ns)
{
	int part, best = -1;

	*ns = 0;
	if (!is_known(it))
		return -1;
	for (part = 0; part < MXBPF_STEP_PARTS; part++)
		if (it->part_ns[part] > l->parts[part].p50_ns && it->part_ns[part] - l->parts[part].p50_ns > *ns) {
			best = part;
			*ns = it->part_ns[part] - l->parts[part].p50_ns;
		}
	return best;
}

void snk_put_loop_json(struct out *o, const struct snk_loop *l)
{
	unsigned i;

	out_printf(o,
		   ", \"count\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64
		   ", \"max_ns\": %" PRIu64 ", \"avg_ns\": %" PRIu64 ", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64,
		   l->count, l->missing, l->total_ns, l->min_ns, l->max_ns, l->total_ns / (l->count - l->missing),
		   l->p50_ns, l->p99_ns);
	if (l->known) {
		out_printf(o,
			   ",\n      \"parts\": {\"count\": %" PRIu64 ", \"total_ns\": %" PRIu64
			   ", \"operators_ns\": %" PRIu64,
			   l->known, l->known_ns, l->busy_ns);
		for (i = 0; i < MXBPF_STEP_PARTS; i++)
			out_printf(o,
				   ",\n        \"%s\": {\"total_ns\": %" PRIu64 ", \"p50_ns\": %" PRIu64
				   ", \"max_ns\": %" PRIu64 "}",
				   snk_parts[i], l->parts[i].total_ns, l->parts[i].p50_ns, l->parts[i].max_ns);
		out_puts(o, "}");
	}
}

/* ---- for people */

static int add_ns(struct snk_grid *g, uint64_t ns)
{
	char cell[24];

	fmt_tight_ns(ns, cell);
	return snk_grid_add(g, cell, strlen(cell));
}

static int add_share(struct snk_grid *g, uint64_t ns, uint64_t of)
{
	char cell[CELL_BYTES];

	snprintf(cell, sizeof(cell), "%.1f%%", of ? 100.0 * (double)ns / (double)of : 0.0);
	return snk_grid_add(g, cell, strlen(cell));
}

static int put_parts(struct snk *s, const struct snk_loop *l)
{
	struct snk_grid g = {.cols = {{"where their time went", .left = true}, {"share"}, {"mean"}, {"p50"}, {"max"}},
			     .ncols = 5};
	char known[24];
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < MXBPF_STEP_PARTS; i++) {
		const struct snk_part *part = &l->parts[i];

		if (!part->total_ns)
			continue;
		err = snk_grid_add(&g, titles[i], strlen(titles[i]));
		err = err ? err : add_share(&g, part->total_ns, l->known_ns);
		err = err ? err : add_ns(&g, part->total_ns / l->known);
		err = err ? err : add_ns(&g, part->p50_ns);
		err = err ? err : add_ns(&g, part->max_ns);
	}
	if (!err)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	snk_grid_fini(&g);
	if (!err)
		out_printf(s->out, "share is of %s, the time of these iterations on the thread that runs them\n",
			   fmt_ns(l->known_ns, known));
	if (!err && l->busy_ns)
		out_printf(s->out, "on whatever thread, an operator%s ran in %.1f%% of it\n",
			   s->in->session->left_out ? " that --ops shows" : "",
			   100.0 * (double)l->busy_ns / (double)(l->known_ns ? l->known_ns : 1));
	return err;
}

static int put_loop(struct snk *s, const struct snk_loop *l)
{
	struct snk_grid g = {.cols = {{"iterations", .left = true}, {"per s"}, {"mean"}, {"p50"}, {"p99"}, {"max"}},
			     .ncols = 6};
	const uint64_t n = l->count - l->missing;
	char cell[CELL_BYTES], count[32];
	int err;

	out_printf(s->out, "Iterations: each ends %s\n", ends[l->told]);
	if (l->missing)
		out_printf(s->out, "the first %s of %s are not in what follows\n", fmt_count(l->missing, cell),
			   fmt_count(l->count, count));
	fmt_count(n, count);
	err = snk_grid_add(&g, count, strlen(count));
	snprintf(cell, sizeof(cell), "%.2f", l->total_ns ? 1e9 * (double)n / (double)l->total_ns : 0.0);
	err = err ? err : snk_grid_add(&g, cell, strlen(cell));
	err = err ? err : add_ns(&g, l->total_ns / n);
	err = err ? err : add_ns(&g, l->p50_ns);
	err = err ? err : add_ns(&g, l->p99_ns);
	err = err ? err : add_ns(&g, l->max_ns);
	if (!err)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	snk_grid_fini(&g);
	if (!err && l->known)
		err = put_parts(s, l);
	out_puts(s->out, "\n");
	return err;
}

/* What of it was longer than in others; nothing where that is not much. */
static const char *why(const struct snk_loop *l, const struct mxbpf_iteration *it, char buf[WHY_BYTES])
{
	const uint64_t first = it->first_ns > l->first_p50_ns ? it->first_ns - l->first_p50_ns : 0;
	char more[24];
	uint64_t ns;
	int part = snk_longer(l, it, &ns);

	buf[0] = 0;
	if (part >= 0 && ns > l->p50_ns / 100 * NOTABLE)
		snprintf(buf, WHY_BYTES, "%s: %s more than the median%s", titles[part], fmt_ns(ns, more),
			 part == MXBPF_PART_OUTSIDE && first > ns / 2 ? ", before its first call" : "");
	return buf;
}

static int put_slowest(struct snk *s, const struct snk_iterations *t)
{
	struct snk_grid g = {.cols = {{"slowest iterations", .left = true}, {"at"}, {"took"}, {"median"}}, .ncols = 4};
	char cell[CELL_BYTES], note[WHY_BYTES];
	size_t i;
	int err = 0;

	for (i = 0; !err && i < t->nslowest; i++) {
		const struct mxbpf_iteration *it = t->slowest[i];
		const struct snk_loop *l = snk_loop_of(t, it);

		snprintf(cell, sizeof(cell), "#%" PRIu64, (uint64_t)it->nr);
		err = snk_grid_add(&g, cell, strlen(cell));
		snprintf(cell, sizeof(cell), "%.3f s",
			 (double)(int64_t)(it->h.ts_ns - s->in->session->start_mono_ns) / 1e9);
		err = err ? err : snk_grid_add(&g, cell, strlen(cell));
		err = err ? err : add_ns(&g, it->dur_ns);
		err = err ? err : add_ns(&g, l->p50_ns);
		why(l, it, note);
		if (!err && note[0])
			err = snk_grid_note(&g, note, strlen(note));
	}
	if (!err)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	out_puts(s->out, "\n");
	snk_grid_fini(&g);
	return err;
}

int snk_put_iterations(struct snk *s, const struct snk_iterations *t)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < t->nloops; i++)
		err = put_loop(s, &t->loops[i]);
	err = err ? err : put_slowest(s, t);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
