// SPDX-License-Identifier: Apache-2.0
/* Tables that are described once: rows, sums, copies, and records that describe themselves. */
#include "table/table.h"

#include "model/feature.h"
#include "records/kinds.h"
#include "unit.h"

struct row {
	uint64_t name_id, place, count, first_ns, last_ns, hist[3];
	int64_t bytes;
	uint32_t tgid, threads;
	uint8_t cls, flags, kind;
};

#define ROW struct row
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(name_id)},
	{.stored = "place", .type = TBL_NAME, KEY_AT(place), .name_kind = MXBPF_NAME_STACK, .flags = TBL_DETAIL},
	{.stored = "class", .type = TBL_COUNT, KEY_AT(cls), .limit = 12},
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{"count", .type = TBL_COUNT, SUM_AT(count)},
	{"bytes", .type = TBL_BYTES, SUM_AT(bytes), .flags = TBL_SIGNED},
	{"first", .type = TBL_MOMENT, MIN_AT(first_ns)},
	{"last", .type = TBL_MOMENT, MAX_AT(last_ns)},
	{"threads", .type = TBL_COUNT, MAX_AT(threads)},
	{"flags", .type = TBL_COUNT, OR_AT(flags)},
	{"kind", .type = TBL_COUNT, LAST_AT(kind)},
	{"hist", .type = TBL_COUNT, SUM_AT(hist)},
	{"made", .type = TBL_COUNT, AT(threads)},
	{0},
};
static const struct tbl_def def = {.name = "rows", .row_bytes = sizeof(struct row), .columns = columns};
/* The same table in an older version. It lacks columns, has others in another order, and has one that is gone now. */
static const struct tbl_column older_columns[] = {
	{"gone", .type = TBL_COUNT, SUM_AT(last_ns)},
	{"count", .type = TBL_COUNT, SUM_AT(count)},
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(name_id)},
	{0},
};
static const struct tbl_def older = {.name = "rows", .row_bytes = sizeof(struct row), .columns = older_columns};

static struct row row_of(uint64_t name_id, uint32_t tgid, uint64_t n)
{
	return (struct row){.name_id = name_id,
			    .place = 7,
			    .count = n,
			    .first_ns = 1000 - n,
			    .last_ns = 1000 + n,
			    .hist = {n, 0, 2 * n},
			    .bytes = -(int64_t)n,
			    .tgid = tgid,
			    .threads = (uint32_t)n,
			    .cls = 2,
			    .flags = (uint8_t)(1 << n % 8),
			    .kind = (uint8_t)(n % 3)};
}

static void add(struct tbl *t, const struct row *r)
{
	bool added;

	CHECK(tbl_add(t, r, &added));
}

static bool is_same(const struct tbl *a, const struct tbl *b)
{
	return tbl_count(a) == tbl_count(b) && !memcmp(a->rows.data, b->rows.data, a->rows.len);
}

/* Reads all records of a table. Returns false if one is not valid. */
static bool read_all(struct tbl *t, const struct buf *recs)
{
	const struct mxbpf_rec *r;
	struct tbl_reader reader;
	struct row row;
	size_t pos = 0, i;

	if (kind_check(recs->data, recs->len))
		return false;
	while ((r = kind_next(recs->data, recs->len, &pos))) {
		tbl_reader_open(&reader, t->def, (const struct mxbpf_table *)r);
		for (i = 0; i < reader.chunk->nrows; i++) {
			tbl_reader_row(&reader, i, &row);
			add(t, &row);
		}
	}
	return true;
}

static void test_rows(void)
{
	FREED(tbl_fini) struct tbl t = {.def = &def}, copy = {.def = &def};
	struct row r = row_of(1, 5, 3), *at;
	bool added;
	unsigned i;

	TEST("rows with equal keys are one: sums, least, largest, bits and the last that is not 0")
	add(&t, &r);
	r = row_of(1, 5, 4);
	r.kind = 0;
	add(&t, &r);
	at = tbl_at(&t, 0);
	CHECK(tbl_count(&t) == 1 && at->count == 7 && at->bytes == -7 && at->first_ns == 996 && at->last_ns == 1004);
	CHECK(at->threads == 4 && at->flags == (1 << 3 | 1 << 4) && at->kind == 0);
	r.kind = 2;
	add(&t, &r);
	r.kind = 0;
	add(&t, &r);
	at = tbl_at(&t, 0);
	CHECK(at->kind == 2 && at->hist[0] == 15 && at->hist[2] == 30);

	TEST("sums stop at the largest value, and at both ends if they are signed")
	r.count = UINT64_MAX;
	r.bytes = INT64_MIN;
	add(&t, &r);
	at = tbl_at(&t, 0);
	CHECK(at->count == UINT64_MAX && at->bytes == INT64_MIN);

	TEST("each key tells rows apart, and a copy has the same rows in the same order")
	for (i = 0; i < 1000; i++) {
		r = row_of(i / 10, 5 + i % 3, 1);
		r.cls = (uint8_t)(i % 2);
		add(&t, &r);
	}
	CHECK(tbl_count(&t) == 1 + 100 * 6);
	CHECK(!tbl_copy(&copy, &t) && is_same(&copy, &t));
	CHECK(tbl_add(&copy, &r, &added) && !added);
}

