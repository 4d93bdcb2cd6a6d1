// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "table/priv.h"

#define SLOTS_MIN 16

/* ---- finding rows */

/* Keys that a row is looked for by. */
struct keys {
	const void *row;
	bool full; /* without details */
};

static uint64_t table_key_of(const struct tbl_column *c, const struct keys *k, unsigned i)
{
	return k->full && c->flags & TBL_DETAIL ? 0 : tbl_get(c, k->row, i);
}

static uint64_t hash_of(const struct tbl_def *def, const struct keys *k)
{
	const struct tbl_column *c;
	uint64_t h = 0;
	unsigned i;

	for (c = def->columns; c->bytes; c++)
		for (i = 0; c->merge == TBL_IS_KEY && i < tbl_nvalues(c); i++) {
			h = (h ^ table_key_of(c, k, i)) * 0x9e3779b97f4a7c15ull;
			h ^= h >> 32;
		}
	return h;
}

static bool has_keys(const struct tbl_def *def, const void *row, const struct keys *k)
{
	const struct tbl_column *c;
	unsigned i;

	for (c = def->columns; c->bytes; c++)
		for (i = 0; c->merge == TBL_IS_KEY && i < tbl_nvalues(c); i++)
			if (tbl_get(c, row, i) != table_key_of(c, k, i))
				return false;
	return true;
}

static uint32_t *table_slot_of(const struct tbl *t, const struct keys *k)
{
	size_t i = hash_of(t->def, k) & (t->nslots - 1);

	while (t->slots[i] && !has_keys(t->def, tbl_at(t, t->slots[i] - 1), k))
		i = (i + 1) & (t->nslots - 1);
	return &t->slots[i];
}

/* Half of the slots stay empty. */
static int grow(struct tbl *t)
{
	const size_t n = tbl_count(t), nslots = t->nslots ? 2 * t->nslots : SLOTS_MIN;
	struct keys keys = {0};
	uint32_t *slots;
	size_t i;

	if (2 * (n + 1) <= t->nslots)
		return 0;
	slots = mem_zalloc(nslots * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	mem_free(t->slots);
	t->slots = slots;
	t->nslots = nslots;
	for (i = 0; i < n; i++) {
		keys.row = tbl_at(t, i);
		*table_slot_of(t, &keys) = (uint32_t)(i + 1);
	}
	return 0;
}

void *tbl_row(struct tbl *t, const void *like, bool *added)
{
	struct keys keys = {like, false};
	const struct tbl_column *c;
	uint32_t *slot;
	unsigned i;
	void *row;

	*added = false;
	if (grow(t))
		return NULL;
	slot = table_slot_of(t, &keys);
	if (!*slot && t->def->max_rows && tbl_count(t) >= t->def->max_rows) {
		keys.full = true;
		slot = table_slot_of(t, &keys);
	}
	if (*slot)
		return tbl_at(t, *slot - 1);
	row = buf_add(&t->rows, t->def->row_bytes);
	if (!row)
		return NULL;
	memset(row, 0, t->def->row_bytes);
	for (c = t->def->columns; c->bytes; c++)
		for (i = 0; c->merge == TBL_IS_KEY && i < tbl_nvalues(c); i++)
			tbl_set(c, row, i, table_key_of(c, &keys, i));
	*slot = (uint32_t)tbl_count(t);
	*added = true;
	return row;
}

/* ---- adding up */

static uint64_t sum_of(const struct tbl_column *c, uint64_t a, uint64_t b)
{
	int64_t sum;

	if (c->flags & TBL_SIGNED) {
		if (__builtin_add_overflow((int64_t)a, (int64_t)b, &sum))
			sum = (int64_t)b < 0 ? INT64_MIN : INT64_MAX;
		return (uint64_t)sum;
	}
	return a + b < a ? UINT64_MAX : a + b;
}

static bool is_later(const struct tbl_def *def, const void *a, const void *b)
{
	const struct tbl_column *c;

	for (c = def->columns; c->bytes; c++)
		if (c->merge == TBL_ORDER && tbl_get(c, a, 0) != tbl_get(c, b, 0))
			return tbl_get(c, a, 0) > tbl_get(c, b, 0);
	return false;
}

static uint64_t merged(const struct tbl_column *c, uint64_t a, uint64_t b, bool b_is_later)
{
	switch (c->merge) {
	case TBL_SUM:
		return sum_of(c, a, b);
	case TBL_MAX:
		return a > b ? a : b;
	case TBL_MIN:
		return a < b ? a : b;
	case TBL_OR:
		return a | b;
	case TBL_LAST:
		return b ? b : a;
	case TBL_ORDER:
	case TBL_OF_LATEST:
		return b_is_later ? b : a;
	default:
		return a;
	}
}

void tbl_merge(const struct tbl_def *def, void *to, const void *from)
{
	const bool later = is_later(def, from, to);
	const struct tbl_column *c;
	unsigned i;

	for (c = def->columns; c->bytes; c++)
		for (i = 0; c->merge > TBL_IS_KEY && i < tbl_nvalues(c); i++)
			tbl_set(c, to, i, merged(c, tbl_get(c, to, i), tbl_get(c, from, i), later));
}

void *tbl_add(struct tbl *t, const void *from, bool *added)
{
	void *row = tbl_row(t, from, added);
	const struct tbl_column *c;
	unsigned i;

	if (!row)
		return NULL;
	if (!*added)
		tbl_merge(t->def, row, from);
	for (c = t->def->columns; *added && c->bytes; c++)
		for (i = 0; c->merge > TBL_IS_KEY && i < tbl_nvalues(c); i++)
			tbl_set(c, row, i, tbl_get(c, from, i));
	return row;
}

bool tbl_is_within(const struct tbl_def *def, const void *row)
{
	const struct tbl_column *c;

	for (c = def->columns; c->bytes; c++)
		if (c->limit && tbl_get(c, row, 0) > c->limit)
			return false;
	return true;
}

int tbl_copy(struct tbl *to, const struct tbl *from)
{
	const size_t bytes = from->nslots * sizeof(*from->slots);

	if (!bytes)
		return 0;
	to->slots = mem_alloc(bytes);
	if (!to->slots || buf_put(&to->rows, from->rows.data, from->rows.len)) {
		tbl_fini(to);
		return -ENOMEM;
	}
	memcpy(to->slots, from->slots, bytes);
	to->nslots = from->nslots;
	return 0;
}

void tbl_fini(struct tbl *t)
{
	buf_fini(&t->rows);
	mem_free(t->slots);
	t->slots = NULL;
	t->nslots = 0;
}
