// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that look again and again whether something is there. One that sleeps in between gets a CPU thousands of
 * times a second and is asleep in most samples, without a lock to wait for. One that does not is found in functions of
 * Python's library that only ask.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "feature/lines/lines.h"
#include "feature/threads/threads.h"

#define LOOKS_MIN     10   /* at a thread */
#define SLEEPS_A_SEC  1000 /* a thread that naps so often polls */
#define WAITS_A_SEC   2000 /* one that waits with a time limit, which also ends when something comes */
#define NAPS_LEAST    0.2  /* of its samples: asleep so; it waits for the interpreter lock as well */
#define WORKS_MOST    0.04 /* of its samples: asleep in other system calls, as a client that waits for answers */
#define ASKS_LEAST    0.2  /* of its samples: in a function that asks; the line around it has the others */
#define AT_LINE_LEAST 0.8  /* of its samples: in one function of the program, and in no call of the runtime */
#define CPU_LEAST     0.25 /* of the time, on a CPU or waiting for one: a thread that does not sleep */

#define SCANS 6 /* the first of them ask for files, as a program that starts does for one after the other */

/* Functions that ask and return at once: their files, and how their names begin. */
static const struct {
	const char *file, *function;
} asking[] = {
	{"genericpath", "exists"},
	{"genericpath", "isfile"},
	{"genericpath", "getsize"},
	{"genericpath", "getmtime"},
	{"/pathlib.py(", "exists"},
	{"/pathlib.py(", "stat"},
	{"/queue.py(", "empty"},
	{"/queue.py(", "qsize"},
	{"/queue.py(", "full"},
	{"/queue.py(", "get_nowait"},
	{"/queue.py(", "get"},
	{"/threading.py(", "is_set"},
	{"/threading.py(", "is_alive"},
	{"/threading.py(", "locked"},
	{"concurrent/futures/_base.py(", "done"},
	{"multiprocessing/", "poll"},
	{"multiprocessing/", "empty"},
	{"multiprocessing/", "_poll"},
	{"multiprocessing/", "ready"},
	{"multiprocessing/", "is_alive"},
	{"multiprocessing/", "get_nowait"},
	{"/subprocess.py(", "poll"},
	{"torch/cuda/streams.py(", "query"},
};

struct thread {
	uint32_t tgid, tid;
	/* naps: asleep for a time; waits: asleep until something comes or a time is up; works: for what it has asked */
	uint64_t looks, naps, waits, asks, works;
	struct facts_tally functions; /* of the program */
	struct facts_tally lines;
};

/* Python's files in which a thread sleeps in a futex until something comes or a time is up. */
static const char *const waiting[] = {"/threading.py(", "/subprocess.py(", "concurrent/futures/"};

static bool waits(const struct mxbpf_agg_line *l, const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);
	const size_t n = end ? (size_t)(end - text) : len;
	size_t i;

	if (l->syscall == SYS_select || l->syscall == SYS_pselect6)
		return true;
	for (i = 0; l->syscall == SYS_futex && i < sizeof(waiting) / sizeof(waiting[0]); i++)
		if (memmem(text, n, waiting[i], strlen(waiting[i])))
			return true;
	return false;
}

/* "/usr/lib/python3.11/queue.py(96): empty", of the innermost frame. */
static bool asks(const char *text, size_t len, bool scans)
{
	const char *end = memchr(text, '\n', len), *name;
	size_t i, n = end ? (size_t)(end - text) : len, left;

	name = memmem(text, n, "): ", 3);
	left = name ? n - (size_t)(name + 3 - text) : 0;
	for (i = scans ? 0 : SCANS; name && i < sizeof(asking) / sizeof(asking[0]); i++)
		if (left >= strlen(asking[i].function) &&
		    !memcmp(name + 3, asking[i].function, strlen(asking[i].function)) &&
		    memmem(text, n, asking[i].file, strlen(asking[i].file)))
			return true;
	return false;
}

