// SPDX-License-Identifier: Apache-2.0
/*
 * Programs without iterations, or with few in a long window: inference, evaluation, preparation of data. The thread
 * that calls the runtime the most stands for the loop. Only what it computes counts as its own code: one that sleeps
 * may have nothing to do.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "feature/lines/lines.h"

#define CALLS_LEAST   3	  /* samples in calls of the runtime */
#define OFTEN_AWAKE   0.5 /* of the samples of a main thread that calls little */
#define ALWAYS_AWAKE  0.9 /* the same of one that calls nothing, which may still be starting */
#define ALWAYS_OWN    0.6 /* of its time in its own code, to say so */
#define SAMPLES_LEAST 10

struct alone_thread {
	uint32_t tgid, tid;
	uint64_t all, calls, awake;
	uint64_t busy, queued; /* it works; it waits for a queue */
	bool main;
};

/* It computes, or waits for a disk. */
static bool is_busy(const struct mxbpf_agg_line *l)
{
	return !l->sleeps || l->sleeps == MXBPF_SLEEP_DISK || l->syscall == SYS_fsync || l->syscall == SYS_fdatasync;
}

/* *busy: looks at all threads that work. */
static int sum_threads(struct mdl *m, struct hash *index, struct buf *threads, uint64_t *busy)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct alone_thread *t;
	bool added;

	for (i = 0; i < n; i++) {
		if (l[i].rank)
			continue;
		t = mdl_item_put(index, threads, l[i].tid, l[i].h.tgid, sizeof(*t), &added);
		if (!t)
			return -ENOMEM;
		t->tgid = l[i].h.tgid;
		t->tid = l[i].tid;
		t->main = l[i].main;
		add_sat(&t->all, l[i].count);
		add_sat(&t->calls, facts_is_outside(m, &l[i]) ? 0 : l[i].count);
		add_sat(&t->awake, l[i].sleeps ? 0 : l[i].count);
		add_sat(&t->busy, is_busy(&l[i]) ? l[i].count : 0);
		add_sat(&t->queued, facts_waits_for_queue(m, &l[i]) ? l[i].count : 0);
		add_sat(busy, is_busy(&l[i]) ? l[i].count : 0);
	}
	return 0;
}

/* The thread with the most work, or NULL. A worker of a data loader calls operators as well, but less than it works. */
static const struct alone_thread *choose_thread(const struct buf *threads, uint32_t root)
{
	const struct alone_thread *t, *best = NULL;
	double awake;
	bool works;
	size_t i;

	for (i = 0; i < buf_count(threads, struct alone_thread); i++) {
		t = buf_at(threads, struct alone_thread, i);
		awake = facts_share((double)t->awake, (double)t->all);
		works = t->calls >= CALLS_LEAST || (t->main && awake >= (t->calls ? OFTEN_AWAKE : ALWAYS_AWAKE));
		if (!works || t->all < SAMPLES_LEAST)
			continue;
		if (!best || (t->tgid == root) > (best->tgid == root) ||
		    ((t->tgid == root) == (best->tgid == root) && t->calls + t->awake > best->calls + best->awake))
			best = t;
	}
	return best;
}

struct alone_tallies {
	struct facts_tally own, calls, data, workers;
	uint64_t data_looks, data_asleep;
	bool idle; /* nothing fills the queue that the thread waits for, as in a server without requests */
};

static int add_look(struct mdl *m, const struct facts *f, const struct mxbpf_agg_line *l, struct alone_tallies *t)
{
	const bool ours = l->h.tgid == f->cause.alone.tgid && l->tid == f->cause.alone.tid;
	size_t len, n;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &n);
	const char *line = text ? lines_pick(text, n, &len) : NULL;

	if (!line || !lines_is_program(line, len) || l->rank || lines_compiler(text, n) ||
	    memmem(text, n, "<frozen importlib", 17)) /* it is still starting */
		return 0;
	if (!ours)
		return l->h.tgid != f->cause.alone.tgid && l->main && is_busy(l)
			       ? facts_tally_add(&t->workers, line, len, l)
			       : 0;
	if (t->idle && facts_waits_for_queue(m, l))
		return 0;
	if (facts_is_in_loader(m, l)) {
		t->data_looks += l->count;
		t->data_asleep += l->sleeps ? l->count : 0;
		return facts_tally_add(&t->data, line, len, l);
	}
	if (!facts_is_outside(m, l))
		return facts_tally_add(&t->calls, line, len, l);
	return is_busy(l) && !facts_in_library(m, l) ? facts_tally_add(&t->own, line, len, l) : 0;
}

