// SPDX-License-Identifier: Apache-2.0
/* --sample: adds samples up by their innermost span. */
#include "feature/sample/sample.h"
#include "mxbpf_sample.h"

#include <errno.h>

struct state {
	struct hash index; /* (name_id, whether between slices, class and tgid) -> 1 + index in rows */
	struct buf rows;   /* struct sample_row */
};

static int sample_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sample *s = (const void *)rec;
	const struct mxbpf_sample_span *spans = (const void *)(s + 1);
	const bool between = s->flags & MXBPF_SAMPLE_BETWEEN; /* the innermost of its spans is not that of the thread */
	const unsigned nspans = between ? 0 : mxbpf_sample_nspans(s);
	const struct mxbpf_sample_span none = {0}, *last = nspans ? &spans[nspans - 1] : &none;
	const uint64_t process = (uint64_t)between << 40 | (uint64_t)last->cls << 32 | s->h.tgid;
	struct state *state = mdl_state(m, &feature_sample);
	struct sample_row *r;
	bool added;

	if (!state)
		return -ENOMEM;
	r = mdl_expect_name(m, last->name_id)
		    ? NULL
		    : mdl_item_put(&state->index, &state->rows, last->name_id, process, sizeof(*r), &added);
	if (!r)
		return -ENOMEM;
	if (added)
		*r = (struct sample_row){
			.tgid = s->h.tgid, .cls = last->cls, .between = between, .name_id = last->name_id};
	add_sat(&r->count, s->count);
	return 0;
}

const struct sample_row *sample_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_sample);

	*n = state ? buf_count(&state->rows, struct sample_row) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int sample_emit(const struct mdl *m, struct buf *out)
{
	size_t n, i;
	const struct sample_row *r = sample_rows(m, &n);
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		struct {
			struct mxbpf_sample s;
			struct mxbpf_sample_span span;
		} rec = {.s = {.h = {.kind = MXBPF_SAMPLE, .tgid = r[i].tgid},
			       .count = r[i].count,
			       .flags = r[i].between ? MXBPF_SAMPLE_BETWEEN : 0,
			       .nspans_low = !!r[i].cls},
			 .span = {.name_id = r[i].name_id, .cls = r[i].cls}};

		rec.s.h.size = (uint16_t)(sizeof(rec.s) + rec.s.nspans_low * sizeof(rec.span));
		err = buf_put(out, &rec, rec.s.h.size);
	}
	return err;
}

static int sample_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_sample);
	struct state *t = mdl_state(to, &feature_sample);

	return t ? mdl_items_copy(&t->index, &t->rows, &f->index, &f->rows) : -ENOMEM;
}

static int sample_processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	size_t i, n;
	const struct sample_row *r = sample_rows(m, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = fn(ctx, r[i].tgid);
	return err;
}

static void sample_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_sample);

	mdl_items_fini(&state->index, &state->rows);
}

const struct mdl_feature feature_sample = {
	.option = &sample_option,
	.session = &sample_session,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_SAMPLE, sample_fold}},
	.emit = sample_emit,
	.copy = sample_copy,
	.processes = sample_processes,
	.fini = sample_fini,
};
