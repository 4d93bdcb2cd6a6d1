/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from one or two 64-bit words to a pointer-sized value. Zero-initialise; hash_fini() when done. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_entry {
	uint64_t a, b; /* key */
	uint64_t val;
	uint8_t used;
};

struct hash {
	struct hash_entry *slots; /* owned */
	size_t cap, len;
};

/* Borrowed address of the value, valid until the next hash_put(); NULL if absent. */
uint64_t *hash_get(const struct hash *h, uint64_t a, uint64_t b);
/* Address of the value, 0 if it was absent; NULL: -ENOMEM. */
uint64_t *hash_put(struct hash *h, uint64_t a, uint64_t b);
/* True and the value in *val if it was there. */
int hash_del(struct hash *h, uint64_t a, uint64_t b, uint64_t *val);
/* Iterates in no order: start with *pos = 0; NULL at the end. */
struct hash_entry *hash_next(const struct hash *h, size_t *pos);
void hash_clear(struct hash *h);
/* Copies all entries into an empty table. Both iterate in the same order. 0 or -ENOMEM. */
int hash_copy(struct hash *to, const struct hash *from);
void hash_fini(struct hash *h);

#endif
