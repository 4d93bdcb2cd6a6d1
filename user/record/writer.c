// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include "base/hash.h"
#include "mxbpf_file.h"
#include "record/format.h"
#include "record/record.h"
#include "records/kinds.h"

#define SLOTS_MIN	4u
#define AGG_CHUNK_BYTES (256u << 10)
#define HASH_NAME(kind) (1ull << 32 | (kind)) /* second key word of a name in `written` */

/* The records of an append that go into one chunk. */
struct part {
	const char *recs;
	size_t bytes;
	uint32_t count; /* number of records without NAME records, which are no loss when they are overwritten */
};

struct rec_writer {
	int fd;
	int error;    /* the first error; nothing is written after it */
	bool scratch; /* it does not have to survive a crash of the machine */
	uint64_t slots_off;
	uint64_t nslots_max;
	uint64_t begun; /* number of slots begun, including overwritten ones */
	size_t fill;	/* bytes used in the current slot */
	uint64_t seq;
	uint64_t cut_records;
	struct buf slot_records; /* uint32_t per slot: records that are lost when it is overwritten */
	struct hash written;	 /* names and threads that are in the current slot */
	struct buf names;	 /* NAME records of the chunk in progress */
	struct mxbpf_loss loss;
	struct part part; /* between rec_writer_begin() and rec_writer_end() */
};

