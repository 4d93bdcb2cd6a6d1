// SPDX-License-Identifier: Apache-2.0
/*
 * A copy of a model, to show while the model itself is fed on. The stores are copied as they are kept: the copy has the
 * same rows in the same order, and its hashes have the same slots.
 */
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct mdl, member)

/* Buffers of items without addresses. */
static const size_t plain_bufs[] = {AT(groups),	      AT(waits),       AT(opens),	   AT(slow),
				    AT(samples),      AT(scheds),      AT(iterations),	   AT(gauges),
				    AT(held.devices), AT(held.owners), AT(activities.rows)};

/* Hashes whose values are places in buffers, or roles. */
static const size_t plain_hashes[] = {
	AT(group_index),
	AT(wait_index),
	AT(sample_index),
	AT(sched_index),
	AT(step_roles),
	AT(gauge_index),
	AT(held.device_index),
	AT(held.owner_index),
	AT(activities.index[MXBPF_ACTIVITY_KERNEL]),
	AT(activities.index[MXBPF_ACTIVITY_COPY]),
	AT(activities.index[MXBPF_ACTIVITY_SET]),
};
MXBPF_STATIC_ASSERT(MXBPF_ACTIVITY_SET + 1 == MXBPF_ACTIVITY_MAX);

/* Buffers of addresses of items that they own. */
static const struct {
	size_t off, item_bytes;
} owned_bufs[] = {
	{AT(joins), sizeof(struct mxbpf_join)},
	{AT(teams), sizeof(struct mxbpf_team)},
	{AT(lives), sizeof(struct life_row)},
	{AT(values), sizeof(struct mxbpf_value)},
	{AT(instants), sizeof(struct mxbpf_instant)},
	{AT(mem_rows), sizeof(struct mdl_mem_row)},
	{AT(kvs), sizeof(struct kv_row)},
};

/* Hashes whose values are addresses of such items. */
static const size_t borrowing_hashes[] = {AT(join_index),    AT(team_index), AT(life_index), AT(value_index),
					  AT(instant_index), AT(mem_index),  AT(kv_index)};

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))
#define BUF_OF(m, off)	((struct buf *)((char *)(m) + (off)))
#define HASH_OF(m, off) ((struct hash *)((char *)(m) + (off)))

int copy_owned(struct hash *to, const struct hash *from, void *(*dup)(const void *item))
{
	struct hash_entry *e;
	size_t pos = 0;
	int err = hash_copy(to, from);

	while ((e = hash_next(to, &pos))) {
		if (!e->val) /* there was no memory for the item when its slot was made */
			continue;
		e->val = err ? 0 : (uintptr_t)dup((const void *)(uintptr_t)e->val);
		err = e->val ? 0 : -ENOMEM;
	}
	return err;
}

/* An item's memory: of a row, what was reserved for it. */
static void *item_new(struct mdl *to, size_t bytes)
{
	if (bytes != sizeof(struct mdl_row) || !to->reserved.len)
		return malloc(bytes);
	to->reserved.len -= sizeof(void *);
	return *(void **)(to->reserved.data + to->reserved.len);
}

/* Notes in `copies` which copy is of which item. */
static int copy_items(struct mdl *to, const struct buf *from, size_t off, size_t item_bytes, struct hash *copies)
{
	uint64_t *copy;
	void *old, *new;
	size_t i;

	for (i = 0; i < buf_count(from, void *); i++) {
		old = *buf_at(from, void *, i);
		new = item_new(to, item_bytes);
		if (!new || buf_put(BUF_OF(to, off), &new, sizeof(new))) {
			free(new);
			return -ENOMEM;
		}
		memcpy(new, old, item_bytes);
		copy = hash_put(copies, (uintptr_t)old, 0);
		if (!copy)
			return -ENOMEM;
		*copy = (uintptr_t) new;
	}
	return 0;
}

/* An item that there was no memory for has the address 0, and no copy. */
static int copy_borrowing(struct hash *to, const struct hash *from, const struct hash *copies)
{
	const uint64_t *copy;
	struct hash_entry *e;
	size_t pos = 0;

	if (hash_copy(to, from))
		return -ENOMEM;
	while ((e = hash_next(to, &pos))) {
		copy = hash_get(copies, e->val, 0);
		e->val = copy ? *copy : 0;
	}
	return 0;
}

static int copy_rows(struct mdl *to, const struct mdl *m, struct hash *copies)
{
	unsigned cls;
	int err = 0;

	for (cls = 0; cls < MXBPF_CLASS_MAX && !err; cls++) {
		err = copy_items(to, &m->rows[cls], AT(rows[cls]), sizeof(struct mdl_row), copies);
		err = err ? err : copy_borrowing(&to->row_index[cls], &m->row_index[cls], copies);
	}
	return err;
}

static int copy_stores(struct mdl *to, const struct mdl *m, struct hash *copies)
{
	const struct buf *from;
	size_t i;
	int err = copy_rows(to, m, copies);

	for (i = 0; i < COUNT(plain_bufs) && !err; i++) {
		from = BUF_OF(m, plain_bufs[i]);
		err = buf_put(BUF_OF(to, plain_bufs[i]), from->data, from->len);
	}
	for (i = 0; i < COUNT(plain_hashes) && !err; i++)
		err = hash_copy(HASH_OF(to, plain_hashes[i]), HASH_OF(m, plain_hashes[i]));
	for (i = 0; i < COUNT(owned_bufs) && !err; i++)
		err = copy_items(to, BUF_OF(m, owned_bufs[i].off), owned_bufs[i].off, owned_bufs[i].item_bytes, copies);
	for (i = 0; i < COUNT(borrowing_hashes) && !err; i++)
		err = copy_borrowing(HASH_OF(to, borrowing_hashes[i]), HASH_OF(m, borrowing_hashes[i]), copies);
	return err;
}

static void copy_numbers(struct mdl *to, const struct mdl *m)
{
	to->ngrouped = m->ngrouped;
	to->tells_threads = m->tells_threads;
	to->tells_processes = m->tells_processes;
	to->slow_until_ns = m->slow_until_ns;
	to->slow_least_ns = m->slow_least_ns;
	memcpy(to->counters, m->counters, sizeof(to->counters));
	memcpy(to->folded_ns, m->folded_ns, sizeof(to->folded_ns));
	to->summed = m->summed;
	to->resumed_ns = m->resumed_ns;
}

size_t mdl_nrows(const struct mdl *m)
{
	unsigned cls;
	size_t n = 0;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		n += buf_count(&m->rows[cls], struct mdl_row *);
	return n;
}

int mdl_reserve(struct mdl *to, size_t nrows)
{
	void *row;

	for (; nrows; nrows--) {
		row = malloc(sizeof(struct mdl_row));
		if (!row || buf_put(&to->reserved, &row, sizeof(row))) {
			free(row);
			return -ENOMEM;
		}
		memset(row, 0, sizeof(struct mdl_row)); /* the kernel gives the pages now */
	}
	return 0;
}

int mdl_copy_to(struct mdl *to, const struct mdl *from)
{
	struct hash copies = {0};
	int err = copy_stores(to, from, &copies);
	size_t i;

	hash_fini(&copies);
	copy_numbers(to, from);
	err = err ? err : names_copy(to, from);
	for (i = 0; !err && mdl_features[i]; i++)
		err = mdl_features[i]->copy ? mdl_features[i]->copy(to, from) : 0;
	return err;
}
