// SPDX-License-Identifier: Apache-2.0
#include "elf/cursor.h"

#include <errno.h>
#include <string.h>

#include "elf/image.h"

#define PE_FORM	    0x0f
#define PE_RELATIVE 0x70
#define PE_PCREL    0x10
#define PE_INDIRECT 0x80
#define PE_ULEB	    0x01
#define PE_SLEB	    0x09

void cursor_init(struct cursor *c, const struct elf *f, uint64_t va, uint64_t end_va)
{
	c->f = f;
	c->va = va;
	c->end_va = end_va;
	c->err = 0;
	c->held = 0;
	c->held_va = va;
}

static int cursor_fail(struct cursor *c, int err)
{
	if (!c->err)
		c->err = err == -ENOENT || err == -ENODATA ? -EBADMSG : err;
	c->va = c->end_va;
	return c->err;
}

static int cursor_hold(struct cursor *c, unsigned n)
{
	const struct elf_load *l = elf_load_at(c->f, c->va, n);
	uint64_t left;
	int err;

	if (!l || c->va > c->end_va || n > c->end_va - c->va)
		return cursor_fail(c, -EBADMSG);
	left = l->bytes - (c->va - l->va);
	if (left > c->end_va - c->va)
		left = c->end_va - c->va;
	c->held = left < sizeof(c->bytes) ? (size_t)left : sizeof(c->bytes);
	c->held_va = c->va;
	err = elf_pread_kept(c->f, l->off + (c->va - l->va), c->bytes, c->held);
	if (err)
		c->held = 0;
	return err ? cursor_fail(c, err) : 0;
}

uint64_t cursor_u(struct cursor *c, unsigned n)
{
	uint64_t v = 0, at = c->va - c->held_va;

	if (c->err)
		return 0;
	if (at > c->held || n > c->held - at) {
		if (cursor_hold(c, n))
			return 0;
		at = 0;
	}
	memcpy(&v, c->bytes + at, n);
	c->va += n;
	return v;
}

uint64_t cursor_uleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = cursor_u(c, 1);

		v |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	cursor_fail(c, -EBADMSG);
	return 0;
}

int64_t cursor_sleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = cursor_u(c, 1);

		v |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift + 7 < 64)
			v |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)v;
	}
	cursor_fail(c, -EBADMSG);
	return 0;
}

void cursor_skip(struct cursor *c, uint64_t n)
{
	if (c->va > c->end_va || n > c->end_va - c->va)
		cursor_fail(c, -EBADMSG);
	else
		c->va += n;
}

static uint64_t sign_extended(uint64_t v, unsigned bytes)
{
	unsigned shift = 64 - 8 * bytes;

	return (uint64_t)((int64_t)(v << shift) >> shift);
}

uint64_t cursor_ptr(struct cursor *c, uint8_t enc)
{
	/* absptr, uleb, udata2, 4, 8, -, -, -, signed, sleb, sdata2, 4, 8 */
	static const uint8_t bytes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8};
	uint64_t at = c->va, v = 0;
	uint8_t form = enc & PE_FORM;

	if (form == PE_ULEB)
		v = cursor_uleb(c);
	else if (form == PE_SLEB)
		v = (uint64_t)cursor_sleb(c);
	else if (bytes[form])
		v = cursor_u(c, bytes[form]);
	else
		cursor_fail(c, -EBADMSG);
	if (form > PE_SLEB && bytes[form])
		v = sign_extended(v, bytes[form]);
	/* Pointers relative to text, data or a function do not occur on x86-64. */
	if ((enc & PE_RELATIVE) && (enc & PE_RELATIVE) != PE_PCREL)
		cursor_fail(c, -EBADMSG);
	if (c->err || !v)
		return 0;
	if (enc & PE_PCREL)
		v += at;
	if (enc & PE_INDIRECT && elf_read_va(c->f, v, &v, sizeof(v)))
		cursor_fail(c, -EBADMSG);
	return c->err ? 0 : v;
}
