// SPDX-License-Identifier: Apache-2.0
/* Rows of calls: each name has series of its own, until a kind of a job has too many. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/cost/cost.h"
#include "metrics/priv.h"

/* A row, and its own time with what it lacks. */
struct scaled {
	const struct mdl_row *row;
	double scale;
	uint64_t self_ns;
};

static int by_self(const void *va, const void *vb)
{
	const struct scaled *a = va, *b = vb;

	if (a->self_ns != b->self_ns)
		return a->self_ns < b->self_ns ? 1 : -1;
	return a->row->name_id < b->row->name_id ? -1 : a->row->name_id > b->row->name_id;
}

/* A name once told stays, because counters never fall. */
bool met_tells(struct met *m, const struct met_process *p, uint64_t kind, uint64_t name, bool worth)
{
	const uint64_t job = hash_text(HASH_SEED + kind, p->job, strlen(p->job));
	uint64_t *n = hash_put(&m->names, job, 0);

	if (hash_get(&m->names, job, name | 1))
		return true;
	if (!n || *n >= MET_NAMES_MAX || !worth)
		return false;
	++*n;
	return hash_put(&m->names, job, name | 1);
}

static void take_row(struct met *m, const struct mdl_interval *in, const struct scaled *of, uint64_t all_ns)
{
	const struct mdl_row *row = of->row;
	const bool is_operator = row->cls == MXBPF_CLASS_OPERATOR;
	struct met_process *p = met_process_of(m, in, row->tgid);
	struct met_labels l;
	const bool told = p && met_tells(m, p, row->cls, row->name_id, of->self_ns * MET_LEAST_SHARE >= all_ns);
	struct mxbpf_slice_part s;
	const char *name = "other";
	size_t len = strlen(name);

	if (!p) {
		m->left_out++;
		return;
	}
	if (told)
		name = mdl_name(in->model, row->name_id, &len);
	met_labels_begin(&l, p->labels);
	if (!is_operator)
		met_label_text(&l, "kind", mdl_category(row->cls));
	met_label(&l, is_operator ? "operator" : "call", name, len);
	met_observe_hist(m, is_operator ? MET_OPERATOR : MET_CALL, l.text, row->hist, row->total_ns, of->scale);
	met_add(m, is_operator ? MET_OPERATOR_SELF : MET_CALL_SELF, l.text, of->self_ns);
	if (is_operator && told && of->scale > 1 && cost_slices_of(in->model, row->tgid, &s))
		met_estimate(m, MET_OPERATOR_ERROR, l.text, (double)row->self_ns,
			     s.seen_iterations ? (double)s.seen_iterations : (double)s.seen_ns);
}

int met_take_calls(struct met *m, const struct mdl_interval *in)
{
	const struct mdl_row *const *rows;
	struct scaled *sorted;
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
		for (i = 0, all_ns = 0; i < n; i++) {
			sorted[i].row = rows[i];
			sorted[i].scale = cost_row_scale(in->model, rows[i]);
			sorted[i].self_ns = met_scaled(rows[i]->self_ns, sorted[i].scale);
			all_ns += sorted[i].self_ns;
		}
		qsort(sorted, n, sizeof(*sorted), by_self);
		for (i = 0; i < n; i++)
			take_row(m, in, &sorted[i], all_ns);
		free(sorted);
	}
	return 0;
}
