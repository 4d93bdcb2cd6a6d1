/* SPDX-License-Identifier: Apache-2.0 */
/* Makes records by hand and feeds them to a model. */
#ifndef RECORDS_H
#define RECORDS_H

#include "model/model.h"
#include "unit.h"

static inline void put_name(struct buf *b, uint64_t id, enum mxbpf_name_kind kind, const char *text)
{
	char rec[256] = {0};
	struct mxbpf_name *n = (void *)rec;

	n->len = (uint32_t)strlen(text);
	n->h = (struct mxbpf_rec){MXBPF_NAME, (uint16_t)(sizeof(*n) + (n->len + 7) / 8 * 8), 77, 0};
	n->id = id;
	n->kind = kind;
	memcpy(n->text, text, n->len);
	buf_put(b, rec, n->h.size);
}

/* Appends a record whose other members are 0. Returns it until the next one is appended. */
static inline void *put_rec(struct buf *b, unsigned kind, size_t bytes, uint32_t tgid, uint64_t ts_ns)
{
	struct mxbpf_rec *r = buf_add(b, bytes);

	memset(r, 0, bytes);
	*r = (struct mxbpf_rec){(uint16_t)kind, (uint16_t)bytes, tgid, ts_ns};
	return r;
}

/* Feeds the records in b as one window and empties b. */
static inline int feed(struct mdl *m, struct buf *b)
{
	int err = mdl_feed(m, b->data, b->len);

	b->len = 0;
	return err;
}

#endif
