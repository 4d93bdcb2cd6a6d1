// SPDX-License-Identifier: Apache-2.0
/* Threads that wait for each other's locks of Python. Each of them sleeps without a time limit, so none will go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "now/now.h"
#include "now/priv.h"

#define LINE_BYTES 512

/* The lock for which a thread waits; NULL: it waits for none, or for one that its frames do not know. */
static const struct py_lock *waits_for(const struct now_thread *t)
{
	unsigned i;

	for (i = 0; t->still && t->locks && i < t->locks->n; i++)
		if (t->locks->list[i].futex == t->futex)
			return &t->locks->list[i];
	return NULL;
}

/* A frame in which a thread has a lock: in a `with` statement, or if it is recursive in any that knows it. */
static const struct py_lock *has_lock(const struct now_thread *t, const struct py_lock *lock)
{
	const struct py_lock *l, *found = NULL;
	unsigned i;

	for (i = 0; t->still && t->locks && i < t->locks->n; i++) {
		l = &t->locks->list[i];
		if (l->object == lock->object &&
		    (lock->recursive ? lock->owner && lock->owner == t->fs_base : l->with) &&
		    (!found || (l->with && !found->with)))
			found = l;
	}
	return found;
}

static bool knows(const struct now_thread *t, uint64_t object)
{
	unsigned i;

	for (i = 0; t->locks && i < t->locks->n; i++)
		if (t->locks->list[i].object == object)
			return true;
	return false;
}

/* In a condition, an event or a queue, which another thread lets go of that has no lock, or a handler of signals. */
static bool in_library(const struct now_thread *t)
{
	return memmem(t->python, strcspn(t->python, "\n"), "/threading.py(", strlen("/threading.py("));
}

/* No other thread runs Python, which could let go of a lock. */
static bool is_alone(struct now *n, const struct now_thread *t)
{
	const struct now_thread *other;
	size_t i;

	for (i = 0; (other = now_thread_at(n, i)); i++)
		if (other != t && (!other->still || other->python))
			return false;
	return true;
}

/*
 * Nothing says who has a lock that was taken by acquire(). It is the other one of two threads that wait for one of two
 * locks each, if both know both locks in different functions: one function takes them always in the same order.
 */
static bool may_have(struct now *n, const struct now_thread *holder, const struct now_thread *t,
		     const struct py_lock *lock)
{
	const struct py_lock *other = waits_for(holder);

	if (lock->recursive || !other || in_library(t) || in_library(holder))
		return false;
	if (holder == t)
		return is_alone(n, t);
	return other->object != lock->object && !other->recursive && knows(holder, lock->object) &&
	       knows(t, other->object) && holder->locks->stack.frames[0].code != t->locks->stack.frames[0].code;
}

static const char *name_of(const struct now_thread *t, uint64_t object)
{
	unsigned i;

	for (i = 0; t->locks && i < t->locks->n; i++)
		if (t->locks->list[i].object == object && t->locks->list[i].name[0])
			return t->locks->list[i].name;
	return "";
}

static char *line_of(struct now *n, const struct now_thread *t, unsigned frame)
{
	struct mxbpf_stack one = {.n = 1};
	char text[LINE_BYTES];
	unsigned lost;
	size_t len;

	if (frame >= t->locks->stack.n)
		return NULL;
	one.frames[0] = t->locks->stack.frames[frame];
	len = py_stack_text(now_py(n), &one, text, sizeof(text), &lost);
	return lost ? NULL : strndup(text, len);
}

/* Finds the thread for which t waits: one that has the lock, else one that may have it. */
static const struct now_thread *find_holder(struct now *n, const struct now_thread *t, const struct py_lock *lock,
					    const struct py_lock **has)
{
	const struct now_thread *holder;
	size_t i;

	for (i = 0; (holder = now_thread_at(n, i)); i++)
		if ((*has = has_lock(holder, lock)))
			return holder;
	for (i = 0; (holder = now_thread_at(n, i)); i++)
		if (may_have(n, holder, t, lock))
			return holder;
	return NULL;
}

/* Returns false if t waits for no lock that a thread is known to have. */
static bool next_wait(struct now *n, const struct now_thread *t, struct now_wait *w)
{
	const struct py_lock *lock = waits_for(t), *has;
	const struct now_thread *holder = lock ? find_holder(n, t, lock, &has) : NULL;
	const char *name;

	if (!holder)
		return false;
	name = name_of(t, lock->object);
	*w = (struct now_wait){.thread = t, .holder = holder, .line = t->python, .guessed = !has};
	w->line_len = strcspn(t->python, "\n");
	snprintf(w->lock, sizeof(w->lock), "%s", *name ? name : name_of(holder, lock->object));
	w->held_line = line_of(n, holder, has ? has->frame : 0);
	return true;
}

void now_deadlock(struct now *n, struct now_deadlock *d)
{
	const struct now_thread *first, *t;
	size_t i;

	for (i = 0; (first = now_thread_at(n, i)); i++) {
		d->n = 0;
		for (t = first; d->n < NOW_DEADLOCK_MAX && next_wait(n, t, &d->waits[d->n]);
		     t = d->waits[d->n - 1].holder)
			if (d->waits[d->n++].holder == first)
				return;
		now_deadlock_fini(d);
	}
}

void now_deadlock_fini(struct now_deadlock *d)
{
	while (d->n)
		free(d->waits[--d->n].held_line);
}
