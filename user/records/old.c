// SPDX-License-Identifier: Apache-2.0
#include "records/old.h"

#include <errno.h>
#include <string.h>

#include "records/priv.h"

/* A column of a table, and where its value was in the record. A value that a shorter form lacks is 0. */
struct old_column {
	const char *name;     /* NULL ends the columns */
	uint16_t at, bytes;   /* more than 8 bytes: 64-bit numbers */
	uint8_t id_of, flags; /* as in struct mxbpf_table_column */
};

struct old_kind {
	uint16_t bytes;	   /* smallest size of a record; 0: no kind of earlier versions */
	const char *table; /* name of the stored table */
	const struct old_column *columns;
	uint16_t nbuckets; /* place of the number of buckets, which begin at `bytes`; 0: the kind has none */
};

/* clang-format off */
#define COLUMNS(...) (const struct old_column[]){__VA_ARGS__, {0}}
#define VALUE(name, at, bytes) {name, at, bytes, 0, 0}
#define TIME(name, at) {name, at, 8, 0, MXBPF_TABLE_TIME}
#define ID(name, at, of) {name, at, 8, 1 + MXBPF_NAME_##of, 0}
#define COUNTER(i) VALUE("n" #i, 56 + 32 * i, 8), VALUE("sum" #i, 64 + 32 * i, 8)

/* By the numbers of the kinds, which no other kind may have. Behind struct mxbpf_rec, fields begin at 16. */
static const struct old_kind old_kinds[] = {
	[13] = {72, "backward", COLUMNS(
		ID("name_id", 16, SPAN), VALUE("count", 24, 8), VALUE("total_ns", 32, 8),
		VALUE("backward_count", 40, 8), VALUE("backward_ns", 48, 8), VALUE("deeper_count", 56, 8),
		VALUE("deeper_ns", 64, 8))},
	[21] = {64, "off_cpu", COLUMNS(
		ID("name_id", 16, SPAN), VALUE("count", 24, 8), VALUE("total_ns", 32, 8), VALUE("class", 40, 1),
		VALUE("what", 41, 1), VALUE("own", 42, 1), VALUE("between", 43, 1), VALUE("comm", 48, 16))},
	[23] = {64, "lives", COLUMNS(
		ID("name_id", 16, SPAN), VALUE("count", 24, 8), VALUE("total_ns", 32, 8), VALUE("min_ns", 40, 8),
		VALUE("max_ns", 48, 8), VALUE("device", 56, 4), VALUE("part", 60, 1)), 62},
	[25] = {80, "waits", COLUMNS(
		ID("name_id", 16, SPAN), ID("call_id", 24, SPAN), ID("operator_id", 32, SPAN),
		ID("within_id", 40, SPAN), VALUE("count", 48, 8), VALUE("total_ns", 56, 8), VALUE("max_ns", 64, 8),
		VALUE("for", 76, 1))},
	[33] = {104, "kvstore", COLUMNS(
		ID("name_id", 16, SPAN), VALUE("key_id", 24, 8), VALUE("calls", 32, 8), VALUE("values", 40, 8),
		VALUE("sent_bytes", 48, 8), VALUE("received_bytes", 56, 8), VALUE("values_unknown", 64, 8),
		VALUE("total_ns", 72, 8), VALUE("min_ns", 80, 8), VALUE("max_ns", 88, 8), VALUE("flags", 96, 1)), 102},
	[37] = {56, "raised", COLUMNS(
		TIME("first_unix_ns", 8), ID("name_id", 16, SPAN), ID("stack_id", 24, STACK), VALUE("count", 32, 8),
		TIME("last_unix_ns", 40), VALUE("class", 48, 1))},
	[45] = {48, "gpu joins", COLUMNS(
		VALUE("launches", 16, 8), VALUE("without_work", 24, 8), VALUE("late_launches", 32, 8),
		VALUE("late_spans", 40, 8))},
	[46] = {48, "gpu waits", COLUMNS(
		ID("name_id", 16, SPAN), VALUE("count", 24, 8), VALUE("total_ns", 32, 8), VALUE("tid", 40, 4))},
	[62] = {120, "gpu roofline", COLUMNS(
		ID("name_id", 16, SPAN), ID("args_id", 24, ARGS), VALUE("calls", 32, 8), VALUE("total", 40, 40),
		VALUE("self", 80, 40))},
	[65] = {104, "memory calls", COLUMNS(
		ID("name_id", 16, SPAN), ID("operator_id", 24, SPAN), ID("stack_id", 32, STACK), VALUE("count", 40, 8),
		VALUE("failed", 48, 8), VALUE("alloc_bytes", 56, 8), VALUE("free_bytes", 64, 8),
		VALUE("total_ns", 72, 8), VALUE("max_ns", 80, 8), VALUE("pool_peak_bytes", 88, 8), VALUE("gpu", 96, 4),
		VALUE("memory", 100, 1))},
	[69] = {64, "kernels by range", COLUMNS(
		ID("name_id", 16, SPAN), ID("range_id", 24, SPAN), VALUE("count", 32, 8), VALUE("total_ns", 40, 8),
		VALUE("min_ns", 48, 8), VALUE("max_ns", 56, 8))},
	[74] = {440, "kernel counters", COLUMNS(
		ID("name_id", 16, SPAN), VALUE("count", 24, 8), VALUE("held_ns", 32, 8), VALUE("held_max_ns", 40, 8),
		VALUE("passes", 48, 4), COUNTER(0), COUNTER(1), COUNTER(2), COUNTER(3), COUNTER(4), COUNTER(5),
		COUNTER(6), COUNTER(7), COUNTER(8), COUNTER(9), COUNTER(10), COUNTER(11))},
};
/* clang-format on */

