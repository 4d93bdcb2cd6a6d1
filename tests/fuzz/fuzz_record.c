// SPDX-License-Identifier: Apache-2.0
/*
 * Reads any bytes as a recording: opens, folds and walks it twice. Each input is tried unchanged and as chunks with
 * valid CRCs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "mxbpf_file.h"
#include "record/record.h"

/* The smallest size that a reader accepts, so that inputs of some hundred bytes reach every slot. */
#define SLOT_BYTES (64u << 10)
#define NPLACES	   6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte of every record, in a copy whose end is the end of the memory. */
static void read_all(const void *recs, size_t bytes)
{
	static uint8_t sink[UINT16_MAX + 1];
	void *copy = malloc(bytes ? bytes : 1);
	const struct mxbpf_rec *rec;
	size_t pos = 0;
	bool bad;

	if (!copy)
		return;
	memcpy(copy, recs, bytes);
	while ((rec = kind_check_next(copy, bytes, &pos, &bad)))
		memcpy(sink, rec, rec->size);
	if (bad)
		abort();
	free(copy);
}

static void walk(struct rec_reader *r)
{
	struct view_source *src = rec_reader_source(r);
	const void *recs;
	size_t bytes;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		if (src->rewind(src->ctx))
			return;
		while (src->next(src->ctx, &recs, &bytes) == 1)
			read_all(recs, bytes);
	}
}

/* Writes one chunk with a valid CRC; kind, seq and payload come from the input. Returns its size in bytes. */
static size_t put_chunk(uint8_t *at, uint8_t kind, uint8_t seq, const uint8_t *payload, size_t len)
{
	struct mxbpf_chunk c = {.magic = MXBPF_CHUNK_MAGIC, .kind = kind, .seq = seq};

	c.payload_bytes = (__u32)(len + 7) & ~7u;
	memcpy(at + sizeof(c), payload, len);
	c.crc = (__u32)crc32(0, (const Bytef *)&c, sizeof(c));
	if (len)
		c.crc = (__u32)crc32(c.crc, at + sizeof(c), c.payload_bytes);
	memcpy(at, &c, sizeof(c));
	return sizeof(c) + c.payload_bytes;
}

/*
 * Makes a file from the input: flags, then pieces {place, kind, seq, payload / 8, payload}. Place 0 is after the
 * header; other places are slots or the end. With bit 7 of place, the piece damages one byte instead. The fuzzer needs
 * no input for the zeros between the pieces.
 */
static size_t make_file(const uint8_t *data, size_t size, uint8_t *file)
{
	struct mxbpf_file_header h = {.major = 1, .header_bytes = sizeof(h), .slot_bytes = SLOT_BYTES};
	size_t end = sizeof(h), fill[NPLACES] = {sizeof(h)}, at, len;
	unsigned place, flags = *data;

	memset(file, 0, NPLACES * SLOT_BYTES);
	memcpy(h.magic, MXBPF_FILE_MAGIC, 8);
	h.slots_off = SLOT_BYTES;
	h.flags = flags & 1;
	h.end_off = (1 + (flags >> 1 & 3)) * SLOT_BYTES;
	h.crc = (__u32)crc32(0, (const Bytef *)&h, offsetof(struct mxbpf_file_header, crc));
	memcpy(file, &h, sizeof(h));
	if (!(flags & 8))
		fill[0] += put_chunk(file + fill[0], MXBPF_CHUNK_META, 0, (const uint8_t *)"{}", 2);
	for (data++, size--; size > 4; data += len, size -= len) {
		place = data[0] % NPLACES;
		at = place * SLOT_BYTES + fill[place];
		len = data[3] * 8u;
		if (data[0] & 0x80)
			file[place * SLOT_BYTES + (data[1] | data[2] << 8)] ^= data[3];
		data += 4;
		size -= 4;
		len = data[-4] & 0x80 ? 0 : len < size ? len : size;
		if (data[-4] & 0x80 || fill[place] + sizeof(struct mxbpf_chunk) + len + 8 > SLOT_BYTES)
			continue;
		fill[place] += put_chunk(file + at, data[-3], data[-2], data, len);
		end = place * SLOT_BYTES + fill[place] > end ? place * SLOT_BYTES + fill[place] : end;
	}
	return end > fill[0] ? end - (flags >> 4) : fill[0];
}

static void try_file(const void *file, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct err e = {0};
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
	static uint8_t file[NPLACES * SLOT_BYTES];

	if (!size)
		return 0;
	try_file(data, size);
	try_file(file, make_file(data, size, file));
	return 0;
}
