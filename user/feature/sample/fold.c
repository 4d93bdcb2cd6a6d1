// SPDX-License-Identifier: Apache-2.0
/* --sample: adds samples up by their innermost span. */
#include "feature/sample/sample.h"
#include "mxbpf_sample.h"

static int sample_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sample *s = (const void *)rec;
	const struct mxbpf_sample_span *spans = (const void *)(s + 1);
	const bool between = s->flags & MXBPF_SAMPLE_BETWEEN; /* the innermost of its spans is not that of the thread */
	const unsigned nspans = between ? 0 : mxbpf_sample_nspans(s);
	const struct mxbpf_sample_span none = {0}, *last = nspans ? &spans[nspans - 1] : &none;
	const struct sample_row row = {
		.name_id = last->name_id, .count = s->count, .tgid = s->h.tgid, .cls = last->cls, .between = between};

	return mdl_table_add(m, &feature_sample, &sample_table, &row);
}

const struct mdl_feature feature_sample = {
	.option = &sample_option,
	.session = &sample_session,
	.kinds = {{MXBPF_SAMPLE, sample_fold}},
	.tables = {{&sample_table}},
};
