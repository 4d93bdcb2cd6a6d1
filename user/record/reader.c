// SPDX-License-Identifier: Apache-2.0
/*
 * Reads with pread() only, because a mapping would raise SIGBUS if the file were cut meanwhile. It keeps one chunk in
 * memory and trusts only data covered by a CRC. A complete file must hold every sequence number from the first slot to
 * the end chunks. For any other file, the result of a scan is all there is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"
#include "mxbpf_file.h"
#include "record/format.h"
#include "record/record.h"
#include "records/old.h"

struct slot {
	uint64_t off, end_off; /* end_off is after the last good chunk */
	uint64_t first_seq, last_seq;
};

struct rec_reader {
	int fd;
	uint64_t size;
	int64_t allowed; /* bytes on the disk, see mem_allow() */
	struct mxbpf_file_header h;
	struct mdl_session session;
	bool complete;
	uint64_t end_seq;  /* number of the first end chunk, if complete */
	struct buf slots;  /* struct slot, by first_seq */
	uint64_t bad_off;  /* complete file: first slot without a chunk; 0: none */
	uint64_t last_seq; /* newest chunk that a scan found */
	uint64_t last_ns;  /* latest end of a record in that chunk */

	struct mxbpf_chunk c;	 /* the chunk that was read last; its payload is in `payload` */
	struct buf payload, raw; /* raw: as it was in the file, if an earlier version wrote it */

	struct view_source source;
	bool indexed;
	size_t at_slot;
	uint64_t at_off, at_seq; /* next chunk; at_seq 0: any */
	struct err why;		 /* why the source failed */
	struct err damage;	 /* damage that leaves readable parts */
	struct rec_merge *merge; /* owned, for a reader of a merge; NULL: it is a file */
};

/* Parts of a file, and what remains readable without each of them. */
#define IN_HEADER "in its header; nothing of it can be read"
#define IN_META	  "in the description of its session; nothing of it can be read"
#define IN_END	  "in its tables, which are made again from its events, without the final loss counts of the session"
#define IN_STATS  "in its tables, and it has no events; nothing of it can be read"
#define IN_EVENTS "among its events; mxbpf report can print its tables, but traces and --by event need all events"
#define IN_CUT	  "among its events, and it has no tables, because its session did not end; nothing of it can be read"

static int damaged(struct err *e, uint64_t off, const char *where)
{
	return err_set(e, ERR_RUNTIME, -EBADMSG, "damaged at offset %llu, %s", (unsigned long long)off, where);
}

/* ---- chunks */

