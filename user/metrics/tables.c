// SPDX-License-Identifier: Apache-2.0
/*
 * Series of tables: columns say which counter they add to, and which texts of the row are its labels. A row of a
 * process adds to the series of that process's labels.
 */
#include <errno.h>
#include <string.h>

#include "metrics/priv.h"
#include "model/feature.h"
#include "view/sheet.h"

#define TABLE_FAMILIES_MAX 32		   /* further ones are left out */
#define KIND_OF_TABLES	   MXBPF_CLASS_MAX /* kinds of names in met_tells(): first the classes of calls */

/* ---- families */

static struct met_family families[TABLE_FAMILIES_MAX];
static unsigned nfamilies;

static enum met_unit unit_of(const struct tbl_column *c)
{
	return c->type == TBL_NS ? MET_NS : c->type == TBL_BYTES ? MET_BYTES : MET_COUNT;
}

/* Returns the place of the family of a column, or nfamilies. */
static unsigned tables_place_of(const struct tbl_metric *of)
{
	unsigned i = 0;

	while (i < nfamilies && strcmp(families[i].name, of->name))
		i++;
	return i;
}

/* They are in the order of their tables, so that outputs do not depend on what came first. */
static void make_families(void)
{
	const struct view_sheet *const *sh;
	const struct tbl_column *c;

	for (sh = view_sheets; *sh; sh++)
		for (c = (*sh)->columns; c && c->bytes; c++)
			if (c->metric && tables_place_of(c->metric) == nfamilies && nfamilies < TABLE_FAMILIES_MAX)
				families[nfamilies++] = (struct met_family){
					.name = c->metric->name, .help = c->metric->help, .unit = unit_of(c)};
}

const struct met_family *met_table_family(unsigned i)
{
	return &families[i];
}

void met_add_column(struct met *m, const struct tbl_metric *of, const char *labels, uint64_t n)
{
	const unsigned i = tables_place_of(of);

	if (i < nfamilies)
		met_add(m, MET_FAMILIES + i, labels, n);
}

/* ---- rows */

struct taking {
	struct view s;
	struct met *m;
	const struct mdl_interval *in;
	bool worth; /* the row is large enough for a name of its own */
};

/* Names that look the same in the label are one. */
static void label_text(struct taking *t, const struct met_process *p, const struct view_sheet *sh,
		       const struct tbl_column *c, const void *row, struct met_labels *l)
{
	const uint64_t kind = hash_text(KIND_OF_TABLES, sh->title, strlen(sh->title));
	const struct view_text text = view_cell_text(c, row);
	const size_t shown = text.len < MET_LABEL_BYTES ? text.len : MET_LABEL_BYTES;

	if (!(c->flags & TBL_MANY) || met_tells(t->m, p, kind, hash_text(HASH_SEED, text.data, shown), t->worth))
		met_label(l, c->label, text.data, text.len);
	else
		met_label_text(l, c->label, "other");
}

/* nameless: the labels without texts. */
static bool label_row(struct taking *t, const struct view_sheet *sh, const void *row, struct met_labels *l,
		      struct met_labels *nameless)
{
	const uint32_t tgid = view_row_process(sh, row);
	const struct met_process *p = tgid ? met_process_of(t->m, t->in, tgid) : NULL;
	const struct tbl_column *c;

	if (!p)
		return false;
	met_labels_begin(l, p->labels);
	for (c = sh->columns; c->bytes; c++)
		if (c->label && !view_is_text(c))
			met_label_device(t->m, t->in, tgid, (uint32_t)view_cell_number(c, row), l);
	*nameless = *l;
	for (c = sh->columns; c->bytes; c++)
		if (c->label && view_is_text(c))
			label_text(t, p, sh, c, row, l);
	return true;
}

/* Returns false if the column is no metric, or if its value is not known. */
static bool has_number(const struct taking *t, const struct tbl_column *c, const void *row, uint64_t *n)
{
	*n = c->metric ? view_cell_number(c, row) : 0;
	return c->metric && view_is_known(&t->s, c, row);
}

/* The largest number of a row. */
static uint64_t size_of(const struct taking *t, const struct view_sheet *sh, const void *row)
{
	const struct tbl_column *c;
	uint64_t n, most = 0;

	for (c = sh->columns; c->bytes; c++)
		if (has_number(t, c, row, &n) && n > most)
			most = n;
	return most;
}

/* A row without a number is not labelled, because that would keep a process that has ended. */
static void take_row(struct taking *t, const struct view_sheet *sh, const void *row, uint64_t all)
{
	const uint64_t size = size_of(t, sh, row);
	const struct tbl_column *c;
	struct met_labels l, nameless;
	uint64_t n;

	t->worth = size >= all / MET_LEAST_SHARE;
	if (!size || !label_row(t, sh, row, &l, &nameless))
		return;
	for (c = sh->columns; c->bytes; c++)
		if (has_number(t, c, row, &n))
			met_add_column(t->m, c->metric, c->metric->nameless ? nameless.text : l.text, n);
}

static int take_sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	struct taking *t = (struct taking *)s;
	uint64_t all = 0;
	const void *row;
	size_t i;

	for (i = 0; i < list->n; i++) {
		row = view_row(s, sh, table, i);
		if (!row)
			return -ENOMEM;
		add_sat(&all, size_of(t, sh, row));
	}
	for (i = 0; i < list->n; i++) {
		row = view_row(s, sh, table, i);
		if (!row)
			return -ENOMEM;
		take_row(t, sh, row, all);
	}
	return 0;
}

static bool has_metrics(const struct view_sheet *sh)
{
	const struct tbl_column *c;

	for (c = sh->columns; c && c->bytes; c++)
		if (c->metric)
			return true;
	return false;
}

int met_take_tables(struct met *m, const struct mdl_interval *in)
{
	static const struct view_ops ops = {.name = "metrics", .sheet = take_sheet};
	static const struct view_opts opts;
	const struct view_input input = {.session = in->session, .model = in->model};
	struct err e = {0};
	struct taking t = {.s = {.ops = &ops, .in = &input, .opts = &opts, .err = &e}, .m = m, .in = in};
	const struct view_sheet *const *sh;
	int err = 0;

	make_families();
	for (sh = view_sheets; !err && *sh; sh++)
		if (!(*sh)->of_class && has_metrics(*sh))
			err = view_write_sheet(&t.s, *sh);
	return err;
}