/* Writes all of iov at off and changes iov. Returns 0 or -errno. */
static int write_at(int fd, struct iovec *iov, int n, uint64_t off)
{
	ssize_t done;

	while (n) {
		done = pwritev(fd, iov, n, (off_t)off);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		off += (uint64_t)done;
		for (; n && (size_t)done >= iov->iov_len; n--)
			done -= (ssize_t)iov++->iov_len;
		if (n) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	return 0;
}

/*
 * Writes one chunk with a payload in two pieces. The zeros after it keep the reader from taking the remains of an older
 * chunk in the slot for damage.
 */
static int put_chunk(struct rec_writer *w, enum mxbpf_chunk_kind kind, uint64_t off, struct iovec a, struct iovec b)
{
	static const char zeros[8];
	struct mxbpf_chunk c = {
		.magic = MXBPF_CHUNK_MAGIC,
		.kind = kind,
		.payload_bytes = (__u32)(a.iov_len + b.iov_len),
		.seq = w->seq,
		.dropped = w->cut_records,
		.loss = w->loss,
	};
	size_t room = kind == MXBPF_CHUNK_DATA ? MXBPF_SLOT_BYTES - w->fill - sizeof(c) - c.payload_bytes : 0;
	struct iovec iov[4] = {{&c, sizeof(c)}, a, b, {(void *)zeros, room < sizeof(zeros) ? 0 : sizeof(zeros)}};
	uLong crc = crc32(0, (const Bytef *)&c, sizeof(c));

	if (a.iov_len)
		crc = crc32(crc, a.iov_base, (uInt)a.iov_len);
	if (b.iov_len)
		crc = crc32(crc, b.iov_base, (uInt)b.iov_len);
	c.crc = (__u32)crc;
	w->seq++;
	return write_at(w->fd, iov, 4, off);
}

static int put_header(struct rec_writer *w, uint64_t flags, uint64_t end_off)
{
	struct mxbpf_file_header h = {
		.major = MXBPF_FILE_MAJOR,
		.minor = MXBPF_FILE_MINOR,
		.header_bytes = sizeof(h),
		.flags = flags,
		.slots_off = w->slots_off,
		.slot_bytes = MXBPF_SLOT_BYTES,
		.end_off = end_off,
	};

	memcpy(h.magic, MXBPF_FILE_MAGIC, sizeof(h.magic));
	h.crc = (__u32)crc32(0, (const Bytef *)&h, offsetof(struct mxbpf_file_header, crc));
	return write_at(w->fd, &(struct iovec){&h, sizeof(h)}, 1, 0);
}

/* Writes the session as a META chunk at off, and sets *next to its end. */
static int put_meta(struct rec_writer *w, const struct mdl_session *s, uint64_t off, uint64_t *next)
{
	static const char zeros[8];
	char *json = rec_meta_write(s);
	size_t len, pad;
	int ret = -ENOMEM;

	if (!json)
		return ret;
	len = strlen(json);
	pad = -len & 7;
	*next = off + sizeof(struct mxbpf_chunk) + len + pad;
	/* The first META chunk is written before the slots and decides where they begin. */
	if (!w->slots_off)
		w->slots_off = (*next + MXBPF_SLOT_BYTES - 1) / MXBPF_SLOT_BYTES * MXBPF_SLOT_BYTES;
	ret = len + pad > REC_META_MAX_BYTES ? -E2BIG : 0;
	if (!ret)
		ret = put_chunk(w, MXBPF_CHUNK_META, off, (struct iovec){json, len},
				(struct iovec){(void *)zeros, pad});
	free(json);
	return ret;
}

static int failed(struct err *e, int code)
{
	return err_set(e, ERR_RUNTIME, code, "cannot write the recording: %s", strerror(-code));
}

int rec_writer_open(int fd, uint64_t max_bytes, const struct mdl_session *s, struct rec_writer **wp, struct err *e)
{
	struct rec_writer *w = calloc(1, sizeof(*w));
	uint64_t meta_end;
	int ret;

	*wp = NULL;
	if (!w) {
		close(fd);
		return failed(e, -ENOMEM);
	}
	w->fd = fd;
	w->fill = MXBPF_SLOT_BYTES; /* the first record begins the first slot */
	ret = put_meta(w, s, sizeof(struct mxbpf_file_header), &meta_end);
	if (!ret)
		ret = put_header(w, 0, 0);
	if (ret) {
		rec_writer_free(w);
		return failed(e, ret);
	}
	if (!max_bytes)
		max_bytes = REC_MAX_BYTES_DEFAULT;
	w->nslots_max = max_bytes > w->slots_off ? (max_bytes - w->slots_off) / MXBPF_SLOT_BYTES : 0;
	if (w->nslots_max < SLOTS_MIN)
		w->nslots_max = SLOTS_MIN;
	*wp = w;
	return 0;
}

/* ---- names: each slot is self-contained */

static int need_name(struct rec_writer *w, const struct mdl *m, enum mxbpf_name_kind kind, uint64_t id)
{
	const char *text;
	size_t len;

	if (!id || hash_get(&w->written, id, HASH_NAME(kind)))
		return 0;
	text = mdl_text(m, kind, id, &len);
	if (!text)
		return 0;
	if (!hash_put(&w->written, id, HASH_NAME(kind)))
		return -ENOMEM;
	return kind_put_name(&w->names, kind, 0, id, text, len);
}

static int need_thread(struct rec_writer *w, const struct mdl *m, uint32_t tgid, uint32_t tid)
{
	const char *text;

	if (hash_get(&w->written, tid, tgid))
		return 0;
	text = mdl_thread_name(m, tgid, tid);
	if (!text)
		return 0;
	if (!hash_put(&w->written, tid, tgid))
		return -ENOMEM;
	return kind_put_name(&w->names, MXBPF_NAME_THREAD, tgid, tid, text, strlen(text));
}

/* Adds the names of the record's ids and threads that the slot does not have yet. A slot then needs no other slot. */
static int need_names(struct rec_writer *w, const struct mdl *m, const struct mxbpf_rec *r)
{
	struct kind_id_walk id = {0};
	unsigned i;
	uint32_t tid;
	int ret = 0;

	while (!ret && kind_next_id(r, &id))
		ret = need_name(w, m, id.of, id.id);
	for (i = 0; !ret && i < KIND_THREADS_MAX; i++) {
		tid = kind_thread(r, i);
		ret = tid ? need_thread(w, m, r->tgid, tid) : 0;
	}
	return ret;
}

/* ---- data */

static uint32_t *records_of_slot(struct rec_writer *w)
{
	return buf_at(&w->slot_records, uint32_t, (w->begun - 1) % w->nslots_max);
}

static int next_slot(struct rec_writer *w)
{
	uint32_t none = 0;

	if (w->begun < w->nslots_max && buf_put(&w->slot_records, &none, sizeof(none)))
		return -ENOMEM;
	w->begun++;
	w->cut_records += *records_of_slot(w);
	*records_of_slot(w) = 0;
	w->fill = 0;
	w->names.len = 0;
	hash_clear(&w->written);
	return 0;
}

static int put_part(struct rec_writer *w, struct part *p, size_t names_bytes)
{
	uint64_t slot = (w->begun - 1) % w->nslots_max;
	int ret;

	if (!p->bytes)
		return 0;
	ret = put_chunk(w, MXBPF_CHUNK_DATA, w->slots_off + slot * MXBPF_SLOT_BYTES + w->fill,
			(struct iovec){w->names.data, names_bytes}, (struct iovec){(void *)p->recs, p->bytes});
	w->fill += sizeof(struct mxbpf_chunk) + names_bytes + p->bytes;
	*records_of_slot(w) += p->count;
	p->recs += p->bytes;
	p->bytes = 0;
	p->count = 0;
	w->names.len = 0;
	return ret;
}

/*
 * Adds r, which follows the part in memory, to the part. If both do not fit into the slot, it writes the part, and r
 * begins the next slot.
 */
static int add_record(struct rec_writer *w, struct part *p, const struct mdl *m, const struct mxbpf_rec *r)
{
	size_t names_before = w->names.len;
	int ret = need_names(w, m, r);

	if (!ret && w->fill + sizeof(struct mxbpf_chunk) + w->names.len + p->bytes + r->size > MXBPF_SLOT_BYTES) {
		ret = put_part(w, p, names_before);
		if (!ret)
			ret = next_slot(w);
		if (!ret)
			ret = need_names(w, m, r);
	}
	p->bytes += r->size;
	p->count += r->kind != MXBPF_NAME;
	return ret;
}

void rec_writer_begin(struct rec_writer *w, const void *recs, const struct mxbpf_loss *loss)
{
	w->part = (struct part){.recs = recs};
	w->loss = *loss;
	w->names.len = 0;
}

int rec_writer_add(struct rec_writer *w, const struct mxbpf_rec *r, const struct mdl *names)
{
	if (!w->error)
		w->error = add_record(w, &w->part, names, r);
	return w->error;
}

int rec_writer_end(struct rec_writer *w)
{
	if (!w->error)
		w->error = put_part(w, &w->part, w->names.len);
	return w->error;
}

int rec_writer_append(struct rec_writer *w, const void *recs, size_t bytes, const struct mdl *names,
		      const struct mxbpf_loss *loss)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	rec_writer_begin(w, recs, loss);
	while (!w->error && (r = kind_next(recs, bytes, &pos)))
		rec_writer_add(w, r, names);
	return rec_writer_end(w);
}