/* Reads n bytes at off. Returns -ENODATA if the file ends before. */
static int read_at(struct rec_reader *r, void *dst, size_t n, uint64_t off)
{
	ssize_t done;

	while (n) {
		done = pread(r->fd, dst, n, (off_t)off);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENODATA;
		dst = (char *)dst + done;
		off += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

/*
 * Reads the chunk header at off; its space ends at limit_off. Returns 1 if it is plausible; 0 for zeros, no space or
 * the end of the file; -ENODATA if the end of the file cuts it; -EBADMSG if it is no chunk.
 */
static int read_head(struct rec_reader *r, uint64_t off, uint64_t limit_off)
{
	uint64_t left = off < r->size ? r->size - off : 0;
	int ret;

	memset(&r->c, 0, sizeof(r->c));
	if (!left || limit_off < off || limit_off - off < sizeof(r->c))
		return 0;
	ret = read_at(r, &r->c, left < sizeof(r->c) ? left : sizeof(r->c), off);
	if (ret)
		return ret;
	if (!r->c.magic)
		return 0;
	if (left < sizeof(r->c))
		return -ENODATA;
	if (r->c.magic != MXBPF_CHUNK_MAGIC || r->c.payload_bytes % 8 || r->c.payload_bytes > REC_META_MAX_BYTES ||
	    r->c.payload_bytes > limit_off - off - sizeof(r->c))
		return -EBADMSG;
	return r->c.payload_bytes > left - sizeof(r->c) ? -ENODATA : 1;
}

static bool is_of_earlier(const struct mxbpf_file_header *h)
{
	return (h->major << 16 | h->minor) < (MXBPF_FILE_MAJOR << 16 | MXBPF_FILE_MINOR);
}

/* Makes the records of a chunk those of this version. Returns 1, -ENOMEM or -EBADMSG. */
static int take_records(struct rec_reader *r)
{
	const struct buf raw = r->payload;
	int err;

	if (!is_of_earlier(&r->h) || (r->c.kind != MXBPF_CHUNK_DATA && r->c.kind != MXBPF_CHUNK_AGG))
		return 1;
	r->payload = r->raw;
	r->raw = raw;
	r->payload.len = 0;
	err = old_convert(r->raw.data, r->raw.len, &r->payload);
	return err ? err : 1;
}

static int read_chunk(struct rec_reader *r, uint64_t off, uint64_t limit_off)
{
	int ret = read_head(r, off, limit_off);
	uint32_t crc = r->c.crc;
	uLong sum;

	if (ret != 1)
		return ret;
	r->payload.len = 0;
	if (!buf_add(&r->payload, r->c.payload_bytes))
		return -ENOMEM;
	ret = read_at(r, r->payload.data, r->payload.len, off + sizeof(r->c));
	if (ret)
		return ret;
	r->c.crc = 0;
	sum = crc32(0, (const Bytef *)&r->c, sizeof(r->c));
	if (r->payload.len)
		sum = crc32(sum, (const Bytef *)r->payload.data, (uInt)r->payload.len);
	return sum == crc ? take_records(r) : -EBADMSG;
}

static uint64_t chunk_end(const struct rec_reader *r, uint64_t off)
{
	return off + sizeof(r->c) + r->c.payload_bytes;
}

/* Returns true if the payload consists of valid records. *last_ns rises to their latest end. */
static bool good_records(const struct rec_reader *r, uint64_t *last_ns)
{
	const struct mxbpf_rec *rec;
	bool bad = false;
	size_t pos = 0;

	while ((rec = kind_check_next(r->payload.data, r->payload.len, &pos, &bad)))
		if (kind_end_ns(rec) > *last_ns)
			*last_ns = kind_end_ns(rec);
	return !bad;
}

/* ---- header, metadata, end chunks */

static int read_header(struct rec_reader *r, struct err *e)
{
	struct mxbpf_file_header *h = &r->h;
	size_t have = r->size < sizeof(*h) ? r->size : sizeof(*h);
	int ret = read_at(r, h, have, 0);

	if (ret)
		return err_set(e, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret));
	if (!have || memcmp(h->magic, MXBPF_FILE_MAGIC, have < sizeof(h->magic) ? have : sizeof(h->magic)))
		return err_set(e, ERR_RUNTIME, -EINVAL, "not an mxbpf recording");
	if (have < sizeof(*h))
		return err_set(e, ERR_RUNTIME, -ENODATA, "cut before its first record, at offset %llu",
			       (unsigned long long)r->size);
	if (h->major > MXBPF_FILE_MAJOR)
		return err_set(e, ERR_RUNTIME, -EPROTONOSUPPORT, "written by a newer mxbpf (format %u.%u)", h->major,
			       h->minor);
	if (h->crc != crc32(0, (const Bytef *)h, offsetof(struct mxbpf_file_header, crc)))
		return damaged(e, 0, IN_HEADER);
	if (h->header_bytes < sizeof(*h) || h->slot_bytes < REC_SLOT_MIN_BYTES || h->slot_bytes > REC_SLOT_MAX_BYTES ||
	    h->slot_bytes % 8 || h->slots_off % h->slot_bytes || h->slots_off > 2 * REC_META_MAX_BYTES)
		return damaged(e, 0, IN_HEADER);
	return 0;
}

/* Sets e: the chunk is damaged, or `ret` says why it could not be read. In the second case the file may be intact. */
static int bad_chunk(int ret, struct err *e, uint64_t off, const char *where)
{
	if (ret < 0 && ret != -EBADMSG && ret != -ENODATA)
		return err_set(e, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret));
	return damaged(e, off, where);
}

