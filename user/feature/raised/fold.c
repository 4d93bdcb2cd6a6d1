// SPDX-License-Identifier: Apache-2.0
#include "feature/raised/raised.h"

#include <errno.h>

#define ROWS_MAX 4096 /* beyond that, a new place in the program counts in the row without one */

struct state {
	struct hash index; /* (name_id and stack_id, process and class) -> 1 + place in rows */
	struct buf rows;   /* struct mxbpf_agg_raised */
};

static uint64_t key_of(uint64_t name_id, uint64_t stack_id)
{
	return name_id ^ stack_id * 0x9e3779b97f4a7c15ull;
}

static int add(struct mdl *m, const struct mxbpf_agg_raised *from)
{
	struct state *state = mdl_state(m, &feature_raised);
	const uint64_t process = (uint64_t)from->h.tgid << 8 | from->cls;
	uint64_t stack_id = from->stack_id;
	struct mxbpf_agg_raised *row;
	bool added;

	if (!state || mdl_expect_name(m, from->name_id))
		return -ENOMEM;
	if (buf_count(&state->rows, struct mxbpf_agg_raised) >= ROWS_MAX &&
	    !hash_get(&state->index, key_of(from->name_id, stack_id), process))
		stack_id = 0;
	row = mdl_item_put(&state->index, &state->rows, key_of(from->name_id, stack_id), process, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	if (added) {
		*row = *from;
		row->stack_id = stack_id;
		return 0;
	}
	if (from->h.ts_ns < row->h.ts_ns)
		row->h.ts_ns = from->h.ts_ns;
	if (from->last_ns > row->last_ns)
		row->last_ns = from->last_ns;
	add_sat(&row->count, from->count);
	return 0;
}

static int fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_agg_raised row = *(const struct mxbpf_agg_raised *)rec;

	row.h.size = sizeof(row); /* a newer one is longer */
	return row.cls < MXBPF_CLASS_MAX ? add(m, &row) : 0;
}

static int span(struct mdl *m, struct mdl_row *in, const struct mxbpf_span *s)
{
	const struct mxbpf_agg_raised row = {
		.h = {.kind = MXBPF_AGG_RAISED, .size = sizeof(row), .tgid = s->h.tgid, .ts_ns = s->h.ts_ns},
		.name_id = s->name_id,
		.stack_id = s->stack_id,
		.count = 1,
		.last_ns = s->h.ts_ns,
		.cls = s->cls,
	};

	return raised_left(s) ? add(m, &row) : 0;
}

const struct mxbpf_agg_raised *raised_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_raised);

	*n = state ? buf_count(&state->rows, struct mxbpf_agg_raised) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_agg_raised *rows = raised_rows(m, &n);

	return buf_put(out, rows, n * sizeof(*rows));
}

static int copy(struct mdl *to, const struct mdl *from)
{
	size_t i, n;
	const struct mxbpf_agg_raised *rows = raised_rows(from, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = add(to, &rows[i]);
	return err;
}

static void fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_raised);

	hash_fini(&state->index);
	buf_fini(&state->rows);
}

const struct mdl_feature feature_raised = {
	.bit = RAISED_BIT,
	.option = &raised_option,
	.trace = &raised_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_AGG_RAISED, fold}},
	.span = span,
	.emit = emit,
	.copy = copy,
	.fini = fini,
};
