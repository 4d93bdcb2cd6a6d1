// SPDX-License-Identifier: Apache-2.0
/* Where threads were off the CPU lately: what --sched knows of a span that turns out to have been slow. */
#include "feature/slow/slow.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/priv.h"
#include "feature/sched/words.h"

#define OFFS_MAX 16 /* of a thread */

/* One time off the CPU. */
struct off {
	uint64_t left_ns, back_ns;
	struct mxbpf_slow_by kept, slept;
};

struct recent {
	unsigned n; /* that there were; the last OFFS_MAX are kept */
	struct off offs[OFFS_MAX];
};

static uint64_t slice_ns(const struct mxbpf_sched_slice *s)
{
	return s->to_ns > s->from_ns ? s->to_ns - s->from_ns : 0;
}

/* Who had the CPU the longest, over all its slices. */
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

/* What is of the same kind is one; of others the one with more stays. */
static void take(struct mxbpf_slow_by *sum, const struct mxbpf_slow_by *one, bool same)
{
	if (!sum->ns || (!same && one->ns > sum->ns))
		*sum = *one;
	else if (same)
		add_sat(&sum->ns, one->ns);
}

static void take_off(struct mxbpf_slow *s, const struct off *o)
{
	if (o->left_ns < s->h.ts_ns || o->back_ns - s->h.ts_ns > s->dur_ns)
		return;
	take(&s->kept, &o->kept, !strncmp(s->kept.comm, o->kept.comm, sizeof(o->kept.comm)));
	take(&s->slept, &o->slept, s->slept.what == o->slept.what);
}

int recent_put(struct mdl *m, const struct mxbpf_sched *r)
{
	uint64_t *slot = hash_put(&m->recent, r->tid, r->h.tgid);
	struct mxbpf_slow *late;
	struct recent *t;
	struct off o;
	size_t i;

	if (!slot)
		return -ENOMEM;
	t = *slot ? (void *)(uintptr_t)*slot : calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*slot = (uintptr_t)t;
	o = t->offs[t->n++ % OFFS_MAX] = off_of(r);
	/* Spans and switches come by two ways, each with a thread of its own: its span may have come before it. */
	for (i = 0; o.left_ns < m->slow_until_ns && (late = slow_at(m, i)); i++)
		if (late->tid == r->tid && late->h.tgid == r->h.tgid)
			take_off(late, &o);
	return 0;
}

void recent_during(const struct mdl *m, struct mxbpf_slow *s)
{
	const uint64_t *slot = hash_get(&m->recent, s->tid, s->h.tgid);
	const struct recent *t = slot ? (const void *)(uintptr_t)*slot : NULL;
	unsigned i;

	for (i = 0; t && i < t->n && i < OFFS_MAX; i++)
		take_off(s, &t->offs[i]);
}

static void *dup_recent(const void *item)
{
	struct recent *t = malloc(sizeof(*t));

	if (t)
		*t = *(const struct recent *)item;
	return t;
}

int recent_copy(struct mdl *to, const struct mdl *from)
{
	return copy_owned(&to->recent, &from->recent, dup_recent);
}

void recent_fini(struct mdl *m)
{
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&m->recent, &pos)))
		free((void *)(uintptr_t)h->val);
	hash_fini(&m->recent);
}
