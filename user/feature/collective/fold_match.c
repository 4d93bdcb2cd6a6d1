// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the parts that processes have in one collective. If a source says the communicator and the number in it, parts
 * with both in common belong together. Otherwise the times tell: no part of a collective that waits for all ends before
 * another begins, the ends of its parts are nearly together, and a process has one part in it.
 */
#include "feature/collective/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX  8192	/* beyond that, parts are not compared */
#define SLACK_NS     50000ull	/* by which a part may end before another begins: the two are timed apart */
#define SLACK_FAR_NS 1000000ull /* the same between hosts, whose clocks are aligned less well */

/* The time in which a process was recorded. */
struct seen {
	uint64_t first_ns, last_ns;
};

struct match {
	struct collective_part *parts;
	struct item *items;
	struct buf sets;	/* struct set */
	struct hash seen_index; /* (who, 0) -> 1 + index in seen */
	struct buf seen;	/* struct seen */
	struct hash seqs;	/* (group, who) -> number of the last one */
	uint64_t slack_ns;
};

static int collective_fold_match_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_what(const void *va, const void *vb)
{
	const struct item *a = va, *b = vb;
	int by = collective_fold_match_compare(a->what, b->what);

	by = by ? by : collective_fold_match_compare(a->bytes, b->bytes);
	by = by ? by : collective_fold_match_compare(a->comm, b->comm);
	by = by ? by : collective_fold_match_compare(a->end_ns, b->end_ns);
	return by ? by : collective_fold_match_compare(a->who, b->who);
}

static int by_who(const void *va, const void *vb)
{
	const struct item *a = va, *b = vb;
	int by = collective_fold_match_compare(a->who, b->who);

	return by ? by : collective_fold_match_compare(a->at, b->at);
}

static int by_set_end(const void *va, const void *vb)
{
	const struct set *a = va, *b = vb;
	int by = collective_fold_match_compare(a->end_ns, b->end_ns);

	return by ? by : collective_fold_match_compare(a->from, b->from);
}

/* ---- which parts belong together */

/* Makes a set of items[from..to). */
static int put_set(struct match *k, size_t from, size_t to)
{
	struct set s = {.group = 0x9e3779b97f4a7c15ull, .from = from, .n = (uint32_t)(to - from)};
	struct item *it = k->items + from;
	size_t i;

	qsort(it, s.n, sizeof(*it), by_who);
	for (i = 0; i < s.n; i++) {
		s.group = hash_text(s.group, (const char *)&it[i].who, sizeof(it[i].who));
		s.end_ns = it[i].end_ns > s.end_ns ? it[i].end_ns : s.end_ns;
	}
	s.group = s.n > 1 ? s.group | 1 : 0;
	return buf_put(&k->sets, &s, sizeof(s));
}

/* Where the ends of items[from..to) are farthest apart; between `after` and `to`. */
static size_t widest(const struct item *it, size_t after, size_t to)
{
	size_t i, at = after + 1;

	for (i = at + 1; i <= to; i++)
		if (it[i].end_ns - it[i - 1].end_ns > it[at].end_ns - it[at - 1].end_ns)
			at = i;
	return at;
}

/* Returns the part of the same process in items[from..i), or i. */
static size_t own_part(const struct item *it, size_t from, size_t i)
{
	size_t k;

	for (k = from; k < i && it[k].who != it[i].who; k++)
		;
	return k;
}

/* The items have one operation and size, and are in the order of their ends. */
static int match_run(struct match *k, size_t from, size_t to)
{
	const struct item *it = k->items;
	const bool waits = collective_waits(it[from].what & 0xff);
	size_t i, own, cut;
	int err = 0;

	for (; !err && collective_is_apart(it[from].what & 0xff) && from + 1 < to; from++)
		err = put_set(k, from, from + 1);
	for (i = from + 1; !err && i < to; i++)
		while (!err && from < i) {
			own = own_part(it, from, i);
			if (own == i && i - from < MEMBERS_MAX &&
			    (!waits || it[i].start_ns <= it[from].end_ns + k->slack_ns))
				break;
			cut = widest(it, own == i ? from : own, i);
			err = put_set(k, from, cut);
			from = cut;
		}
	return err ? err : put_set(k, from, to);
}

static int collective_by_number(const void *va, const void *vb, void *vparts)
{
	const struct collective_part *parts = vparts;
	const struct item *a = va, *b = vb;
	const struct mxbpf_collective *ca = parts[a->at].c, *cb = parts[b->at].c;
	int by = collective_fold_match_compare(ca->group, cb->group);

	by = by ? by : collective_fold_match_compare(ca->seq, cb->seq);
	return by ? by : by_who(a, b);
}

/* Items whose communicator and number are known. */
static int match_numbers(struct match *k, size_t n)
{
	const struct mxbpf_collective *a, *b;
	size_t i, from = 0;
	int err = 0;

	qsort_r(k->items, n, sizeof(*k->items), collective_by_number, k->parts);
	for (i = 1; !err && i <= n; i++) {
		a = k->parts[k->items[from].at].c;
		b = i < n ? k->parts[k->items[i].at].c : NULL;
		if (b && a->group == b->group && a->seq == b->seq && k->items[i].who != k->items[i - 1].who)
			continue;
		err = put_set(k, from, i);
		from = i;
	}
	return err;
}

