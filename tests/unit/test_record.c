// SPDX-License-Identifier: Apache-2.0
#include "record/record.h"

#include <sched.h>
#include <sys/mount.h>
#include <zlib.h>

#include "base/out.h"
#include "mxbpf_file.h"
#include "unit.h"

FREES(writer_freed, struct rec_writer, rec_writer_free)
FREES(reader_closed, struct rec_reader, rec_reader_close)

#define START_NS  1000000000ull
#define HEAD	  sizeof(struct mxbpf_chunk)
#define SLOT0_OFF MXBPF_SLOT_BYTES

static struct err e;

/* ---- a made-up session; record i has the time START_NS + i */

static const struct mdl_session session = {
	.mxbpf_version = "1.2.3",
	.pid = 4294967295u,
	.comm = "py\xff\"thon",
	.cmdline = "python \\train.py\n\x1b[31m",
	.hostname = "",
	.libs = &(struct mdl_lib){"/usr/lib/libx.so", "c0ffee", "X 1.0"},
	.nlibs = 1,
	.probes = (struct mdl_probe[]){{"operator.start", "op", "_Z3opv", "attached", "", ""},
				       {"mem.alloc", "mem", "", "refused", "no such symbol", "MXNet"}},
	.nprobes = 2,
	.devices = (struct mdl_device[]){{1, true, "cpu"}, {65535, false, "cpu pinned"}},
	.ndevices = 2,
	.class_title = {NULL, "MXNET_C_API", "operator", NULL},
	.mem_title = "Device Storage",
	.trace_form = "kineto",
	.cpu_model = "A CPU",
	.kernel = "6.8.0\xff",
	.python = "3.11.4",
	.rank = 3,
	.world_size = 8,
	.start_unix_ns = 1712345678987654321ull,
	.start_mono_ns = START_NS,
	.duration_ns = 9007199254740993ull,
	.hits = UINT64_MAX,
	.open_spans = 3,
	.loss = {1, 2, 3, 4, 5, 6},
};

static void span(struct buf *b, uint64_t i, uint64_t name_id)
{
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = MXBPF_SPAN_BYTES_PLAIN, .tgid = 42, .ts_ns = START_NS + i},
		.dur_ns = 100 + i,
		.self_ns = 100,
		.name_id = name_id,
		.link = i,
		.tid = 42 + (uint32_t)(i % 3),
		.end_tid = 42,
		.device = MXBPF_DEVICE(1, 0),
		.cls = MXBPF_CLASS_OPERATOR,
	};

	CHECK(!buf_put(b, &s, MXBPF_SPAN_BYTES_PLAIN));
}

static void alloc(struct buf *b, uint64_t i, int64_t bytes)
{
	struct mxbpf_alloc a = {
		.h = {.kind = MXBPF_ALLOC, .size = MXBPF_ALLOC_BYTES_MIN, .tgid = 42, .ts_ns = START_NS + i},
		.bytes = bytes,
		.tid = 42,
		.device = MXBPF_DEVICE(1, 0),
	};

	CHECK(!buf_put(b, &a, MXBPF_ALLOC_BYTES_MIN));
}

static void name(struct mdl *m, enum mxbpf_name_kind kind, uint64_t id, const char *text, size_t len)
{
	_Alignas(8) char bytes[sizeof(struct mxbpf_name) + MXBPF_NAME_BYTES_MAX] = {0};
	struct mxbpf_name *n = (void *)bytes;

	n->h = (struct mxbpf_rec){.kind = MXBPF_NAME, .tgid = kind == MXBPF_NAME_THREAD ? 42 : 0};
	n->h.size = (__u16)((sizeof(*n) + len + 7) & ~7ul);
	n->id = id;
	n->len = (__u32)len;
	n->kind = kind;
	memcpy(n->text, text, len);
	CHECK(!mdl_feed(m, n, n->h.size));
}

