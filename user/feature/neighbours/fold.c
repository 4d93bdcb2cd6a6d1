// SPDX-License-Identifier: Apache-2.0
#include "feature/neighbours/neighbours.h"

#include <errno.h>
#include <string.h>

#define ROWS_MAX 4096

struct state {
	struct hash index; /* (pid, 0) -> 1 + place in rows */
	struct buf rows;   /* struct mxbpf_neighbour */
};

/* A later reading of a process is of a longer time from the same start, or, after an interval, of the next one. */
static int neighbours_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *state = mdl_state(m, &feature_neighbours);
	struct mxbpf_neighbour *row;
	bool added;

	if (!state)
		return -ENOMEM;
	if (buf_count(&state->rows, struct mxbpf_neighbour) >= ROWS_MAX && !hash_get(&state->index, rec->tgid, 0))
		return 0;
	row = mdl_item_put(&state->index, &state->rows, rec->tgid, 0, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	*row = (struct mxbpf_neighbour){.cpu_ns = 0};
	memcpy(row, rec, rec->size < sizeof(*row) ? rec->size : sizeof(*row));
	row->h.size = sizeof(*row);
	row->comm[sizeof(row->comm) - 1] = '\0';
	return 0;
}

const struct mxbpf_neighbour *neighbours_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_neighbours);

	*n = state ? buf_count(&state->rows, struct mxbpf_neighbour) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int neighbours_emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_neighbour *rows = neighbours_rows(m, &n);

	return buf_put(out, rows, n * sizeof(*rows));
}

static int neighbours_copy(struct mdl *to, const struct mdl *from)
{
	size_t i, n;
	const struct mxbpf_neighbour *rows = neighbours_rows(from, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = neighbours_fold(to, &rows[i].h);
	return err;
}

static void neighbours_fold_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_neighbours);

	hash_fini(&state->index);
	buf_fini(&state->rows);
}

const struct mdl_feature feature_neighbours = {
	.session = &neighbours_session,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_NEIGHBOUR, neighbours_fold}},
	.emit = neighbours_emit,
	.copy = neighbours_copy,
	.fini = neighbours_fold_fini,
};