static void take_lines(const struct alone_tallies *t, uint64_t all, struct facts *f)
{
	struct fact_line *best = &f->cause.alone.own.line;
	const uint64_t sum = facts_tally_without(&t->own, &t->calls, best);

	if (best->looks < FACTS_LOOKS_LEAST)
		*best = (struct fact_line){.text = ""};
	best->of = all;
	f->cause.alone.own.share = facts_share((double)sum, (double)all);
	f->cause.alone.data.share = facts_share((double)t->data_looks, (double)all);
	f->cause.alone.data.line = facts_tally_top(&t->data);
	if (t->data_asleep * 2 > t->data_looks && t->workers.lines.len) {
		f->cause.alone.data.line = facts_tally_top(&t->workers);
		f->cause.alone.workers = true;
	}
	f->cause.alone.data.line.of = all;
}

int make_alone(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct alone_tallies t = {.data_looks = 0};
	struct hash index = {0};
	struct buf threads = {0};
	uint64_t all = 0, busy = 0;
	const struct alone_thread *best;
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	int err = f->loop.covers > FACTS_COVERED_LEAST || !f->python ? 0 : sum_threads(m, &index, &threads, &busy);

	best = err ? NULL : choose_thread(&threads, mdl_target_of(s).pid);
	if (best) {
		f->cause.alone.tgid = best->tgid;
		f->cause.alone.tid = best->tid;
		/* It may have lived in a part of the window. */
		all = s->paused_ns ? 0 : s->duration_ns / LINES_LOOK_NS / 2;
		all = best->all > all ? best->all : all;
		t.idle = (busy - best->busy) * 2 < best->queued;
	}
	for (i = 0; best && !err && i < n; i++)
		err = add_look(m, f, &l[i], &t);
	if (best && !err)
		take_lines(&t, all, f);
	if (best && !best->calls && f->cause.alone.own.share < ALWAYS_OWN)
		f->cause.alone.own.share = 0;
	facts_tally_fini(&t.own);
	facts_tally_fini(&t.calls);
	facts_tally_fini(&t.data);
	facts_tally_fini(&t.workers);
	hash_fini(&index);
	buf_fini(&threads);
	return err;
}

static double alone_own_share(const struct facts *f)
{
	return f->cause.alone.own.line.looks && !f->partial ? f->cause.alone.own.share : 0;
}

static void alone_own_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "Your Python code takes %.0f%% of the time, while no operator runs: %s",
		   100 * f->cause.alone.own.share, f->cause.alone.own.line.text);
}

static void alone_own_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->cause.alone.own.line, b);
}

static double alone_data_share(const struct facts *f)
{
	return f->cause.alone.data.share;
}

static void alone_data_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The program waits for data in %.0f%% of its time", 100 * f->cause.alone.data.share);
	if (f->cause.alone.data.line.looks)
		buf_printf(b, ": %s at %s", f->cause.alone.workers ? "its workers are" : "it is",
			   f->cause.alone.data.line.text);
}

static void alone_data_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->cause.alone.data.line, b);
}

/* clang-format off */
const struct finding_rule rules_alone[] = {
	{.key = "own_code", .least = 0.3, .share = alone_own_share, .say = alone_own_say, .evidence = alone_own_evidence,
	 .next_of = next_alone, .pid_at = offsetof(struct facts, cause.alone.tgid),
	 .advice = "The thread that calls the runtime runs your own code for most of the time. Do it once before, do it less often, use "
		   "operators of the runtime or numpy for it, or do it in another process."},
	{.key = "data_wait", .least = 0.3, .share = alone_data_share, .say = alone_data_say, .evidence = alone_data_evidence,
	 .next_of = next_alone_data, .pid_at = offsetof(struct facts, cause.alone.tgid),
	 .advice = "The model stands still until the next batch is there. Add workers or prefetch more; move work out of "
		   "__getitem__, or do it once and store the result."},
	{.key = NULL},
};
/* clang-format on */