/* Makes the META chunk at off the session. */
static int take_meta(struct rec_reader *r, uint64_t off, const char *where, struct err *e)
{
	size_t len = strnlen(r->payload.data, r->payload.len);
	int ret;

	mdl_session_fini(&r->session);
	ret = rec_meta_read(r->payload.data, len, &r->session, NULL);
	if (ret == -ENOMEM)
		return err_set(e, ERR_RUNTIME, ret, "out of memory");
	return ret ? damaged(e, off, where) : 0;
}

static int read_first_meta(struct rec_reader *r, struct err *e)
{
	uint64_t off = r->h.header_bytes;
	int ret = read_chunk(r, off, r->h.slots_off);

	if (ret == -ENODATA || (!ret && off + sizeof(r->c) > r->size))
		return err_set(e, ERR_RUNTIME, -ENODATA, "cut before its first record, at offset %llu",
			       (unsigned long long)r->size);
	if (ret != 1 || r->c.kind != MXBPF_CHUNK_META)
		return bad_chunk(ret, e, off, IN_META);
	return take_meta(r, off, IN_META, e);
}

/*
 * Reads the end chunks: AGG..., META, END. Returns -ENODATA if the file was cut there or before. Replaces the session
 * only after it has seen the END.
 */
static int read_end(struct rec_reader *r, struct err *e)
{
	uint64_t off = r->h.end_off, meta_off = 0, seq = 0, last_ns = 0;
	bool good;
	int ret;

	if (off < r->h.slots_off || (off - r->h.slots_off) % r->h.slot_bytes)
		return damaged(e, 0, IN_HEADER);
	for (;; off = chunk_end(r, off)) {
		ret = read_chunk(r, off, UINT64_MAX);
		if (ret == -ENODATA || (!ret && off + sizeof(r->c) > r->size))
			return -ENODATA;
		good = ret == 1 && (!seq || r->c.seq == seq);
		if (off == r->h.end_off)
			r->end_seq = r->c.seq;
		seq = r->c.seq + 1;
		if (good && r->c.kind == MXBPF_CHUNK_END && meta_off)
			break;
		if (good && r->c.kind == MXBPF_CHUNK_META && !meta_off)
			meta_off = off;
		else if (!good || meta_off || r->c.kind != MXBPF_CHUNK_AGG || !good_records(r, &last_ns))
			return bad_chunk(ret, e, off, IN_END);
	}
	ret = read_chunk(r, meta_off, UINT64_MAX);
	r->complete = ret == 1;
	return ret == 1 ? take_meta(r, meta_off, IN_END, e) : bad_chunk(ret, e, meta_off, IN_END);
}

/* ---- slots */

