// SPDX-License-Identifier: Apache-2.0
/* Stores of rows and items, each with a hash that finds them by two words. */
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void *mdl_row_put(struct hash *index, struct buf *rows, uint64_t a, uint64_t b, size_t bytes, bool *added)
{
	uint64_t *at = hash_put(index, a, b);
	void *r;

	*added = false;
	if (!at || *at)
		return at ? (void *)(uintptr_t)*at : NULL;
	r = mem_zalloc(bytes);
	if (!r || buf_put(rows, &r, sizeof(r))) {
		mem_free(r);
		return NULL;
	}
	*at = (uintptr_t)r;
	*added = true;
	return r;
}

void *mdl_item_put(struct hash *index, struct buf *items, uint64_t a, uint64_t b, size_t bytes, bool *added)
{
	uint64_t *at = hash_put(index, a, b);
	void *new;

	*added = false;
	if (!at || *at)
		return at ? items->data + (*at - 1) * bytes : NULL;
	new = buf_add(items, bytes);
	if (!new)
		return NULL;
	*at = items->len / bytes;
	*added = true;
	return memset(new, 0, bytes);
}

int mdl_rows_emit(const struct buf *rows, size_t bytes, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(rows, void *); i++)
		err = buf_put(out, *buf_at(rows, void *, i), bytes);
	return err;
}

/* Memory for one row: a reserved piece if there is one left. */
static void *row_new(struct buf *reserved, size_t bytes)
{
	if (!reserved || !reserved->len)
		return mem_alloc(bytes);
	reserved->len -= sizeof(void *);
	return *(void **)(reserved->data + reserved->len);
}

/* Fills `copies` with (address of a row -> address of its copy). */
static int copy_rows(struct buf *to, const struct buf *from, size_t bytes, struct buf *reserved, struct hash *copies)
{
	uint64_t *copy;
	void *old, *new;
	size_t i;

	for (i = 0; i < buf_count(from, void *); i++) {
		old = *buf_at(from, void *, i);
		new = row_new(reserved, bytes);
		if (!new || buf_put(to, &new, sizeof(new))) {
			mem_free(new);
			return -ENOMEM;
		}
		memcpy(new, old, bytes);
		copy = hash_put(copies, (uintptr_t)old, 0);
		if (!copy)
			return -ENOMEM;
		*copy = (uintptr_t) new;
	}
	return 0;
}

int store_copy(struct hash *to_index, struct buf *to, const struct hash *index, const struct buf *rows, size_t bytes,
	       struct buf *reserved)
{
	struct hash copies = {0};
	struct hash_entry *e;
	const uint64_t *copy;
	size_t pos = 0;
	int err = copy_rows(to, rows, bytes, reserved, &copies);

	err = err ? err : hash_copy(to_index, index);
	while (!err && (e = hash_next(to_index, &pos))) {
		copy = hash_get(&copies, e->val, 0);
		/* A slot whose row could not be allocated has the address 0 and no copy. */
		e->val = copy ? *copy : 0;
	}
	hash_fini(&copies);
	return err;
}

int mdl_items_processes(const struct buf *items, size_t bytes, mdl_process_fn fn, void *ctx)
{
	size_t at;
	int err = 0;

	for (at = 0; !err && at < items->len; at += bytes)
		err = fn(ctx, ((const struct mxbpf_rec *)(items->data + at))->tgid);
	return err;
}

int mdl_rows_copy(struct hash *to_index, struct buf *to, const struct hash *index, const struct buf *rows, size_t bytes)
{
	return store_copy(to_index, to, index, rows, bytes, NULL);
}

int mdl_items_copy(struct hash *to_index, struct buf *to, const struct hash *index, const struct buf *items)
{
	const int err = buf_put(to, items->data, items->len);

	return err ? err : hash_copy(to_index, index);
}

int mdl_owned_copy(struct hash *to, const struct hash *from, void *(*dup)(const void *item))
{
	struct hash_entry *e;
	size_t pos = 0;
	int err = hash_copy(to, from);

	while ((e = hash_next(to, &pos))) {
		if (!e->val) /* a slot whose item could not be allocated */
			continue;
		e->val = err ? 0 : (uintptr_t)dup((const void *)(uintptr_t)e->val);
		err = e->val ? 0 : -ENOMEM;
	}
	return err;
}

void mdl_rows_fini(struct hash *index, struct buf *rows)
{
	size_t i;

	for (i = 0; i < buf_count(rows, void *); i++)
		mem_free(*buf_at(rows, void *, i));
	buf_fini(rows);
	hash_fini(index);
}

void mdl_items_fini(struct hash *index, struct buf *items)
{
	buf_fini(items);
	hash_fini(index);
}

void mdl_owned_fini(struct hash *h)
{
	const struct hash_entry *e;
	size_t pos = 0;

	while ((e = hash_next(h, &pos)))
		mem_free((void *)(uintptr_t)e->val);
	hash_fini(h);
}
