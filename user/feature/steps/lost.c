// SPDX-License-Identifier: Apache-2.0
#include "feature/steps/lost.h"

#include "base/whole.h"
#include "model/feature.h"

void lost_add(struct lost *l, const struct mxbpf_lost *r)
{
	const size_t i = l->n++ % LOST_MAX;

	l->last[i].from_ns = r->h.ts_ns;
	l->last[i].to_ns = r->to_ns;
	l->last[i].ends = r->flags & MXBPF_LOST_ENDS;
}

bool lost_in(const struct lost *l, uint64_t from_ns, uint64_t to_ns, bool ends)
{
	const size_t n = l->n < LOST_MAX ? l->n : LOST_MAX;
	size_t i;

	for (i = 0; i < n; i++)
		if (l->last[i].from_ns <= to_ns && l->last[i].to_ns >= from_ns && (l->last[i].ends || !ends))
			return true;
	return false;
}

void lost_shorten(struct mxbpf_iteration *it, size_t n)
{
	uint64_t raw_ns = 0, left_ns = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		add_sat(&raw_ns, it[i].raw_ns);
		add_sat(&left_ns, it[i].raw_ns ? it[i].dur_ns : 0);
	}
	for (i = 0; i < n && raw_ns; i++) {
		if (!(it[i].flags & MXBPF_ITERATION_LOST) || it[i].raw_ns)
			continue;
		it[i].raw_ns = it[i].dur_ns;
		it[i].dur_ns = whole((double)it[i].dur_ns * ((double)left_ns / (double)raw_ns));
	}
}
