// SPDX-License-Identifier: Apache-2.0
#include "feature/lines/lines.h"

#include <errno.h>

#define LOOKS_MAX 16384 /* single looks that are kept, the newest; others are in their rows alone */

struct state {
	struct buf looks; /* struct mxbpf_look, a ring once it is full */
	size_t oldest;
};

static int fold_look(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_look look = *(const struct mxbpf_look *)rec;
	struct state *state = mdl_state(m, &feature_lines);

	if (!state)
		return -ENOMEM;
	look.h.size = sizeof(look);
	if (buf_count(&state->looks, look) < LOOKS_MAX)
		return buf_put(&state->looks, &look, sizeof(look));
	*buf_at(&state->looks, struct mxbpf_look, state->oldest) = look;
	state->oldest = (state->oldest + 1) % LOOKS_MAX;
	return 0;
}

const struct mxbpf_look *lines_looks(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_lines);

	*n = state ? buf_count(&state->looks, struct mxbpf_look) : 0;
	return state ? (const void *)state->looks.data : NULL;
}

const struct mxbpf_agg_line *lines_rows(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_lines, &lines_table, n);
}

static int lines_emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_look *looks = lines_looks(m, &n);

	return buf_put(out, looks, n * sizeof(*looks));
}

static int lines_copy(struct mdl *to, const struct mdl *from)
{
	size_t i, n;
	const struct mxbpf_look *looks = lines_looks(from, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = fold_look(to, &looks[i].h);
	return err;
}

static void lines_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_lines);

	buf_fini(&state->looks);
}

const struct mdl_feature feature_lines = {
	.session = &lines_session,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_LOOK, fold_look}},
	.tables = {{&lines_table, MXBPF_AGG_LINE}},
	.emit = lines_emit,
	.copy = lines_copy,
	.fini = lines_fini,
};
