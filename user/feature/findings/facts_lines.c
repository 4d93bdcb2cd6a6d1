// SPDX-License-Identifier: Apache-2.0
/* Lines of Python, or functions, for the rules: where the workers work, where the loop waits, where slow iterations are
 * slow. */
#include "feature/steps/steps.h"
#include "feature/findings/causes/late.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "feature/activity/activity.h"
#include "feature/lines/lines.h"

/* Which looks a fact is about. */
enum about {
	ABOUT_WORKERS, /* processes without a loop of their own */
	ABOUT_THREADS, /* other threads of the loop's process */
	ABOUT_DATA,    /* from here on the loop's thread */
	ABOUT_WAIT,
	ABOUT_API,
	ABOUT_LOCK,
	ABOUT_LIBRARY, /* Python code of the runtime's library, which the program calls for operators */
	ABOUT_OWN,
	ABOUT_NABOUT
};

/* Longer lines are cut in struct fact_line. */
static uint64_t hash_of(const char *text, size_t len)
{
	return hash_text(HASH_SEED, text, len < FACTS_LINE_BYTES ? len : FACTS_LINE_BYTES - 1);
}

/* The vote of Boyer and Moore: what has more than a half of all is left. */
static void vote(struct fact_line *line, const struct mxbpf_agg_line *l)
{
	const bool same = line->sleep == l->sleeps && line->syscall == l->syscall && line->on == l->on;

	if (same || line->calls < l->count) {
		line->calls = same ? line->calls + l->count : l->count - line->calls;
		line->syscall = l->syscall;
		line->sleep = l->sleeps;
		line->on = l->on;
	} else {
		line->calls -= l->count;
	}
}

int facts_tally_add(struct facts_tally *t, const char *text, size_t len, const struct mxbpf_agg_line *l)
{
	struct fact_line *line;
	bool added;

	line = mdl_item_put(&t->index, &t->lines, hash_of(text, len), 0, sizeof(*line), &added);
	if (!line)
		return -ENOMEM;
	if (added)
		snprintf(line->text, sizeof(line->text), "%.*s", (int)len, text);
	line->looks += l->count;
	line->asleep += l->sleeps ? l->count : 0;
	if (l->sleeps)
		vote(line, l);
	return 0;
}

/* The line with the most looks, if they are enough to name it. */
struct fact_line facts_tally_top(const struct facts_tally *t)
{
	struct fact_line best = {.text = ""};
	size_t i;

	for (i = 0; i < buf_count(&t->lines, struct fact_line); i++)
		if (buf_at(&t->lines, struct fact_line, i)->looks > best.looks)
			best = *buf_at(&t->lines, struct fact_line, i);
	if (best.looks < FACTS_LOOKS_LEAST)
		best = (struct fact_line){.text = ""};
	best.of = t->of;
	return best;
}

const struct fact_line *facts_tally_find(const struct facts_tally *t, const char *text)
{
	const uint64_t *at = hash_get(&t->index, hash_of(text, strlen(text)), 0);

	return at ? buf_at(&t->lines, const struct fact_line, *at - 1) : NULL;
}

uint64_t facts_tally_at(const struct facts_tally *t, const char *text)
{
	const struct fact_line *line = facts_tally_find(t, text);

	return line ? line->looks : 0;
}

uint64_t facts_tally_without(const struct facts_tally *t, const struct facts_tally *calls, struct fact_line *best)
{
	const struct fact_line *l;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < buf_count(&t->lines, struct fact_line); i++) {
		l = buf_at(&t->lines, struct fact_line, i);
		if (calls && facts_tally_at(calls, l->text) * FACTS_CALLS_PART >= l->looks)
			continue;
		add_sat(&sum, l->looks);
		*best = l->looks > best->looks ? *l : *best;
	}
	return sum;
}

size_t facts_function(const char *line, size_t len, char to[FACTS_LINE_BYTES])
{
	const char *open = memchr(line, '(', len), *name = memmem(line, len, "): ", 3);
	int n;

	if (open && name && open < name)
		n = snprintf(to, FACTS_LINE_BYTES, "%.*s: %.*s", (int)(open - line), line,
			     (int)(len - (size_t)(name + 3 - line)), name + 3);
	else
		n = snprintf(to, FACTS_LINE_BYTES, "%.*s", (int)len, line);
	return n < FACTS_LINE_BYTES ? (size_t)n : FACTS_LINE_BYTES - 1;
}

