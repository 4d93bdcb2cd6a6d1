// SPDX-License-Identifier: Apache-2.0
/*
 * Finds communicators. A process does the collectives of each communicator in threads or streams of its own: lanes.
 * Parts of another communicator that have the same operation and size at nearly the same time are sometimes taken for
 * parts of one collective, but lanes of one communicator meet more often. So two lanes belong to one communicator if
 * neither of them meets another lane of the other's process twice as often. Where NCCL says the communicator, the parts
 * of each have a lane of their own, and these lanes belong together however often they meet.
 */
#include "feature/collective/state.h"

#include <errno.h>
#include <stdlib.h>

#define NEIGHBOURS 16 /* processes of a set with which a part's lane is counted */

struct lanes {
	struct hash index; /* (who, lane) -> 1 + index in lane */
	struct buf lane;   /* struct lane */
	struct hash meets; /* (lane, lane), the smaller one first -> 1 + index in pairs */
	struct buf pairs;  /* struct pair */
	struct hash tags;  /* (communicator, 0) -> 1 + the first lane of it */
	struct hash most;  /* (lane, who) -> meetings with the lane of that process that it meets most often */
};

struct lane {
	uint64_t who;
	uint64_t tag; /* of the first lane: communicator that a source says; 0: none */
	uint32_t of;  /* a lane of the same communicator, or itself: union-find */
};

struct pair {
	uint32_t a, b;
	uint64_t n;
};

static int lane_of(struct lanes *l, const struct item *it, uint32_t *lane)
{
	bool added;
	struct lane *own = mdl_item_put(&l->index, &l->lane, it->who, it->lane ^ it->tag, sizeof(*own), &added);
	uint64_t *first;

	if (!own)
		return -ENOMEM;
	*lane = (uint32_t)(own - (struct lane *)l->lane.data);
	if (!added)
		return 0;
	*own = (struct lane){it->who, it->tag, *lane};
	first = it->tag ? hash_put(&l->tags, it->tag, 0) : NULL;
	if (it->tag && !first)
		return -ENOMEM;
	if (first && *first)
		own->of = (uint32_t)(*first - 1);
	else if (first)
		*first = 1 + (uint64_t)*lane;
	return 0;
}

static int meet(struct lanes *l, const struct item *x, const struct item *y)
{
	uint32_t a, b, t;
	struct pair *p;
	bool added;

	if (lane_of(l, x, &a) || lane_of(l, y, &b))
		return -ENOMEM;
	t = a < b ? a : b;
	b = a < b ? b : a;
	p = mdl_item_put(&l->meets, &l->pairs, t, b, sizeof(*p), &added);
	if (!p)
		return -ENOMEM;
	p->a = t;
	p->b = b;
	p->n++;
	return 0;
}

static int collective_count(struct lanes *l, const struct item *it, uint32_t n)
{
	uint32_t i, k, lane;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		err = lane_of(l, &it[i], &lane);
		for (k = 1; !err && k <= NEIGHBOURS && i + k < n; k++)
			err = meet(l, &it[i], &it[i + k]);
	}
	return err;
}

static struct lane *lane_at(const struct lanes *l, uint32_t i)
{
	return buf_at(&l->lane, struct lane, i);
}

static int raise_most(struct lanes *l, uint32_t lane, uint32_t other, uint64_t n)
{
	uint64_t *most = hash_put(&l->most, lane, lane_at(l, other)->who);

	if (!most)
		return -ENOMEM;
	*most = n > *most ? n : *most;
	return 0;
}

static bool is_rare(const struct lanes *l, uint32_t lane, uint32_t other, uint64_t n)
{
	return 2 * n < *hash_get(&l->most, lane, lane_at(l, other)->who);
}

static uint32_t root(const struct lanes *l, uint32_t i)
{
	while (lane_at(l, i)->of != i) {
		lane_at(l, i)->of = lane_at(l, lane_at(l, i)->of)->of;
		i = lane_at(l, i)->of;
	}
	return i;
}

static void join_two(struct lanes *l, uint32_t a, uint32_t b)
{
	struct lane *first, *second;

	a = root(l, a);
	b = root(l, b);
	first = lane_at(l, a < b ? a : b);
	second = lane_at(l, a < b ? b : a);
	if (first->tag && second->tag && first->tag != second->tag)
		return;
	first->tag = first->tag ? first->tag : second->tag;
	second->of = a < b ? a : b;
}

static int collective_join(struct lanes *l)
{
	const size_t n = buf_count(&l->pairs, struct pair);
	const struct pair *p = (const void *)l->pairs.data;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		err = raise_most(l, p[i].a, p[i].b, p[i].n) || raise_most(l, p[i].b, p[i].a, p[i].n) ? -ENOMEM : 0;
	for (i = 0; !err && i < n; i++) {
		if (is_rare(l, p[i].a, p[i].b, p[i].n) || is_rare(l, p[i].b, p[i].a, p[i].n))
			continue;
		join_two(l, p[i].a, p[i].b);
	}
	return err;
}

int lanes_find(struct item *items, size_t from, size_t n, const struct set *sets, size_t nsets)
{
	struct lanes l = {.index = {0}};
	uint32_t lane;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < nsets; i++)
		err = collective_count(&l, items + sets[i].from, sets[i].n);
	err = err ? err : collective_join(&l);
	for (i = from; !err && i < n; i++) {
		err = lane_of(&l, &items[i], &lane);
		items[i].comm = err ? 0 : root(&l, lane);
	}
	mdl_items_fini(&l.index, &l.lane);
	mdl_items_fini(&l.meets, &l.pairs);
	hash_fini(&l.tags);
	hash_fini(&l.most);
	return err;
}
