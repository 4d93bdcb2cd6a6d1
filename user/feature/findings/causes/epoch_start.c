// SPDX-License-Identifier: Apache-2.0
/*
 * Workers of a data loader that are started anew for each epoch. The loop stands in its loader, and meanwhile processes
 * begin, or import what they need.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/lines/lines.h"
#include "feature/resident/resident.h"

#define FIRST_READINGS 3		   /* of a process: one that is read later has begun in the window */
#define BIRTH_NS       1500000000ull	   /* from the begin of a process to its first sample, at most */
#define ROUND_NS       (LINES_LOOK_NS * 2) /* samples of other processes that are as close belong together */
#define ONCE_LEAST     0.3		   /* of the time: a single start beside a loop is worth a finding */

/* Frames in which the program starts workers, ends them, or waits for their data. */
static const char *const starts[] = {"multiprocessing/popen_", "): _get_iterator", "): _shutdown_workers", NULL};
static const char *const loaders[] = {"torch/utils/data/", "gluon/data/", "multiprocessing/pool.py(",
				      "concurrent/futures/process.py(", NULL};
/* A worker that begins, and one that works. */
static const char *const imports[] = {"<frozen importlib", "multiprocessing/spawn.py(", NULL};
static const char *const works[] = {
	"data/_utils/worker.py(", "): _worker_loop", "): worker_loop", "): worker\n", "): _process_worker", NULL};

static bool has(const struct mdl *m, const struct mxbpf_look *l, const char *const *words)
{
	size_t len;
	const char *text = l->stack_id ? mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len) : NULL;

	for (; text && *words; words++)
		if (memmem(text, len, *words, strlen(*words)))
			return true;
	return false;
}

static bool waits(const struct mdl *m, const struct mxbpf_look *l)
{
	return (has(m, l, starts) || has(m, l, loaders)) && !has(m, l, works);
}

static bool begins(const struct mdl *m, const struct mxbpf_look *l)
{
	return has(m, l, imports) && !has(m, l, works);
}

static int by_time(const void *va, const void *vb)
{
	const struct mxbpf_look *a = va, *b = vb;

	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

/* The loop's thread; without a loop, the main thread that is in its loader the most. Returns its process, or 0. */
static uint32_t find_thread(const struct mdl *m, const struct facts *f, const struct mxbpf_look *l, size_t n,
			    uint32_t *tid)
{
	struct hash count = {0};
	uint64_t *c, most = 0;
	uint32_t tgid = 0;
	size_t i;

	*tid = f->loop.tid;
	for (i = 0; i < n; i++) {
		if (f->loop.tid ? l[i].tid != f->loop.tid : l[i].tid != l[i].h.tgid || !waits(m, &l[i]))
			continue;
		c = hash_put(&count, l[i].h.tgid, 0);
		if (c && ++*c > most) {
			most = *c;
			tgid = l[i].h.tgid;
		}
	}
	hash_fini(&count);
	*tid = *tid ? *tid : tgid;
	return tgid;
}

/* The process imports what it needs at some time. */
static bool imports_some(const struct mdl *m, const struct mxbpf_look *l, size_t n, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < n && !(l[i].h.tgid == tgid && begins(m, &l[i])); i++)
		;
	return i < n;
}

/*
 * A process of the job that is no rank began while the thread waited. The first sample of one that imports may come
 * much later. Any other one that comes later began after the wait.
 */
static bool is_born_in(const struct mdl *m, const struct mxbpf_look *l, size_t n, uint32_t tgid, uint64_t from_ns,
		       uint64_t to_ns)
{
	const struct resident *p, *own = NULL;
	uint64_t at_ns, first_ns;
	size_t i;

	for (i = 0; (p = resident_at(m, i)); i++)
		own = p->tgid == tgid ? p : own;
	if (!own || own->n < FIRST_READINGS)
		return false;
	first_ns = own->at[FIRST_READINGS - 1].h.ts_ns;
	for (i = 0; (p = resident_at(m, i)); i++) {
		at_ns = p->n ? p->at[0].h.ts_ns : 0;
		if (p->tgid == tgid || at_ns <= first_ns || at_ns < from_ns || at_ns > to_ns + BIRTH_NS)
			continue;
		if (at_ns <= to_ns + 2 * ROUND_NS || imports_some(m, l, n, p->tgid))
			return true;
	}
	return false;
}

struct sums {
	uint64_t all, waits, runs; /* samples of the thread, those that wait for a start; starts */
	uint64_t after_ns;	   /* a wait that begins earlier is for the first workers, which every job starts */
	struct facts_tally at, import;
};