void facts_tally_fini(struct facts_tally *t)
{
	hash_fini(&t->index);
	buf_fini(&t->lines);
}

/* Files in which a thread waits for other threads or processes, in Python's own library. */
static const char *const waiting[] = {"/queue.py(",	"/threading.py(",      "multiprocessing/",
				      "/selectors.py(", "concurrent/futures/", NULL};
/* Those in which it waits for what another one puts into a queue. */
static const char *const queues[] = {"/queue.py(", "multiprocessing/queues.py(", "multiprocessing/connection.py(",
				     NULL};
/* Files of data loaders. */
static const char *const loaders[] = {"torch/utils/data/", "gluon/data/", "mxnet/io/", NULL};

static bool has_one_of(const char *text, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (memmem(text, len, *words, strlen(*words)))
			return true;
	return false;
}

/* A worker between two requests, or handing over a batch, has a frame of its loader's queue inside. */
bool facts_waits_for_work(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);

	return text && (memmem(text, len, "multiprocessing/", 16) || memmem(text, len, "queue.py(", 9)) &&
	       memmem(text, len, ": get\n", 6);
}

/* The length of the first frames of a stack, which are the innermost ones. */
static size_t innermost(const char *text, size_t len, unsigned frames)
{
	const char *end = text;

	while (frames-- && end)
		end = memchr(end + (end != text), '\n', len - (size_t)(end - text) - (end != text));
	return end ? (size_t)(end - text) : len;
}

/* The innermost frame is in a function that waits for others. */
bool facts_is_idle(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);

	return text && l->sleeps && has_one_of(text, innermost(text, len, 1), waiting);
}

bool facts_waits_for_queue(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);

	return text && l->sleeps && has_one_of(text, innermost(text, len, 3), queues) &&
	       !has_one_of(text, len, loaders);
}

/* In a data loader, or waiting for a queue, which is a loader that the program has written itself. */
bool facts_is_in_loader(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);

	return text && (has_one_of(text, len, loaders) || facts_waits_for_queue(m, l));
}

bool facts_starts_with(const char *name, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(name, with, strlen(with));
}

/* Packages whose Python code is there to call operators, and what in them does work of its own. */
static const char *const runtimes[] = {"torch/", "mxnet/"};
static const char *const works[] = {"torch/utils/", "torch/serialization.py(", "torch/distributed/",
				    "mxnet/image/", "mxnet/recordio.py(",      NULL};

bool facts_is_runtime(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (facts_starts_with(line, len, runtimes[i]))
			return true;
	return false;
}

/* The line of the program has called the runtime's library, which runs Python code. */
bool facts_in_library(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len, n;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);
	const char *program = text ? lines_pick(text, len, &n) : NULL, *called;

	if (!program || program == text || l->sleeps || !lines_is_program(program, n))
		return false;
	called = memrchr(text, '\n', (size_t)(program - 1 - text));
	called = called ? called + 1 : text;
	len = (size_t)(program - called);
	return facts_is_runtime(called, len) && !has_one_of(called, len, works);
}

/* The process that the loop's thread is of. */
static uint32_t process_of(const struct facts *f, const struct mxbpf_agg_line *l, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (l[i].tid == f->loop.tid)
			return l[i].h.tgid;
	return f->loop.tgid;
}

/* The process has a loop of its own. */
static bool is_rank(const struct facts *f, uint32_t tgid)
{
	unsigned i;

	for (i = 0; i < FACTS_LOOPS_MAX; i++)
		if (f->loops[i].tid == tgid)
			return true;
	return false;
}

/* Beginnings of the names of PyTorch's operators that read a value of a GPU, and wait for it. */
static const char *const reads[] = {"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::nonzero"};

/* The call waits for a GPU. */
static bool waits_for_gpu(const struct facts *f, const struct mxbpf_agg_line *l, const char *name, size_t len)
{
	size_t i;

	if (l->cls == MXBPF_CLASS_CUDA)
		return activity_is_wait(name, len);
	for (i = 0; f->gpu.known && i < sizeof(reads) / sizeof(reads[0]); i++)
		if (facts_starts_with(name, len, reads[i]))
			return true;
	return false;
}