static int by_seq(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

static void note_chunk(struct rec_reader *r)
{
	r->source.total_bytes += r->c.payload_bytes;
	if (r->c.seq < r->last_seq)
		return;
	r->last_seq = r->c.seq;
	r->session.loss = r->c.loss;
	r->session.cut_records = r->c.dropped;
}

/* A place in a slot that has bytes but no good chunk. */
struct bad {
	uint64_t off;
	uint64_t prev_seq; /* number of the good chunk before it in the slot; 0: none */
	uint64_t seq;	   /* the number in its own header */
	uint64_t next_seq; /* number of the good chunk after it, by its length; 0: none */
};

/*
 * Scans a slot of a file that is not marked complete. It reads and checks each chunk up to the first bad one. Returns 1
 * if this is no slot: then the file's end chunks are there, but the header was not updated.
 */
static int scan_slot(struct rec_reader *r, struct slot *s, struct bad *bad)
{
	uint64_t limit_off = s->off + r->h.slot_bytes;
	int ret;

	for (;;) {
		ret = read_chunk(r, s->end_off, limit_off);
		if (ret == 1 && s->end_off == s->off && r->c.kind != MXBPF_CHUNK_DATA)
			return 1;
		if (ret == 1 && (r->c.kind != MXBPF_CHUNK_DATA || !good_records(r, &r->last_ns)))
			ret = -EBADMSG;
		/* Chunks after the newest one of an overwritten slot are older. */
		if (ret == 1 && s->last_seq && r->c.seq != s->last_seq + 1)
			return 0;
		if (ret != 1)
			break;
		if (!s->first_seq)
			s->first_seq = r->c.seq;
		s->last_seq = r->c.seq;
		s->end_off = chunk_end(r, s->end_off);
		note_chunk(r);
	}
	if (ret != -EBADMSG)
		return ret == -ENODATA ? 0 : ret;
	*bad = (struct bad){.off = s->end_off, .prev_seq = s->last_seq, .seq = r->c.seq};
	if (read_chunk(r, chunk_end(r, s->end_off), limit_off) == 1)
		bad->next_seq = r->c.seq;
	return 0;
}

/* Returns true if chunks are missing between or before those that were found. */
static bool has_gap(const struct rec_reader *r)
{
	const struct slot *s = (const void *)r->slots.data;
	size_t n = buf_count(&r->slots, struct slot), i;

	for (i = 1; i < n; i++)
		if (s[i].first_seq != s[i - 1].last_seq + 1)
			return true;
	return n && s[0].first_seq != 1 && !r->session.cut_records;
}

static int count_slots(const struct rec_reader *r, uint64_t end_off, uint64_t *n, struct err *e)
{
	*n = end_off > r->h.slots_off ? (end_off - r->h.slots_off + r->h.slot_bytes - 1) / r->h.slot_bytes : 0;
	return *n <= REC_SLOTS_MAX ? 0 : err_set(e, ERR_RUNTIME, -EFBIG, "larger than any recording");
}

static void sort_slots(struct rec_reader *r)
{
	if (r->slots.len)
		qsort(r->slots.data, buf_count(&r->slots, struct slot), sizeof(struct slot), by_seq);
}

/*
 * Judges bad chunks. A crash leaves one in the place of the chunk being written: after the newest one, or at the start
 * of a slot with the next number. A bad chunk elsewhere, together with a missing one, is damage.
 */
static int reader_judge(const struct rec_reader *r, const struct buf *bads, struct err *e)
{
	const struct bad *b = (const void *)bads->data;
	size_t i;

	for (i = 0; i < buf_count(bads, struct bad); i++, b++) {
		bool torn = b->prev_seq ? b->prev_seq == r->last_seq : b->seq == r->last_seq + 1;

		if (b->next_seq > r->last_seq || (!torn && has_gap(r)))
			return damaged(e, b->off, IN_CUT);
	}
	return 0;
}

/* Scans a file without an end. If chunks are only missing, the file was cut. */
static int scan(struct rec_reader *r, struct err *e)
{
	struct buf bads = {0};
	uint64_t nslots, i;
	struct slot s;
	struct bad bad;
	/* If the end of a complete file is damaged, the header says where it begins. */
	uint64_t end_off = r->damage.code && r->h.end_off < r->size ? r->h.end_off : r->size;
	int ret = count_slots(r, end_off, &nslots, e);

	for (i = 0; i < nslots && !ret; i++) {
		s = (struct slot){.off = r->h.slots_off + i * r->h.slot_bytes};
		s.end_off = s.off;
		bad.off = 0;
		ret = scan_slot(r, &s, &bad);
		if (!ret && s.first_seq)
			ret = buf_put(&r->slots, &s, sizeof(s));
		if (!ret && bad.off)
			ret = buf_put(&bads, &bad, sizeof(bad));
	}
	if (ret < 0) {
		err_set(e, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret));
	} else {
		sort_slots(r);
		ret = reader_judge(r, &bads, e);
	}
	buf_fini(&bads);
	r->session.incomplete = true;
	r->session.duration_ns = r->last_ns > r->session.start_mono_ns ? r->last_ns - r->session.start_mono_ns : 0;
	r->indexed = true;
	return ret;
}

