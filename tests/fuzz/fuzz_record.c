// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a recording: opened, folded, walked twice. CRCs are made right first, or nothing would pass them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "mxbpf_file.h"
#include "record/record.h"

#define SLOT_BYTES (64u << 10) /* the smallest a reader takes, so that inputs of some hundred bytes reach every slot */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct rec_reader *r)
{
	struct snk_source *src = rec_reader_source(r);
	const struct mxbpf_rec *rec;
	const void *recs;
	size_t bytes, pos;
	bool bad;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		if (src->rewind(src->ctx))
			return;
		while (src->next(src->ctx, &recs, &bytes) == 1) {
			pos = 0;
			while ((rec = mdl_next_rec(recs, bytes, &pos, &bad)))
				;
			if (bad)
				abort();
		}
	}
}

/* Sums up the chunks that stand one behind the other from off. */
static void seal_chunks(uint8_t *file, size_t size, size_t off)
{
	struct mxbpf_chunk c;

	while (off + sizeof(c) <= size) {
		memcpy(&c, file + off, sizeof(c));
		if (c.magic != MXBPF_CHUNK_MAGIC || c.payload_bytes > size - off - sizeof(c))
			return;
		c.crc = 0;
		c.crc = (__u32)crc32(0, (const Bytef *)&c, sizeof(c));
		if (c.payload_bytes)
			c.crc = (__u32)crc32(c.crc, file + off + sizeof(c), c.payload_bytes);
		memcpy(file + off, &c, sizeof(c));
		off += sizeof(c) + c.payload_bytes;
	}
}

/*
 * Input: [flags, 1][header][pieces: place 1, length 2 (in 8 bytes), bytes]. A piece goes to a slot or behind the meta. So the
 * zeros between cost the fuzzer nothing.
 */
static size_t make_file(const uint8_t *data, size_t size, uint8_t *file, size_t cap)
{
	struct mxbpf_file_header h = { .major = 1, .header_bytes = sizeof(h), .slot_bytes = SLOT_BYTES };
	size_t end = 0, fill[8] = { sizeof(h) }, at, len;
	uint8_t seal = *data, place;

	memset(file, 0, cap);
	memcpy(h.magic, MXBPF_FILE_MAGIC, 8);
	h.slots_off = SLOT_BYTES;
	h.flags = seal & 1;
	h.end_off = (1 + (seal >> 1 & 3)) * SLOT_BYTES;
	for (data++, size--; size > 3; data += len, size -= len) {
		place = data[0] & 7;
		len = (size_t)(data[1] | data[2] << 8) % 4096 * 8;
		data += 3;
		size -= 3;
		len = len < size ? len : size;
		at = place * SLOT_BYTES + fill[place];
		if (at + len > cap)
			break;
		memcpy(file + at, data, len);
		fill[place] += len;
		end = at + len > end ? at + len : end;
	}
	h.crc = (__u32)crc32(0, (const Bytef *)&h, offsetof(struct mxbpf_file_header, crc));
	memcpy(file, &h, sizeof(h));
	for (place = 0; place < 8 && !(seal & 0x80); place++)
		seal_chunks(file, end, place * SLOT_BYTES + (place ? 0 : sizeof(h)));
	return end > sizeof(h) ? end : sizeof(h);
}

static void try_file(const void *file, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct err e = { 0 };
	struct rec_reader *r;
	struct mdl *m;

	if (fd < 0 || write(fd, file, size) != (ssize_t)size)
		abort();
	if (!rec_reader_open(fd, &r, &e)) {
		m = mdl_new();
		rec_reader_model(r, m, &e);
		mdl_free(m);
		walk(r);
	} else if (!e.code || !*e.why) {
		abort();
	}
	rec_reader_close(r);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[9 * SLOT_BYTES];

	if (!size)
		return 0;
	try_file(data, size);
	try_file(file, make_file(data, size, file, sizeof(file)));
	return 0;
}