/* In no call, or in an annotation alone, as that of an optimizer's step: then the program runs code of its own. */
bool facts_is_outside(struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);

	for (i = 0; l->cls == MXBPF_CLASS_OPERATOR && i < n; i++)
		if (rows[i]->name_id == l->name_id)
			return rows[i]->traits & MXBPF_TRAIT_USER;
	return !l->cls;
}

static enum about about_loop(struct mdl *m, const struct facts *f, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *name = mdl_name(m, l->name_id, &len);

	if (l->cls == MXBPF_CLASS_DATA || (l->cls && facts_starts_with(name, len, "enumerate(DataLoader)")))
		return ABOUT_DATA;
	if (facts_is_outside(m, l)) {
		if (facts_is_in_loader(m, l))
			return ABOUT_DATA;
		/* A thread that waits for another one, or for its result, waits for no lock of the interpreter. */
		if (f->python && l->sleeps && l->syscall == SYS_futex)
			return facts_is_idle(m, l) ? ABOUT_OWN : ABOUT_LOCK;
		return facts_in_library(m, l) ? ABOUT_LIBRARY : ABOUT_OWN;
	}
	if (waits_for_gpu(f, l, name, len))
		return ABOUT_WAIT;
	if (l->cls == MXBPF_CLASS_WAIT || (l->cls == MXBPF_CLASS_API && (l->sleeps || facts_is_wait(name, len))))
		return ABOUT_WAIT;
	return ABOUT_API;
}

/* It sleeps until another thread wakes it. */
static bool sleeps_in_lock(const struct mxbpf_agg_line *l)
{
	return l->sleeps && l->syscall == SYS_futex;
}

static bool waits_in_exchange(const struct mdl *m, const struct facts *f, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = sleeps_in_lock(l) ? lines_of_program(m, l->stack_id, &len) : NULL;

	return text && f->exchange_line.looks &&
	       hash_of(text, len) == hash_of(f->exchange_line.text, strlen(f->exchange_line.text));
}

static enum about about_of(struct mdl *m, const struct facts *f, uint32_t tgid, const struct mxbpf_agg_line *l)
{
	if (l->rank)
		return ABOUT_NABOUT;
	if (l->h.tgid == tgid && l->tid == f->loop.tid)
		return about_loop(m, f, l);
	if (l->h.tgid == tgid)
		return facts_is_idle(m, l) ? ABOUT_NABOUT : ABOUT_THREADS;
	return l->main && !is_rank(f, l->h.tgid) ? ABOUT_WORKERS : ABOUT_NABOUT;
}

/* The line that has the most more of the looks than it has of the others; *by: how much more. looks 0: none has. */
static struct fact_line more_line(const struct facts_tally *t, const struct facts_tally *others, double *by)
{
	struct fact_line best = {.text = ""};
	const struct fact_line *line;
	double more;
	size_t i;

	*by = 0;
	for (i = 0; i < buf_count(&t->lines, struct fact_line); i++) {
		line = buf_at(&t->lines, struct fact_line, i);
		more = facts_share((double)line->looks, (double)t->of) -
		       facts_share((double)facts_tally_at(others, line->text), (double)others->of);
		if (more <= *by || line->looks < FACTS_LOOKS_LEAST)
			continue;
		*by = more;
		best = *line;
	}
	best.of = t->of;
	return best;
}

/* The line on which slow iterations spend most more of their time than others do. */
int facts_slow_line(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	struct facts_tally slow = {0}, usual = {0};
	const struct mxbpf_agg_line one = {.count = 1};
	size_t nlooks, i, len;
	const struct mxbpf_look *looks = lines_looks(m, &nlooks);
	const struct mxbpf_iteration *at;
	const char *text;
	struct facts_tally *to;
	int err = 0;

	for (i = 0; i < nlooks && !err; i++) {
		text = looks[i].tid == f->loop.tid ? lines_of_program(m, looks[i].stack_id, &len) : NULL;
		if (!text || !(at = steps_at(it, n, looks[i].h.ts_ns)))
			continue;
		to = facts_in_group(f, at) ? &slow : &usual;
		to->of++;
		err = facts_tally_add(to, text, len, &one);
	}
	f->slow_line = more_line(&slow, &usual, &f->slow_line_more);
	facts_tally_fini(&slow);
	facts_tally_fini(&usual);
	return err;
}

