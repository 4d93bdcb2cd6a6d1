// SPDX-License-Identifier: Apache-2.0
/* Kernels of GPUs by the range in which they were launched (--by range). */
#include "feature/ranges/ranges.h"

int ranges_kernel(struct mdl *m, const struct ranges_launch *l, uint64_t name_id, uint64_t dur_ns)
{
	const struct mxbpf_range *around;
	struct ranges_row r = {.tgid = l->tgid,
			       .name_id = name_id,
			       .count = 1,
			       .total_ns = dur_ns,
			       .min_ns = dur_ns,
			       .max_ns = dur_ns};

	if (!mdl_tells_ranges(m))
		return 0;
	around = ranges_around(m, l->tgid, l->tid, l->ns, l->ns + 1);
	r.range_id = around ? around->name_id : 0;
	return mdl_table_add(m, &feature_ranges, &ranges_kernels, &r);
}