static int add_row(const struct mdl *m, const struct facts *f, struct thread *t, const struct mxbpf_agg_line *l)
{
	char function[FACTS_LINE_BYTES];
	const char *text, *line;
	size_t len, n;
	int err;

	text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);
	line = lines_of_program(m, l->stack_id, &n);
	t->looks += l->count;
	if (!text || !line || l->cls || facts_is_in_loader(m, l)) /* the loop waits there for batches */
		return 0;
	t->asks += !l->sleeps && asks(text, len, f->loop.n || !l->main) ? l->count : 0;
	if (l->sleeps == MXBPF_SLEEP_ANY && (l->syscall == SYS_clock_nanosleep || l->syscall == SYS_nanosleep))
		t->naps += l->count;
	else if (l->sleeps == MXBPF_SLEEP_ANY && waits(l, text, len))
		t->waits += l->count;
	else if (l->sleeps && l->syscall != SYS_futex)
		t->works += l->count;
	err = facts_tally_add(&t->lines, line, n, l);
	n = facts_function(line, n, function);
	return err ? err : facts_tally_add(&t->functions, function, n, l);
}

static void judge_thread(const struct mdl *m, const struct mdl_session *s, struct thread *t, struct cause_polling *most)
{
	const struct thread_use *u = threads_use_of(m, t->tgid, t->tid);
	const double looks = (double)t->looks, seconds = (double)s->duration_ns / 1e9;
	const double at = facts_share((double)facts_tally_top(&t->functions).looks, looks);
	double rate, cpus, busy;
	bool sleeps, spins;

	if (!u || t->looks < LOOKS_MIN || (double)t->works > WORKS_MOST * looks || at < AT_LINE_LEAST || seconds <= 0)
		return;
	rate = (double)u->runs / seconds;
	cpus = (double)u->cpu_ns / (double)s->duration_ns;
	busy = (double)(u->cpu_ns + u->runq_ns) / (double)s->duration_ns;
	sleeps = (rate >= SLEEPS_A_SEC && (double)t->naps >= NAPS_LEAST * looks) ||
		 (rate >= WAITS_A_SEC && (double)(t->naps + t->waits) >= NAPS_LEAST * looks);
	spins = !sleeps && busy >= CPU_LEAST && (double)t->asks >= ASKS_LEAST * looks;
	if ((!sleeps && !spins) || cpus < most->cpus)
		return;
	t->lines.of = t->functions.of = t->looks;
	*most = (struct cause_polling){.tgid = t->tgid, .tid = t->tid, .sleeps = sleeps, .rate = rate, .cpus = cpus};
	most->line = facts_tally_top(facts_tally_top(&t->lines).looks ? &t->lines : &t->functions);
}

int make_polling(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct hash index = {0};
	struct buf threads = {0};
	struct thread *t;
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	bool added;
	int err = 0;

	for (i = 0; i < n && !err && f->python; i++) {
		if (l[i].rank || !l[i].tid)
			continue;
		t = mdl_item_put(&index, &threads, l[i].tid, l[i].h.tgid, sizeof(*t), &added);
		if (added && t)
			*t = (struct thread){.tgid = l[i].h.tgid, .tid = l[i].tid};
		err = t ? add_row(m, f, t, &l[i]) : -ENOMEM;
	}
	for (i = 0; i < buf_count(&threads, struct thread); i++) {
		t = buf_at(&threads, struct thread, i);
		judge_thread(m, s, t, &f->cause.polling);
		facts_tally_fini(&t->functions);
		facts_tally_fini(&t->lines);
	}
	hash_fini(&index);
	buf_fini(&threads);
	return err;
}

static double polling_share(const struct facts *f)
{
	return f->cause.polling.tid ? 1 : 0;
}

static void polling_say(const struct facts *f, struct buf *b)
{
	const struct cause_polling *p = &f->cause.polling;

	buf_printf(b, "Thread %" PRIu32 " of process %" PRIu32 " polls ", p->tid, p->tgid);
	if (p->sleeps)
		buf_printf(b, "%.0f times a second", p->rate);
	else
		buf_printf(b, "without a pause");
	buf_printf(b, " for what is not there, and uses %.0f%% of a CPU: it is at %s", 100 * p->cpus, p->line.text);
}

static void polling_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->cause.polling.line, b);
}

/* clang-format off */
const struct finding_rule rules_polling[] = {
	{.key = "polling", .first = 1, .other_time = true, .explains = "interpreter_lock own_code", .least = 0.5, .share = polling_share, .say = polling_say,
	 .evidence = polling_evidence, .pid_at = offsetof(struct facts, cause.polling.tgid),
	 .advice = "The thread asks again and again, and each time takes the interpreter lock from the others. Let it sleep until there is "
		   "something: queue.get(), event.wait(), future.result() and select() without a time limit of zero return as soon as it "
		   "comes. Where only polling is possible, 10 ms between two looks cost nothing: time.sleep(0.01)."},
	{.key = NULL},
};
/* clang-format on */
