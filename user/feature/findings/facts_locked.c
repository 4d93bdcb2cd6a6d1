// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that wait for a lock of Python. A wait for a lock sleeps in a futex without a time limit, and the innermost
 * frame is the line of the program that takes the lock; a wait for the interpreter lock has a time limit, and waits for
 * queues, conditions and events have a frame of Python's library inside. The thread that has the lock stands in the
 * same function, at that line or behind it, or it is the one that runs.
 */
#include "feature/findings/findings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/lines/lines.h"

#define ROUND_NS    (LINES_LOOK_NS / 2) /* between two samples of different rounds, or more */
#define ROUNDS_MIN  5			/* with waits, to judge them */
#define HELD_LEAST  0.5 /* of them: somebody has the lock. The threads of a round are sampled one after the other. */
#define AT_LOCK	    2	/* a line that takes a lock: of the samples there, one in so many waits for it, or more */
#define LINE_DIGITS 9

/* A line of the program on which threads wait. */
struct place {
	struct fact_line line; /* looks: that wait; of: all that found a thread there */
	uint32_t tgid, tid;    /* tid: the first one that waited */
	bool several;	       /* others waited as well */
};

static int by_round(const void *va, const void *vb)
{
	const struct mxbpf_look *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

static const char *stack_of(const struct mdl *m, const struct mxbpf_look *l, size_t *len)
{
	return l->stack_id ? mdl_text(m, MXBPF_NAME_STACK, l->stack_id, len) : NULL;
}

static bool waits(const struct mxbpf_look *l)
{
	return l->flags & MXBPF_LOOK_LOCKED && !(l->flags & MXBPF_LOOK_CALL);
}

/* Functions of Python's library that take a lock for their caller, as they end in the text of a line. */
static const struct {
	const char *file, *function;
} takers[] = {{"/logging/__init__.py(", ": acquire"},
	      {"/logging/__init__.py(", ": handle"},
	      {"/threading.py(", ": __enter__"}};

static bool is_taker(const char *line, size_t len)
{
	size_t i, n;

	for (i = 0; i < sizeof(takers) / sizeof(takers[0]); i++) {
		n = strlen(takers[i].function);
		if (len > n && !memcmp(line + len - n, takers[i].function, n) &&
		    memmem(line, len, takers[i].file, strlen(takers[i].file)))
			return true;
	}
	return false;
}

/* The innermost line of a stack, if it is the program's, or the line of the program that calls a function which takes a
 * lock. */
static const char *innermost(const struct mdl *m, const struct mxbpf_look *l, size_t *len)
{
	const char *text = stack_of(m, l, len), *end = text ? memchr(text, '\n', *len) : NULL;

	*len = end ? (size_t)(end - text) : text ? *len : 0;
	if (text && is_taker(text, *len))
		text = lines_of_program(m, l->stack_id, len);
	return text && lines_is_program(text, *len) ? text : NULL;
}

/* Finds the line with the most waits of several threads. */
static int find_place(const struct mdl *m, const struct mxbpf_look *l, size_t n, struct place *most)
{
	struct hash index = {0};
	struct buf places = {0};
	struct place *p;
	const char *text;
	size_t i, len;
	bool added;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		text = innermost(m, &l[i], &len);
		p = text ? mdl_item_put(&index, &places, hash_text(HASH_SEED, text, len), l[i].h.tgid, sizeof(*p),
					&added)
			 : NULL;
		err = text && !p ? -ENOMEM : 0;
		if (!p)
			continue;
		if (added)
			snprintf(p->line.text, sizeof(p->line.text), "%.*s", (int)len, text);
		p->tgid = l[i].h.tgid;
		p->line.of++;
		if (!waits(&l[i]))
			continue;
		p->line.looks++;
		p->several |= p->tid && p->tid != l[i].tid;
		p->tid = l[i].tid;
	}
	for (i = 0; i < buf_count(&places, struct place); i++) {
		p = buf_at(&places, struct place, i);
		if (p->several && p->line.looks * AT_LOCK >= p->line.of && p->line.looks > most->line.looks)
			*most = *p;
	}
	hash_fini(&index);
	buf_fini(&places);
	return err;
}

/* "app.py(12): handle" */
struct split {
	const char *file, *function;
	size_t file_len, function_len;
	unsigned long line;
};

static bool split(const char *text, size_t len, struct split *s)
{
	const char *after = memmem(text, len, "): ", 3),
		   *open = after ? memrchr(text, '(', (size_t)(after - text)) : NULL;
	char digits[LINE_DIGITS + 1] = "";

	if (!open || after - open > LINE_DIGITS)
		return false;
	memcpy(digits, open + 1, (size_t)(after - open - 1));
	*s = (struct split){text, after + 3, (size_t)(open - text), len - (size_t)(after + 3 - text),
			    strtoul(digits, NULL, 10)};
	return true;
}

#define NOT_BEHIND ULONG_MAX

