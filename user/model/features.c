// SPDX-License-Identifier: Apache-2.0
/* Calls the features of a model. */
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Features are found by their addresses: slot i of a model is tried first, then the slots behind it. */
static size_t first_slot(const struct mdl_feature *f)
{
	return (size_t)(((uintptr_t)f / 16 * 0x9e3779b97f4a7c15ull) >> (64 - MDL_SLOT_BITS));
}

static struct feature_slot *features_slot_of(const struct mdl *m, const struct mdl_feature *f)
{
	size_t i = first_slot(f);

	while (m->slots[i].feature && m->slots[i].feature != f)
		i = (i + 1) % MDL_SLOTS;
	return (struct feature_slot *)&m->slots[i];
}

static bool has_state(const struct mdl *m, const struct mdl_feature *f)
{
	return !f->state_bytes || features_slot_of(m, f)->state;
}

static void add_feature(struct mdl *m, const struct mdl_feature *f)
{
	unsigned i;

	features_slot_of(m, f)->feature = f;
	for (i = 0; i < MDL_FEATURE_KINDS && f->kinds[i].kind; i++) {
		m->kinds[f->kinds[i].kind].fold = f->kinds[i].fold;
		m->kinds[f->kinds[i].kind].feature = f;
	}
	for (i = 0; i < MDL_FEATURE_TABLES && f->tables[i].def; i++)
		if (f->tables[i].row_of)
			m->kinds[f->tables[i].row_of] = (struct kind_fold){features_fold_row, f, f->tables[i].def};
	if (f->before_row)
		m->before_row[m->nbefore_row++] = f->before_row;
	if (f->span)
		m->span[m->nspan++] = f->span;
}

void features_init(struct mdl *m)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		add_feature(m, *f);
}

void mdl_without_devices(struct mdl *m)
{
	const struct mdl_feature *const *f;

	m->without_devices = true;
	m->nspan = 0;
	for (f = mdl_features; *f; f++)
		if ((*f)->span && !(*f)->of_devices)
			m->span[m->nspan++] = (*f)->span;
}

bool mdl_sees_devices(const struct mdl *m)
{
	return !m->without_devices;
}

void features_fini(struct mdl *m)
{
	const struct mdl_feature *const *f;
	unsigned i;

	for (f = mdl_features; *f; f++) {
		if ((*f)->fini && has_state(m, *f))
			(*f)->fini(m);
		free(features_slot_of(m, *f)->state);
		for (i = 0; i < MDL_FEATURE_TABLES; i++)
			tbl_fini(&features_slot_of(m, *f)->tables[i]);
	}
}

bool mdl_asked(const struct mdl_session *s, const struct mdl_feature *f)
{
	return s->features & f->bit;
}

void *mdl_state(struct mdl *m, const struct mdl_feature *f)
{
	struct feature_slot *slot = features_slot_of(m, f);

	if (!slot->state)
		slot->state = calloc(1, f->state_bytes);
	return slot->state;
}

const void *mdl_state_of(const struct mdl *m, const struct mdl_feature *f)
{
	return features_slot_of(m, f)->state;
}

/* ---- tables */

static unsigned number_of_table(const struct mdl_feature *f, const struct tbl_def *def)
{
	unsigned i = 0;

	while (f->tables[i].def != def)
		i++;
	return i;
}

static struct tbl *table_of(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def)
{
	struct tbl *t = &features_slot_of(m, f)->tables[number_of_table(f, def)];

	t->def = def;
	return t;
}

const struct tbl *mdl_table_of(const struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def)
{
	const struct tbl *t = &features_slot_of(m, f)->tables[number_of_table(f, def)];

	return t->def ? t : NULL;
}

const void *mdl_table_rows(const struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, size_t *n)
{
	const struct tbl *t = mdl_table_of(m, f, def);

	*n = t ? tbl_count(t) : 0;
	return t ? t->rows.data : NULL;
}

static const uint64_t *at_name(const void *row, const struct tbl_column *c)
{
	return (const uint64_t *)((const char *)row + c->at);
}

