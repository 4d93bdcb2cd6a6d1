// SPDX-License-Identifier: Apache-2.0
#include "base/proto.h"

char *proto_room_slow(struct proto *p, size_t n)
{
	if (p->failed || !buf_add(&p->b, n)) {
		p->failed = true;
		return NULL;
	}
	p->b.len -= n;
	return p->b.data + p->b.len;
}

void proto_fixed64(struct proto *p, unsigned field, uint64_t v)
{
	char *to = proto_room(p, PROTO_FIELD_BYTES);
	unsigned i;

	if (!to)
		return;
	to = proto_put_varint(to, field << 3 | 1);
	for (i = 0; i < 8; i++)
		*to++ = (char)(v >> 8 * i);
	p->b.len = (size_t)(to - p->b.data);
}

void proto_double(struct proto *p, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	proto_fixed64(p, field, bits);
}

void proto_bytes(struct proto *p, unsigned field, const void *data, size_t len)
{
	char *to = proto_room(p, PROTO_FIELD_BYTES + len);

	if (!to)
		return;
	to = proto_put_varint(proto_put_varint(to, field << 3 | 2), len);
	if (len)
		memcpy(to, data, len);
	p->b.len = (size_t)(to + len - p->b.data);
}

void proto_end_long(struct proto *p, size_t begun)
{
	const size_t len = p->b.len - begun;
	char text[PROTO_FIELD_BYTES];
	const size_t n = (size_t)(proto_put_varint(text, len) - text);

	if (!proto_room(p, n))
		return;
	memmove(p->b.data + begun - 1 + n, p->b.data + begun, len);
	memcpy(p->b.data + begun - 1, text, n);
	p->b.len += n - 1;
}

void proto_fini(struct proto *p)
{
	buf_fini(&p->b);
}