/* A table that takes more rows of the same kind and process. */
struct run {
	const struct old_kind *kind; /* NULL: none */
	uint32_t process;
	size_t at, row_bytes; /* at: place of the table in the output */
};

static const struct old_kind *old_kind_of(const struct mxbpf_rec *r)
{
	return r->kind < sizeof(old_kinds) / sizeof(old_kinds[0]) && old_kinds[r->kind].bytes ? &old_kinds[r->kind]
											      : NULL;
}

static unsigned old_nvalues(const struct old_column *c)
{
	return c->bytes > sizeof(uint64_t) ? c->bytes / sizeof(uint64_t) : 1;
}

static uint64_t old_value(const struct mxbpf_rec *r, const struct old_column *c, unsigned i)
{
	const size_t at = c->at + i * sizeof(uint64_t),
		     bytes = c->bytes < sizeof(uint64_t) ? c->bytes : sizeof(uint64_t);
	uint64_t v = 0;

	if (at + bytes <= r->size)
		memcpy(&v, (const char *)r + at, bytes);
	return v;
}

/* The buckets of a histogram that a record has. */
struct old_hist {
	const struct mxbpf_bucket *buckets;
	unsigned nbuckets;
	uint32_t first, n; /* the values from the first bucket to the last one; n 0: the kind has no histogram */
};

/* Returns false if the histogram is not valid: its buckets rise, and lie within the record. */
static bool old_hist_of(const struct mxbpf_rec *r, const struct old_kind *k, struct old_hist *h)
{
	const struct mxbpf_bucket *b = (const void *)((const char *)r + k->bytes);
	unsigned i;

	*h = (struct old_hist){.buckets = b};
	if (!k->nbuckets)
		return true;
	h->nbuckets = *(const uint16_t *)(const void *)((const char *)r + k->nbuckets);
	h->n = 1;
	if (h->nbuckets > (r->size - k->bytes) / sizeof(*b))
		return false;
	for (i = 0; i < h->nbuckets; i++)
		if (b[i].index >= MXBPF_HIST_BUCKETS || (i && b[i].index <= b[i - 1].index))
			return false;
	if (h->nbuckets) {
		h->first = b[0].index;
		h->n = b[h->nbuckets - 1].index - h->first + 1;
	}
	return true;
}

static int old_put_column(struct run *run, const char *name, struct mxbpf_table_column c, struct buf *to)
{
	strncpy(c.name, name, sizeof(c.name) - 1);
	run->row_bytes += c.nvalues * sizeof(uint64_t);
	return buf_put(to, &c, sizeof(c));
}

/* Begins a table without rows. */
static int begin_table(struct run *run, const struct old_kind *k, uint32_t process, const struct old_hist *h,
		       struct buf *to)
{
	struct mxbpf_table head = {.h = {.kind = MXBPF_TABLE, .tgid = process}, .ncols = h->n != 0};
	const struct mxbpf_table_column hist = {.nvalues = (uint16_t)h->n, .first = h->first};
	const struct old_column *c;
	int err;

	*run = (struct run){k, process, to->len, 0};
	strncpy(head.name, k->table, sizeof(head.name) - 1);
	for (c = k->columns; c->name; c++)
		head.ncols++;
	err = buf_put(to, &head, sizeof(head));
	for (c = k->columns; !err && c->name; c++)
		err = old_put_column(run, c->name,
				     (struct mxbpf_table_column){
					     .nvalues = (uint16_t)old_nvalues(c), .id_of = c->id_of, .flags = c->flags},
				     to);
	return err || !h->n ? err : old_put_column(run, "hist", hist, to);
}

static void fill_cells(const struct mxbpf_rec *r, const struct old_kind *k, const struct old_hist *h, uint64_t *cell)
{
	const struct old_column *c;
	unsigned i;

	for (c = k->columns; c->name; c++)
		for (i = 0; i < old_nvalues(c); i++)
			*cell++ = old_value(r, c, i);
	for (i = 0; i < h->nbuckets; i++)
		cell[h->buckets[i].index - h->first] = h->buckets[i].count;
}

static int old_put_row(struct run *run, const struct old_kind *k, const struct mxbpf_rec *r, struct buf *to)
{
	struct mxbpf_table *t;
	struct old_hist h;
	uint64_t *cells;

	if (!old_hist_of(r, k, &h))
		return -EBADMSG;
	if (run->kind != k || h.n || run->process != r->tgid ||
	    to->len - run->at + run->row_bytes > MXBPF_TABLE_BYTES_MAX)
		if (begin_table(run, k, r->tgid, &h, to))
			return -ENOMEM;
	cells = buf_add(to, run->row_bytes);
	if (!cells)
		return -ENOMEM;
	memset(cells, 0, run->row_bytes);
	fill_cells(r, k, &h, cells);
	t = buf_place(to, run->at);
	t->nrows++;
	t->h.size = (uint16_t)(to->len - run->at);
	return 0;
}

int old_convert(const void *recs, size_t bytes, struct buf *to)
{
	const struct mxbpf_rec *r;
	const struct old_kind *k;
	struct run run = {0};
	size_t pos;
	int err = 0;

	for (pos = 0; !err && pos < bytes; pos += r->size) {
		r = (const void *)((const char *)recs + pos);
		k = kind_is_whole(r, bytes - pos) ? old_kind_of(r) : NULL;
		if (!kind_is_whole(r, bytes - pos) || (k && r->size < k->bytes))
			return -EBADMSG;
		if (!k)
			run.kind = NULL;
		err = k ? old_put_row(&run, k, r, to) : buf_put(to, r, r->size);
	}
	return err;
}