static struct mdl *named_model(void)
{
	struct mdl *m = mdl_new();
	char longest[MXBPF_NAME_BYTES_MAX];

	memset(longest, 'n', sizeof(longest));
	name(m, MXBPF_NAME_SPAN, 1, "Convolution", 11);
	name(m, MXBPF_NAME_SPAN, 2, "\x1b[31m\xff\"evil\n", 12);
	name(m, MXBPF_NAME_SPAN, 3, longest, sizeof(longest));
	name(m, MXBPF_NAME_THREAD, 42, "main", 4);
	name(m, MXBPF_NAME_THREAD, 43, "engine", 6);
	return m;
}

/* Appends n records from number `first` on, as one append and one window of the model. */
static int append(struct rec_writer *w, struct mdl *m, uint64_t first, uint64_t n, struct buf *all)
{
	FREED(buf_fini) struct buf b = {0};
	struct mxbpf_loss loss = {.attempted = first + n, .stored = first + n};
	uint64_t i;
	int ret;

	for (i = first; i < first + n; i++) {
		if (i % 5 == 4)
			alloc(&b, i, i % 10 == 4 ? 4096 : -1024);
		else
			span(&b, i, i % 4);
	}
	CHECK(!mdl_feed(m, b.data, b.len));
	ret = rec_writer_append(w, b.data, b.len, m, &loss);
	CHECK(!all || !buf_put(all, b.data, b.len));
	return ret;
}

static uint64_t file_size(int fd)
{
	struct stat st;

	CHECK(!fstat(fd, &st));
	return (uint64_t)st.st_size;
}