/* Names of a new row get placeholders. */
static int expect_names(struct mdl *m, const struct tbl_def *def, const void *row)
{
	const struct tbl_column *c;
	int err = row ? 0 : -ENOMEM;

	for (c = def->columns; !err && c->bytes; c++)
		if (c->type == TBL_NAME && c->name_kind == MXBPF_NAME_SPAN && *at_name(row, c))
			err = mdl_expect_name(m, *at_name(row, c));
	return err;
}

uint32_t mdl_table_place(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, const void *row)
{
	struct tbl *t = table_of(m, f, def);
	bool added;
	const char *to = tbl_add(t, row, &added);

	return !to || (added && expect_names(m, def, to))
		       ? 0
		       : 1 + (uint32_t)((size_t)(to - t->rows.data) / def->row_bytes);
}

void *mdl_table_row(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, const void *like)
{
	bool added;
	void *row = tbl_row(table_of(m, f, def), like, &added);

	return row && added && expect_names(m, def, row) ? NULL : row;
}

int mdl_table_add(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, const void *row)
{
	return mdl_table_place(m, f, def, row) ? 0 : -ENOMEM;
}

int features_fold_row(struct mdl *m, const struct mxbpf_rec *r)
{
	const struct kind_fold *k = &m->kinds[r->kind];
	const void *row = r;
	void *longer = NULL;
	int err = 0;

	if (r->size < k->table->row_bytes) {
		row = longer = calloc(1, k->table->row_bytes); /* of an earlier version */
		if (!longer)
			return -ENOMEM;
		memcpy(longer, r, r->size);
	}
	if (tbl_is_within(k->table, row))
		err = mdl_table_add(m, k->feature, k->table, row);
	free(longer);
	return err;
}

const struct mdl_feature *features_of_table(const struct mxbpf_rec *r, const struct tbl_def **def)
{
	const struct mxbpf_table *t = (const void *)r;
	const struct mdl_feature *const *f;
	unsigned i;

	for (f = mdl_features; *f; f++)
		for (i = 0; i < MDL_FEATURE_TABLES && (*f)->tables[i].def; i++) {
			*def = (*f)->tables[i].def;
			if (!strcmp((*def)->name, t->name))
				return *f;
		}
	return NULL;
}

/* A table without a feature is of a newer version. */
int features_fold_table(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_table *t = (const void *)rec;
	const struct tbl_def *def;
	const struct mdl_feature *f = features_of_table(rec, &def);
	struct tbl_reader r;
	void *row;
	size_t i;
	int err = 0;

	if (!f)
		return 0;
	row = malloc(def->row_bytes);
	if (!row)
		return -ENOMEM;
	tbl_reader_open(&r, def, t);
	for (i = 0; !err && i < t->nrows; i++) {
		tbl_reader_row(&r, i, row);
		err = mdl_table_add(m, f, def, row);
	}
	free(row);
	return err;
}

/* ---- functions that call one hook of all features */

/* The body of a function that calls a hook of all features that have it. */
#define TELL(hook, ...)                                                                                                \
	const struct mdl_feature *const *f;                                                                            \
	int err = 0;                                                                                                   \
                                                                                                                       \
	for (f = mdl_features; *f && !err; f++)                                                                        \
		err = (*f)->hook ? (*f)->hook(__VA_ARGS__) : 0;                                                        \
	return err

int features_alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	TELL(alloc, m, a);
}

int mdl_see_device(struct mdl *m)
{
	TELL(device, m);
}

int mdl_see_off_cpu(struct mdl *m, const struct mxbpf_sched *r)
{
	TELL(off_cpu, m, r);
}

int mdl_see_iteration(struct mdl *m, const struct mdl_ended *it)
{
	TELL(iteration, m, it);
}

int mdl_see_activity(struct mdl *m, const struct mxbpf_activity *a)
{
	TELL(activity, m, a);
}

int mdl_see_launch(struct mdl *m, const struct mxbpf_launch *l)
{
	TELL(launch, m, l);
}

int mdl_see_settled(struct mdl *m, const struct win_work *work, size_t n, uint64_t until_ns)
{
	TELL(settled, m, work, n, until_ns);
}

int features_window(struct mdl *m)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->window && has_state(m, *f) ? (*f)->window(m) : 0;
	return err;
}

const struct tbl *mdl_tables_finished(const struct mdl *m, const struct mdl_feature *f,
				      struct tbl copies[MDL_FEATURE_TABLES])
{
	const struct tbl *t = features_slot_of(m, f)->tables;
	unsigned i;
	int err = 0;