struct tallies {
	struct facts_tally about[ABOUT_NABOUT];
	struct facts_tally any;
	struct facts_tally last, others; /* main threads of the rank that the others wait for, and of the others */
	uint64_t loop, loader, held; /* looks: at the loop's thread; in a loader, outside calls; at threads that ran */
};

/* Where the late rank stands, and where the others do. All of them wait in the exchange, which cancels out. */
static int tally_ranks(const struct mdl *m, const struct facts *f, struct tallies *t)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct facts_tally *to;
	const char *text;
	int err = 0;

	for (i = 0; i < n && !err && f->late_tgid; i++) {
		to = l[i].h.tgid == f->late_tgid			  ? &t->last
		     : (l[i].rank && !l[i].of) || is_rank(f, l[i].h.tgid) ? &t->others
									  : NULL;
		text = to && l[i].main ? lines_of_program(m, l[i].stack_id, &len) : NULL;
		if (!text)
			continue;
		to->of += l[i].count;
		err = facts_tally_add(to, text, len, &l[i]);
	}
	return err;
}

static bool compiles(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);

	return text && lines_compiler(text, len);
}

static int tally_all(struct mdl *m, const struct facts *f, struct tallies *t)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	const uint32_t tgid = process_of(f, l, n);
	enum about about;
	const char *text;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		about = about_of(m, f, tgid, &l[i]);
		if (about == ABOUT_OWN && compiles(m, &l[i])) { /* a finding of its own */
			t->loop += l[i].count;
			continue;
		}
		text = about < ABOUT_NABOUT ? lines_of_program(m, l[i].stack_id, &len) : NULL;
		if (!text)
			continue;
		t->about[about].of += l[i].count;
		t->loop += about >= ABOUT_DATA ? l[i].count : 0;
		t->loader += about == ABOUT_DATA && !l[i].cls ? l[i].count : 0;
		t->held += about == ABOUT_THREADS && !l[i].sleeps ? l[i].count : 0;
		if (about != ABOUT_WORKERS || !(facts_waits_for_work(m, &l[i]) || facts_is_idle(m, &l[i])))
			err = facts_tally_add(&t->about[about], text, len, &l[i]);
		if (f->loop.tid ? about < ABOUT_DATA : about != ABOUT_WORKERS)
			continue;
		t->any.of += l[i].count;
		err = err ? err : facts_tally_add(&t->any, text, len, &l[i]);
	}
	return err;
}

/* ---- ranks without probes */

#define RANK_LOOKS  5	 /* at a rank, or more, to judge it */
#define LAST_LEAST  0.15 /* of its looks, by which the last rank waits less than the loop */
#define LAST_ERRORS 3	 /* standard errors of that difference: ranks that are alike differ by less */

/* Where a rank stands while others wait for it is told by how seldom it stands where the loop waits. */
struct rank {
	uint32_t tgid;
	uint64_t looks, waits;
};

static int find_exchange_line(const struct mdl *m, struct facts *f, const struct mxbpf_agg_line *l, size_t n)
{
	const uint32_t tgid = process_of(f, l, n);
	struct facts_tally t = {.of = 0};
	const char *text;
	size_t i, len;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		if (l[i].h.tgid != tgid || l[i].tid != f->loop.tid)
			continue;
		t.of += l[i].count;
		text = sleeps_in_lock(&l[i]) && !facts_is_in_loader(m, &l[i]) ? lines_of_program(m, l[i].stack_id, &len)
									      : NULL;
		err = text ? facts_tally_add(&t, text, len, &l[i]) : 0;
	}
	f->exchange_line = facts_tally_top(&t);
	facts_tally_fini(&t);
	return err;
}

static unsigned sum_ranks(const struct mdl *m, const struct facts *f, const struct mxbpf_agg_line *l, size_t n,
			  struct rank ranks[FACTS_LOOPS_MAX])
{
	unsigned nranks = 0, k;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!l[i].rank || !l[i].main || l[i].of)
			continue;
		for (k = 0; k < nranks && ranks[k].tgid != l[i].h.tgid; k++)
			;
		if (k == FACTS_LOOPS_MAX)
			continue;
		nranks += k == nranks;
		ranks[k].tgid = l[i].h.tgid;
		add_sat(&ranks[k].looks, l[i].count);
		add_sat(&ranks[k].waits, waits_in_exchange(m, f, &l[i]) ? l[i].count : 0);
	}
	return nranks;
}

