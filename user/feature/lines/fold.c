// SPDX-License-Identifier: Apache-2.0
#include "feature/lines/lines.h"

#include <errno.h>

#define ROWS_MAX 8192 /* beyond that, looks at another place count in the row of their thread without a stack */

#define LOOKS_MAX 16384 /* single looks that are kept, the newest; others are in their rows alone */

struct state {
	struct buf looks; /* struct mxbpf_look, a ring once it is full */
	size_t oldest;
	struct hash index; /* hash of what tells rows apart, (process and thread) -> 1 + place in rows */
	struct buf rows;   /* struct mxbpf_agg_line */
};

static uint64_t key_of(const struct mxbpf_agg_line *r)
{
	uint64_t key = r->stack_id * 0x9e3779b97f4a7c15ull;

	key = (key ^ r->name_id) * 0x9e3779b97f4a7c15ull;
	return key ^ (uint64_t)(uint32_t)r->syscall << 32 ^ (uint64_t)r->cls << 16 ^ (uint64_t)r->sleeps << 8 ^ r->main;
}

static int add(struct mdl *m, const struct mxbpf_agg_line *from)
{
	struct state *state = mdl_state(m, &feature_lines);
	const uint64_t thread = (uint64_t)from->h.tgid << 32 | from->tid;
	struct mxbpf_agg_line r = *from, *row;
	bool added;

	if (!state || (r.name_id && mdl_expect_name(m, r.name_id)))
		return -ENOMEM;
	if (buf_count(&state->rows, struct mxbpf_agg_line) >= ROWS_MAX && !hash_get(&state->index, key_of(&r), thread))
		r.stack_id = r.name_id = 0;
	row = mdl_item_put(&state->index, &state->rows, key_of(&r), thread, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	if (added) {
		*row = r;
		return 0;
	}
	if (r.h.ts_ns < row->h.ts_ns)
		row->h.ts_ns = r.h.ts_ns;
	add_sat(&row->count, r.count);
	return 0;
}

static int fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_agg_line row = *(const struct mxbpf_agg_line *)rec;

	row.h.size = sizeof(row); /* a newer one is longer */
	return row.cls < MXBPF_CLASS_MAX ? add(m, &row) : 0;
}

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
	const struct state *state = mdl_state_of(m, &feature_lines);

	*n = state ? buf_count(&state->rows, struct mxbpf_agg_line) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_agg_line *rows = lines_rows(m, &n);
	const struct mxbpf_look *looks;
	int err = buf_put(out, rows, n * sizeof(*rows));

	looks = lines_looks(m, &n);
	return err ? err : buf_put(out, looks, n * sizeof(*looks));
}

static int copy(struct mdl *to, const struct mdl *from)
{
	size_t i, n;
	const struct mxbpf_agg_line *rows = lines_rows(from, &n);
	const struct mxbpf_look *looks;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = add(to, &rows[i]);
	looks = lines_looks(from, &n);
	for (i = 0; i < n && !err; i++)
		err = fold_look(to, &looks[i].h);
	return err;
}

static void fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_lines);

	hash_fini(&state->index);
	buf_fini(&state->rows);
	buf_fini(&state->looks);
}

const struct mdl_feature feature_lines = {
	.session = &lines_session,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_AGG_LINE, fold}, {MXBPF_LOOK, fold_look}},
	.emit = emit,
	.copy = copy,
	.fini = fini,
};
