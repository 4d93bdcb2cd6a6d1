// SPDX-License-Identifier: Apache-2.0
/*
 * Exceptions that the program catches and tries again after: a sample finds the thread in an "except" block. A program
 * that does all of its work in such a block, as one that has caught an ImportError at its start, is not meant. Neither
 * is a worker that does its work there because a cache had nothing.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/exception.h"
#include "feature/lines/lines.h"

#define ALL_OF_IT     0.95 /* of the samples of a thread: it works in the block */
#define SAMPLES_LEAST 10

struct handling {
	uint32_t tgid, tid;
	uint64_t all, handles, naps; /* samples: all, in a block, of these in sleep() */
	bool main, rank;
};

/* Exceptions by which programs choose another way. */
static const char *const ways[] = {"KeyError",	  "AttributeError",	 "IndexError",
				   "ImportError", "ModuleNotFoundError", "FileNotFoundError"};

static bool naps(const struct mxbpf_agg_line *l)
{
	return l->syscall == SYS_clock_nanosleep || l->syscall == SYS_nanosleep;
}

/* It handles an exception, and what it does then holds the loop up, or is to wait; a pool waits for results so, too. */
static bool handles(const struct mdl *m, const struct facts *f, const struct mxbpf_agg_line *l)
{
	const char *name = exception_name(l->handles);
	size_t i;

	for (i = 0; name && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(name, ways[i]))
			return naps(l) || (l->tid == f->loop.tid && !facts_is_idle(m, l));
	return name;
}

static int sum_handling(const struct mdl *m, const struct facts *f, struct hash *index, struct buf *threads)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct handling *t;
	bool added;

	for (i = 0; i < n; i++) {
		t = mdl_item_put(index, threads, l[i].tid, l[i].h.tgid, sizeof(*t), &added);
		if (!t)
			return -ENOMEM;
		*t = (struct handling){.tgid = l[i].h.tgid,
				       .tid = l[i].tid,
				       .all = t->all,
				       .handles = t->handles,
				       .naps = t->naps,
				       .main = l[i].main,
				       .rank = l[i].rank};
		add_sat(&t->all, l[i].count);
		if (!handles(m, f, &l[i]))
			continue;
		add_sat(&t->handles, l[i].count);
		add_sat(&t->naps, naps(&l[i]) ? l[i].count : 0);
	}
	return 0;
}

static double handling_share(const struct handling *t)
{
	double share = facts_share((double)t->handles, (double)t->all);

	share = share > ALL_OF_IT ? facts_share((double)t->naps, (double)t->all) : share;
	return t->all < SAMPLES_LEAST || t->handles < FACTS_LOOKS_LEAST ? 0 : share;
}

/* Where it is in the blocks, and which exception it handles the most. */
static int find_handler(const struct mdl *m, const struct handling *t, struct facts *f)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	uint64_t numbers[UINT8_MAX + 1] = {0}, most = 0;
	struct facts_tally tally = {.of = t->all};
	const char *text;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (l[i].h.tgid != t->tgid || l[i].tid != t->tid || !handles(m, f, &l[i]))
			continue;
		add_sat(&numbers[l[i].handles], l[i].count);
		text = lines_of_program(m, l[i].stack_id, &len);
		err = text && lines_is_program(text, len) ? facts_tally_add(&tally, text, len, &l[i]) : 0;
	}
	f->cause.exceptions.line = facts_tally_top(&tally);
	for (i = 0; i <= UINT8_MAX; i++)
		if (numbers[i] > most) {
			most = numbers[i];
			f->cause.exceptions.number = (uint8_t)i;
		}
	facts_tally_fini(&tally);
	return err;
}

/* The loop's thread counts, main threads of workers and of other ranks, and without a loop all main threads. */
int make_exceptions(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct hash index = {0};
	struct buf threads = {0};
	const struct handling *t, *most = NULL;
	size_t i;
	int err = sum_handling(m, f, &index, &threads);

	(void)s;
	for (i = 0; !err && i < buf_count(&threads, struct handling); i++) {
		t = buf_at(&threads, struct handling, i);
		if (!t->main && t->tid != f->loop.tid)
			continue;
		f->cause.exceptions.processes += handling_share(t) > 0;
		most = handling_share(t) > (most ? handling_share(most) : 0) ? t : most;
	}
	if (most) {
		f->cause.exceptions.share = handling_share(most);
		f->cause.exceptions.tgid = most->tgid;
		f->cause.exceptions.rank = most->rank;
		f->cause.exceptions.loop = most->tid == f->loop.tid;
		err = find_handler(m, most, f);
	}
	hash_fini(&index);
	buf_fini(&threads);
	return err;
}

static double exceptions_share(const struct facts *f)
{
	const double share = f->cause.exceptions.line.looks ? f->cause.exceptions.share : 0;

	return f->cause.exceptions.rank ? share : cause_of_worker(f, f->cause.exceptions.tgid, share);
}

static void exceptions_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "%s catches an exception (%s) again and again, and spends %.0f%% of its time behind \"except\"",
		   f->cause.exceptions.loop   ? "The loop"
		   : f->cause.exceptions.rank ? "Another rank"
		   : f->loop.n		      ? "A worker"
					      : "The program",
		   exception_name(f->cause.exceptions.number), 100 * f->cause.exceptions.share);
	if (!f->cause.exceptions.loop)
		buf_printf(b, " (process %" PRIu32 ")", f->cause.exceptions.tgid);
	buf_printf(b, ": %s", f->cause.exceptions.line.text);
	if (f->cause.exceptions.loop)
		rules_put_gain(f, f->cause.exceptions.share, b);
}

static void exceptions_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->cause.exceptions.line, b);
	if (f->cause.exceptions.processes > 1)
		buf_printf(b, "; %" PRIu64 " threads do so", f->cause.exceptions.processes);
}

/* clang-format off */
const struct finding_rule rules_exceptions[] = {
	{.key = "exceptions", .explains = "own_code code_inside data_wait", .least = 0.1, .share = exceptions_share, .say = exceptions_say,
	 .evidence = exceptions_evidence, .next_of = next_exceptions, .pid_at = offsetof(struct facts, cause.exceptions.tgid),
	 .advice = "Something fails, and the program waits and tries it again, or does it in another way, without telling anybody. Log "
		   "the exception, mend what raises it (a missing file, a server that refuses, a damaged sample), and count retries."},
	{.key = NULL},
};
/* clang-format on */
