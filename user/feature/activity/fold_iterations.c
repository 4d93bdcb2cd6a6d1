// SPDX-License-Identifier: Apache-2.0
/* Adds up the work that was launched in each iteration of a loop. */
#include <errno.h>

#include "feature/activity/join.h"

#define SLOTS_MAX (1u << 17) /* remembered iterations: 9 MiB */
#define BACK_MAX  64	     /* iterations before the last one that a launch can be in */

/* Returns whether a launch of the process was seen in this model. */
static bool launches(const struct mdl *m, const struct join *j, uint32_t tgid)
{
	size_t n;
	const struct activity_join *c = activity_joins(m, &n);

	while (j->nlaunches && n--)
		if (c[n].tgid == tgid)
			return true;
	return false;
}

static uint32_t last_slot(const struct join *j, uint32_t tgid)
{
	const uint64_t *last = hash_get(&j->last_slots, tgid, 0);

	return last ? (uint32_t)*last : 0;
}

static void give(struct join *j, struct launch *l, uint32_t place)
{
	if (l->slot)
		work_sub(&buf_at(&j->slots, struct slot, l->slot - 1)->work, &l->work);
	l->slot = place;
	work_add(&buf_at(&j->slots, struct slot, place - 1)->work, &l->work);
}

void join_find_slot(struct join *j, uint32_t tgid, const struct moment *moment)
{
	uint32_t place = last_slot(j, tgid);
	struct launch *l = launch_at(j, moment->launch);
	const struct slot *s;
	unsigned i;

	for (i = 0; l && place && i < BACK_MAX; i++, place = s->previous) {
		s = buf_at(&j->slots, struct slot, place - 1);
		if (moment->ns >= s->end_ns)
			return;
		if (moment->ns >= s->start_ns) {
			give(j, l, place);
			return;
		}
	}
}

void join_forget_slots(struct join *j)
{
	size_t i;

	hash_clear(&j->slot_index);
	hash_clear(&j->last_slots);
	j->slots.len = 0;
	for (i = 0; i < buf_count(&j->launches, struct launch); i++)
		buf_at(&j->launches, struct launch, i)->slot = 0;
}

static int add_slot(struct join *j, uint32_t tgid, uint64_t start_ns, uint64_t end_ns, uint32_t *place)
{
	uint64_t *last = hash_put(&j->last_slots, tgid, 0);
	struct slot *s;
	bool added;

	s = last ? mdl_item_put(&j->slot_index, &j->slots, start_ns, tgid, sizeof(*s), &added) : NULL;
	if (!s)
		return -ENOMEM;
	*place = (uint32_t)(s - buf_at(&j->slots, struct slot, 0)) + 1;
	s->start_ns = start_ns;
	s->end_ns = end_ns;
	if (added) {
		s->previous = (uint32_t)*last;
		*last = *place;
	}
	return 0;
}

int join_iteration(const struct mdl *m, struct join *j, uint32_t tgid, uint64_t start_ns, uint64_t end_ns)
{
	const struct moment *moment;
	struct launch *l;
	struct thread *t;
	uint32_t place;
	size_t i, k;

	if (!launches(m, j, tgid) || start_ns < j->first_ns)
		return 0;
	if (buf_count(&j->slots, struct slot) >= SLOTS_MAX)
		join_forget_slots(j);
	if (add_slot(j, tgid, start_ns, end_ns, &place))
		return -ENOMEM;
	for (i = 0; i < buf_count(&j->threads, struct thread); i++) {
		t = thread_at(j, i);
		if (t->tgid != tgid)
			continue;
		for (k = join_first_moment(&t->launches, t->first, start_ns); k < buf_count(&t->launches, *moment);
		     k++) {
			moment = buf_at(&t->launches, struct moment, k);
			if (moment->ns >= end_ns)
				break;
			l = launch_at(j, moment->launch);
			if (l)
				give(j, l, place);
		}
	}
	return 0;
}

/* Adds up the launches of an iteration that has no slot yet. */
static bool sum_launches(const struct mdl *m, const struct join *j, uint32_t tgid, uint64_t start_ns, uint64_t end_ns,
			 struct mxbpf_gpu_work *work)
{
	const uint32_t last = last_slot(j, tgid);
	const struct launch *l;
	size_t i;

	if (!launches(m, j, tgid) || start_ns < j->first_ns || start_ns <= j->lost_ns ||
	    (last && start_ns < buf_at(&j->slots, struct slot, last - 1)->end_ns))
		return false;
	for (i = 0; i < buf_count(&j->launches, struct launch); i++) {
		l = buf_at(&j->launches, struct launch, i);
		if (tgid_of(l) == tgid && l->ts_ns >= start_ns && l->ts_ns < end_ns)
			work_add(work, &l->work);
	}
	return true;
}

bool join_of_iteration(const struct mdl *m, const struct join *j, uint32_t tgid, uint64_t start_ns, uint64_t end_ns,
		       struct mxbpf_gpu_work *work)
{
	const uint64_t *at = hash_get(&j->slot_index, start_ns, tgid);

	*work = (struct mxbpf_gpu_work){.launches = 0};
	if (!at || !*at)
		return sum_launches(m, j, tgid, start_ns, end_ns, work);
	*work = buf_at(&j->slots, struct slot, *at - 1)->work;
	return true;
}
