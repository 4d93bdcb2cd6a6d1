/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes messages of protobuf: numbers, texts, and messages within messages. The wire format needs no library: a field
 * is a tag and a number, or a tag, a length and bytes. A message that is empty again keeps its memory.
 */
#ifndef BASE_PROTO_H
#define BASE_PROTO_H

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

#define PROTO_FIELD_BYTES 16 /* the most that a number and its tag need */

/* Zero-initialise it, and call proto_fini() at the end. */
struct proto {
	struct buf b; /* b.len bytes are written */
	bool failed;  /* there was no memory; what is written is incomplete */
};

/* Returns room for at least n bytes behind those written, or NULL. */
char *proto_room_slow(struct proto *p, size_t n);

static inline char *proto_room(struct proto *p, size_t n)
{
	return p->b.cap - p->b.len >= n ? p->b.data + p->b.len : proto_room_slow(p, n);
}

static inline char *proto_put_varint(char *to, uint64_t v)
{
	for (; v > 127; v >>= 7)
		*to++ = (char)(v | 128);
	*to++ = (char)v;
	return to;
}

/* A number without a sign, a truth value or a constant. Cast a signed number: protobuf extends it to 64 bits. */
static inline void proto_u64(struct proto *p, unsigned field, uint64_t v)
{
	char *to = proto_room(p, PROTO_FIELD_BYTES);

	if (to)
		p->b.len = (size_t)(proto_put_varint(proto_put_varint(to, field << 3), v) - p->b.data);
}

void proto_fixed64(struct proto *p, unsigned field, uint64_t v);
void proto_double(struct proto *p, unsigned field, double v);
/* Text or a whole message. Text must be valid UTF-8. */
void proto_bytes(struct proto *p, unsigned field, const void *data, size_t len);

/* Begins a message within the message. Returns a handle for proto_end(). */
static inline size_t proto_begin(struct proto *p, unsigned field)
{
	char *to = proto_room(p, PROTO_FIELD_BYTES);

	if (!to)
		return 0;
	to = proto_put_varint(to, field << 3 | 2);
	p->b.len = (size_t)(to + 1 - p->b.data); /* one byte for the length, which is usual */
	return p->b.len;
}

/* Makes room for a length of more than one byte. */
void proto_end_long(struct proto *p, size_t begun);

static inline void proto_end(struct proto *p, size_t begun)
{
	const size_t len = p->b.len - begun;

	if (p->failed)
		return;
	if (len < 128)
		p->b.data[begun - 1] = (char)len;
	else
		proto_end_long(p, begun);
}

/* Empties a message. */
static inline void proto_reset(struct proto *p)
{
	p->b.len = 0;
}

void proto_fini(struct proto *p);

#endif
