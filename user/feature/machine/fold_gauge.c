// SPDX-License-Identifier: Apache-2.0
/* Adds the readings of each gauge up over the window. */
#include "feature/machine/machine.h"
#include "feature/steps/steps.h"

#include <errno.h>
#include <string.h>

struct state {
	struct hash index; /* (id, scope) -> 1 + index in rows */
	struct buf rows;   /* struct machine_row */
};

/* Returns a record of one reading in the form of a record of several readings, which is longer. */
static struct mxbpf_gauge widened(const struct mxbpf_rec *r)
{
	struct mxbpf_gauge g = {0};

	memcpy(&g, r, r->size < sizeof(g) ? r->size : sizeof(g));
	if (r->size >= sizeof(g))
		return g;
	g.first_ns = g.h.ts_ns;
	g.first = g.value;
	g.difference = g.elapsed_ns = 0;
	g.count = g.value != MXBPF_GAUGE_NO_LIMIT;
	g.sum = g.min = g.max = g.count ? g.value : 0;
	return g;
}

/*
 * Returns how much a counter rose, 0 if it fell. A counter starts at 0 again if its cgroup is created again, and the
 * kernel's iowait can fall.
 */
static uint64_t rise(uint64_t from, uint64_t to)
{
	return to > from && to != MXBPF_GAUGE_NO_LIMIT ? to - from : 0;
}

static void machine_merge(struct machine_row *to, const struct mxbpf_gauge *g)
{
	if (!(g->flags & MXBPF_GAUGE_RESUMED)) {
		add_sat(&to->difference, rise(to->last, g->first));
		add_sat(&to->elapsed_ns, rise(to->last_ns, g->first_ns));
	}
	add_sat(&to->difference, g->difference);
	add_sat(&to->elapsed_ns, g->elapsed_ns);
	if (g->count && (!to->count || g->min < to->min))
		to->min = g->min;
	if (g->count && g->max > to->max)
		to->max = g->max;
	add_sat(&to->count, g->count);
	add_sat(&to->sum, g->sum);
	to->last = g->value;
	to->last_ns = g->h.ts_ns;
}

static int gauge_fold(struct mdl *m, const struct mxbpf_rec *r)
{
	const struct mxbpf_gauge g = widened(r);
	struct state *state = mdl_state(m, &feature_machine);
	struct machine_row *row;
	bool added;

	if (!state || steps_resumed(m, (const void *)r))
		return -ENOMEM;
	if (!g.id || g.id >= MXBPF_GAUGE_IDS) /* from a newer version */
		return 0;
	row = mdl_item_put(&state->index, &state->rows, g.id, g.scope, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	if (!added)
		machine_merge(row, &g);
	else
		*row = (struct machine_row){
			.id = g.id,
			.scope = g.scope,
			.first_ns = g.first_ns,
			.last_ns = g.h.ts_ns,
			.first = g.first,
			.last = g.value,
			.difference = g.difference,
			.elapsed_ns = g.elapsed_ns,
			.count = g.count,
			.sum = g.sum,
			.min = g.min,
			.max = g.max,
		};
	return 0;
}

const struct machine_row *machine_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_machine);

	*n = state ? buf_count(&state->rows, struct machine_row) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

const struct machine_row *machine_row(const struct mdl *m, uint16_t id, uint16_t scope)
{
	const struct state *state = mdl_state_of(m, &feature_machine);
	const uint64_t *at = state ? hash_get(&state->index, id, scope) : NULL;

	return at && *at ? buf_at(&state->rows, struct machine_row, *at - 1) : NULL;
}

int machine_drop_groups(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_machine);
	struct machine_row *row;
	size_t i, n, kept = 0;
	uint64_t *at;

	if (!state)
		return -ENOMEM;
	n = buf_count(&state->rows, struct machine_row);
	hash_clear(&state->index);
	for (i = 0; i < n; i++) {
		row = buf_at(&state->rows, struct machine_row, i);
		at = row->scope ? NULL : hash_put(&state->index, row->id, row->scope);
		if (!row->scope && !at)
			return -ENOMEM;
		if (!at)
			continue;
		*buf_at(&state->rows, struct machine_row, kept) = *row;
		*at = ++kept;
	}
	state->rows.len = kept * sizeof(*row);
	return 0;
}

static int machine_emit(const struct mdl *m, struct buf *out)
{
	size_t i, n;
	const struct machine_row *r = machine_rows(m, &n);
	int err = 0;

	for (i = 0; !err && i < n; i++, r++) {
		struct mxbpf_gauge g = {
			.h = {.kind = MXBPF_GAUGE, .size = sizeof(g), .ts_ns = r->last_ns},
			.value = r->last,
			.id = r->id,
			.scope = r->scope,
			.first_ns = r->first_ns,
			.first = r->first,
			.difference = r->difference,
			.elapsed_ns = r->elapsed_ns,
			.count = r->count,
			.sum = r->sum,
			.min = r->min,
			.max = r->max,
		};

		err = buf_put(out, &g, sizeof(g));
	}
	return err;
}

static int machine_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_machine);
	struct state *t = mdl_state(to, &feature_machine);

	return t ? mdl_items_copy(&t->index, &t->rows, &f->index, &f->rows) : -ENOMEM;
}

static void machine_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_machine);

	mdl_items_fini(&state->index, &state->rows);
}

const char *machine_scope_name(const struct mdl *m, uint16_t scope, size_t *len)
{
	const char *name = scope ? mdl_text(m, MXBPF_NAME_SCOPE, scope, len) : NULL;

	if (!name)
		*len = 0;
	return name ? name : "";
}

const struct mdl_feature feature_machine = {
	.session = &machine_session,
	.trace = &machine_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_GAUGE, gauge_fold}},
	.emit = machine_emit,
	.copy = machine_copy,
	.fini = machine_fini,
};
