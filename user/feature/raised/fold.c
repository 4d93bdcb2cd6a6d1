// SPDX-License-Identifier: Apache-2.0
#include "feature/raised/raised.h"

static int raised_fold_span(struct mdl *m, struct mdl_row *in, const struct mxbpf_span *s)
{
	const struct raised_row row = {
		.name_id = s->name_id,
		.stack_id = s->stack_id,
		.count = 1,
		.first_ns = s->h.ts_ns,
		.last_ns = s->h.ts_ns,
		.tgid = s->h.tgid,
		.cls = s->cls,
	};

	return raised_left(s) ? mdl_table_add(m, &feature_raised, &raised_table, &row) : 0;
}

const struct mdl_feature feature_raised = {
	.bit = RAISED_BIT,
	.option = &raised_option,
	.trace = &raised_trace,
	.tables = {{&raised_table}},
	.span = raised_fold_span,
};