/* ---- parts that are missing */

static int put_seen(struct match *k, const struct item *it)
{
	bool added;
	struct seen *s = mdl_item_put(&k->seen_index, &k->seen, it->who, 0, sizeof(*s), &added);

	if (!s)
		return -ENOMEM;
	if (added || it->start_ns < s->first_ns)
		s->first_ns = it->start_ns;
	s->last_ns = it->end_ns > s->last_ns ? it->end_ns : s->last_ns;
	return 0;
}

/* A process of `all` that is not in `s` was recorded from the start of s to its end. */
static bool was_there(struct match *k, const struct set *all, const struct set *s)
{
	const struct item *mine = k->items + s->from, *of = k->items + all->from;
	uint64_t start_ns = UINT64_MAX;
	const struct seen *seen;
	uint32_t i, j = 0;

	for (i = 0; i < s->n; i++)
		start_ns = mine[i].start_ns < start_ns ? mine[i].start_ns : start_ns;
	for (i = 0; i < all->n; i++) {
		if (j < s->n && mine[j].who == of[i].who) {
			j++;
			continue;
		}
		seen = buf_at(&k->seen, struct seen, *hash_get(&k->seen_index, of[i].who, 0) - 1);
		if (seen->first_ns <= start_ns && seen->last_ns >= s->end_ns)
			return true;
	}
	return j < s->n; /* it has a process that the others do not have */
}

/* Marks sets at both ends of the recording: processes join and leave one after the other. */
static void mark_partial(struct match *k, size_t first)
{
	struct set *s = buf_at(&k->sets, struct set, first), *all = s;
	const size_t n = buf_count(&k->sets, *s) - first;
	size_t i;

	for (i = 0; i < n; i++)
		all = s[i].n > all->n ? &s[i] : all;
	for (i = 0; i < n; i++)
		s[i].partial = s[i].n < all->n && !was_there(k, all, &s[i]);
}

/* ---- what a set says */

static int by_u64(const void *va, const void *vb)
{
	return collective_fold_match_compare(*(const uint64_t *)va, *(const uint64_t *)vb);
}

/* The median start of all but the last. */
static uint64_t usual_start(const struct item *it, size_t n, uint64_t *room)
{
	size_t i;

	for (i = 0; i < n; i++)
		room[i] = it[i].start_ns;
	qsort(room, n, sizeof(*room), by_u64);
	n--;
	return room[(n - 1) / 2] / 2 + room[n / 2] / 2 + (room[(n - 1) / 2] & room[n / 2] & 1);
}

static int tell_number(struct match *k, const struct set *s, struct collective_part *p, uint64_t who)
{
	uint64_t *seq = p->c->seq ? NULL : hash_put(&k->seqs, s->group ^ p->c->group, who);

	if (!p->c->seq && !seq)
		return -ENOMEM;
	p->seq = seq ? ++*seq : p->c->seq;
	return 0;
}

static void tell_part(struct collective_part *p, const struct set *s, const struct item *it, const struct item *last,
		      uint64_t usual_ns)
{
	const bool waits = collective_waits(p->c->op);
	const uint64_t until_ns = last->start_ns < it->end_ns ? last->start_ns : it->end_ns;

	p->group = s->group;
	p->members = s->n;
	p->move_ns = s->end_ns > last->start_ns ? s->end_ns - last->start_ns : 0;
	if (!waits)
		return;
	p->last = (uint32_t)(last->who >> 32);
	p->is_last = it == last;
	p->wait_ns = until_ns > it->start_ns ? until_ns - it->start_ns : 0;
	p->late_ns = p->is_last ? last->start_ns - usual_ns : 0;
}

/* Bytes that a part gives; n: processes of the group, or 0. */
static uint64_t given(const struct mxbpf_collective *c, uint32_t n)
{
	uint64_t all = c->bytes;

	if (!(c->flags & MXBPF_COLLECTIVE_FOR_EACH) || all == MXBPF_COLLECTIVE_UNSIZED)
		return all;
	return !n || __builtin_mul_overflow(all, n, &all) ? MXBPF_COLLECTIVE_UNSIZED : all;
}

/* Not each part says all. */
static struct collective_part said_by(const struct match *k, const struct set *s)
{
	struct collective_part all = {.c = NULL};
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		const struct mxbpf_collective *c = k->parts[k->items[s->from + i].at].c;

		all.comm = all.comm ? all.comm : c->group;
		all.root = all.root ? all.root : c->root;
		all.ranks = c->ranks > all.ranks ? c->ranks : all.ranks;
		all.reduction = all.reduction ? all.reduction : c->reduction;
		all.source |= c->source;
	}
	return all;
}

