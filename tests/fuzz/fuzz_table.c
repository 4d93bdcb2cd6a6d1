// SPDX-License-Identifier: Apache-2.0
/*
 * Reads any bytes as a record of a table: checks it, walks its ids and times, and folds it. What the model then emits
 * must be valid, and must give the same records again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "mxbpf_table.h"
#include "records/kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void emit(const void *recs, size_t bytes, struct buf *out)
{
	struct mdl *m = mdl_new();

	if (!m || mdl_feed(m, recs, bytes) || mdl_emit(m, out) || kind_check(out->data, out->len))
		abort();
	mdl_free(m);
}

/* The records are the end of the memory. */
static struct mxbpf_rec *record_of(const uint8_t *data, size_t size)
{
	struct mxbpf_rec *r;

	size = size < UINT16_MAX ? size & ~7ull : UINT16_MAX & ~7u;
	r = size < sizeof(struct mxbpf_table) ? NULL : malloc(size);
	if (!r)
		return NULL;
	memcpy(r, data, size);
	r->kind = MXBPF_TABLE;
	r->size = (uint16_t)size;
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mxbpf_rec *r = record_of(data, size);
	struct kind_id_walk id = {0};
	struct buf once = {0}, again = {0};

	if (r && !kind_check(r, r->size)) {
		while (kind_next_id(r, &id))
			if (id.off + sizeof(uint64_t) > r->size)
				abort();
		kind_shift_times(r, 1ull << 40);
		emit(r, r->size, &once);
		emit(once.data, once.len, &again);
		if (once.len != again.len || memcmp(once.data, again.data, once.len))
			abort();
	}
	buf_fini(&once);
	buf_fini(&again);
	free(r);
	return 0;
}