struct reading {
	uint64_t ns, seq, value;
};
#undef ROW
#define ROW struct reading
static const struct tbl_column reading_columns[] = {
	{"value", .type = TBL_COUNT, LATEST_AT(value)},
	{"at", .type = TBL_MOMENT, ORDER_AT(ns)},
	{"seq", .type = TBL_COUNT, ORDER_AT(seq)},
	{0},
};
#undef ROW
static const struct tbl_def readings = {
	.name = "readings", .row_bytes = sizeof(struct reading), .columns = reading_columns};

/* Three readings in each order. The later ones have the smaller values, and the first one has the largest number. */
static void test_latest(void)
{
	static const struct reading all[] = {{10, 9, 70}, {20, 1, 60}, {20, 2, 50}};
	static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	unsigned i, k;

	TEST("what is of the latest row is so in whichever order rows come")
	for (i = 0; i < 6; i++) {
		FREED(tbl_fini) struct tbl t = {.def = &readings};
		const struct reading *r;
		bool added;

		for (k = 0; k < 3; k++)
			CHECK(tbl_add(&t, &all[orders[i][k]], &added) && added == !k);
		r = tbl_at(&t, 0);
		CHECK(tbl_count(&t) == 1 && r->ns == 20 && r->seq == 2 && r->value == 50);
	}
}

static void test_limit(void)
{
	struct tbl_def small = def;
	FREED(tbl_fini) struct tbl t = {.def = &small};
	struct row r;
	unsigned i;

	TEST("a table that is full keeps what further rows have besides their details")
	small.max_rows = 4;
	for (i = 0; i < 100; i++) {
		r = row_of(1 + i % 2, 5, 1);
		r.place = 1 + i;
		add(&t, &r);
	}
	CHECK(tbl_count(&t) == 6 && ((struct row *)tbl_at(&t, 4))->count == 48);
	CHECK(!((struct row *)tbl_at(&t, 4))->place && !((struct row *)tbl_at(&t, 5))->place);
}

static void test_records(void)
{
	FREED(tbl_fini) struct tbl t = {.def = &def}, again = {.def = &def}, old = {.def = &older};
	FREED(tbl_fini) struct tbl from_old = {.def = &def};
	FREED(buf_fini) struct buf recs = {0}, old_recs = {0};
	struct kind_id_walk id = {0};
	const struct row *a, *b;
	struct row r;
	unsigned i, n = 0;

	TEST("records have all rows of each process, in as many records as they need, but none without a value")
	for (i = 0; i < 3000; i++) {
		r = row_of(1 + i, 5 + i % 2, i % 9);
		add(&t, &r);
	}
	r = (struct row){.name_id = 9999, .tgid = 5};
	add(&t, &r);
	CHECK(!tbl_emit(&t, &recs) && read_all(&again, &recs) && tbl_count(&again) == 3000);
	for (i = 0; i < 3000; i++) {
		a = tbl_at(&again, i);
		b = tbl_at(&t, 2 * (i % 1500) + i / 1500);
		CHECK(!memcmp(a, b, sizeof(*a)));
	}

	TEST("the ids and times of a table are found by its columns")
	while (kind_next_id((const struct mxbpf_rec *)recs.data, &id)) {
		CHECK(id.of ==
		      (n < ((const struct mxbpf_table *)recs.data)->nrows ? MXBPF_NAME_SPAN : MXBPF_NAME_STACK));
		CHECK(id.of == MXBPF_NAME_SPAN ? id.id == 1 + 2 * n : id.id == 7);
		n++;
	}
	CHECK(n == 2u * ((const struct mxbpf_table *)recs.data)->nrows);
	kind_shift_times((struct mxbpf_rec *)recs.data, 100);
	tbl_fini(&again);
	again = (struct tbl){.def = &def};
	CHECK(read_all(&again, &recs));
	a = tbl_at(&again, 1);
	b = tbl_at(&t, 2);
	CHECK(a->first_ns == b->first_ns + 100 && a->last_ns == b->last_ns + 100 && a->count == b->count);

	TEST("columns of another version are skipped, and those that it lacks are 0")
	r = row_of(3, 9, 4);
	add(&old, &r);
	CHECK(!tbl_emit(&old, &old_recs) && read_all(&from_old, &old_recs));
	a = tbl_at(&from_old, 0);
	CHECK(a->name_id == 3 && a->tgid == 9 && a->count == 4 && !a->last_ns && !a->place);
}

