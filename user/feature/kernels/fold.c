// SPDX-License-Identifier: Apache-2.0
/* Adds up the counters of measured launches by kernel. */
#include "feature/kernels/kernels.h"

static int fold_metric(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_kernel_metric *from = (const void *)rec;
	struct kernels_row row = {.tgid = rec->tgid, .name_id = from->name_id};

	row.counters[from->number] = (struct kernels_counter){.n = 1, .sum = from->milli};
	if (from->first) {
		row.launches = 1;
		row.held_ns = row.longest_ns = from->held_ns;
		row.passes = from->passes;
	}
	return mdl_table_add(m, &feature_kernels, &kernels_table, &row);
}

const struct mdl_feature feature_kernels = {
	.option = &kernels_option,
	.kinds = {{MXBPF_KERNEL_METRIC, fold_metric}},
	.tables = {{&kernels_table}},
};
