// SPDX-License-Identifier: Apache-2.0
/* Rows of calls: each name has series of its own, until a kind of a job has too many. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/cost/cost.h"
#include "metrics/priv.h"

#define LEAST_SHARE 100 /* a name has series of its own if it has at least one part in so many of its kind's time */

static int by_self(const void *va, const void *vb)
{
	const struct mdl_row *a = *(const struct mdl_row *const *)va, *b = *(const struct mdl_row *const *)vb;

	if (a->self_ns != b->self_ns)
		return a->self_ns < b->self_ns ? 1 : -1;
	return a->name_id < b->name_id ? -1 : a->name_id > b->name_id;
}

/* The name has series of its own, from now on or already. A name once told stays, because counters never fall. */
static bool is_told(struct met *m, const struct met_process *p, const struct mdl_row *row, uint64_t all_ns)
{
	const uint64_t job = hash_text(HASH_SEED + row->cls, p->job, strlen(p->job));
	uint64_t *n = hash_put(&m->names, job, 0);

	if (hash_get(&m->names, job, row->name_id | 1))
		return true;
	if (!n || *n >= MET_NAMES_MAX || row->self_ns * LEAST_SHARE < all_ns)
		return false;
	++*n;
	return hash_put(&m->names, job, row->name_id | 1);
}

static void take_row(struct met *m, const struct mdl_interval *in, const struct mdl_row *row, uint64_t all_ns)
{
	const bool operator= row->cls == MXBPF_CLASS_OPERATOR;
	struct met_process *p = met_process_of(m, in, row->tgid);
	struct met_labels l;
	const bool told = p && is_told(m, p, row, all_ns);
	struct mxbpf_slice_part s;
	const char *name = "other";
	size_t len = strlen(name);
	double scale;

	if (!p) {
		m->left_out++;
		return;
	}
	if (told)
		name = mdl_name(in->model, row->name_id, &len);
	met_labels_begin(&l, p->labels);
	if (!operator)
		met_label_text(&l, "kind", mdl_category(row->cls));
	met_label(&l, operator? "operator" : "call", name, len);
	scale = cost_row_scale(in->model, row);
	met_observe_hist(m, operator? MET_OPERATOR : MET_CALL, l.text, row->hist, row->total_ns, scale);
	met_add(m, operator? MET_OPERATOR_SELF : MET_CALL_SELF, l.text, met_scaled(row->self_ns, scale));
	if (operator&& told && scale> 1 && cost_slices_of(in->model, row->tgid, &s))
		met_estimate(m, MET_OPERATOR_ERROR, l.text, (double)row->self_ns,
			     s.seen_iterations ? (double)s.seen_iterations : (double)s.seen_ns);
}

int met_take_calls(struct met *m, const struct mdl_interval *in)
{
	const struct mdl_row *const *rows;
	const struct mdl_row **sorted;
	uint64_t all_ns;
	size_t n, i;
	unsigned k;

	for (k = 0; k < MDL_NCLASSES; k++) {
		rows = mdl_rows(in->model, mdl_classes[k].cls, &n);
		if (!n)
			continue;
		sorted = malloc(n * sizeof(*sorted));
		if (!sorted)
			return -ENOMEM;
		memcpy(sorted, rows, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), by_self);
		for (i = 0, all_ns = 0; i < n; i++)
			all_ns += sorted[i]->self_ns;
		for (i = 0; i < n; i++)
			take_row(m, in, sorted[i], all_ns);
		free(sorted);
	}
	return 0;
}
