// SPDX-License-Identifier: Apache-2.0
#include "compare/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/stats.h"
#include "feature/cost/cost.h"

/* ---- what can be compared */

static bool is_key(const struct tbl_column *c)
{
	if (!c->key || c->type == TBL_NOTE || c->type == TBL_PID || !strcmp(c->key, "tid"))
		return false;
	if (view_is_text(c) || c->type == TBL_DEVICE)
		return c->merge != TBL_LAST;
	return c->merge == TBL_IS_KEY && c->type != TBL_NAME;
}

static bool is_level(const struct tbl_column *c)
{
	return c->merge == TBL_MAX;
}

static bool is_number(const struct tbl_column *c)
{
	if (!c->key || c->bytes > sizeof(uint64_t))
		return false;
	return c->type == TBL_BYTES ? c->merge == TBL_SUM || is_level(c)
				    : c->merge == TBL_SUM && (c->type == TBL_COUNT || c->type == TBL_NS);
}

/* Returns false if the table has no numbers that compare. */
static bool describe(struct cmp_table *t, const struct view_sheet *sh)
{
	struct view_flat flat;
	unsigned i;

	*t = (struct cmp_table){.sheet = sh, .keys = UINT32_MAX, .numbers = UINT32_MAX};
	view_sheet_name(sh, t->name);
	view_row_columns(sh, &flat);
	for (i = 0; t->name[0] && i < flat.n; i++) {
		if (is_number(&flat.columns[i]) && t->nnumbers < CMP_COLUMNS_MAX)
			t->number[t->nnumbers++] = flat.columns[i];
		else if (is_key(&flat.columns[i]) && t->nkeys < CMP_COLUMNS_MAX)
			t->key[t->nkeys++] = flat.columns[i];
	}
	return t->nnumbers;
}

bool cmp_has_table(const struct view_sheet *sh)
{
	struct cmp_table t;

	return describe(&t, sh);
}

/* ---- rows */

struct taking {
	struct view s;
	struct cmp_tables *t;
	struct cmp_table *of;
	unsigned run, runs; /* of both sides */
};

static uint32_t columns_of(const struct view *s, const struct tbl_column *c, unsigned n, const void *table)
{
	uint32_t has = 0;

	while (n--)
		has |= view_has_column(s, &c[n], table) ? 1u << n : 0;
	return has;
}

/* Finds out which columns the recordings with rows have. */
static int survey(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct cmp_table *of = ((struct taking *)s)->of;
	const uint32_t keys = columns_of(s, of->key, of->nkeys, table);

	if (!((const struct view_list *)table)->n)
		return 0;
	of->any_keys |= keys;
	of->keys &= keys;
	of->numbers &= columns_of(s, of->number, of->nnumbers, table);
	return 0;
}

/*
 * Drops columns that a recording lacks, because rows that only one side tells apart by them do not join. Sizes of such
 * rows cannot be added up.
 */
static void drop_columns(struct cmp_table *of)
{
	unsigned i, keys = 0, numbers = 0;

	for (i = 0; i < of->nkeys; i++)
		if (of->keys & 1u << i)
			of->key[keys++] = of->key[i];
	for (i = 0; i < of->nnumbers; i++)
		if (of->numbers & 1u << i && !(of->any_keys & ~of->keys && is_level(&of->number[i])))
			of->number[numbers++] = of->number[i];
	of->nkeys = keys;
	of->nnumbers = numbers;
}

/* "process 1234" names one without a rank. No other recording has this number. */
static bool names_process(struct view_text text, uint32_t tgid)
{
	char number[32];
	const int n = snprintf(number, sizeof(number), "process %" PRIu32, tgid);

	return text.data && memmem(text.data, text.len, number, (size_t)n);
}

static int put_key(const struct taking *k, const struct tbl_column *c, const void *row, struct buf *to)
{
	const struct view *s = &k->s;
	char cell[TBL_CELL_BYTES] = "";
	struct view_text text = view_word(cell);

	if (view_is_text(c))
		text = view_has_value(c, row) ? view_cell_text(c, row) : text;
	else if (c->type == TBL_DEVICE)
		text = view_people_text(s, c, row, cell);
	else if (!isnan(view_cell_value(c, row)))
		text.len = (size_t)snprintf(cell, sizeof(cell), "%" PRIu64, view_cell_number(c, row));
	if (names_process(text, view_row_process(k->of->sheet, row)))
		text.len = 0;
	return (text.data && buf_put(to, text.data, strnlen(text.data, text.len))) || buf_put(to, "", 1) ? -ENOMEM : 0;
}

