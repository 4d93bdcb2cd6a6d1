// SPDX-License-Identifier: Apache-2.0
/* Rows that lack calls because --max-overhead left out their probes. */
#include <errno.h>

#include "feature/cost/cost.h"

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
	return 0;
}

int cost_partial_emit(const struct mdl *m, struct buf *out)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);

	return state ? buf_put(out, state->partial.data, state->partial.len) : 0;
}

int cost_partial_copy(struct mdl *to, const struct mdl *from)
{
	const struct cost_state *state = mdl_state_of(from, &feature_cost);
	size_t i;
	int err = 0;

	for (i = 0; state && !err && i < buf_count(&state->partial, struct mxbpf_partial); i++)
		err = cost_partial_fold(to, &buf_at(&state->partial, struct mxbpf_partial, i)->h);
	return err;
}

/* Rows of the next interval lack calls, too. */
int cost_partial_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	return cost_partial_copy(to, from);
}

void cost_partial_fini(struct mdl *m)
{
	struct cost_state *state = mdl_state(m, &feature_cost);

	hash_fini(&state->index);
	buf_fini(&state->partial);
}

bool cost_has_partial(const struct mdl *m)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);

	return state && state->partial.len;
}

bool cost_lacks_class(const struct mdl *m, enum mxbpf_class cls)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);

	return state && hash_get(&state->index, 0, cls);
}

bool cost_is_partial(const struct mdl *m, const struct mdl_row *row, bool of_many)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	size_t i;

	if (!state)
		return false;
	for (i = 0; of_many && i < buf_count(&state->partial, struct mxbpf_partial); i++)
		if (buf_at(&state->partial, struct mxbpf_partial, i)->cls == row->cls)
			return true;
	return hash_get(&state->index, row->name_id, row->cls) || hash_get(&state->index, 0, row->cls);
}