	for (i = 0; i < MDL_FEATURE_TABLES; i++)
		copies[i] = (struct tbl){.def = t[i].def};
	if (!f->finish || !has_state(m, f))
		return t;
	for (i = 0; !err && i < MDL_FEATURE_TABLES; i++)
		err = t[i].def ? tbl_copy(&copies[i], &t[i]) : 0;
	return err || f->finish(m, copies) ? NULL : copies;
}

void mdl_tables_fini(struct tbl copies[MDL_FEATURE_TABLES])
{
	unsigned i;

	for (i = 0; i < MDL_FEATURE_TABLES; i++)
		tbl_fini(&copies[i]);
}

static int emit_tables(const struct mdl *m, const struct mdl_feature *f, struct buf *out)
{
	struct tbl copies[MDL_FEATURE_TABLES];
	const struct tbl *t = mdl_tables_finished(m, f, copies);
	int err = t ? 0 : -ENOMEM;
	unsigned i;

	for (i = 0; !err && i < MDL_FEATURE_TABLES; i++)
		err = t[i].def ? tbl_emit(&t[i], out) : 0;
	mdl_tables_fini(copies);
	return err;
}

int features_emit(const struct mdl *m, struct buf *out)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = emit_tables(m, *f, out) || ((*f)->emit && has_state(m, *f) && (*f)->emit(m, out)) ? -ENOMEM : 0;
	return err;
}

int features_emit_row(const struct mdl_row *row, struct buf *out)
{
	TELL(emit_row, row, out);
}

void features_merge_row(struct mdl_row *to, const struct mdl_row *from)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->merge_row)
			(*f)->merge_row(to, from);
}

void features_own_row(struct mdl_row *row)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->own_row)
			(*f)->own_row(row);
}

int mdl_tables_copy(struct mdl *to, const struct mdl *from, const struct mdl_feature *f)
{
	const struct tbl *t = features_slot_of(from, f)->tables;
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < MDL_FEATURE_TABLES; i++)
		err = t[i].def ? tbl_copy(table_of(to, f, t[i].def), &t[i]) : 0;
	return err;
}

int features_copy(struct mdl *to, const struct mdl *from)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = mdl_tables_copy(to, from, *f) || ((*f)->copy && has_state(from, *f) && (*f)->copy(to, from))
			      ? -ENOMEM
			      : 0;
	return err;
}

/* Returns true if the feature has a state, or rows in its tables. */
static bool has_anything(const struct mdl *m, const struct mdl_feature *f)
{
	bool any = has_state(m, f);
	unsigned i;

	for (i = 0; i < MDL_FEATURE_TABLES; i++)
		any |= features_slot_of(m, f)->tables[i].def != NULL;
	return any;
}

int mdl_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->move && has_anything(from, *f) ? (*f)->move(to, from, now_ns) : 0;
	return err;
}

bool features_sum_kind(const struct mdl *sum, const struct mxbpf_rec *r)
{
	return r->kind < MDL_KINDS && sum->kinds[r->kind].feature && sum->kinds[r->kind].feature->sum;
}

bool features_keep_process(const struct mdl *sum, const struct mxbpf_rec *r)
{
	return r->kind < MDL_KINDS && sum->kinds[r->kind].feature && sum->kinds[r->kind].feature->by_process;
}

int features_sum(struct mdl *sum, const struct mdl *m)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->sum && has_state(m, *f) ? (*f)->sum(sum, m) : 0;
	return err;
}

static int tables_processes(const struct mdl *m, const struct mdl_feature *f, mdl_process_fn fn, void *ctx)
{
	const struct tbl *t = features_slot_of(m, f)->tables;
	unsigned k;
	size_t i;
	int err = 0;

	for (k = 0; k < MDL_FEATURE_TABLES; k++)
		for (i = 0; !err && t[k].def && t[k].def->adds_processes && i < tbl_count(&t[k]); i++)
			err = fn(ctx, tbl_process(t[k].def, tbl_at(&t[k], i)));
	return err;
}

int features_processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++) {
		err = tables_processes(m, *f, fn, ctx);
		if (!err && (*f)->processes && has_state(m, *f))
			err = (*f)->processes(m, fn, ctx);
	}
	return err;
}