static double rank_waits(const struct rank *r)
{
	return facts_share((double)r->waits, (double)r->looks);
}

/* The rank waits less than the loop by more than the number of looks explains. */
static bool waits_less(const struct rank *r, const struct fact_line *loop)
{
	const double all = facts_share((double)(r->waits + loop->looks), (double)(r->looks + loop->of));
	const double less = facts_share((double)loop->looks, (double)loop->of) - rank_waits(r);
	const double error = sqrt(all * (1 - all) * (1 / (double)r->looks + 1 / (double)loop->of));

	return less >= LAST_LEAST && less > LAST_ERRORS * error;
}

/*
 * Of ranks that are not profiled, finds the one that waits the least: less than a half of what the loop waits, or less
 * by more than chance.
 */
static int find_last_rank(const struct mdl *m, struct facts *f)
{
	struct rank ranks[FACTS_LOOPS_MAX] = {{0}}, *last = NULL;
	size_t n;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	const int err = f->last_rank || !f->loop.tid ? 0 : find_exchange_line(m, f, l, n);
	unsigned nranks, k;

	if (err || !f->exchange_line.looks)
		return err;
	nranks = sum_ranks(m, f, l, n, ranks);
	for (k = 0; k < nranks; k++)
		if (ranks[k].looks >= RANK_LOOKS && (!last || rank_waits(&ranks[k]) < rank_waits(last)))
			last = &ranks[k];
	if (!last ||
	    (rank_waits(last) * 2 >= facts_share((double)f->exchange_line.looks, (double)f->exchange_line.of) &&
	     !waits_less(last, &f->exchange_line)))
		return 0;
	f->last_rank = last->tgid;
	f->last_unprobed = true;
	return 0;
}

/* ---- */

/* Where data is prepared: by workers, else by other threads while the loop waits, else by the loop itself. */
static void take_data(struct facts *f, const struct tallies *t)
{
	const struct fact_line workers = facts_tally_top(&t->about[ABOUT_WORKERS]);

	f->data_line = facts_tally_top(&t->about[ABOUT_DATA]);
	f->data_workers = workers.looks || (f->other_line.looks && f->data_line.asleep * 2 > f->data_line.looks);
	if (f->data_workers)
		f->data_line = workers.looks ? workers : f->other_line;
}

static bool is_apart(const struct tallies *t, const struct fact_line *line)
{
	const uint64_t calls =
		facts_tally_at(&t->about[ABOUT_API], line->text) + facts_tally_at(&t->about[ABOUT_WAIT], line->text);

	return calls * FACTS_CALLS_PART < line->looks;
}

/* Looks outside the runtime, at lines of the program that do not call it; *most: the one with the most. */
static uint64_t looks_apart(const struct tallies *t, struct fact_line *most)
{
	const struct facts_tally *own = &t->about[ABOUT_OWN];
	const struct fact_line *line;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < buf_count(&own->lines, struct fact_line); i++) {
		line = buf_at(&own->lines, struct fact_line, i);
		if (!is_apart(t, line))
			continue;
		sum += line->looks;
		*most = line->looks > most->looks ? *line : *most;
	}
	return sum;
}

#define CALL_NS                                                                                                        \
	3000 /* of Python for each operator, at most; measured: 2100 in a loop of small layers of PyTorch 2.13 */

/* Without the calls of samples, the number of operators says how much of the time outside them is for calling them. */
static void share_by_calls(struct facts *f)
{
	const double outside = facts_share((double)f->loop.part_ns[MXBPF_PART_OUTSIDE], (double)f->loop.known_ns);
	const double calling = facts_share((double)f->op_calls * CALL_NS, (double)f->loop.total_ns);

	f->launch_share = calling < outside ? calling : outside;
	f->own_share = facts_least(f->own_share, outside - f->launch_share);
}

/*
 * Waiting for the interpreter, unless no other thread runs: then it waits for something else, which is its own code. A
 * rank waits for the other ranks, also in calls that no slice has seen.
 */