/* Parts of one collective have different sizes where one process gives for all. */
static void tell_said(struct match *k, const struct set *s)
{
	const struct collective_part all = said_by(k, s);
	const struct item *it = k->items + s->from;
	uint64_t most = 0, bytes;
	struct collective_part *p;
	uint32_t i, n;

	for (i = 0; i < s->n; i++) {
		p = &k->parts[it[i].at];
		bytes = given(p->c, all.ranks ? all.ranks : p->members);
		most = bytes != MXBPF_COLLECTIVE_UNSIZED && bytes > most ? bytes : most;
	}
	for (i = 0; i < s->n; i++) {
		p = &k->parts[it[i].at];
		n = all.ranks ? all.ranks : p->members;
		p->bytes = collective_bytes(p->c->op, most ? most : given(p->c, n), n);
		p->comm = all.comm;
		p->root = all.root;
		p->ranks = all.ranks;
		p->reduction = all.reduction;
		p->source = all.source;
	}
}

static int collective_fold_match_tell(struct match *k, const struct set *s, uint64_t *room)
{
	const struct item *it = k->items + s->from, *last = it;
	uint64_t usual_ns;
	uint32_t i;
	int err = 0;

	if (s->n > 1 && !s->partial) {
		for (i = 1; i < s->n; i++)
			last = it[i].start_ns > last->start_ns ? &it[i] : last;
		usual_ns = usual_start(it, s->n, room);
		for (i = 0; i < s->n && !err; i++) {
			tell_part(&k->parts[it[i].at], s, &it[i], last, usual_ns);
			err = tell_number(k, s, &k->parts[it[i].at], it[i].who);
		}
	}
	tell_said(k, s);
	return err;
}

/* ---- all */

static struct item item_of(const struct collective_part *p, uint32_t at)
{
	const struct mxbpf_collective *c = p->c;
	const bool uneven = c->op == MXBPF_COLLECTIVE_SCATTER || c->op == MXBPF_COLLECTIVE_SEND_RECV ||
			    c->op == MXBPF_COLLECTIVE_BARRIER;

	return (struct item){
		.start_ns = c->h.ts_ns,
		.end_ns = c->h.ts_ns + c->dur_ns,
		.bytes = uneven ? 0 : c->bytes,
		.who = (uint64_t)c->h.tgid << 32 | c->device,
		.lane = c->lane,
		.tag = c->group,
		.at = at,
		.what = (uint16_t)(c->backend << 8 | c->op),
	};
}

static int match_times(struct match *k, size_t from, size_t n)
{
	struct item *it = k->items;
	size_t i, first;
	int err = 0;

	qsort(it + from, n - from, sizeof(*it), by_what);
	for (i = from; !err && i < n; from = i) {
		for (i = from; i < n && it[i].what == it[from].what && it[i].bytes == it[from].bytes &&
			       it[i].comm == it[from].comm;
		     i++)
			;
		first = buf_count(&k->sets, struct set);
		err = match_run(k, from, i);
		if (!err)
			mark_partial(k, first);
	}
	return err;
}

/* Moves the items whose communicator and number are known to the begin. Returns how many there are. */
static size_t split(struct match *k, size_t n)
{
	size_t i, numbered = 0;
	struct item it;

	for (i = 0; i < n; i++)
		if (k->parts[k->items[i].at].c->seq) {
			it = k->items[numbered];
			k->items[numbered++] = k->items[i];
			k->items[i] = it;
		}
	return numbered;
}

/* The times alone show the communicators, and these show which of the parts with nearly the same times belong together.
 */
static int match_all(struct match *k, size_t n)
{
	size_t i, numbered;
	bool several = false;
	int err = align_hosts(k->items, n, &several);

	k->slack_ns = several ? SLACK_FAR_NS : SLACK_NS;
	for (i = 0; !err && i < n; i++)
		err = put_seen(k, &k->items[i]);
	numbered = err ? 0 : split(k, n);
	err = err ? err : match_times(k, numbered, n);
	err = err ? err
		  : lanes_find(k->items, numbered, n, (const void *)k->sets.data, buf_count(&k->sets, struct set));
	k->sets.len = 0;
	err = err ? err : match_times(k, numbered, n);
	return err || !numbered ? err : match_numbers(k, numbered);
}

int match_parts(struct collective_part *parts, size_t n)
{
	struct match k = {.parts = parts, .items = calloc(n + 1, sizeof(*k.items))};
	uint64_t *room = calloc(n + 1, sizeof(*room));
	size_t i;
	int err = k.items && room ? 0 : -ENOMEM;

	for (i = 0; !err && i < n; i++)
		k.items[i] = item_of(&parts[i], (uint32_t)i);
	err = err ? err : match_all(&k, n);
	if (!err && n)
		qsort(k.sets.data, buf_count(&k.sets, struct set), sizeof(struct set), by_set_end);
	for (i = 0; !err && i < buf_count(&k.sets, struct set); i++)
		err = collective_fold_match_tell(&k, buf_at(&k.sets, struct set, i), room);
	buf_fini(&k.sets);
	mdl_items_fini(&k.seen_index, &k.seen);
	hash_fini(&k.seqs);
	free(k.items);
	free(room);
	return err;
}
