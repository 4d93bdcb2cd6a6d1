// SPDX-License-Identifier: Apache-2.0
#include "feature/ranks/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "view/priv.h"
#include "view/sheet.h"

#define SHOWN_MAX 8

/* The time that the processes of one rank spent in the calls of one name. Ranks of different roles are not compared. */
struct cell {
	unsigned role; /* index of the first process with this role in mdl_session.labels */
	enum mxbpf_class cls;
	uint64_t name_id;
	uint32_t rank;
	uint64_t ns;
};

struct row {
	struct view_text name, table, role;
	uint64_t ranks, min_ns, median_ns, max_ns;
	uint32_t min_rank, max_rank;
};

static const enum mxbpf_class classes[] = {MXBPF_CLASS_OPERATOR, MXBPF_CLASS_KVSTORE};
#define NCLASSES (sizeof(classes) / sizeof(classes[0]))

static int ranks_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int ranks_by_name(const void *va, const void *vb)
{
	const struct cell *a = va, *b = vb;
	int by = ranks_compare(a->role, b->role);

	by = by ? by : ranks_compare(a->cls, b->cls);
	by = by ? by : ranks_compare(a->name_id, b->name_id);
	return by ? by : ranks_compare(a->rank, b->rank);
}

static int by_rank(const void *va, const void *vb)
{
	const struct cell *a = va, *b = vb;
	int by = ranks_compare(a->role, b->role);

	return by ? by : ranks_compare(a->rank, b->rank);
}

static int by_ns(const void *va, const void *vb)
{
	const struct cell *a = va, *b = vb;
	int by = ranks_compare(a->ns, b->ns);

	return by ? by : ranks_compare(a->rank, b->rank);
}

/* The widest difference first. */
static int by_spread(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;
	int by = ranks_compare(b->max_ns - b->min_ns, a->max_ns - a->min_ns);

	return by ? by : view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
}

/* pid -> 1 + index in mdl_session.labels, of processes that have a rank. */
static int index_labels(const struct mdl_session *ss, struct hash *at)
{
	uint64_t *mine;
	size_t i;

	for (i = 0; i < ss->nlabels; i++) {
		if (ss->labels[i].numbers[MDL_RANK] == MDL_NO_NUMBER)
			continue;
		mine = hash_put(at, ss->labels[i].pid, 0);
		if (!mine)
			return -ENOMEM;
		*mine = i + 1;
	}
	return 0;
}

static unsigned ranks_role_of(const struct mdl_session *ss, size_t label)
{
	unsigned i = 0;

	while (strcmp(ss->labels[i].texts[MDL_ROLE], ss->labels[label].texts[MDL_ROLE]))
		i++;
	return i;
}

static int ranks_collect(struct mdl *m, const struct mdl_session *ss, struct buf *cells)
{
	const struct mdl_row *const *rows;
	struct hash at = {0};
	const uint64_t *label;
	struct cell c;
	size_t n, i, k;
	int err = index_labels(ss, &at);

	for (k = 0; k < NCLASSES; k++)
		for (i = 0, rows = mdl_rows(m, classes[k], &n); i < n && !err; i++) {
			label = hash_get(&at, rows[i]->tgid, 0);
			if (!label)
				continue;
			c = (struct cell){ranks_role_of(ss, *label - 1), classes[k], rows[i]->name_id,
					  ss->labels[*label - 1].numbers[MDL_RANK], rows[i]->total_ns};
			err = buf_put(cells, &c, sizeof(c));
		}
	hash_fini(&at);
	return err;
}

/* Adds the cells of one rank and name up. Returns their number. */
static size_t ranks_merge(struct cell *c, size_t n)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (kept && !ranks_by_name(&c[kept - 1], &c[i]))
			c[kept - 1].ns += c[i].ns;
		else
			c[kept++] = c[i];
	return kept;
}

/* The ranks of a role, each once, in the order of their numbers. */
static size_t ranks_of(const struct cell *all, size_t n, unsigned role, struct cell *ranks)
{
	size_t i, k = 0, kept = 0;

	for (i = 0; i < n; i++)
		if (all[i].role == role)
			ranks[k++] = all[i];
	qsort(ranks, k, sizeof(*ranks), by_rank);
	for (i = 0; i < k; i++)
		if (!kept || ranks[kept - 1].rank != ranks[i].rank)
			ranks[kept++] = ranks[i];
	return kept;
}

