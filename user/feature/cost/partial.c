// SPDX-License-Identifier: Apache-2.0
/* Rows that lack calls because --max-overhead left out their probes, or recorded them in slices. */
#include <errno.h>

#include "feature/cost/cost.h"
#include "feature/steps/steps.h"

#define FREE_LEAST 10 /* iterations between slices that tell a mean */

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
	size_t i;

	for (i = 0; state && !err && i < buf_count(&state->slices, struct cost_slices); i++)
		err = buf_put(out, &buf_at(&state->slices, struct cost_slices, i)->all,
			      sizeof(struct mxbpf_slice_part));
	return err;
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
	const struct cost_state *f = mdl_state_of(from, &feature_cost);
	struct cost_state *t = mdl_state(to, &feature_cost);
	int err = t ? copy_partial(to, from, 0) : -ENOMEM;

	return err || !f ? err : mdl_items_copy(&t->slices_of, &t->slices, &f->slices_of, &f->slices);
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
	mdl_items_fini(&state->slices_of, &state->slices);
}

bool cost_has_partial(const struct mdl *m)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);

	return state && state->partial.len;
}

bool cost_has_slices(const struct mdl *m)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	size_t i = 0, n = state ? buf_count(&state->partial, struct mxbpf_partial) : 0;

	while (i < n && !(buf_at(&state->partial, struct mxbpf_partial, i)->flags & MXBPF_PARTIAL_SLICED))
		i++;
	return i < n;
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

bool cost_misses_iterations(const struct mdl *m)
{
	const struct mxbpf_partial *ends = partial_of(m, 0, MXBPF_CLASS_STEP);

	return ends && !(ends->flags & MXBPF_PARTIAL_OVER);
}

bool cost_lacks_memory(const struct mdl *m)
{
	const struct mxbpf_partial *of_class = partial_of(m, 0, MXBPF_CLASS_OPERATOR);

	return of_class && of_class->flags & MXBPF_PARTIAL_SLICED;
}

bool cost_is_little(const struct mdl *m, const struct mdl_row *row)
{
	const struct mxbpf_partial *own = partial_of(m, row->name_id, row->cls);

	own = own ? own : partial_of(m, 0, row->cls);
	return own && own->flags & MXBPF_PARTIAL_SLICED &&
	       (own->flags & MXBPF_PARTIAL_LITTLE || row->traits & MXBPF_TRAIT_USER); /* annotations */
}

const struct mxbpf_partial *cost_partial_of(const struct mdl *m, const struct mdl_row *row)
{
	const struct mxbpf_partial *own = partial_of(m, row->name_id, row->cls);

	if (cost_is_little(m, row))
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
	if (cost_is_little(m, row) && cost_partial_of(m, row))
		return !(cost_partial_of(m, row)->flags & MXBPF_PARTIAL_OVER) || cost_row_scale(m, row) > 1;
	return cost_partial_of(m, row);
}

double cost_free_iteration(const struct mdl *m, uint32_t tgid)
{
	const struct cost_slices *s = cost_slices_find(m, tgid);

	return s && s->free_iterations >= FREE_LEAST ? (double)s->free_ns / (double)s->free_iterations : 0;
}

double cost_iterations_scale(const struct mdl *m, uint32_t tgid, uint64_t found)
{
	struct mxbpf_slice_part sum;

	if (!partial_of(m, 0, MXBPF_CLASS_STEP) || !cost_slices_of(m, tgid, &sum))
		return 1;
	return found && sum.all_iterations > found ? (double)sum.all_iterations / (double)found : 1;
}
