/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results that are expensive to compute, in a file of root's: $XDG_CACHE_HOME/mxbpf, or /var/cache/mxbpf. A file counts
 * only if root owns it and its folder, nobody else may write there, it is complete, and it was written by this program
 * for the same subject. Otherwise it is as if there were none. The caller checks what it reads against the subject.
 */
#ifndef BASE_CACHE_H
#define BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

#define CACHE_KEY_BYTES	 128
#define CACHE_FILE_BYTES (16u << 20) /* limit of a file */
#define CACHE_FILES	 16	     /* limit of files in the folder; the oldest is deleted */

struct cache {
	struct buf items; /* a header, and then items one after another */
	struct hash index;
	size_t stored; /* length of `items` when it was read */
	int dirfd;     /* owned; -1: no folder, so nothing is read or written */
	char name[64];
	char said[96]; /* why there is no folder or no file, or what was read, for people */
};

/*
 * Opens the cache of a subject. The key identifies its contents, and begins with a text that the file's name gets. It
 * has at most CACHE_KEY_BYTES. Call cache_close() in any case.
 */
void cache_open(struct cache *c, const char *name, const void *key, size_t n);
/* Returns the data of an item and its length, borrowed until the next cache_put(), or NULL if there is no such item. */
const void *cache_get(const struct cache *c, unsigned kind, uint64_t id, size_t *n);
/* Adds an item, or replaces one. Without memory or room the item is not kept. */
void cache_put(struct cache *c, unsigned kind, uint64_t id, const void *data, size_t n);
/* Forgets all items. The next file has only those that are put from now on. */
void cache_forget(struct cache *c);
/* Writes the file if an item was added. A failure is no error. */
void cache_close(struct cache *c);

#endif
