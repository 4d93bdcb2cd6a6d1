// SPDX-License-Identifier: Apache-2.0
/* Rows that lack calls because --max-overhead left out their probes, or recorded them in slices. */
#include <errno.h>

#include "feature/cost/cost.h"
#include "feature/steps/steps.h"

int cost_partial_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_partial *from = (const void *)rec;
	struct cost_state *state = mdl_state(m, &feature_cost);
	struct mxbpf_partial *row;
	bool added;

	if (!state)
		return -ENOMEM;
	row = mdl_item_put(&state->index, &state->partial, from->name_id, from->cls, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	*row = *from;
	row->h.size = sizeof(*row); /* a newer one is longer */
	if (!row->name_id && row->cls == MXBPF_CLASS_OPERATOR && row->flags & MXBPF_PARTIAL_SLICED)
		steps_sliced(m, !(row->flags & MXBPF_PARTIAL_OVER));
	return 0;
}

int cost_partial_emit(const struct mdl *m, struct buf *out)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	int err = state ? buf_put(out, state->partial.data, state->partial.len) : 0;

	return err || !state ? err : buf_put(out, state->slices.data, state->slices.len);
}

static int copy_partial(struct mdl *to, const struct mdl *from, unsigned without)
{
	const struct cost_state *state = mdl_state_of(from, &feature_cost);
	const struct mxbpf_partial *p;
	size_t i;
	int err = 0;

	for (i = 0; state && !err && i < buf_count(&state->partial, struct mxbpf_partial); i++) {
		p = buf_at(&state->partial, struct mxbpf_partial, i);
		if (!(p->flags & without))
			err = cost_partial_fold(to, &p->h);
	}
	return err;
}

int cost_partial_copy(struct mdl *to, const struct mdl *from)
{
	const struct cost_state *state = mdl_state_of(from, &feature_cost);
	size_t i;
	int err = copy_partial(to, from, 0);

	for (i = 0; state && !err && i < buf_count(&state->slices, struct mxbpf_slice_part); i++)
		err = cost_slice_fold(to, &buf_at(&state->slices, struct mxbpf_slice_part, i)->h);
	return err;
}

/* Rows of the next interval lack calls, too, and it has slices of its own. */
int cost_partial_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	return copy_partial(to, from, MXBPF_PARTIAL_OVER);
}

void cost_partial_fini(struct mdl *m)
{
	struct cost_state *state = mdl_state(m, &feature_cost);

	hash_fini(&state->index);
	buf_fini(&state->partial);
	hash_fini(&state->slices_of);
	buf_fini(&state->slices);
}

bool cost_has_partial(const struct mdl *m)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);

	return state && state->partial.len;
}

static const struct mxbpf_partial *partial_of(const struct mdl *m, uint64_t name_id, uint64_t cls)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	const uint64_t *at = state ? hash_get(&state->index, name_id, cls) : NULL;

	return at ? buf_at(&state->partial, struct mxbpf_partial, *at - 1) : NULL;
}

bool cost_lacks_iterations(const struct mdl *m)
{
	const struct mxbpf_partial *of_class = partial_of(m, 0, MXBPF_CLASS_OPERATOR);

	return (of_class && !(of_class->flags & MXBPF_PARTIAL_SLICED)) || partial_of(m, 0, MXBPF_CLASS_STEP);
}

bool cost_lacks_memory(const struct mdl *m)
{
	const struct mxbpf_partial *of_class = partial_of(m, 0, MXBPF_CLASS_OPERATOR);

	return of_class && of_class->flags & MXBPF_PARTIAL_SLICED;
}

static bool costs_little(const struct mdl *m, const struct mdl_row *row)
{
	const struct mxbpf_partial *own = partial_of(m, row->name_id, row->cls);

	own = own ? own : partial_of(m, 0, row->cls);
	return own && own->flags & MXBPF_PARTIAL_SLICED &&
	       (own->flags & MXBPF_PARTIAL_LITTLE || row->traits & MXBPF_TRAIT_USER); /* annotations */
}

static const struct mxbpf_partial *partial_of_row(const struct mdl *m, const struct mdl_row *row)
{
	const struct mxbpf_partial *own = partial_of(m, row->name_id, row->cls);

	if (costs_little(m, row))
		return partial_of(m, 0, MXBPF_CLASS_STEP);
	return own ? own : partial_of(m, 0, row->cls);
}

bool cost_is_partial(const struct mdl *m, const struct mdl_row *row, bool of_many)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	size_t i;

	for (i = 0; state && of_many && i < buf_count(&state->partial, struct mxbpf_partial); i++)
		if (buf_at(&state->partial, struct mxbpf_partial, i)->cls == row->cls)
			return true;
	return partial_of_row(m, row);
}

/* ---- slices */

int cost_slice_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_slice_part *from = (const void *)rec;
	struct cost_state *state = mdl_state(m, &feature_cost);
	struct mxbpf_slice_part *sum;
	bool added;

	if (!state)
		return -ENOMEM;
	sum = mdl_item_put(&state->slices_of, &state->slices, from->h.tgid, 0, sizeof(*sum), &added);
	if (!sum)
		return -ENOMEM;
	sum->h = from->h;
	sum->h.size = sizeof(*sum);
	add_sat(&sum->slices, from->slices);
	add_sat(&sum->slice_ns, from->slice_ns);
	add_sat(&sum->seen_ns, from->seen_ns);
	add_sat(&sum->all_ns, from->all_ns);
	add_sat(&sum->seen_iterations, from->seen_iterations);
	add_sat(&sum->all_iterations, from->all_iterations);
	add_sat(&sum->marks_ns, from->marks_ns);
	add_sat(&sum->marks_iterations, from->marks_iterations);
	if (from->marks_ns < from->all_ns)
		steps_gap(m, from->h.tgid, from->h.ts_ns, from->h.ts_ns + from->slice_ns);
	return 0;
}

bool cost_slices_of(const struct mdl *m, uint32_t tgid, struct mxbpf_slice_part *sum)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	const uint64_t *at = state ? hash_get(&state->slices_of, tgid, 0) : NULL;

	if (at)
		*sum = *buf_at(&state->slices, struct mxbpf_slice_part, *at - 1);
	return at;
}

static double ratio(uint64_t all, uint64_t seen)
{
	return seen && all > seen ? (double)all / (double)seen : 1;
}

/* Iterations tell more than time: a job can rest in between. */
double cost_row_scale(const struct mdl *m, const struct mdl_row *row)
{
	const struct mxbpf_partial *p = partial_of_row(m, row);
	struct mxbpf_slice_part sum;

	if (!p || !(p->flags & MXBPF_PARTIAL_SLICED) || !cost_slices_of(m, row->tgid, &sum))
		return 1;
	if (costs_little(m, row))
		return sum.marks_iterations ? ratio(sum.all_iterations, sum.marks_iterations)
					    : ratio(sum.all_ns, sum.marks_ns);
	return sum.seen_iterations ? ratio(sum.all_iterations, sum.seen_iterations) : ratio(sum.all_ns, sum.seen_ns);
}

double cost_iterations_scale(const struct mdl *m, uint32_t tgid, uint64_t found)
{
	struct mxbpf_slice_part sum;

	if (!partial_of(m, 0, MXBPF_CLASS_STEP) || !cost_slices_of(m, tgid, &sum))
		return 1;
	return ratio(sum.all_iterations, found);
}
