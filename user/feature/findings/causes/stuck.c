// SPDX-License-Identifier: Apache-2.0
/*
 * Threads of a process that wait for locks of Python in the whole window while they have others. Who has which lock is
 * what `mxbpf now` reads.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feature/lines/lines.h"

#define LOOKS_LEAST  10
#define WINDOW_LEAST 0.8 /* of the window, from the first look at a thread to the last one */

/* A thread, with the looks that found it. */
struct still {
	uint32_t tgid, tid;
	uint64_t looks, locked, stack_id; /* locked: at the stack of the first look, waiting for a lock */
	uint64_t first_ns, last_ns;
};

static int sum_looks(const struct mdl *m, struct hash *index, struct buf *threads)
{
	size_t n, i;
	const struct mxbpf_look *l = lines_looks(m, &n);
	struct still *t;
	bool added;

	for (i = 0; i < n; i++) {
		if (l[i].flags & MXBPF_LOOK_RANK || !l[i].tid)
			continue;
		t = mdl_item_put(index, threads, l[i].tid, l[i].h.tgid, sizeof(*t), &added);
		if (!t)
			return -ENOMEM;
		if (added)
			*t = (struct still){.tgid = l[i].h.tgid,
					    .tid = l[i].tid,
					    .stack_id = l[i].stack_id,
					    .first_ns = l[i].h.ts_ns};
		t->first_ns = l[i].h.ts_ns < t->first_ns ? l[i].h.ts_ns : t->first_ns;
		t->last_ns = l[i].h.ts_ns > t->last_ns ? l[i].h.ts_ns : t->last_ns;
		t->looks++;
		t->locked += l[i].flags & MXBPF_LOOK_MUTEX && l[i].stack_id == t->stack_id;
	}
	return 0;
}

static bool is_stuck(const struct still *t, uint64_t window_ns)
{
	return t->looks >= LOOKS_LEAST && t->locked == t->looks &&
	       (double)(t->last_ns - t->first_ns) >= WINDOW_LEAST * (double)window_ns;
}

static void note_thread(const struct mdl *m, struct cause_stuck *s, const struct still *t)
{
	size_t len;
	const char *line = lines_of_program(m, t->stack_id, &len);

	if (s->n < STUCK_LINES && line)
		snprintf(s->lines[s->n], sizeof(s->lines[0]), "thread %" PRIu32 " at %.*s", t->tid, (int)len, line);
	s->tgid = t->tgid;
	s->n++;
}

/* The threads of a process that are stuck, if there are several. */
static struct cause_stuck stuck_of(const struct mdl *m, const struct buf *threads, uint32_t tgid, uint64_t window_ns)
{
	struct cause_stuck s = {.tgid = 0};
	const struct still *t;
	size_t i;

	for (i = 0; i < buf_count(threads, struct still); i++) {
		t = buf_at(threads, const struct still, i);
		if (t->tgid == tgid && is_stuck(t, window_ns))
			note_thread(m, &s, t);
	}
	return s.n > 1 ? s : (struct cause_stuck){.tgid = 0};
}

int make_stuck(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct hash index = {0};
	struct buf threads = {0};
	const struct still *t;
	size_t i;
	int err = sum_looks(m, &index, &threads);

	for (i = 0; !err && i < buf_count(&threads, struct still) && !f->cause.stuck.n; i++) {
		t = buf_at(&threads, const struct still, i);
		if (is_stuck(t, s->duration_ns))
			f->cause.stuck = stuck_of(m, &threads, t->tgid, s->duration_ns);
	}
	hash_fini(&index);
	buf_fini(&threads);
	return err;
}

static double stuck_share(const struct facts *f)
{
	return f->cause.stuck.n > 1;
}

static void stuck_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "%u threads of process %" PRIu32
		   " wait for locks in the whole window, and none of them moves, as in a deadlock",
		   f->cause.stuck.n, f->cause.stuck.tgid);
}

static void stuck_evidence(const struct facts *f, struct buf *b)
{
	unsigned i;

	for (i = 0; i < f->cause.stuck.n && i < STUCK_LINES; i++)
		buf_printf(b, "%s%s", i ? "; " : "", f->cause.stuck.lines[i]);
}

/* clang-format off */
const struct finding_rule rules_stuck[] = {
	{.key = "deadlock", .first = 4, .full_gpu = true, .other_time = true, .least = 1, .share = stuck_share, .say = stuck_say, .evidence = stuck_evidence,
	 .explains = "code_lock interpreter_lock own_code", .pid_at = offsetof(struct facts, cause.stuck.tgid), .next = "now --pid PID",
	 .advice = "mxbpf now says which thread has the lock that the other one waits for. Let all threads take their locks in the same order, "
		   "use an RLock where the same thread comes twice, and acquire(timeout=) where it may fail."},
	{.key = NULL},
};
/* clang-format on */