uint64_t rec_writer_cut_records(const struct rec_writer *w)
{
	return w->cut_records;
}

void rec_writer_scratch(struct rec_writer *w)
{
	w->scratch = true;
}

int rec_writer_fd(const struct rec_writer *w)
{
	return w->fd;
}

/* ---- the end */

/* Writes AGG chunks, split at records so that a reader needs little memory. */
static int put_aggs(struct rec_writer *w, const struct buf *recs, uint64_t *off)
{
	const struct mxbpf_rec *r;
	size_t pos = 0, start = 0;
	int ret = 0;

	while (!ret && start < recs->len) {
		r = kind_next(recs->data, recs->len, &pos);
		if (r && pos - start <= AGG_CHUNK_BYTES - UINT16_MAX)
			continue;
		ret = put_chunk(w, MXBPF_CHUNK_AGG, *off, (struct iovec){recs->data + start, pos - start},
				(struct iovec){NULL, 0});
		*off += sizeof(struct mxbpf_chunk) + pos - start;
		start = pos;
	}
	return ret;
}

static int put_end(struct rec_writer *w, const struct buf *aggs, const struct mdl_session *s)
{
	uint64_t nslots = w->begun < w->nslots_max ? w->begun : w->nslots_max;
	uint64_t end_off = w->slots_off + nslots * MXBPF_SLOT_BYTES, off = end_off;
	struct mdl_session final = *s; /* a shallow copy, because only the writer knows cut_records */
	int ret;

	final.cut_records = w->cut_records;
	w->loss = s->loss;
	ret = put_aggs(w, aggs, &off);
	if (!ret)
		ret = put_meta(w, &final, off, &off);
	if (!ret)
		ret = put_chunk(w, MXBPF_CHUNK_END, off, (struct iovec){NULL, 0}, (struct iovec){NULL, 0});
	/* Mark the file complete only after its data is on the disk. */
	if (!ret && !w->scratch && fsync(w->fd))
		ret = -errno;
	if (!ret)
		ret = put_header(w, MXBPF_FILE_COMPLETE, end_off);
	if (!ret && !w->scratch && fsync(w->fd))
		ret = -errno;
	return ret;
}

int rec_writer_finish(struct rec_writer *w, const struct mdl *m, const struct mdl_session *s, struct err *e)
{
	struct buf aggs = {0};

	if (!w->error)
		w->error = mdl_emit(m, &aggs);
	if (!w->error)
		w->error = put_end(w, &aggs, s);
	buf_fini(&aggs);
	return w->error ? failed(e, w->error) : 0;
}

void rec_writer_free(struct rec_writer *w)
{
	if (!w)
		return;
	close(w->fd);
	buf_fini(&w->slot_records);
	buf_fini(&w->names);
	hash_fini(&w->written);
	free(w);
}