/* Returns how many lines behind the one that takes the lock the thread is in the same function. */
static unsigned long lines_behind(const struct mdl *m, const struct mxbpf_look *l, const struct split *lock)
{
	size_t left, n;
	const char *text = stack_of(m, l, &left), *end;
	struct split s;

	for (; text && left; text += n, left -= n) {
		end = memchr(text, '\n', left);
		n = end ? (size_t)(end - text) + 1 : left;
		if (split(text, n - !!end, &s) && s.line >= lock->line && s.file_len == lock->file_len &&
		    s.function_len == lock->function_len && !memcmp(s.file, lock->file, s.file_len) &&
		    !memcmp(s.function, lock->function, s.function_len))
			return s.line - lock->line;
	}
	return NOT_BEHIND;
}

/* It stands at the lock itself, where it waits, has just been woken, or has let go of it. */
static bool is_at(const struct mdl *m, const struct mxbpf_look *l, const struct place *p)
{
	size_t len;
	const char *text = innermost(m, l, &len);

	return text && len == strlen(p->line.text) && !memcmp(text, p->line.text, len);
}

static bool waits_at(const struct mdl *m, const struct mxbpf_look *l, const struct place *p)
{
	return waits(l) && is_at(m, l, p);
}

struct sums {
	uint64_t rounds, waited, held;	 /* rounds: all, with waits, of these with a holder */
	uint64_t looks;			 /* that wait */
	struct facts_tally behind, runs; /* lines of holders: in the function of the lock; others that run */
};

/* Of those in the function, the holder is the one that is the closest behind the lock. */
static int add_holder(const struct mdl *m, const struct mxbpf_look *l, bool behind, struct sums *s)
{
	const struct mxbpf_agg_line one = {.count = 1};
	struct facts_tally *to = behind ? &s->behind : &s->runs;
	const char *text;
	size_t len;

	s->held++;
	text = lines_of_program(m, l->stack_id, &len);
	to->of++;
	return text ? facts_tally_add(to, text, len, &one) : 0;
}

/* One round of samples of the process. */
static int add_round(const struct mdl *m, const struct place *p, const struct mxbpf_look *l, size_t n, struct sums *s)
{
	const struct mxbpf_look *holder = NULL;
	unsigned long behind, closest = NOT_BEHIND;
	struct split lock;
	uint64_t waiters = 0;
	size_t i;

	for (i = 0; i < n; i++)
		waiters += waits_at(m, &l[i], p);
	s->rounds++;
	if (!waiters || !split(p->line.text, strlen(p->line.text), &lock))
		return 0;
	for (i = 0; i < n; i++) {
		behind = is_at(m, &l[i], p) ? NOT_BEHIND : lines_behind(m, &l[i], &lock);
		if (behind < closest) {
			closest = behind;
			holder = &l[i];
		}
	}
	for (i = 0; i < n && !holder; i++)
		if (!(l[i].flags & MXBPF_LOOK_SLEEPS))
			holder = &l[i];
	s->waited++;
	s->looks += waiters;
	return holder ? add_holder(m, holder, closest != NOT_BEHIND, s) : 0;
}

static int findings_facts_locked_judge(const struct mdl *m, const struct place *p, const struct mxbpf_look *l, size_t n,
				       struct facts *f)
{
	struct sums s = {.rounds = 0};
	size_t i, from = 0;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (l[i].h.tgid != p->tgid) {
			from = i + 1;
			continue;
		}
		if (i + 1 < n && l[i + 1].h.tgid == p->tgid && l[i + 1].h.ts_ns - l[i].h.ts_ns < ROUND_NS)
			continue;
		err = add_round(m, p, &l[from], i + 1 - from, &s);
		from = i + 1;
	}
	if (s.waited >= ROUNDS_MIN && (double)s.held >= HELD_LEAST * (double)s.waited) {
		f->locked.share = facts_share((double)s.waited, (double)s.rounds);
		f->locked.at_once = facts_share((double)s.looks, (double)s.waited);
		f->locked.waits = p->line;
		f->locked.holds = facts_tally_top(&s.behind);
		if (!f->locked.holds.looks)
			f->locked.holds = facts_tally_top(&s.runs);
	}
	facts_tally_fini(&s.behind);
	facts_tally_fini(&s.runs);
	return err;
}

int facts_locked(const struct mdl *m, struct facts *f)
{
	size_t n, i, known = 0;
	const struct mxbpf_look *all = lines_looks(m, &n);
	struct mxbpf_look *l = calloc(n + 1, sizeof(*l));
	struct place most = {.tid = 0};
	int err = l ? 0 : -ENOMEM;

	for (i = 0; !err && i < n; i++)
		if (all[i].flags & MXBPF_LOOK_KNOWN)
			l[known++] = all[i];
	if (!err && known) {
		qsort(l, known, sizeof(*l), by_round);
		err = find_place(m, l, known, &most);
	}
	if (!err && most.line.looks)
		err = findings_facts_locked_judge(m, &most, l, known, f);
	f->locked.tgid = most.tgid;
	free(l);
	return err;
}