/* Adds the values of a row whose keys are the last ones. Returns the place of the first, or SIZE_MAX without memory. */
static size_t place_of(struct taking *k, size_t keys)
{
	static const double nothing[2 * CMP_RUNS_MAX];
	struct cmp_tables *t = k->t;
	struct cmp_value v = {.of = k->of, .keys = keys};
	const uint64_t by = hash_text(HASH_SEED, t->keys.data + keys, t->keys.len - keys);
	uint64_t *at = hash_put(&t->rows, (uint64_t)(k->of - t->table), by);
	unsigned i;

	if (at && *at) {
		t->keys.len = keys;
		return *at - 1;
	}
	for (i = 0; at && i < k->of->nnumbers; i++) {
		v.number = &k->of->number[i];
		v.place = buf_count(&t->values, v);
		if (buf_put(&t->values, &v, sizeof(v)) || buf_put(&t->sums, nothing, k->runs * sizeof(double)))
			return SIZE_MAX;
	}
	if (!at)
		return SIZE_MAX;
	*at = v.place + 2 - k->of->nnumbers;
	return *at - 1;
}

static int take_row(struct taking *k, const void *row)
{
	const size_t keys = k->t->keys.len;
	double v, *to;
	size_t place;
	unsigned i;

	for (i = 0; i < k->of->nkeys; i++)
		if (put_key(k, &k->of->key[i], row, &k->t->keys))
			return -ENOMEM;
	place = place_of(k, keys);
	for (i = 0; place != SIZE_MAX && i < k->of->nnumbers; i++) {
		v = view_is_known(&k->s, &k->of->number[i], row) ? view_cell_value(&k->of->number[i], row) : NAN;
		to = buf_at(&k->t->sums, double, (place + i) * k->runs + k->run);
		if (!is_level(&k->of->number[i]) || isnan(v))
			*to += v; /* what is not known makes the sum unknown */
		else if (v > *to)
			*to = v;
	}
	return place == SIZE_MAX ? -ENOMEM : 0;
}

static int take(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct taking *k = (struct taking *)s;
	const struct view_list *list = table;
	const void *row;
	size_t i;

	for (i = 0; i < list->n && k->of->nnumbers; i++) {
		row = view_row(s, sh, table, i);
		if (!row || take_row(k, row))
			return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	return 0;
}

static const struct cmp_run *run_of(const struct cmp_sides *of, unsigned i)
{
	return i < of->n[CMP_A] ? &of->run[CMP_A][i] : &of->run[CMP_B][i - of->n[CMP_A]];
}

static int each_run(struct cmp_tables *t, struct cmp_table *of, const struct cmp_sides *sides,
		    const struct view_ops *ops, struct err *e)
{
	static const struct view_opts opts;
	struct view_input input = {0};
	struct taking k = {.s = {.ops = ops, .in = &input, .opts = &opts, .err = e}, .t = t, .of = of};
	int err = 0;

	k.runs = sides->n[CMP_A] + sides->n[CMP_B];
	for (k.run = 0; k.run < k.runs && !err; k.run++) {
		input.session = run_of(sides, k.run)->s;
		input.model = run_of(sides, k.run)->m;
		t->slices |= cost_has_slices(input.model);
		if ((of->sheet->when && !of->sheet->when(&k.s)) ||
		    (cost_lacks_memory(input.model) && !strcmp(of->sheet->member, "memory")))
			of->lacks[k.run >= sides->n[CMP_A]] = true;
		else
			err = view_write_sheet(&k.s, of->sheet);
	}
	return err;
}

static int take_table(struct cmp_tables *t, struct cmp_table *of, const struct cmp_sides *sides, struct err *e)
{
	static const struct view_ops surveys = {.name = "diff", .sheet = survey},
				     takes = {.name = "diff", .sheet = take};
	int err = each_run(t, of, sides, &surveys, e);

	drop_columns(of);
	return err || of->lacks[CMP_A] || of->lacks[CMP_B] ? err : each_run(t, of, sides, &takes, e);
}

/* ---- judging */

/*
 * The p value is that of Student's t for the recordings of both sides. Their deviation is at least 1 % of the value,
 * and that of a count at least what chance gives to rare events.
 */
static void compare_value(const struct cmp_tables *t, struct cmp_value *v, const struct cmp_sides *of)
{
	const double runs = of->n[CMP_A] + of->n[CMP_B];
	const double *sum = buf_at(&t->sums, double, v->place *(size_t)runs);
	double x, unit, least = 0, variance = 0, mean, square, most;
	const struct cmp_run *run;
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++) {
		for (i = 0, mean = 0, square = 0; i < of->n[side]; i++) {
			run = &of->run[side][i];
			unit = is_level(v->number) ? 1
			       : t->iterations	   ? (double)run->x.count
						   : (double)run->s->duration_ns / 1e9;
			x = *sum++ / unit;
			mean += x / of->n[side];
			square += x * x / of->n[side];
			least = v->number->type == TBL_COUNT ? fmax(least, 1 / unit) : 0;
		}
		v->value[side] = mean;
		variance += of->n[side] * (square - mean * mean) / (runs - 2);
	}
	v->change = v->value[CMP_A] > 0 ? v->value[CMP_B] / v->value[CMP_A] - 1 : 0;
	most = fmax(fabs(v->value[CMP_A]), fabs(v->value[CMP_B]));
	variance = fmax(variance, fmax(most * least, most * most * 1e-4)) * (1. / of->n[CMP_A] + 1. / of->n[CMP_B]);
	x = (v->value[CMP_B] - v->value[CMP_A]) / sqrt(variance);
	v->p = t->several && !t->slices && isfinite(x) ? cmp_student(x, runs - 2) : 1;
}

