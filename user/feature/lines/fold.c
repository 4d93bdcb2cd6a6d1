// SPDX-License-Identifier: Apache-2.0
#include "feature/lines/lines.h"

#include <errno.h>
#include <string.h>

#define LOOKS_MAX 16384 /* single looks that are kept, the newest, and records of collectors; at least a half of it */

struct state {
	struct buf looks, collectors; /* struct mxbpf_look, struct mxbpf_collector, in order of time */
};

static int put_newest(struct buf *recs, const struct mxbpf_rec *rec, uint16_t bytes)
{
	struct mxbpf_rec *to;

	if (recs->len / bytes >= LOOKS_MAX) {
		recs->len = (size_t)bytes * LOOKS_MAX / 2;
		memmove(recs->data, recs->data + recs->len, recs->len);
	}
	to = buf_add(recs, bytes);
	if (!to)
		return -ENOMEM;
	memset(to, 0, bytes);
	memcpy(to, rec, rec->size < bytes ? rec->size : bytes); /* an older one is shorter */
	to->size = bytes;					/* a newer one is longer */
	return 0;
}

static int fold_look(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *state = mdl_state(m, &feature_lines);

	return state ? put_newest(&state->looks, rec, sizeof(struct mxbpf_look)) : -ENOMEM;
}

static int fold_collector(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *state = mdl_state(m, &feature_lines);

	return state ? put_newest(&state->collectors, rec, sizeof(struct mxbpf_collector)) : -ENOMEM;
}

const struct mxbpf_look *lines_looks(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_lines);

	*n = state ? buf_count(&state->looks, struct mxbpf_look) : 0;
	return state ? (const void *)state->looks.data : NULL;
}

const struct mxbpf_collector *lines_collectors(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_lines);

	*n = state ? buf_count(&state->collectors, struct mxbpf_collector) : 0;
	return state ? (const void *)state->collectors.data : NULL;
}

const struct mxbpf_agg_line *lines_rows(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_lines, &lines_table, n);
}

const struct mxbpf_network *network_rows(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_lines, &network_table, n);
}

static int lines_emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_look *looks = lines_looks(m, &n);
	const struct mxbpf_collector *collectors;
	int err = buf_put(out, looks, n * sizeof(*looks));

	collectors = lines_collectors(m, &n);
	return err ? err : buf_put(out, collectors, n * sizeof(*collectors));
}

static int lines_copy(struct mdl *to, const struct mdl *from)
{
	size_t i, n;
	const struct mxbpf_look *looks = lines_looks(from, &n);
	const struct mxbpf_collector *collectors;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = fold_look(to, &looks[i].h);
	collectors = lines_collectors(from, &n);
	for (i = 0; i < n && !err; i++)
		err = fold_collector(to, &collectors[i].h);
	return err;
}

static void lines_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_lines);

	buf_fini(&state->looks);
	buf_fini(&state->collectors);
}

const struct mdl_feature feature_lines = {
	.session = &lines_session,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_LOOK, fold_look}, {MXBPF_COLLECTOR, fold_collector}},
	.tables = {{&lines_table, MXBPF_AGG_LINE}, {&network_table, MXBPF_NETWORK}},
	.emit = lines_emit,
	.copy = lines_copy,
	.fini = lines_fini,
};
