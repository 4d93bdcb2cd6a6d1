// SPDX-License-Identifier: Apache-2.0
#include "view/compat/torch_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/activity/activity.h"

/* Work of one name. Names have different ids in different processes and libraries, so texts are compared. */
struct work {
	const char *name; /* borrowed from the model */
	size_t len;
	bool user; /* of user annotations */
	uint64_t self_ns, total_ns, count;
};

static int torch_gpu_by_text(const void *va, const void *vb)
{
	const struct work *a = va, *b = vb;
	int order = view_name_cmp(a->name, a->len, b->name, b->len);

	return order ? order : a->user - b->user;
}

/* Sorts, and adds up those that compare equal. Returns how many remain. */
static size_t torch_gpu_add_up(struct work *w, size_t n)
{
	size_t kept = 0, i;

	if (n)
		qsort(w, n, sizeof(*w), torch_gpu_by_text);
	for (i = 0; i < n; i++) {
		if (!kept || torch_gpu_by_text(&w[kept - 1], &w[i])) {
			w[kept++] = w[i];
			continue;
		}
		w[kept - 1].self_ns += w[i].self_ns;
		w[kept - 1].total_ns += w[i].total_ns;
		w[kept - 1].count += w[i].count;
	}
	return kept;
}

static struct work named(const struct mdl *m, uint64_t name_id)
{
	struct work w = {0};

	w.name = mdl_name(m, name_id, &w.len);
	return w;
}

/*
 * In torch.profiler, work belongs to the innermost operator and never to an annotation itself: an annotation has only
 * the work of operators in it.
 */
static int work_of_operators(const struct mdl *m, struct work **w, size_t *n)
{
	const struct activity_work *const *rows = activity_work_rows(m, n);
	size_t all = *n, i;

	*w = calloc(all + 1, sizeof(**w));
	if (!*w)
		return -ENOMEM;
	for (i = *n = 0; i < all; i++) {
		const struct mxbpf_agg_gpu_work *a = &rows[i]->a;
		struct work one = named(m, a->name_id);

		if (a->of != MXBPF_WORK_OF_CALLS || a->cls != MXBPF_CLASS_OPERATOR)
			continue;
		one.user = a->user;
		one.self_ns = a->user ? 0 : a->self.gpu_ns;
		one.total_ns = a->user ? a->total.gpu_ns - a->self.gpu_ns : a->total.gpu_ns;
		(*w)[(*n)++] = one;
	}
	*n = torch_gpu_add_up(*w, *n);
	return 0;
}

static int work_of_devices(const struct mdl *m, struct work **w, size_t *n)
{
	const struct activity_row *const *rows = activity_rows(m, n);
	size_t all = *n, i;

	*w = calloc(all + 1, sizeof(**w));
	if (!*w)
		return -ENOMEM;
	for (i = *n = 0; i < all; i++) {
		const struct mxbpf_agg_activity *a = &rows[i]->a;
		struct work one = named(m, a->name_id);

		if (!a->count || a->cls == MXBPF_ACTIVITY_SYNC)
			continue;
		one.self_ns = one.total_ns = a->total_ns;
		one.count = a->count;
		(*w)[(*n)++] = one;
	}
	*n = torch_gpu_add_up(*w, *n);
	return 0;
}

/* ---- rows */

static void put_operators(struct torch_rows *t, const struct mdl *m, const struct view_table *of, const struct work *w,
			  size_t n)
{
	const struct work *found;
	struct work key;
	size_t i;

	for (i = 0; i < of->nrows_all; i++) {
		struct torch_row *r = &t->rows[t->n++];

		*r = (struct torch_row){.r = *of->rows[i]};
		key = named(m, r->r.name_id);
		key.user = r->r.traits & MXBPF_TRAIT_USER;
		found = n ? bsearch(&key, w, n, sizeof(*w), torch_gpu_by_text) : NULL;
		if (!found)
			continue;
		r->gpu_self_ns = found->self_ns;
		r->gpu_total_ns = found->total_ns;
	}
}

static uint64_t id_of(const struct mdl *m, const struct work *w)
{
	const struct activity_row *const *rows;
	size_t n, i;

	rows = activity_rows(m, &n);
	for (i = 0; i < n && mdl_name(m, rows[i]->a.name_id, NULL) != w->name; i++)
		;
	return i < n ? rows[i]->a.name_id : 0;
}