static void test_hostile(void)
{
	FREED(tbl_fini) struct tbl t = {.def = &def}, read = {.def = &def};
	FREED(buf_fini) struct buf recs = {0};
	struct mxbpf_table *at;
	struct row r = row_of(1, 5, 1);

	TEST("records that contradict themselves are refused, and values beyond a limit are read as 0")
	r.cls = 200;
	add(&t, &r);
	CHECK(!tbl_emit(&t, &recs) && read_all(&read, &recs) && !((struct row *)tbl_at(&read, 0))->cls);
	at = (struct mxbpf_table *)recs.data;
	at->nrows++;
	CHECK(kind_check(recs.data, recs.len));
	at->nrows--;
	at->columns[0].nvalues = 0;
	CHECK(kind_check(recs.data, recs.len));
	at->columns[0].nvalues = 1;
	at->columns[0].id_of = MXBPF_NAME_KINDS + 1;
	CHECK(kind_check(recs.data, recs.len));
	at->columns[0].id_of = 0;
	memset(at->columns[0].name, 'x', sizeof(at->columns[0].name));
	CHECK(kind_check(recs.data, recs.len));
	at->columns[0].name[0] = at->columns[0].name[sizeof(at->columns[0].name) - 1] = 0;
	CHECK(!kind_check(recs.data, recs.len));
	at->ncols = UINT16_MAX;
	CHECK(kind_check(recs.data, recs.len));
}

/* Returns true if a row fits into a record and each stored column has a name of its own. */
static bool is_sound(const struct tbl_def *d)
{
	size_t bytes = sizeof(struct mxbpf_table), n = 0;
	const struct tbl_column *c, *other;

	for (c = d->columns; c->bytes; c++) {
		const char *name = c->key ? c->key : c->stored;

		if (c->merge == TBL_MADE || (c->merge == TBL_IS_KEY && c->type == TBL_PID))
			continue;
		if (!name || strlen(name) >= MXBPF_TABLE_NAME_BYTES || c->at + c->bytes > d->row_bytes ||
		    (c->bytes > 8 && c->bytes % 8))
			return false;
		for (other = d->columns; other != c; other++)
			if (other->merge != TBL_MADE && !strcmp(other->key ? other->key : other->stored, name))
				return false;
		bytes += sizeof(struct mxbpf_table_column) + (c->bytes > 8 ? c->bytes : 8);
		n++;
	}
	return strlen(d->name) < MXBPF_TABLE_NAME_BYTES && n <= MXBPF_TABLE_COLUMNS_MAX &&
	       bytes <= MXBPF_TABLE_BYTES_MAX;
}

static void test_features(void)
{
	const struct mdl_feature *const *f, *const *other;
	unsigned i, k, n = 0;

	TEST("a row of each stored table fits into a record, and names of tables and columns are unique")
	for (f = mdl_features; *f; f++)
		for (i = 0; i < MDL_FEATURE_TABLES && (*f)->tables[i].def; i++, n++) {
			CHECK(is_sound((*f)->tables[i].def));
			CHECK(!(*f)->tables[i].row_of || kind_numbered((*f)->tables[i].row_of));
			for (other = mdl_features; other != f; other++)
				for (k = 0; k < MDL_FEATURE_TABLES && (*other)->tables[k].def; k++)
					CHECK(strcmp((*other)->tables[k].def->name, (*f)->tables[i].def->name));
		}
	CHECK(n >= 8);
}

int main(void)
{
	test_features();
	test_rows();
	test_latest();
	test_limit();
	test_records();
	test_hostile();
	return unit_end();
}
