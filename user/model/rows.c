// SPDX-License-Identifier: Apache-2.0
/* Rows that are found by two words. */
#include "model/priv.h"

#include <stdlib.h>
#include <string.h>

void *mdl_row_put(struct hash *index, struct buf *rows, uint64_t a, uint64_t b, size_t bytes, bool *added)
{
	uint64_t *at = hash_put(index, a, b);
	void *r;

	*added = false;
	if (!at || *at)
		return at ? (void *)(uintptr_t)*at : NULL;
	r = calloc(1, bytes);
	if (!r || buf_put(rows, &r, sizeof(r))) {
		free(r);
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