static int new_file(void)
{
	int fd = memfd_create("test_record", MFD_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static struct rec_writer *new_writer(uint64_t max_bytes)
{
	struct rec_writer *w = NULL;

	e = (struct err){0};
	CHECK(!rec_writer_open(new_file(), max_bytes, &session, &w, &e));
	return w;
}

static struct rec_reader *open_fd(int fd)
{
	struct rec_reader *r;

	e = (struct err){0};
	CHECK(!rec_reader_open(fd, &r, &e) == !!r);
	return r;
}

/* Collects all DATA records except names, in the order of the source. *end is the last result of next(). */
static void collect(struct rec_reader *r, struct buf *b, int *end)
{
	struct view_source *src = rec_reader_source(r);
	const struct mxbpf_rec *rec;
	const void *recs;
	size_t bytes, pos;
	bool bad;

	*end = src->rewind(src->ctx);
	while (!*end && (*end = src->next(src->ctx, &recs, &bytes)) == 1) {
		pos = 0;
		while ((rec = kind_check_next(recs, bytes, &pos, &bad)))
			if (rec->kind != MXBPF_NAME)
				CHECK(!buf_put(b, rec, rec->size));
		*end = 0;
	}
}

static bool same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

/* Compares rows and memory in any order. */
static bool same_model(struct mdl *a, struct mdl *b)
{
	size_t na, nb, i, j;
	const struct mdl_row *const *ra = mdl_rows(a, MXBPF_CLASS_OPERATOR, &na);
	const struct mdl_row *const *rb = mdl_rows(b, MXBPF_CLASS_OPERATOR, &nb);
	const struct mdl_mem_row *const *ma, *const *mb;

	if (na != nb || !na)
		return false;
	for (i = 0; i < na; i++) {
		for (j = 0; j < nb && memcmp(ra[i], rb[j], sizeof(*ra[i])); j++)
			;
		if (j == nb || strcmp(mdl_name(a, ra[i]->name_id, NULL), mdl_name(b, rb[j]->name_id, NULL)))
			return false;
	}
	ma = mdl_mem_rows(a, &na);
	mb = mdl_mem_rows(b, &nb);
	return na == 1 && nb == 1 && !memcmp(ma[0], mb[0], sizeof(*ma[0]));
}

static bool same_session(const struct mdl_session *a, const struct mdl_session *b)
{
	FREED(memory_freed) char *x = rec_meta_write(a), *y = rec_meta_write(b);
	bool equal = x && y && !strcmp(x, y);

	return equal;
}

/* ---- tests */

static void round_trip(void)
{
	FREED(writer_freed) struct rec_writer *w = new_writer(0);
	FREED(model_freed) struct mdl *m = named_model(), *back = mdl_new();
	FREED(buf_fini) struct buf in = {0}, out = {0};
	uint64_t i;
	int end;

	for (i = 0; i < 40; i++) /* 2.3 MB, so several slots */
		CHECK(!append(w, m, i * 1000, 1000, &in));
	CHECK(!rec_writer_finish(w, m, &session, &e) && !rec_writer_cut_records(w));
	FREED(reader_closed) struct rec_reader *r = open_fd(rec_writer_fd(w));
	collect(r, &out, &end);
	CHECK(!end && same(&in, &out));
	CHECK(rec_reader_source(r)->total_bytes > in.len && rec_reader_source(r)->total_bytes < in.len + (1 << 16));
	CHECK(!rec_reader_model(r, back, &e) && same_model(m, back));
	CHECK(!strcmp(mdl_thread_name(back, 42, 43), "engine"));
	CHECK(same_session(rec_reader_session(r), &session) && !rec_reader_session(r)->incomplete);
}

static void metadata(void)
{
	FREED(memory_freed) char *json = rec_meta_write(&session);
	struct mdl_session s;
	size_t n;

	e = (struct err){0};
	CHECK(!rec_meta_read(json, strlen(json), &s, &e) && same_session(&s, &session));
	CHECK(s.hits == UINT64_MAX && s.start_unix_ns == 1712345678987654321ull && !s.class_title[0]);
	mdl_session_fini(&s);
	CHECK(!rec_meta_read("{}", 2, &s, &e) && s.comm && !*s.comm && !s.mem_title);
	mdl_session_fini(&s);
	CHECK(rec_meta_read("{\"hits\":\"-1\"}", 13, &s, &e) == -EBADMSG);
	mdl_session_fini(&s);
	CHECK(rec_meta_read("{\"pid\":1e300}", 13, &s, &e) == -EBADMSG);
	mdl_session_fini(&s);
	for (n = 0; n < strlen(json); n++) {
		CHECK(rec_meta_read(json, n, &s, &e) == -EBADMSG);
		mdl_session_fini(&s);
	}
}

/* Walks the chunks of one slot by the format alone: the NAME of every id must come before its first use. */
static void check_slot_names(int fd, uint64_t slot_off, unsigned *chunks)
{
	static _Alignas(8) char slot[MXBPF_SLOT_BYTES];
	const struct mxbpf_chunk *c;
	const struct mxbpf_rec *rec;
	size_t off, pos;
	bool bad, seen[4] = {true}, thread[3] = {false, false, true}; /* 44 has no name */

	memset(slot, 0, sizeof(slot));
	CHECK(pread(fd, slot, sizeof(slot), (off_t)slot_off) > 0);
	for (off = 0; off + HEAD <= sizeof(slot); off += HEAD + c->payload_bytes) {
		c = (const void *)(slot + off);
		if (c->magic != MXBPF_CHUNK_MAGIC)
			break;
		(*chunks)++;
		pos = 0;
		while ((rec = kind_check_next(c + 1, c->payload_bytes, &pos, &bad))) {
			const struct mxbpf_name *n = (const void *)rec;
			const struct mxbpf_span *s = (const void *)rec;

			if (rec->kind == MXBPF_NAME && n->kind == MXBPF_NAME_SPAN)
				seen[n->id] = true;
			else if (rec->kind == MXBPF_NAME)
				thread[n->id - 42] = true;
			else if (rec->kind == MXBPF_SPAN)
				CHECK(seen[s->name_id] && thread[s->tid - 42]);
		}
		CHECK(!bad);
	}
}

static void slots_stand_alone(void)
{
	FREED(writer_freed) struct rec_writer *w = new_writer(0);
	FREED(model_freed) struct mdl *m = named_model();
	unsigned chunks = 0, nslots, i;

	for (i = 0; i < 50; i++)
		CHECK(!append(w, m, i * 1000, 1000, NULL));
	nslots = (unsigned)(file_size(rec_writer_fd(w)) / MXBPF_SLOT_BYTES);
	for (i = 0; i < nslots; i++)
		check_slot_names(rec_writer_fd(w), SLOT0_OFF + i * MXBPF_SLOT_BYTES, &chunks);
	CHECK(nslots > 2 && chunks > 50 && chunks < 50 + nslots); /* an append is split at the end of a slot */
}

/* A small recording of three appends with four records each. Chunk sizes are read by the format alone. */
struct small {
	int fd;
	struct rec_writer *w;
	struct buf recs;       /* all records */
	uint64_t chunk_end[3]; /* offset in the file */
	size_t recs_end[3];    /* offset in recs */
	uint64_t meta_end;
	uint64_t end_off, size;
};

static void small_open(struct small *s, bool finish)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct mxbpf_chunk c;
	uint64_t off = SLOT0_OFF;
	int i;

	*s = (struct small){.w = new_writer(0)};
	s->fd = rec_writer_fd(s->w);
	name(m, MXBPF_NAME_SPAN, 1, "a", 1);
	name(m, MXBPF_NAME_THREAD, 42, "main", 4);
	CHECK(pread(s->fd, &c, HEAD, sizeof(struct mxbpf_file_header)) == (ssize_t)HEAD);
	s->meta_end = sizeof(struct mxbpf_file_header) + HEAD + c.payload_bytes;
	for (i = 0; i < 3; i++) {
		CHECK(!append(s->w, m, 4u * (unsigned)i, 4, &s->recs));
		CHECK(pread(s->fd, &c, HEAD, (off_t)off) == (ssize_t)HEAD);
		off += HEAD + c.payload_bytes;
		s->chunk_end[i] = off;
		s->recs_end[i] = s->recs.len;
	}
	if (finish)
		CHECK(!rec_writer_finish(s->w, m, &session, &e));
	s->end_off = SLOT0_OFF + MXBPF_SLOT_BYTES;
	s->size = file_size(s->fd);
}

static void small_close(struct small *s)
{
	rec_writer_free(s->w);
	buf_fini(&s->recs);
}

static void check_cut(const struct small *s, uint64_t size)
{
	FREED(reader_closed) struct rec_reader *r = open_fd(s->fd);
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf out = {0};
	char want[64];
	size_t len = 0;
	int i, end;

	if (size < s->meta_end) {
		snprintf(want, sizeof(want), "cut before its first record, at offset %llu", (unsigned long long)size);
		CHECK(!r && !strcmp(e.why, size ? want : "not an mxbpf recording"));
		return;
	}
	CHECK(r);
	for (i = 0; i < 3 && s->chunk_end[i] <= size; i++)
		len = s->recs_end[i];
	collect(r, &out, &end);
	CHECK(!end && out.len == len && (!len || !memcmp(out.data, s->recs.data, len)));
	CHECK(rec_reader_session(r)->incomplete);
	CHECK(rec_reader_session(r)->loss.stored == 4u * (unsigned)i + (i ? 0 : session.loss.stored));
	/* Every append except the second one ends with a span that has the latest end. */
	CHECK(!rec_reader_session(r)->duration_ns == !i);
	CHECK(!rec_reader_model(r, m, &e));
	mdl_rows(m, MXBPF_CLASS_OPERATOR, &len);
	CHECK(!len == !i);
}

static void cut_anywhere(void)
{
	FREED(small_close) struct small s = {0};
	uint64_t size;

	small_open(&s, true);
	for (size = s.size - 1; size + 1; size--) {
		/* The bytes of holes are all alike, so few of them are enough. */
		if ((size > s.chunk_end[2] + 100 && size < s.end_off) || (size > s.meta_end + 100 && size < SLOT0_OFF))
			size -= size % 512;
		CHECK(!ftruncate(s.fd, (off_t)size));
		check_cut(&s, size);
	}
}

/* A record that the reader returns must be one that was written. */
static bool known_records(const struct small *s, const struct buf *out)
{
	const struct mxbpf_rec *rec, *was;
	size_t pos = 0, at = 0;
	bool bad;

	while ((rec = kind_check_next(out->data, out->len, &pos, &bad))) {
		do
			was = kind_check_next(s->recs.data, s->recs.len, &at, &bad);
		while (was && was->ts_ns != rec->ts_ns);
		if (!was || memcmp(was, rec, rec->size))
			return false;
	}
	return !bad;
}

/*
 * A recording with one wrong bit must be refused, or complete, or marked as incomplete; it must never give other
 * records.
 */
static void check_damage(const struct small *s, bool finished)
{
	FREED(reader_closed) struct rec_reader *r = open_fd(s->fd);
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf out = {0};
	int end;

	if (r) {
		collect(r, &out, &end);
		CHECK(known_records(s, &out));
		CHECK(end ? end == -EBADMSG && !strncmp(rec_reader_error(r)->why, "damaged at offset ", 18)
			  : same(&out, &s->recs) || (!finished && rec_reader_session(r)->incomplete));
		/* Damage without effect on the tables must be noticed, too. */
		CHECK(!finished || rec_reader_verify(r) || rec_reader_session(r)->incomplete || same(&out, &s->recs));
		CHECK(!rec_reader_damage(r)->code || strstr(rec_reader_damage(r)->why, ", among its events") ||
		      (rec_reader_session(r)->incomplete && strstr(rec_reader_damage(r)->why, ", in its tables")));
		/* A length that leads out of the file looks like a truncated file. */
		CHECK(!finished || rec_reader_session(r)->incomplete || same_session(rec_reader_session(r), &session));
		CHECK(!rec_reader_model(r, m, &e) || e.code == -EBADMSG);
	} else {
		CHECK(!strncmp(e.why, "damaged at offset ", 18) || !strcmp(e.why, "not an mxbpf recording") ||
		      !strncmp(e.why, "written by a newer mxbpf (format ", 33));
	}
}

static void flip_anywhere(bool finished)
{
	FREED(small_close) struct small s = {0};
	unsigned char byte, wrong;
	uint64_t off;
	int bit;

	small_open(&s, finished);
	for (off = 0; off < s.size; off++) {
		if (off == s.meta_end + 16)
			off = SLOT0_OFF;
		if (off == s.chunk_end[2] + 100 && finished)
			off = s.end_off;
		CHECK(pread(s.fd, &byte, 1, (off_t)off) == 1);
		for (bit = 0; bit < 8; bit++) {
			wrong = byte ^ (unsigned char)(1 << bit);
			CHECK(pwrite(s.fd, &wrong, 1, (off_t)off) == 1);
			check_damage(&s, finished);
		}
		CHECK(pwrite(s.fd, &byte, 1, (off_t)off) == 1);
	}
}

/* Zeroes a chunk of the small file, as a disk that lost a page would. The sequence numbers reveal the loss. */
static void lost_chunk(void)
{
	struct small s;
	char zeros[4096] = {0};
	FREED(buf_fini) struct buf out = {0};
	int end;

	small_open(&s, true);
	CHECK(pwrite(s.fd, zeros, s.chunk_end[2] - s.chunk_end[1], (off_t)s.chunk_end[1]) > 0);
	FREED(reader_closed) struct rec_reader *r = open_fd(s.fd);
	collect(r, &out, &end);
	CHECK(end == -EBADMSG && out.len == s.recs_end[1]);
	rec_reader_close(r);
	out.len = 0;
	small_close(&s);

	small_open(&s, true);
	CHECK(pwrite(s.fd, zeros, s.chunk_end[2] - SLOT0_OFF, SLOT0_OFF) > 0);
	r = open_fd(s.fd);
	collect(r, &out, &end);
	CHECK(end == -EBADMSG && !out.len);
	small_close(&s);
}

static void refuses(int fd, const char *why)
{
	FREED(reader_closed) struct rec_reader *r = open_fd(fd);

	CHECK(!r && !strncmp(e.why, why, strlen(why)));
}

static void wrong_byte(int fd, uint64_t off)
{
	unsigned char byte;

	CHECK(pread(fd, &byte, 1, (off_t)off) == 1);
	byte ^= 0x10;
	CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1);
}