/* Indexes the slots of a complete file by their headers only. Chunks are checked when they are read. */
static int index_slots(struct rec_reader *r, struct err *e)
{
	uint64_t nslots, i, off, limit_off;
	struct slot s;
	int got, ret = count_slots(r, r->h.end_off, &nslots, e);

	for (i = 0; i < nslots && !ret; i++) {
		off = r->h.slots_off + i * r->h.slot_bytes;
		limit_off = off + r->h.slot_bytes;
		s = (struct slot){.off = off, .end_off = limit_off};
		while ((got = read_head(r, off, limit_off)) == 1) {
			s.first_seq = off == s.off ? r->c.seq : s.first_seq;
			r->source.total_bytes += r->c.payload_bytes;
			off = chunk_end(r, off);
		}
		if (got < 0 && got != -EBADMSG && got != -ENODATA)
			ret = got;
		else if (off != s.off)
			ret = buf_put(&r->slots, &s, sizeof(s));
		else if (!r->bad_off)
			r->bad_off = off;
	}
	sort_slots(r);
	r->indexed = true;
	return ret ? err_set(e, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret)) : 0;
}

/* ---- the source */

static int source_rewind(void *ctx)
{
	struct rec_reader *r = ctx;

	r->at_slot = 0;
	r->at_off = 0;
	r->at_seq = r->complete && !r->session.cut_records ? 1 : 0;
	return r->why.code;
}

/* Handles the end of the last slot. In a complete file, the end chunks have the next numbers. */
static int source_end(struct rec_reader *r)
{
	if (!r->complete || (r->at_seq ? r->at_seq == r->end_seq : !r->bad_off))
		return 0;
	return damaged(&r->why, r->bad_off ? r->bad_off : r->h.end_off, IN_EVENTS);
}

static int source_next(void *ctx, const void **recs, size_t *bytes)
{
	struct rec_reader *r = ctx;
	uint64_t last_ns = 0;
	struct slot *s;
	int ret;

	for (;;) {
		if (r->why.code || r->at_slot == buf_count(&r->slots, struct slot))
			return r->why.code ? r->why.code : source_end(r);
		s = buf_at(&r->slots, struct slot, r->at_slot);
		if (!r->at_off)
			r->at_off = s->off;
		ret = read_chunk(r, r->at_off, s->end_off);
		if (ret)
			break;
		r->at_slot++;
		r->at_off = 0;
	}
	if (ret < 0 && ret != -EBADMSG && ret != -ENODATA)
		return err_set(&r->why, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret));
	if (ret == 1 && r->at_seq && r->c.seq != r->at_seq && r->complete)
		return damaged(&r->why, r->bad_off ? r->bad_off : r->at_off, IN_EVENTS);
	if (ret < 0 || r->c.kind != MXBPF_CHUNK_DATA || !good_records(r, &last_ns))
		return damaged(&r->why, r->at_off, r->complete ? IN_EVENTS : IN_CUT);
	r->at_seq = r->c.seq + 1;
	r->at_off = chunk_end(r, r->at_off);
	*recs = r->payload.data;
	*bytes = r->payload.len;
	return 1;
}

struct view_source *rec_reader_source(struct rec_reader *r)
{
	if (!r->indexed)
		index_slots(r, &r->why);
	r->source.rewind(r->source.ctx);
	return &r->source;
}

const struct err *rec_reader_error(const struct rec_reader *r)
{
	return r->merge ? merge_error(r->merge) : &r->why;
}

struct view_source *rec_reader_borrow(struct rec_reader *r)
{
	return &r->source;
}

int rec_reader_shell(struct rec_merge *g, struct mdl_session *session, const struct view_source *source,
		     struct rec_reader **out, struct err *e)
{
	struct rec_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	r->fd = -1;
	r->merge = g;
	r->session = *session;
	r->source = *source;
	r->indexed = true;
	*out = r;
	return 0;
}

/* ---- public functions */

int rec_reader_open(int fd, struct rec_reader **rp, struct err *e)
{
	struct rec_reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int ret;

	*rp = NULL;
	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	r->source = (struct view_source){.rewind = source_rewind, .next = source_next, .ctx = r};
	r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (r->fd < 0 || fstat(r->fd, &st)) {
		ret = err_set(e, ERR_RUNTIME, -errno, "cannot read it: %s", strerror(errno));
		goto out;
	}
	ret = -EINVAL;
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_RUNTIME, ret, "not an mxbpf recording: it is not a plain file");
		goto out;
	}
	r->size = (uint64_t)st.st_size;
	r->allowed = (int64_t)st.st_blocks * 512; /* a file may have holes of any size */
	mem_allow(r->allowed);
	ret = read_header(r, e);
	if (!ret)
		ret = read_first_meta(r, e);
	if (ret)
		goto out;
	if (r->h.flags & MXBPF_FILE_COMPLETE)
		ret = read_end(r, &r->damage);
	if (ret == -EBADMSG && r->session.stats) {
		damaged(e, r->h.end_off, IN_STATS);
	} else if (ret && ret != -ENODATA && ret != -EBADMSG) {
		*e = r->damage;
	} else if (!r->complete || ret) {
		r->complete = false;
		ret = read_first_meta(r, e);
		if (!ret)
			ret = scan(r, e);
	}
