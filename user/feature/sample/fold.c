// SPDX-License-Identifier: Apache-2.0
/* Samples by their innermost span: what --sample adds to the tables. */
#include "feature/sample/sample.h"
#include "model/priv.h"

#include <errno.h>

static int samples_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sample *s = (const void *)rec;
	const struct mxbpf_sample_span *spans = (const void *)(s + 1);
	const unsigned nspans = mxbpf_sample_nspans(s);
	const struct mxbpf_sample_span none = {0}, *last = nspans ? &spans[nspans - 1] : &none;
	const uint64_t process = (uint64_t)last->cls << 32 | s->h.tgid;
	bool added;
	struct sample_row *r = mdl_item_put(&m->sample_index, &m->samples, last->name_id, process, sizeof(*r), &added);

	if (!r || mdl_expect_name(m, last->name_id))
		return -ENOMEM;
	if (added)
		*r = (struct sample_row){.tgid = s->h.tgid, .cls = last->cls, .name_id = last->name_id};
	add_sat(&r->count, s->count);
	return 0;
}

const struct sample_row *sample_rows(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->samples, struct sample_row);
	return (const void *)m->samples.data;
}

static int samples_emit(const struct mdl *m, struct buf *out)
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
			       .nspans_low = !!r[i].cls},
			 .span = {.name_id = r[i].name_id, .cls = r[i].cls}};

		rec.s.h.size = (uint16_t)(sizeof(rec.s) + rec.s.nspans_low * sizeof(rec.span));
		err = buf_put(out, &rec, rec.s.h.size);
	}
	return err;
}

static void samples_fini(struct mdl *m)
{
	hash_fini(&m->sample_index);
	buf_fini(&m->samples);
}

const struct mdl_feature feature_sample = {
	.kinds = {{MXBPF_SAMPLE, samples_fold}},
	.emit = samples_emit,
	.fini = samples_fini,
};
