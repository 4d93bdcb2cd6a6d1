// SPDX-License-Identifier: Apache-2.0
#include "feature/resident/resident.h"

#include <errno.h>
#include <string.h>

#define PROCESSES_MAX 64   /* of further ones nothing is kept */
#define STACKS_MAX    4096 /* that touch memory; others are left out */

struct state {
	struct hash index;	   /* (pid, 0) -> 1 + place in rows */
	struct buf rows;	   /* struct resident */
	struct hash touched_index; /* (stack, pid) -> 1 + place in touched */
	struct buf touched;	   /* struct mxbpf_touched, one for each stack of a process */
};

/* Makes room: each two readings become the smaller one, because what is sought is memory that is never freed. */
static void halve(struct resident *p)
{
	const struct mxbpf_resident *a;
	uint32_t i;

	for (i = 0; i < p->n / 2; i++) {
		a = &p->at[2 * i];
		p->at[i] = a[0].bytes <= a[1].bytes ? a[0] : a[1];
	}
	p->n /= 2;
	p->each *= 2;
	p->last = p->each;
}

static void resident_add(struct resident *p, const struct mxbpf_resident *r)
{
	if (p->n && p->last < p->each) {
		p->last++;
		if (r->bytes < p->at[p->n - 1].bytes)
			p->at[p->n - 1] = *r;
		return;
	}
	if (p->n == RESIDENT_READINGS)
		halve(p);
	p->at[p->n++] = *r;
	p->last = 1;
}

static int resident_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_resident r = {.bytes = 0};
	struct state *state = mdl_state(m, &feature_resident);
	struct resident *p;
	bool added;

	if (!state)
		return -ENOMEM;
	memcpy(&r, rec, rec->size < sizeof(r) ? rec->size : sizeof(r));
	if (buf_count(&state->rows, *p) >= PROCESSES_MAX && !hash_get(&state->index, r.h.tgid, 0))
		return 0;
	p = mdl_item_put(&state->index, &state->rows, r.h.tgid, 0, sizeof(*p), &added);
	if (!p)
		return -ENOMEM;
	if (added) {
		p->tgid = r.h.tgid;
		p->each = 1;
	}
	r.h.size = sizeof(r); /* a newer one is longer, an older one shorter */
	resident_add(p, &r);
	return 0;
}

static int touched_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_touched *from = (const void *)rec;
	struct state *state = mdl_state(m, &feature_resident);
	struct mxbpf_touched *row;
	bool added;

	if (!state)
		return -ENOMEM;
	if (buf_count(&state->touched, *row) >= STACKS_MAX &&
	    !hash_get(&state->touched_index, from->stack_id, from->h.tgid))
		return 0;
	row = mdl_item_put(&state->touched_index, &state->touched, from->stack_id, from->h.tgid, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	if (added) {
		row->h = from->h;
		row->h.size = sizeof(*row);
		row->stack_id = from->stack_id;
	}
	add_sat(&row->pages, from->pages);
	add_sat(&row->gone, from->gone);
	add_sat(&row->samples, from->samples);
	return 0;
}

const struct mxbpf_touched *resident_touched(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_resident);

	*n = state ? buf_count(&state->touched, struct mxbpf_touched) : 0;
	return state ? (const void *)state->touched.data : NULL;
}

const struct resident *resident_at(const struct mdl *m, size_t i)
{
	const struct state *state = mdl_state_of(m, &feature_resident);

	return state && i < buf_count(&state->rows, struct resident) ? buf_at(&state->rows, struct resident, i) : NULL;
}

static int resident_emit(const struct mdl *m, struct buf *out)
{
	const struct resident *p;
	size_t i, n;
	const struct mxbpf_touched *touched = resident_touched(m, &n);
	int err = buf_put(out, touched, n * sizeof(*touched));

	for (i = 0; !err && (p = resident_at(m, i)); i++)
		err = buf_put(out, p->at, p->n * sizeof(p->at[0]));
	return err;
}

static int resident_copy(struct mdl *to, const struct mdl *from)
{
	const struct resident *p;
	size_t i, n;
	const struct mxbpf_touched *touched = resident_touched(from, &n);
	uint32_t k;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		err = touched_fold(to, &touched[i].h);
	for (i = 0; !err && (p = resident_at(from, i)); i++)
		for (k = 0; !err && k < p->n; k++)
			err = resident_fold(to, &p->at[k].h);
	return err;
}

static void resident_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_resident);

	hash_fini(&state->index);
	buf_fini(&state->rows);
	hash_fini(&state->touched_index);
	buf_fini(&state->touched);
}

const struct mdl_feature feature_resident = {
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_RESIDENT, resident_fold}, {MXBPF_TOUCHED, touched_fold}},
	.emit = resident_emit,
	.copy = resident_copy,
	.fini = resident_fini,
};