/* Valid chunks after the bad one, in its slot or in a later slot, prove that no crash has truncated the file. */
static void damage_in_the_middle(void)
{
	FREED(writer_freed) struct rec_writer *w = new_writer(0);
	FREED(model_freed) struct mdl *m = named_model();
	struct small s;
	char why[64];
	uint64_t i;

	small_open(&s, false);
	wrong_byte(s.fd, s.chunk_end[0] + HEAD + 20);
	snprintf(why, sizeof(why), "damaged at offset %llu", (unsigned long long)s.chunk_end[0]);
	refuses(s.fd, why);
	small_close(&s);

	for (i = 0; i < 40; i++)
		CHECK(!append(w, m, i * 1000, 1000, NULL));
	wrong_byte(rec_writer_fd(w), SLOT0_OFF + MXBPF_SLOT_BYTES); /* not even a chunk any more */
	snprintf(why, sizeof(why), "damaged at offset %u", SLOT0_OFF + MXBPF_SLOT_BYTES);
	refuses(rec_writer_fd(w), why);
}

/* ---- --max-size */

static void check_ring(int fd, const struct buf *in, uint64_t total, uint64_t cut, bool incomplete)
{
	FREED(reader_closed) struct rec_reader *r = open_fd(fd);
	FREED(buf_fini) struct buf out = {0};
	uint64_t n = 0;
	size_t pos = 0;
	bool bad;
	int end;

	CHECK(r);
	if (!r)
		return;
	collect(r, &out, &end);
	CHECK(!end);
	/* The records left must be the newest ones, complete and in order. */
	CHECK(out.len < in->len && !memcmp(out.data, in->data + in->len - out.len, out.len));
	while (kind_check_next(out.data, out.len, &pos, &bad))
		n++;
	CHECK(n + cut == total);
	CHECK(rec_reader_session(r)->cut_records == cut && rec_reader_session(r)->incomplete == incomplete);
}