static void put_devices(struct torch_rows *t, const struct mdl *m, const struct work *w, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		t->rows[t->n++] = (struct torch_row){
			.r = {.cls = MXBPF_CLASS_OPERATOR, .name_id = id_of(m, &w[i]), .count = w[i].count},
			.gpu_self_ns = w[i].self_ns,
			.gpu_total_ns = w[i].total_ns,
			.device = true,
		};
		t->device_ns += w[i].self_ns;
	}
}

/* In a trace of torch.profiler, its table has rows of calls of CUDA and of functions of Python. */
static int put_others(struct torch_rows *t, const struct view *s)
{
	static const enum mxbpf_class others[] = {MXBPF_CLASS_CUDA, MXBPF_CLASS_PYTHON};
	const struct mdl_row **rows;
	struct torch_row *all;
	size_t i, k, n;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (view_merged_rows(s->in, others[i], s->opts, true, &rows, &n))
			return -ENOMEM;
		all = realloc(t->rows, (t->n + n + 1) * sizeof(*all));
		t->rows = all ? all : t->rows;
		for (k = 0; all && k < n; k++)
			t->rows[t->n++] = (struct torch_row){.r = *rows[k]};
		free(rows);
		if (!all)
			return -ENOMEM;
	}
	return 0;
}

static long double torch_gpu_key_of(const struct torch_row *r, enum view_sort by)
{
	const long double count = r->r.count ? (long double)r->r.count : 1;

	switch (by) {
	case VIEW_SORT_DEVICE:
		return (long double)r->gpu_total_ns;
	case VIEW_SORT_SELF_DEVICE:
		return (long double)r->gpu_self_ns;
	case VIEW_SORT_AVG_DEVICE:
		return (long double)r->gpu_total_ns / count;
	default:
		return view_sort_value(&r->r, by);
	}
}

struct order {
	const struct mdl *m;
	const struct view_opts *opts;
};

/* Equal rows are in the order of view_sorted_rows(): the larger name comes first. */
static int by_rank(const void *va, const void *vb, void *vorder)
{
	const struct torch_row *a = va, *b = vb;
	const struct order *o = vorder;
	const struct work na = named(o->m, a->r.name_id), nb = named(o->m, b->r.name_id);
	const long double ka = torch_gpu_key_of(a, o->opts->sort), kb = torch_gpu_key_of(b, o->opts->sort);
	const int names = view_name_cmp(na.name, na.len, nb.name, nb.len);

	if (ka != kb)
		return (ka < kb) == o->opts->ascending ? -1 : 1;
	if (names)
		return o->opts->sort == VIEW_SORT_NAME ? names : -names;
	return a->device - b->device;
}

static bool has_work(const struct torch_rows *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->rows[i].gpu_self_ns)
			return true;
	return false;
}

int torch_rows_make(struct torch_rows *t, const struct view *s, const struct view_table *of, bool with_devices)
{
	const struct mdl *m = s->in->model;
	struct work *operators = NULL, *devices = NULL;
	struct order order = {m, s->opts};
	const bool traced = s->in->session->profiler && s->opts->by == VIEW_BY_NAME;
	size_t noperators = 0, ndevices = 0;
	int err = 0;

	*t = (struct torch_rows){.shown = of->nrows};
	if (s->opts->by == VIEW_BY_NAME)
		err = work_of_operators(m, &operators, &noperators);
	if (!err && s->opts->by == VIEW_BY_NAME && with_devices)
		err = work_of_devices(m, &devices, &ndevices);
	if (!err) {
		t->rows = calloc(of->nrows_all + ndevices + 1, sizeof(*t->rows));
		err = t->rows ? 0 : -ENOMEM;
	}
	if (!err) {
		put_operators(t, m, of, operators, noperators);
		put_devices(t, m, devices, ndevices);
		t->gpu = has_work(t);
		err = traced && with_devices ? put_others(t, s) : 0;
	}
	/* Without work of a GPU the rows keep their order, which depends on more than this one. */
	if (!err && (t->gpu || ndevices || traced)) {
		qsort_r(t->rows, t->n, sizeof(*t->rows), by_rank, &order);
		t->shown = view_rows_max(s, t->n);
	}
	free(operators);
	free(devices);
	return err;
}

void torch_rows_fini(struct torch_rows *t)
{
	free(t->rows);
}