/* Fills `of` with the time of each rank in the calls of one name; a rank without such calls has 0. */
static void spread(const struct cell *c, size_t n, const struct cell *ranks, size_t nranks, struct cell *of)
{
	size_t i, k = 0;

	for (i = 0; i < nranks; i++) {
		of[i] = ranks[i];
		of[i].ns = k < n && c[k].rank == ranks[i].rank ? c[k++].ns : 0;
	}
	qsort(of, nranks, sizeof(*of), by_ns);
}

static struct row ranks_row_of(const struct view *s, const struct cell *name, const struct cell *of, size_t n)
{
	const struct mdl_session *ss = s->in->session;
	struct row r = {.table = view_word(ss->class_title[name->cls]),
			.role = view_word(ss->labels[name->role].texts[MDL_ROLE]),
			.ranks = n,
			.min_ns = of[0].ns,
			.median_ns = of[(n - 1) / 2].ns / 2 + of[n / 2].ns / 2,
			.max_ns = of[n - 1].ns,
			.min_rank = of[0].rank,
			.max_rank = of[n - 1].rank};

	r.name.data = mdl_name(s->in->model, name->name_id, &r.name.len);
	r.role.data = r.role.len ? r.role.data : NULL;
	return r;
}

static size_t make_rows(const struct view *s, const struct cell *c, size_t n, struct cell *room, struct row *rows)
{
	struct cell *ranks = room, *of = room + n;
	size_t i, end, nranks = 0, made = 0;

	for (i = 0; i < n; i = end) {
		if (!i || c[i].role != c[i - 1].role)
			nranks = ranks_of(c, n, c[i].role, ranks);
		for (end = i;
		     end < n && c[end].role == c[i].role && c[end].cls == c[i].cls && c[end].name_id == c[i].name_id;
		     end++)
			;
		if (nranks < 2)
			continue;
		spread(c + i, end - i, ranks, nranks, of);
		rows[made++] = ranks_row_of(s, &c[i], of, nranks);
	}
	return made;
}

static int ranks_make(const struct view *s, void *table)
{
	struct view_list *t = table;
	struct buf cells = {0};
	struct cell *c, *room = NULL;
	size_t n;
	int err = ranks_collect(s->in->processes ? s->in->processes : s->in->model, s->in->session, &cells);

	c = (struct cell *)cells.data;
	n = buf_count(&cells, struct cell);
	if (!err && n) {
		qsort(c, n, sizeof(*c), ranks_by_name);
		n = ranks_merge(c, n);
		room = calloc(2 * n, sizeof(*room));
		t->rows = calloc(n, sizeof(struct row));
		err = room && t->rows ? 0 : -ENOMEM;
	}
	if (!err && n) {
		t->all = make_rows(s, c, n, room, t->rows);
		qsort(t->rows, t->all, sizeof(struct row), by_spread);
	}
	free(room);
	buf_fini(&cells);
	return err;
}

static bool ranks_when(const struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	uint32_t first = MDL_NO_NUMBER, rank;
	size_t i;

	for (i = 0; i < ss->nlabels; i++) {
		rank = ss->labels[i].numbers[MDL_RANK];
		if (rank != MDL_NO_NUMBER && first != MDL_NO_NUMBER && rank != first)
			return true;
		first = rank != MDL_NO_NUMBER ? rank : first;
	}
	return false;
}

static void ranks_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sranks: time of each rank in the calls of a name, the widest difference first\n", prefix);
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"table", "", NULL, TBL_TEXT, AT(table)},
	{"role", "", NULL, TBL_TEXT, AT(role), TBL_OMIT, .help = "of the ranks; absent if the job has no roles"},
	{"ranks", "count", "ranks", TBL_COUNT, AT(ranks), .help = "that called anything; one without this call has 0"},
	{"min_ns", NULL, "min", TBL_NS, AT(min_ns), TBL_TIGHT, .help = "least time of a rank with its processes"},
	{"median_ns", "p50_ns", "median", TBL_NS, AT(median_ns), TBL_TIGHT},
	{"max_ns", NULL, "max", TBL_NS, AT(max_ns), TBL_TIGHT},
	{"min_rank", "", NULL, TBL_COUNT, AT(min_rank)},
	{"max_rank", "", "of rank", TBL_COUNT, AT(max_rank), .help = "the rank with the most time"},
	{0},
};

const struct view_sheet sheet_ranks = {
	.title = "Ranks",
	.help = "Each operator's total time by rank: the least, the median and the most; absent without several ranks.",
	.member = "ranks",
	.csv = "ranks",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct view_list),
	.people_max = SHOWN_MAX,
	.if_any = true,
	.when = ranks_when,
	.make = ranks_make,
	.above = ranks_above,
};