static void max_size(void)
{
	struct rec_writer *w = new_writer(1); /* the minimum: four slots */
	FREED(model_freed) struct mdl *m = named_model(), *back = mdl_new();
	FREED(buf_fini) struct buf in = {0};
	uint64_t i, total = 0, cut;

	for (i = 0; i < 60; i++) {
		CHECK(!append(w, m, total, 1000 + 77 * i, &in));
		total += 1000 + 77 * i;
	}
	cut = rec_writer_cut_records(w);
	CHECK(cut > 0);
	check_ring(rec_writer_fd(w), &in, total, cut, true);
	CHECK(file_size(rec_writer_fd(w)) <= SLOT0_OFF + 4 * MXBPF_SLOT_BYTES);
	CHECK(!rec_writer_finish(w, m, &session, &e) && rec_writer_cut_records(w) == cut);
	check_ring(rec_writer_fd(w), &in, total, cut, false);
	/* The tables must still include the dropped records. */
	FREED(reader_closed) struct rec_reader *r = open_fd(rec_writer_fd(w));
	CHECK(!rec_reader_model(r, back, &e) && same_model(m, back));
	rec_writer_free(w);
}

/* Counts the records except names in slot i; raises *last_seq to the newest chunk in it. */
static uint64_t count_slot(int fd, unsigned i, uint64_t *last_seq)
{
	static _Alignas(8) char slot[MXBPF_SLOT_BYTES];
	const struct mxbpf_chunk *c;
	const struct mxbpf_rec *rec;
	size_t off, pos;
	uint64_t n = 0;
	bool bad;

	CHECK(pread(fd, slot, sizeof(slot), SLOT0_OFF + i * (off_t)MXBPF_SLOT_BYTES) > 0);
	for (off = 0; off + HEAD <= sizeof(slot); off += HEAD + c->payload_bytes) {
		c = (const void *)(slot + off);
		if (c->magic != MXBPF_CHUNK_MAGIC)
			break;
		*last_seq = c->seq > *last_seq ? c->seq : *last_seq;
		pos = 0;
		while ((rec = kind_check_next(c + 1, c->payload_bytes, &pos, &bad)))
			n += rec->kind != MXBPF_NAME;
	}
	return n;
}

