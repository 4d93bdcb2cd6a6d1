/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from two 64-bit words to a 64-bit value. Zero-initialise it, and call hash_fini() at the end. */
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

/* Returns the address of the value, borrowed until the next hash_put(), or NULL if the key is absent. */
uint64_t *hash_get(const struct hash *h, uint64_t a, uint64_t b);
/* Returns the address of the value, which is 0 for a new key. NULL: out of memory. */
uint64_t *hash_put(struct hash *h, uint64_t a, uint64_t b);
/* Removes a key. Returns true and the value in *val if it was there. */
int hash_del(struct hash *h, uint64_t a, uint64_t b, uint64_t *val);
/* Iterates in no particular order: start with *pos = 0. Returns NULL at the end. */
struct hash_entry *hash_next(const struct hash *h, size_t *pos);
void hash_clear(struct hash *h);
/* Copies all entries into an empty table, which then iterates in the same order. Returns 0 or -ENOMEM. */
int hash_copy(struct hash *to, const struct hash *from);
void hash_fini(struct hash *h);

/* A text as a key: the FNV-1a hash of its len bytes from a seed, folded. NULL is legal with len 0. */
#define HASH_SEED 0xcbf29ce484222325ull
uint64_t hash_text(uint64_t seed, const char *text, size_t len);

#endif
