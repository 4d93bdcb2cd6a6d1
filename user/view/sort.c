// SPDX-License-Identifier: Apache-2.0
#include "view/priv.h"
#include "feature/flops/flops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct view_sort_key view_sort_keys[VIEW_SORT_NKEYS] = {
	[VIEW_SORT_TOTAL] = {"total"},
	[VIEW_SORT_SELF] = {"self"},
	[VIEW_SORT_COUNT] = {"count"},
	[VIEW_SORT_AVG] = {"avg"},
	[VIEW_SORT_MIN] = {"min"},
	[VIEW_SORT_MAX] = {"max"},
	[VIEW_SORT_P99] = {"p99"},
	[VIEW_SORT_ALLOC] = {"alloc"},
	[VIEW_SORT_SELF_ALLOC] = {"self-alloc"},
	[VIEW_SORT_CPU] = {"cpu"},
	[VIEW_SORT_RUNQ] = {"runq"},
	[VIEW_SORT_BLOCKED] = {"blocked"},
	[VIEW_SORT_DEVICE] = {"device"},
	[VIEW_SORT_NAME] = {"name"},
	[VIEW_SORT_START] = {"start"},
	[VIEW_SORT_SELF_DEVICE] = {"self-device"},
	[VIEW_SORT_AVG_DEVICE] = {"avg-device"},
};

int view_sort_find(const char *name)
{
	const struct view_sort_alias *alias;
	int i;

	for (i = 0; i < VIEW_SORT_NKEYS; i++)
		if (!strcmp(view_sort_keys[i].name, name))
			return i;
	for (alias = view_sort_aliases; alias->name; alias++)
		if (!strcmp(alias->name, name))
			return (int)alias->sort;
	return -1;
}

struct ranked {
	long double key; /* has 64 bits of mantissa, so it holds every uint64_t exactly */
	const struct mdl_row *row;
	const char *name, *detail;
	size_t len, detail_len;
};

long double view_sort_value(const struct mdl_row *r, enum view_sort by)
{
	const long double keys[VIEW_SORT_NKEYS] = {
		[VIEW_SORT_TOTAL] = (long double)r->total_ns,
		[VIEW_SORT_SELF] = (long double)r->self_ns,
		[VIEW_SORT_COUNT] = (long double)r->count,
		[VIEW_SORT_AVG] = (long double)r->total_ns / (long double)r->count,
		[VIEW_SORT_MIN] = (long double)r->min_ns,
		[VIEW_SORT_MAX] = (long double)r->max_ns,
		[VIEW_SORT_P99] = by == VIEW_SORT_P99 ? (long double)mdl_percentile(r, 0.99) : 0,
		[VIEW_SORT_ALLOC] = (long double)r->alloc_bytes,
		[VIEW_SORT_SELF_ALLOC] = (long double)r->self_alloc_bytes,
		[VIEW_SORT_CPU] = (long double)mdl_on_cpu_ns(r),
		[VIEW_SORT_RUNQ] = (long double)r->account.runq_ns,
		[VIEW_SORT_BLOCKED] = (long double)r->account.blocked_ns,
	};

	return keys[by];
}

static int sort_by_name(const struct ranked *a, const struct ranked *b)
{
	int order = view_name_cmp(a->name, a->len, b->name, b->len);

	return order ? order : view_name_cmp(a->detail, a->detail_len, b->detail, b->detail_len);
}