/*
 * Killed while the first chunk was being written over slot i, the oldest one: a new head before old contents, with
 * another old chunk exactly where the new one would end.
 */
static void check_torn(struct rec_writer *w, const struct buf *in, uint64_t total, unsigned i)
{
	off_t off = SLOT0_OFF + i * (off_t)MXBPF_SLOT_BYTES;
	uint64_t last_seq = 0, lost = 0;
	int fd = rec_writer_fd(w);
	struct mxbpf_chunk c, was;
	unsigned k;

	for (k = 0; k < 4; k++) {
		uint64_t n = count_slot(fd, k, &last_seq);

		lost += k == i ? n : 0;
	}
	CHECK(pread(fd, &was, HEAD, off) == (ssize_t)HEAD);
	c = was;
	c.seq = last_seq + 1;
	CHECK(pwrite(fd, &c, HEAD, off) == (ssize_t)HEAD);
	check_ring(fd, in, total - lost, rec_writer_cut_records(w), true);
	CHECK(pwrite(fd, &was, HEAD, off) == (ssize_t)HEAD);
}

static void torn_ring(void)
{
	FREED(writer_freed) struct rec_writer *w = new_writer(1);
	FREED(model_freed) struct mdl *m = named_model();
	FREED(buf_fini) struct buf in = {0};
	uint64_t total = 0;

	/* Fills three slots and begins the fourth. */
	for (; file_size(rec_writer_fd(w)) < SLOT0_OFF + 7 * MXBPF_SLOT_BYTES / 2; total += 100)
		CHECK(!append(w, m, total, 100, &in));
	CHECK(!rec_writer_cut_records(w));
	check_torn(w, &in, total, 0);
	for (; !rec_writer_cut_records(w); total += 100)
		CHECK(!append(w, m, total, 100, &in));
	check_torn(w, &in, total, 1);
}

