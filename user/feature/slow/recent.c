// SPDX-License-Identifier: Apache-2.0
/* The last times that each thread was off the CPU. --sched reports them, and a slow span names the longest of them. */
#include "feature/slow/recent.h"
#include "feature/sched/words.h"
#include "model/feature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define OFFS_MAX 16 /* per thread */

/* One time off the CPU: it waited for a CPU that `kept` used, and before that it slept. */
struct off {
	uint64_t left_ns, back_ns;
	struct mxbpf_slow_by kept, slept;
};

struct recent {
	unsigned n; /* number of all of them; the last OFFS_MAX are kept */
	struct off offs[OFFS_MAX];
};

static uint64_t slice_ns(const struct mxbpf_sched_slice *s)
{
	return s->to_ns > s->from_ns ? s->to_ns - s->from_ns : 0;
}

/* Returns the process that had the CPU for the longest time, over all its slices. */
static struct mxbpf_slow_by keeper(const struct mxbpf_sched *r)
{
	struct mxbpf_slow_by best = {0}, by;
	const struct mxbpf_sched_slice *s = r->slices;
	unsigned i, k;

	for (i = 0; i < r->nslices; i++) {
		by = (struct mxbpf_slow_by){.tid = s[i].tid, .cpu = r->back_cpu, .what = MXBPF_SCHED_WAITED};
		memcpy(by.comm, s[i].comm, sizeof(by.comm));
		for (k = 0; k < r->nslices; k++)
			if (!strncmp(s[k].comm, s[i].comm, sizeof(by.comm)))
				add_sat(&by.ns, slice_ns(&s[k]));
		if (by.ns > best.ns)
			best = by;
	}
	return best;
}

static struct off off_of(const struct mxbpf_sched *r)
{
	struct off o = {.left_ns = r->h.ts_ns, .back_ns = r->back_ns, .kept = keeper(r)};

	o.slept.what = (uint8_t)sched_cause(r);
	o.slept.ns = o.slept.what == MXBPF_SCHED_WAITED ? 0 : r->woken_ns - r->h.ts_ns;
	if (o.slept.ns && sched_has_by(r)) {
		o.slept.tid = r->by_tid;
		memcpy(o.slept.comm, r->by_comm, sizeof(o.slept.comm));
	}
	return o;
}

/* Adds times of the same kind up. Of two kinds the longer time is kept. */
static void slow_take(struct mxbpf_slow_by *sum, const struct mxbpf_slow_by *one, bool same)
{
	if (!sum->ns || (!same && one->ns > sum->ns))
		*sum = *one;
	else if (same)
		add_sat(&sum->ns, one->ns);
}

/* Adds a time off the CPU to a span, if it lies in the span. */
static void take_off(struct mxbpf_slow *s, const struct off *o)
{
	if (o->left_ns < s->h.ts_ns || o->back_ns - s->h.ts_ns > s->dur_ns)
		return;
	slow_take(&s->kept, &o->kept, !strncmp(s->kept.comm, o->kept.comm, sizeof(o->kept.comm)));
	slow_take(&s->slept, &o->slept, s->slept.what == o->slept.what);
}

static bool is_of(const struct mxbpf_slow *s, const struct mxbpf_sched *r)
{
	return s->tid == r->tid && s->h.tgid == r->h.tgid;
}

int recent_put(struct hash *threads, const struct mxbpf_sched *r)
{
	uint64_t *slot = hash_put(threads, r->tid, r->h.tgid);
	struct recent *t;

	if (!slot)
		return -ENOMEM;
	t = *slot ? (void *)(uintptr_t)*slot : mem_zalloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	*slot = (uintptr_t)t;
	t->offs[t->n++ % OFFS_MAX] = off_of(r);
	return 0;
}

void recent_late(struct mxbpf_slow *s, const struct mxbpf_sched *r)
{
	struct off o;

	if (!is_of(s, r))
		return;
	o = off_of(r);
	take_off(s, &o);
}

void recent_during(const struct hash *threads, struct mxbpf_slow *s)
{
	const uint64_t *slot = hash_get(threads, s->tid, s->h.tgid);
	const struct recent *t = slot ? (const void *)(uintptr_t)*slot : NULL;
	unsigned i;

	for (i = 0; t && i < t->n && i < OFFS_MAX; i++)
		take_off(s, &t->offs[i]);
}

static void *dup_recent(const void *item)
{
	struct recent *t = mem_alloc(sizeof(*t));

	if (t)
		*t = *(const struct recent *)item;
	return t;
}

int recent_copy(struct hash *to, const struct hash *from)
{
	return mdl_owned_copy(to, from, dup_recent);
}