static double distance(const struct cmp_value *v)
{
	const double d = fabs(v->value[CMP_B] - v->value[CMP_A]);

	return isfinite(d) ? d : 0;
}

static int by_change(const void *va, const void *vb)
{
	static const int order[TBL_NTYPES] = {[TBL_NS] = 1, [TBL_BYTES] = 2, [TBL_COUNT] = 3};
	const struct cmp_value *a = va, *b = vb;
	const double x = distance(a), y = distance(b);

	if (a->of != b->of)
		return a->of < b->of ? -1 : 1;
	if (a->number->type != b->number->type)
		return order[a->number->type] - order[b->number->type];
	return x > y ? -1 : x < y ? 1 : a->place < b->place ? -1 : a->place > b->place;
}

static int judge(struct cmp_tables *t)
{
	const size_t n = buf_count(&t->values, struct cmp_value);
	struct cmp_value *v = (struct cmp_value *)t->values.data;
	double *p = calloc(n + 1, sizeof(*p));
	size_t i;

	if (!p)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		p[i] = v[i].p;
	cmp_holm(p, n);
	for (i = 0; i < n; i++) {
		v[i].p = p[i];
		v[i].certain = p[i] < CMP_LEVEL && (!v[i].value[CMP_A] || fabs(v[i].change) >= CMP_FLOOR);
	}
	free(p);
	if (n)
		qsort(v, n, sizeof(*v), by_change);
	return 0;
}

/* Values are sorted, so the first time of a table is the one that changed most. */
static void find_most(struct cmp_tables *t, const struct cmp_result *r)
{
	const double unit_ns = t->iterations ? fmax(r->wall_ns[CMP_A], r->wall_ns[CMP_B]) : 1e9;
	const struct cmp_table *last = NULL;
	const struct cmp_value *v;
	unsigned i;
	size_t k;

	for (k = 0; k < buf_count(&t->values, *v); k++) {
		v = buf_at(&t->values, struct cmp_value, k);
		if (v->of == last || v->number->type != TBL_NS || v->certain != t->several ||
		    distance(v) < CMP_SHARE * unit_ns)
			continue;
		last = v->of;
		for (i = t->nmost; i && distance(t->most[i - 1]) < distance(v); i--)
			if (i < CMP_MOST)
				t->most[i] = t->most[i - 1];
		if (i < CMP_MOST)
			t->most[i] = v;
		t->nmost += t->nmost < CMP_MOST;
	}
}

int cmp_tables_make(struct cmp_tables *t, const struct cmp_sides *of, const struct cmp_result *r,
		    const struct view_sheet *only, struct err *e)
{
	const struct view_sheet *const *sh = view_sheets;
	unsigned i;
	size_t k;
	int err = 0;

	*t = (struct cmp_tables){.iterations = r->iterations, .several = r->several, .one = only};
	while (*sh)
		sh++;
	t->table = calloc((size_t)(sh - view_sheets), sizeof(*t->table));
	if (!t->table)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (sh = view_sheets; *sh; sh++)
		t->n += (!only || only == *sh) && describe(&t->table[t->n], *sh);
	for (i = 0; i < t->n && !err; i++)
		err = take_table(t, &t->table[i], of, e);
	for (k = 0; !err && k < buf_count(&t->values, struct cmp_value); k++)
		compare_value(t, buf_at(&t->values, struct cmp_value, k), of);
	if (!err && judge(t))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!err && !t->slices)
		find_most(t, r);
	return err;
}

void cmp_tables_fini(struct cmp_tables *t)
{
	buf_fini(&t->values);
	buf_fini(&t->keys);
	buf_fini(&t->sums);
	hash_fini(&t->rows);
	free(t->table);
}