/* ---- other files */

static void other_files(void)
{
	struct mxbpf_file_header h;
	FREED(small_close) struct small s = {0};
	int fd = new_file(), p[2];

	refuses(fd, "not an mxbpf recording");
	CHECK(pwrite(fd,
		     "\x7f"
		     "ELF and so on",
		     14, 0) == 14);
	refuses(fd, "not an mxbpf recording");
	close(fd);
	CHECK(!pipe(p));
	refuses(p[0], "not an mxbpf recording: it is not a plain file");
	close(p[0]);
	close(p[1]);
	small_open(&s, true);
	CHECK(pread(s.fd, &h, sizeof(h), 0) == sizeof(h));
	h.major = MXBPF_FILE_MAJOR + 1;
	h.crc = (__u32)crc32(0, (const Bytef *)&h, offsetof(struct mxbpf_file_header, crc));
	CHECK(pwrite(s.fd, &h, sizeof(h), 0) == sizeof(h));
	refuses(s.fd, "written by a newer mxbpf (format 4.");
	h.major = MXBPF_FILE_MAJOR;
	h.minor = 9; /* a newer minor version only adds kinds and is accepted */
	h.crc = (__u32)crc32(0, (const Bytef *)&h, offsetof(struct mxbpf_file_header, crc));
	CHECK(pwrite(s.fd, &h, sizeof(h), 0) == sizeof(h));
	rec_reader_close(open_fd(s.fd));
	CHECK(!e.code);
	h.minor = 0;
	CHECK(pwrite(s.fd, &h, sizeof(h), 0) == sizeof(h));
	refuses(s.fd, "damaged at offset 0");
}

