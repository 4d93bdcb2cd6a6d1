// SPDX-License-Identifier: Apache-2.0
/*
 * Threads of a process that wait for locks of Python in the whole window, at lines of the program: a thread that waits
 * for work has a frame of Python's library inside. Who has which lock is what `mxbpf now` reads.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feature/lines/lines.h"

#define LOOKS_LEAST 10

/* What the looks have found of a thread. */
struct still {
	uint32_t tgid, tid;
	uint64_t looks, locked, stack_id; /* locked: at the stack of the first look, waiting for a lock */
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
			*t = (struct still){.tgid = l[i].h.tgid, .tid = l[i].tid, .stack_id = l[i].stack_id};
		t->looks++;
		t->locked += l[i].flags & MXBPF_LOOK_MUTEX && l[i].stack_id == t->stack_id;
	}
	return 0;
}

/* The innermost line, if it is of the program; else NULL. */
static const char *waits_at(const struct mdl *m, const struct still *t, size_t *len)
{
	size_t left = 0;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, t->stack_id, &left);
	const char *end = text ? memchr(text, '\n', left) : NULL;

	*len = end ? (size_t)(end - text) : left;
	return text && t->looks >= LOOKS_LEAST && t->locked == t->looks && lines_is_program(text, *len) ? text : NULL;
}

static void note_thread(struct cause_stuck *s, const struct still *t, const char *line, size_t len)
{
	if (s->tgid && s->tgid != t->tgid)
		return;
	s->tgid = t->tgid;
	if (s->n < STUCK_LINES)
		snprintf(s->lines[s->n], sizeof(s->lines[0]), "thread %" PRIu32 " at %.*s", t->tid, (int)len, line);
	s->n++;
}

int make_stuck(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct hash index = {0};
	struct buf threads = {0};
	const struct still *t;
	const char *line;
	size_t i, len;
	int err = sum_looks(m, &index, &threads);

	(void)s;
	for (i = 0; !err && i < buf_count(&threads, struct still); i++) {
		t = buf_at(&threads, struct still, i);
		line = waits_at(m, t, &len);
		if (line)
			note_thread(&f->cause.stuck, t, line, len);
	}
	hash_fini(&index);
	buf_fini(&threads);
	return err;
}

/* Of one thread alone, another one has the lock and works, which is a finding of its own. */
static double stuck_share(const struct facts *f)
{
	return f->cause.stuck.n > 1 && !f->locked.share ? 1 : 0;
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
