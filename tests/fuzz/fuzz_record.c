// SPDX-License-Identifier: Apache-2.0
/*
 * Reads any bytes as a recording: opens, folds, walks it twice, verifies it, cuts its end off as a recording of its
 * own, and merges it with itself as of another host. Each input is tried unchanged and as chunks with valid CRCs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "mxbpf_file.h"
#include "record/record.h"
#include "records/kinds.h"

/* The smallest size that a reader accepts, so that inputs of some hundred bytes reach every slot. */
#define SLOT_BYTES (64u << 10)
#define NPLACES	   6
#define MERGED_MAX 3000 /* bytes of an input, because a merge folds all of it four times */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every id, thread, track and time of a record, which sources, models and merges look for by the tables of kinds. */
static void read_fields(struct mxbpf_rec *r)
{
	struct kind_id_walk w = {0};
	struct mxbpf_span span;
	struct kind_track track;
	unsigned i;

	while (kind_next_id(r, &w))
		;
	for (i = 0; i < KIND_THREADS_MAX + 1; i++)
		kind_thread(r, i);
	kind_track(r, &track);
	kind_sent(r, r->size);
	if (r->kind == MXBPF_SPAN)
		kind_span(r, &span);
	if (r->kind == MXBPF_ACTIVITY)
		kind_activity(r);
	if (r->kind == MXBPF_LAUNCH)
		kind_launch(r);
	kind_shift_times(r, 1ull << 40);
}

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
	if (bytes)
		memcpy(copy, recs, bytes);
	while ((rec = kind_check_next(copy, bytes, &pos, &bad))) {
		memcpy(sink, rec, rec->size);
		read_fields((struct mxbpf_rec *)(uintptr_t)rec);
	}
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

static int memory_file(const void *file, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, file, size) != (ssize_t)size)
		abort();
	return fd;
}

static struct rec_reader *open_again(int fd)
{
	struct rec_reader *r;

	return rec_reader_open(fd, &r, NULL) ? NULL : r;
}

static void fold(struct rec_reader *r, bool events)
{
	struct mdl *m = mdl_new();
	struct err e = {0};

	if (!m || ((events ? rec_reader_events : rec_reader_model)(r, m, &e) && !e.why[0]))
		abort();
	mdl_free(m);
}

/* Copies a part of the recording. The copy must be a recording, too. */
static void cut(struct rec_reader *r)
{
	int fd = memfd_create("cut", MFD_CLOEXEC), copy = dup(fd);
	struct rec_reader *tail;
	struct err e = {0};

	if (fd < 0 || copy < 0)
		abort();
	if (!rec_write_tail(r, 1000, copy, &e)) {
		tail = open_again(fd);
		if (!tail)
			abort();
		rec_reader_close(tail);
	}
	close(fd);
}

/* Two recordings become one, unless they are of the same process or too different. */
static void merge(int fd, int other)
{
	struct rec_reader *parts[2] = {open_again(fd), open_again(other)}, *r;
	struct err e = {0};

	if (!parts[0] || !parts[1]) {
		rec_reader_close(parts[0]);
		rec_reader_close(parts[1]);
		return;
	}
	if (rec_reader_merge(parts, 2, &r, &e)) {
		if (!e.why[0] || r)
			abort();
		return;
	}
	fold(r, false);
	walk(r);
	rec_reader_error(r);
	rec_reader_close(r);
}

static void try_file(const void *file, size_t size)
{
	const int fd = memory_file(file, size);
	struct err e = {0};
	struct rec_reader *r;

	if (!rec_reader_open(fd, &r, &e)) {
		fold(r, false);
		walk(r);
		if (!rec_reader_error(r)->code) {
			fold(r, true);
			cut(r);
		}
		rec_reader_close(r);
		r = open_again(fd);
		if (r && rec_reader_verify(r) && !rec_reader_damage(r)->why[0])
			abort();
	} else if (!e.code || !*e.why) {
		abort();
	}
	rec_reader_close(r);
	close(fd);
}

static void try_merge(uint8_t *file, size_t size)
{
	static const char other[] =
		"{\"hostname\":\"b\",\"pid\":2,\"start_unix_ns\":\"5\",\"class_title\":[null,\"a\"],\"notes\":[{"
		"\"name\":\"n\"}],"
		"\"probes\":[{\"name\":\"p\",\"status\":\"refused\"}],\"fallbacks\":[{\"name\":\"f\"},{}],\"gaps\":[{"
		"\"pid\":2},{}],"
		"\"sources\":[{\"name\":\"s\"},{},{\"name\":\"s\"}],\"processes\":[{\"pid\":2}],\"labels\":[{\"pid\":2}"
		"],"
		"\"cost\":1,\"cost.scale\":5,\"cost.added_ns\":\"9\",\"api_left\":3,\"follow_lag_ns\":\"4\"}";
	const int fd = memory_file(file, size);
	int changed;

	put_chunk(file + sizeof(struct mxbpf_file_header), MXBPF_CHUNK_META, 0, (const uint8_t *)other, strlen(other));
	changed = memory_file(file, size);
	merge(fd, changed);
	merge(changed, fd);
	close(fd);
	close(changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[NPLACES * SLOT_BYTES];
	size_t bytes;

	if (!size)
		return 0;
	try_file(data, size);
	bytes = make_file(data, size, file);
	try_file(file, bytes);
	if (size < MERGED_MAX)
		try_merge(file, bytes);
	return 0;
}