/* ---- a full disk, on a tmpfs of its own */

static void full_disk(void)
{
	char dir[] = "/tmp/test_record.XXXXXX", path[64];
	FREED(model_freed) struct mdl *m = named_model();
	struct rec_writer *w = NULL;
	FREED(buf_fini) struct buf in = {0}, out = {0};
	struct rec_reader *r;
	uint64_t total = 0;
	int end;

	CHECK(mkdtemp(dir) && !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount("tmpfs", dir, "tmpfs", 0, "size=512k"));
	snprintf(path, sizeof(path), "%s/r", dir);
	e = (struct err){0};
	CHECK(!rec_writer_open(out_create(path, &e), 0, &session, &w, &e));
	while (total < 100000 && !append(w, m, total, 1000, &in))
		total += 1000;
	CHECK(total > 5000 && total < 9000);
	/* Even after space is freed the writer must not continue: the failed append would be missing in the middle. */
	CHECK(!mount("tmpfs", dir, "tmpfs", MS_REMOUNT, "size=8m"));
	CHECK(append(w, m, total, 1, NULL) == -ENOSPC);
	CHECK(rec_writer_finish(w, m, &session, &e) == -ENOSPC &&
	      !strcmp(e.why, "cannot write the recording: No space left on device"));
	r = open_fd(rec_writer_fd(w));
	CHECK(r && rec_reader_session(r)->incomplete);
	collect(r, &out, &end);
	in.len -= out.len < in.len ? in.len - out.len : 0;
	CHECK(!end && same(&in, &out) && out.len > 5000 * MXBPF_ALLOC_BYTES_MIN);
	rec_reader_close(r);
	rec_writer_free(w);
	CHECK(!umount(dir) && !rmdir(dir));
}

int main(void)
{
	TEST("a recording is read back with equal records, tables and session")
	round_trip();
	TEST("metadata keeps hostile bytes and 64-bit numbers, and incomplete metadata is refused")
	metadata();
	TEST("a slot needs no other slot: each name is stored before its first use")
	slots_stand_alone();
	TEST("a recording truncated at any byte gives every complete chunk before that and is marked as incomplete")
	cut_anywhere();
	TEST("one wrong bit in a complete recording is reported or harmless")
	flip_anywhere(true);
	TEST("one wrong bit in a recording without an end never gives wrong data")
	flip_anywhere(false);
	TEST("damage in the middle of a recording without an end is distinguished from truncation")
	damage_in_the_middle();
	TEST("a chunk missing from a complete recording is noticed")
	lost_chunk();
	TEST("--max-size keeps the newest records, counts the dropped ones exactly, and keeps the tables complete")
	max_size();
	TEST("a recording stays readable after a kill in the middle of overwriting a slot")
	torn_ring();
	TEST("foreign, newer and damaged files are refused with a reason")
	other_files();
	if (geteuid() == 0) {
		TEST("a full disk gives an error and leaves the written part readable")
		full_disk();
	} else {
		TEST("a full disk gives an error # SKIP needs root: mounts a small tmpfs")
		{
		}
	}
	UNIT_MAIN_END;
}
