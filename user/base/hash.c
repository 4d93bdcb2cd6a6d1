// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static inline size_t hash_slot_of(uint64_t a, uint64_t b, size_t cap)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull ^ (b + 0x7f4a7c15ull) * 0xbf58476d1ce4e5b9ull;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	return (size_t)x & (cap - 1);
}

/* Returns the entry of the key, or the free entry for it. The search ends because cap > len. */
static inline struct hash_entry *hash_find(const struct hash *h, uint64_t a, uint64_t b)
{
	size_t i = hash_slot_of(a, b, h->cap);

	while (h->slots[i].used && (h->slots[i].a != a || h->slots[i].b != b))
		i = (i + 1) & (h->cap - 1);
	return &h->slots[i];
}

uint64_t *hash_get(const struct hash *h, uint64_t a, uint64_t b)
{
	struct hash_entry *e;

	if (!h->cap)
		return NULL;
	e = hash_find(h, a, b);
	return e->used ? &e->val : NULL;
}

static int grow(struct hash *h)
{
	struct hash old = *h;
	size_t i;

	h->cap = old.cap ? old.cap * 2 : 16;
	h->slots = mem_zalloc(h->cap * sizeof(*h->slots));
	if (!h->slots) {
		*h = old;
		return -1;
	}
	for (i = 0; i < old.cap; i++)
		if (old.slots[i].used)
			*hash_find(h, old.slots[i].a, old.slots[i].b) = old.slots[i];
	mem_free(old.slots);
	return 0;
}

uint64_t *hash_put(struct hash *h, uint64_t a, uint64_t b)
{
	struct hash_entry *e;

	if (h->len * 4 >= h->cap * 3 && grow(h))
		return NULL;
	e = hash_find(h, a, b);
	if (!e->used) {
		*e = (struct hash_entry){.a = a, .b = b, .used = 1};
		h->len++;
	}
	return &e->val;
}

int hash_del(struct hash *h, uint64_t a, uint64_t b, uint64_t *val)
{
	struct hash_entry *e, moved;
	size_t i;

	if (!h->cap)
		return 0;
	e = hash_find(h, a, b);
	if (!e->used)
		return 0;
	if (val)
		*val = e->val;
	e->used = 0;
	h->len--;
	/* Entries after it in the same run may have been displaced past the hole, so insert them again. */
	for (i = (size_t)(e - h->slots + 1) & (h->cap - 1); h->slots[i].used; i = (i + 1) & (h->cap - 1)) {
		moved = h->slots[i];
		h->slots[i].used = 0;
		*hash_find(h, moved.a, moved.b) = moved;
	}
	return 1;
}

struct hash_entry *hash_next(const struct hash *h, size_t *pos)
{
	while (*pos < h->cap) {
		struct hash_entry *e = &h->slots[(*pos)++];

		if (e->used)
			return e;
	}
	return NULL;
}

void hash_clear(struct hash *h)
{
	if (h->cap)
		memset(h->slots, 0, h->cap * sizeof(*h->slots));
	h->len = 0;
}

int hash_copy(struct hash *to, const struct hash *from)
{
	if (!from->cap)
		return 0;
	to->slots = mem_alloc(from->cap * sizeof(*to->slots));
	if (!to->slots)
		return -ENOMEM;
	memcpy(to->slots, from->slots, from->cap * sizeof(*to->slots));
	to->cap = from->cap;
	to->len = from->len;
	return 0;
}

void hash_fini(struct hash *h)
{
	mem_free(h->slots);
	*h = (struct hash){0};
}

uint64_t hash_text(uint64_t seed, const char *text, size_t len)
{
	uint64_t h = seed;

	while (len--)
		h = (h ^ (uint8_t)*text++) * 0x100000001b3ull;
	return h ^ h >> 32;
}