out:
	if (ret) {
		err_set(e, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret));
		rec_reader_close(r);
		r = NULL;
	}
	*rp = r;
	return ret;
}

void rec_reader_close(struct rec_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	merge_free(r->merge);
	mdl_session_fini(&r->session);
	buf_fini(&r->slots);
	buf_fini(&r->payload);
	buf_fini(&r->raw);
	mem_allow(-r->allowed);
	free(r);
}

const struct mdl_session *rec_reader_session(const struct rec_reader *r)
{
	return &r->session;
}

/* The receiver of the batches of records. */
struct receiver {
	rec_batch_fn fn;
	void *ctx;
};

static int hand_on(const struct receiver *to, const void *recs, size_t bytes, struct err *e)
{
	int ret = to->fn(to->ctx, recs, bytes);

	return ret ? err_set(e, ERR_RUNTIME, ret, "cannot read it: %s", strerror(-ret)) : 0;
}

static int each_agg(struct rec_reader *r, const struct receiver *to, struct err *e)
{
	uint64_t off;
	int ret;

	for (off = r->h.end_off;; off = chunk_end(r, off)) {
		ret = read_chunk(r, off, UINT64_MAX);
		if (ret != 1)
			return bad_chunk(ret, e, off, IN_END);
		if (r->c.kind != MXBPF_CHUNK_AGG)
			return 0;
		if (kind_check(r->payload.data, r->payload.len))
			return damaged(e, off, IN_END);
		ret = hand_on(to, r->payload.data, r->payload.len, e);
		if (ret)
			return ret;
	}
}

int rec_reader_verify(struct rec_reader *r)
{
	struct view_source *source;
	const void *recs;
	size_t bytes;
	int ret;

	if (r->damage.code || !r->complete) /* a scan has read all of it already */
		return r->damage.code;
	source = rec_reader_source(r);
	while ((ret = source->next(source->ctx, &recs, &bytes)) == 1)
		;
	r->damage = r->why;
	r->why = (struct err){0};
	return ret;
}

const struct err *rec_reader_damage(const struct rec_reader *r)
{
	return &r->damage;
}

static int each_event(struct rec_reader *r, const struct receiver *to, struct err *e)
{
	struct view_source *source = rec_reader_source(r);
	const void *recs;
	size_t bytes;
	int ret;

	while ((ret = source->next(source->ctx, &recs, &bytes)) == 1) {
		ret = hand_on(to, recs, bytes, e);
		if (ret)
			return ret;
	}
	return ret ? err_set(e, ERR_RUNTIME, ret, "%s", rec_reader_error(r)->why) : 0;
}

int rec_reader_each(struct rec_reader *r, bool events, const struct mdl *like, rec_batch_fn fn, void *ctx,
		    struct err *e)
{
	const struct receiver to = {fn, ctx};

	if (r->merge) /* each part on its own, because they ran at the same time */
		return merge_each(r->merge, events, like, fn, ctx, e);
	return events || !r->complete ? each_event(r, &to, e) : each_agg(r, &to, e);
}

static int fold_all(void *model, const void *recs, size_t bytes)
{
	return mdl_fold_all(model, recs, bytes);
}

int rec_reader_events(struct rec_reader *r, struct mdl *m, struct err *e)
{
	return rec_reader_each(r, true, m, fold_all, m, e);
}

int rec_reader_model(struct rec_reader *r, struct mdl *m, struct err *e)
{
	return rec_reader_each(r, false, m, fold_all, m, e);
}