static void take_own(struct facts *f, const struct tallies *t)
{
	const struct fact_line lock = facts_tally_top(&t->about[ABOUT_LOCK]);
	const bool locked = t->held * 2 >= t->about[ABOUT_LOCK].of;
	const bool exchanges = f->cause.late.judged && f->exchange_ns;
	uint64_t own = looks_apart(t, &f->own_line);

	f->launch_share = t->loop ? facts_share((double)(t->about[ABOUT_OWN].of - own + t->about[ABOUT_LIBRARY].of),
						(double)t->loop)
				  : 1;
	own += locked || exchanges ? 0 : t->about[ABOUT_LOCK].of;
	if (f->own_line.looks < FACTS_LOOKS_LEAST)
		f->own_line = (struct fact_line){.text = ""};
	f->own_line = !locked && !exchanges && lock.looks > f->own_line.looks ? lock : f->own_line;
	f->own_line.of = own;
	f->own_share = facts_share((double)own, (double)t->loop);
	if (f->foreign && !t->loop)
		f->own_share = 1; /* nobody has looked at lines */
	if (f->sliced || (f->foreign && !t->loop))
		share_by_calls(f);
	f->lock_share = locked ? facts_share((double)t->about[ABOUT_LOCK].of, (double)t->loop) : 0;
}

/* How the loop's thread sleeps on a line, over all looks at it. The line has its own looks from single ones. */
static void take_sleep(struct fact_line *line, const struct tallies *t)
{
	const struct fact_line *of;
	uint64_t looks = 0, asleep = 0, most = 0, *at;
	unsigned about;

	for (about = ABOUT_DATA; about < ABOUT_NABOUT; about++) {
		at = hash_get(&t->about[about].index, hash_of(line->text, strlen(line->text)), 0);
		of = at ? buf_at(&t->about[about].lines, struct fact_line, *at - 1) : NULL;
		if (!of)
			continue;
		looks += of->looks;
		asleep += of->asleep;
		if (of->asleep <= most)
			continue;
		most = of->asleep;
		line->calls = of->calls;
		line->syscall = of->syscall;
		line->sleep = of->sleep;
		line->on = of->on;
	}
	line->asleep = asleep * 2 > looks ? line->looks : 0;
}

/* The process whose main thread was found stopped for the largest share of its looks. */
static void find_stopped(const struct mdl *m, struct facts *f)
{
	size_t n, i, k;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);

	for (i = 0; i < n; i++) {
		uint64_t stopped = 0, all = 0;

		if (l[i].sleeps != MXBPF_SLEEP_STOPPED || !l[i].main)
			continue;
		for (k = 0; k < n; k++) {
			if (l[k].h.tgid != l[i].h.tgid || !l[k].main)
				continue;
			add_sat(&all, l[k].count);
			add_sat(&stopped, l[k].sleeps == MXBPF_SLEEP_STOPPED ? l[k].count : 0);
		}
		if (facts_share((double)stopped, (double)all) <= f->stopped)
			continue;
		f->stopped = facts_share((double)stopped, (double)all);
		f->stopped_tgid = l[i].h.tgid;
	}
}

int facts_lines(struct mdl *m, struct facts *f)
{
	struct tallies t = {.loop = 0};
	int err = late_find(m, f);
	unsigned about;
	uint64_t looks = 0;
	double more;

	err = err || f->cause.late.judged ? err : find_last_rank(m, f);
	f->late_tgid = f->last_rank ? f->last_rank : f->collective.late.tgid;
	err = err ? err : tally_all(m, f, &t);
	err = err ? err : tally_ranks(m, f, &t);
	f->other_line = facts_tally_top(&t.about[ABOUT_THREADS]);
	f->last_line = f->cause.late.tgid ? f->cause.late.line : more_line(&t.last, &t.others, &more);
	f->wait_line = facts_tally_top(&t.about[ABOUT_WAIT]);
	f->api_line = facts_tally_top(&t.about[ABOUT_API]);
	f->any_line = facts_tally_top(&t.any);
	for (about = ABOUT_WAIT; about < ABOUT_NABOUT; about++)
		looks += facts_tally_at(&t.about[about], f->wait_line.text);
	f->wait_line_share = facts_share((double)looks, (double)t.loop);
	f->loader_share = facts_share((double)t.loader, (double)t.loop);
	take_data(f, &t);
	take_own(f, &t);
	take_sleep(&f->slow_line, &t);
	find_stopped(m, f);
	for (about = 0; about < ABOUT_NABOUT; about++)
		facts_tally_fini(&t.about[about]);
	facts_tally_fini(&t.any);
	facts_tally_fini(&t.last);
	facts_tally_fini(&t.others);
	return err;
}