static int sort_by_number(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int sort_by_place(const struct ranked *a, const struct ranked *b)
{
	if (a->row->device != b->row->device)
		return a->row->device < b->row->device ? -1 : 1;
	return sort_by_number(a->row->tgid, b->row->tgid);
}

static int by_rank(const void *va, const void *vb, void *vopts)
{
	const struct ranked *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	int up = opts->ascending ? 1 : -1, names = sort_by_name(a, b);

	if (a->key != b->key)
		return a->key < b->key ? -up : up;
	if (names)
		return opts->sort == VIEW_SORT_NAME ? names : -names;
	if (a->row->tid != b->row->tid)
		return sort_by_number(a->row->tid, b->row->tid);
	return sort_by_place(a, b);
}

/* Which rows to merge. */
struct grouping {
	bool anywhere; /* merge rows of different processes and devices */
	bool users;    /* keep user annotations apart from operators with the same name */
	enum view_by by;
};

static bool of_user(const struct mdl_row *r)
{
	return r->traits & MXBPF_TRAIT_USER;
}

/* Returns 0 for all operators of a layer, if rows are grouped by layer. */
static uint64_t named_by(const struct grouping *g, const struct mdl_row *r)
{
	return g->by == VIEW_BY_LAYER && r->layer_id ? 0 : r->name_id;
}

/* Compares where calls ran: devices, processes or threads. The rows of a process or a thread can be of many devices. */
static int by_runner(const struct mdl_row *a, const struct mdl_row *b, const struct grouping *g)
{
	int order;

	if (g->by == VIEW_BY_PROCESS)
		return sort_by_number(a->tgid, b->tgid);
	order = g->by == VIEW_BY_DEVICE ? sort_by_number(a->device, b->device) : sort_by_number(a->tid, b->tid);

	return order || g->anywhere ? order : sort_by_number(a->tgid, b->tgid);
}

/* Rows that compare equal are merged. */
static int by_group(const void *va, const void *vb, void *vgrouping)
{
	const struct ranked *a = va, *b = vb;
	const struct grouping *g = vgrouping;
	uint64_t an = named_by(g, a->row), bn = named_by(g, b->row);
	int order = sort_by_name(a, b);

	if (view_by_label(g->by))
		return order;
	if (view_by_place(g->by))
		return by_runner(a->row, b->row, g);
	order = order || !g->users ? order : sort_by_number(of_user(a->row), of_user(b->row));
	if (order || g->anywhere)
		return order;
	if (an != bn)
		return an < bn ? -1 : 1;
	return sort_by_place(a, b);
}

static bool is_bulk(const struct mdl_row *r)
{
	return r->traits & MXBPF_TRAIT_BULK;
}

static int by_group_then_bulk(const void *va, const void *vb, void *vgrouping)
{
	const struct ranked *a = va, *b = vb;
	int order = by_group(a, b, vgrouping);

	return order ? order : is_bulk(a->row) - is_bulk(b->row);
}

/* Returns whether the row has calls of many names. Such calls can be nested in one another. */
static bool is_of_many(const struct grouping *g, const struct mdl_row *r)
{
	return view_by_place(g->by) || (g->by == VIEW_BY_LAYER && r->layer_id);
}

/* Writes the merged rows to sums. Returns their number. */
static size_t merge_groups(const struct mdl *m, struct ranked *ranks, size_t n, struct grouping g, struct mdl_row *sums)
{
	size_t kept = 0, i;

	qsort_r(ranks, n, sizeof(*ranks), by_group_then_bulk, &g);
	for (i = 0; i < n; i++) {
		if (kept && !by_group(&ranks[kept - 1], &ranks[i], &g)) {
			if (is_of_many(&g, &sums[kept - 1]) && is_bulk(ranks[i].row) && !is_bulk(&sums[kept - 1]))
				mdl_row_merge_time(&sums[kept - 1], ranks[i].row);
			else
				mdl_row_merge(&sums[kept - 1], ranks[i].row);
			flops_add(m, &sums[kept - 1].flops, ranks[i].row);
			if (sums[kept - 1].device != ranks[i].row->device)
				sums[kept - 1].device = 0; /* several devices are shown as no device */
			continue;
		}
		sums[kept] = *ranks[i].row;
		flops_add(m, &sums[kept].flops, ranks[i].row);
		ranks[kept] = ranks[i];
		ranks[kept].row = &sums[kept];
		kept++;
	}
	for (i = 0; i < kept; i++)
		if (is_of_many(&g, &sums[i]))
			mdl_row_own(&sums[i]);
	return kept;
}

/* Flattens the shapes in the details of rows (view_flat_shapes()). Returns the block that holds them, for free(); NULL:
 * -ENOMEM. */
static char *flatten_shapes(struct ranked *ranks, size_t n)
{
	size_t bytes = 1, i;
	char *block, *at;

	for (i = 0; i < n; i++)
		bytes += ranks[i].detail_len;
	block = at = malloc(bytes);
	for (i = 0; at && i < n; i++) {
		ranks[i].detail_len = view_flat_shapes(ranks[i].detail, ranks[i].detail_len, at);
		ranks[i].detail = at;
		at += ranks[i].detail_len;
	}
	return block;
}

/* Sets the texts by which rows are grouped and sorted. */
static void set_keys(const struct mdl *m, const struct view_opts *opts, const struct view_labels *labels,
		     struct ranked *k)
{
	k->name = view_row_key(m, opts, k->row, &k->len);
	k->detail = view_detail(m, opts, k->row, &k->detail_len);
	if (!view_by_label(opts->by))
		return;
	k->name = view_labels_of(labels, k->row->tgid);
	k->len = strlen(k->name);
}

/* Allocates the pointers and the merged rows in one block, which the caller frees. */
static int sorted_rows(const struct view_input *in, enum mxbpf_class cls, const struct view_opts *opts,
		       struct grouping g, size_t *n, const struct mdl_row ***rows)
{
	struct mdl *m = in->model;
	const struct mdl_row *const *all = mdl_rows(m, cls, n);
	struct ranked *ranks = calloc(*n + 1, sizeof(*ranks));
	bool merge = g.anywhere || view_by_place(g.by);
	struct view_labels labels = {0};
	char *flat = NULL;
	int err = view_by_label(g.by) ? view_labels_init(&labels, in->session, g.by) : 0;
	size_t i, nall;

	for (i = 0; i < *n && !merge; i++)
		merge = all[i]->id != all[i]->name_id;
	*rows = calloc(*n + 1, sizeof(**rows) + (merge ? sizeof(***rows) : 0));
	if (err || !ranks || !*rows) {
		err = -ENOMEM;
		goto out;
	}
	nall = *n;
	for (*n = i = 0; i < nall; i++) {
		struct ranked *k = &ranks[*n];

		if (all[i]->traits & MXBPF_TRAIT_PART && opts->no_parts)
			continue;
		k->row = all[i];
		set_keys(m, opts, &labels, k);
		++*n;
	}
	if (g.anywhere && opts->by == VIEW_BY_SHAPE) {
		flat = flatten_shapes(ranks, *n);
		if (!flat) {
			err = -ENOMEM;
			goto out;
		}
	}
	if (merge)
		*n = merge_groups(m, ranks, *n, g, (struct mdl_row *)(*rows + *n + 1));
	for (i = 0; i < *n; i++)
		ranks[i].key = view_sort_value(ranks[i].row, opts->sort);
	qsort_r(ranks, *n, sizeof(*ranks), by_rank, (void *)opts);
	for (i = 0; i < *n; i++)
		(*rows)[i] = ranks[i].row;
out:
	if (err) {
		free(*rows);
		*rows = NULL;
	}
	free(ranks);
	free(flat);
	view_labels_fini(&labels);
	return err;
}

int view_sorted_rows(const struct view_input *in, enum mxbpf_class cls, const struct view_opts *opts,
		     const struct mdl_row ***rows, size_t *n)
{
	return sorted_rows(in, cls, opts, (struct grouping){false, true, opts->by}, n, rows);
}

int view_merged_rows(const struct view_input *in, enum mxbpf_class cls, const struct view_opts *opts, bool users,
		     const struct mdl_row ***rows, size_t *n)
{
	return sorted_rows(in, cls, opts, (struct grouping){true, users, opts->by}, n, rows);
}