/* Samples first..last wait, one after the other. Adds them if workers began meanwhile. */
static int add_run(const struct mdl *m, const struct mxbpf_look *l, size_t n, size_t first, size_t last, uint32_t tgid,
		   uint32_t tid, struct sums *s)
{
	const struct mxbpf_agg_line one = {.count = 1};
	const uint64_t from_ns = l[first].h.ts_ns, to_ns = l[last].h.ts_ns;
	bool starts_some = is_born_in(m, l, n, tgid, from_ns, to_ns), works_some = false, counts, counted = false;
	const char *text;
	size_t i, len;
	int err = 0;

	if (from_ns < s->after_ns)
		return 0;
	for (i = first; i < n && l[i].h.ts_ns <= to_ns + ROUND_NS && !starts_some; i++)
		starts_some = l[i].tid == tid ? has(m, &l[i], starts) : l[i].h.tgid != tgid && begins(m, &l[i]);
	for (i = first; starts_some && !err && i <= last; i++) {
		text = lines_of_program(m, l[i].stack_id, &len);
		if (l[i].tid != tid) {
			works_some |= has(m, &l[i], works);
			if (l[i].h.tgid != tgid && begins(m, &l[i]) && text && lines_is_program(text, len))
				err = facts_tally_add(&s->import, text, len, &one);
			continue;
		}
		/* A loop that waits for workers which work has slow workers. */
		counts = !works_some || has(m, &l[i], starts);
		works_some = false;
		s->waits += counts;
		counted |= counts;
		err = counts && text ? facts_tally_add(&s->at, text, len, &one) : 0;
	}
	s->runs += counted;
	return err;
}

static int add_runs(const struct mdl *m, const struct mxbpf_look *l, size_t n, uint32_t tgid, uint32_t tid,
		    struct sums *s)
{
	size_t i, first = n, last = n;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (l[i].tid != tid || l[i].h.tgid != tgid)
			continue;
		s->all++;
		if (waits(m, &l[i])) {
			first = first == n ? i : first;
			last = i;
			continue;
		}
		err = first < n ? add_run(m, l, n, first, last, tgid, tid, s) : 0;
		first = n;
	}
	return err || first == n ? err : add_run(m, l, n, first, last, tgid, tid, s);
}

int make_epoch_start(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct epoch_start *e = &f->cause.epoch_start;
	struct sums sums = {.after_ns = f->loop.n ? f->loop.first_ns : 0};
	size_t n;
	const struct mxbpf_look *all = lines_looks(m, &n);
	struct mxbpf_look *l = calloc(n + 1, sizeof(*l));
	uint32_t tid;
	int err = 0;

	(void)s;
	if (!l)
		return -ENOMEM;
	if (n)
		memcpy(l, all, n * sizeof(*l));
	qsort(l, n, sizeof(*l), by_time);
	e->tgid = find_thread(m, f, l, n, &tid);
	if (e->tgid)
		err = add_runs(m, l, n, e->tgid, tid, &sums);
	e->share = facts_share((double)sums.waits, (double)sums.all);
	e->n = sums.runs;
	e->each_ns = sums.runs ? sums.waits * LINES_LOOK_NS / sums.runs : 0;
	sums.at.of = sums.all;
	e->at = facts_tally_top(&sums.at);
	e->import = facts_tally_top(&sums.import);
	facts_tally_fini(&sums.at);
	facts_tally_fini(&sums.import);
	free(l);
	return err;
}

/* ---- */

static double epoch_start_share(const struct facts *f)
{
	const struct epoch_start *e = &f->cause.epoch_start;

	return e->n > 1 || (f->loop.n && e->share >= ONCE_LEAST) ? e->share : 0;
}

static void epoch_start_say(const struct facts *f, struct buf *b)
{
	const struct epoch_start *e = &f->cause.epoch_start;
	char each[24];

	buf_printf(b, "The loop waits in %.0f%% of the time until new workers of its data loader have started",
		   100 * e->share);
	if (e->at.looks)
		buf_printf(b, ", at %s", e->at.text);
	if (e->n > 1)
		buf_printf(
			b,
			": %" PRIu64
			" starts in this window, about %s each; with workers that stay, it would take %.0f%% less time",
			e->n, fmt_ns(e->each_ns, each), 100 * e->share);
}

static void epoch_start_evidence(const struct facts *f, struct buf *b)
{
	const struct epoch_start *e = &f->cause.epoch_start;

	rules_put_line(&e->at, b);
	if (e->import.looks)
		buf_printf(b, "%sthe workers import modules meanwhile, for %s", e->at.looks ? "; " : "",
			   e->import.text);
}

/* clang-format off */
const struct finding_rule rules_epoch_start[] = {
	{.key = "epoch_start", .explains = "data_wait slow_iterations own_code memory_growth", .least = 0.1, .share = epoch_start_share, .say = epoch_start_say,
	 .evidence = epoch_start_evidence, .pid_at = offsetof(struct facts, cause.epoch_start.tgid), .next = "--pid PID --sched",
	 .taken = FACTS_HAVE_SCHED,
	 .advice = "A data loader starts its workers anew for each epoch, and each of them imports what it needs. Give it "
		   "persistent_workers=True, make the loader once before the first epoch, start workers by fork instead of spawn where "
		   "that is safe, import less in the modules that they load, or let an epoch have more batches."},
	{.key = NULL},
};
/* clang-format on */
