// SPDX-License-Identifier: Apache-2.0
/* When threads had no CPU. It divides the time in which a program runs code of its own, and that of operators. */
#include "feature/idle/state.h"

#define OFF_MAX	    (1u << 18) /* 8 MiB */
#define OFF_BACKLOG (1u << 12) /* before the first sign of a GPU */

int idle_off_put(struct idle_state *t, const struct idle_off *off)
{
	t->switched = true;
	if (off->start_ns >= off->back_ns)
		return 0;
	return win_put_latest(&t->off, off, sizeof(*off), t->on ? OFF_MAX : OFF_BACKLOG, &t->off_lost_ns);
}

void idle_off_forget(struct idle_state *t, uint64_t since_ns)
{
	struct idle_off *o = (struct idle_off *)t->off.data;
	size_t i, n = 0;

	for (i = 0; i < buf_count(&t->off, *o); i++)
		if (o[i].back_ns > since_ns)
			o[n++] = o[i];
	t->off.len = n * sizeof(*o);
}

int idle_off_order(const void *va, const void *vb)
{
	const struct idle_off *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->back_ns, b->back_ns);
	return 0;
}

/* Returns the thread's first time off the CPU that ends behind a moment, or NULL. */
static const struct idle_off *off_behind(const struct idle_state *t, uint32_t tgid, uint32_t tid, uint64_t ns)
{
	const struct idle_off like = {.back_ns = ns + 1, .tgid = tgid, .tid = tid};
	const size_t i = buf_first(&t->off, sizeof(like), &like, idle_off_order);
	const struct idle_off *o = buf_at(&t->off, struct idle_off, i);

	return i < buf_count(&t->off, *o) && o->tgid == tgid && o->tid == tid ? o : NULL;
}

enum idle_cpu idle_cpu_at(const struct idle_state *t, uint32_t tgid, uint32_t tid, uint64_t ns, uint64_t *end_ns)
{
	const struct idle_off *o;

	*end_ns = UINT64_MAX;
	if (!t->switched)
		return IDLE_CPU_UNKNOWN;
	if (ns < t->off_lost_ns) {
		*end_ns = t->off_lost_ns;
		return IDLE_CPU_UNKNOWN;
	}
	o = off_behind(t, tgid, tid, ns);
	if (!o)
		return IDLE_CPU_ON;
	*end_ns = ns < o->start_ns ? o->start_ns : ns < o->woken_ns ? o->woken_ns : o->back_ns;
	return ns < o->start_ns ? IDLE_CPU_ON : ns < o->woken_ns ? IDLE_CPU_BLOCKED : IDLE_CPU_RUNQ;
}
