// SPDX-License-Identifier: Apache-2.0
/* The latest launches, for all features that look for the launch of an activity. */
#include <errno.h>
#include <string.h>

#include "feature/activity/state.h"

#define LATEST_MAX (1u << 18)	  /* 12 MiB, and 2 MiB for finding them */
#define LATEST_MIN (1u << 16)	  /* are kept however old they are */
#define KEEP_NS	   10000000000ull /* launches are kept for work that starts so much later */
#define SLOTS_MIN  1024u
#define NEAR	   16u /* ids with neighbouring slots */
#define REUSES_MAX 16u /* launches with the same id that an activity looks at */

static struct activity_call *at(const struct launched *s, size_t i)
{
	return buf_at(&s->all, struct activity_call, i);
}

static bool activity_is_same(const struct activity_call *a, const struct activity_call *b)
{
	return a->edge_id == b->edge_id && a->tgid == b->tgid && a->domain == b->domain;
}

/*
 * Returns the slot of the launches with an id. There is a free one. Ids count up, so 16 of them have neighbouring
 * slots: with slots far apart a launch took 15 % longer, because each was a cache miss.
 */
static uint32_t *activity_slot_of(const struct launched *s, const struct activity_call *like)
{
	const uint64_t of = (uint64_t)like->tgid << 16 | like->domain, mask = buf_count(&s->slots, uint32_t) - 1;
	const uint64_t block = (like->edge_id / NEAR ^ of * 0x9e3779b97f4a7c15ull) * 0x9e3779b97f4a7c15ull >> 32;
	uint64_t i = block * NEAR + like->edge_id % NEAR;
	uint32_t *slot = buf_at(&s->slots, uint32_t, i & mask);

	while (*slot && !activity_is_same(at(s, *slot - 1), like))
		slot = buf_at(&s->slots, uint32_t, ++i & mask);
	return slot;
}

static void activity_enter(struct launched *s, size_t i)
{
	uint32_t *slot = activity_slot_of(s, at(s, i));

	at(s, i)->previous = *slot;
	*slot = (uint32_t)i + 1;
}

/* Makes n slots, a power of two. Returns 0 or -ENOMEM. */
static int make_slots(struct launched *s, size_t n)
{
	size_t i;

	s->slots.len = 0;
	if (!buf_add(&s->slots, n * sizeof(uint32_t)))
		return -ENOMEM;
	memset(s->slots.data, 0, s->slots.len);
	for (i = 0; i < buf_count(&s->all, struct activity_call); i++)
		activity_enter(s, i);
	return 0;
}

/* Forgets launches that are old, and the older half if there are too many. Returns 0 or -ENOMEM. */
static int activity_forget(struct launched *s)
{
	const size_t n = buf_count(&s->all, struct activity_call);
	const uint64_t since_ns = s->newest_ns > KEEP_NS ? s->newest_ns - KEEP_NS : 0;
	size_t gone = 0, i;

	while (n - gone > LATEST_MIN && at(s, gone)->end_ns < since_ns)
		gone++;
	if (n >= LATEST_MAX && gone < n / 2)
		gone = n / 2;
	s->kept = n - gone;
	if (!gone)
		return 0;
	for (i = 0; i < gone; i++)
		s->lost_ns = at(s, i)->end_ns > s->lost_ns ? at(s, i)->end_ns : s->lost_ns;
	memmove(s->all.data, at(s, gone), s->kept * sizeof(struct activity_call));
	s->all.len = s->kept * sizeof(struct activity_call);
	s->first += gone;
	return make_slots(s, buf_count(&s->slots, uint32_t));
}

int launched_put(struct launched *s, const struct mxbpf_launch *l)
{
	struct activity_call one = {.start_ns = l->h.ts_ns,
				    .end_ns = l->h.ts_ns,
				    .edge_id = l->edge_id,
				    .call_id = l->call_id,
				    .tgid = l->h.tgid,
				    .tid = l->tid,
				    .domain = l->domain};
	size_t n = buf_count(&s->all, one);
	int err = 0;

	add_sat(&one.end_ns, l->dur_ns);
	s->newest_ns = one.start_ns > s->newest_ns ? one.start_ns : s->newest_ns;
	if (n >= LATEST_MAX || (n >= 2 * LATEST_MIN && n >= 2 * s->kept))
		err = activity_forget(s);
	n = buf_count(&s->slots, uint32_t);
	if (!err && 2 * (buf_count(&s->all, one) + 1) > n)
		err = make_slots(s, n ? 2 * n : SLOTS_MIN);
	if (err || buf_put(&s->all, &one, sizeof(one)))
		return -ENOMEM;
	activity_enter(s, buf_count(&s->all, one) - 1);
	return 0;
}

int launched_copy(struct launched *to, const struct launched *from)
{
	to->first = from->first;
	to->newest_ns = from->newest_ns;
	to->lost_ns = from->lost_ns;
	to->kept = from->kept;
	if (buf_put(&to->all, from->all.data, from->all.len))
		return -ENOMEM;
	return buf_put(&to->slots, from->slots.data, from->slots.len);
}

void launched_fini(struct launched *s)
{
	buf_fini(&s->all);
	buf_fini(&s->slots);
}

const struct activity_call *launched_find(const struct launched *s, const struct activity_call *like)
{
	const struct activity_call *l, *last = NULL, *earliest = NULL;
	uint32_t next = s->slots.len && like->domain != MXBPF_DOMAIN_NONE ? *activity_slot_of(s, like) : 0;
	unsigned i;

	for (i = 0; next && i < REUSES_MAX; i++, next = l->previous) {
		l = at(s, next - 1);
		if (l->start_ns <= like->start_ns && (!last || l->start_ns > last->start_ns))
			last = l;
		if (!earliest || l->start_ns < earliest->start_ns)
			earliest = l;
	}
	return last ? last : earliest;
}
