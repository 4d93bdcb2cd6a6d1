// SPDX-License-Identifier: Apache-2.0
/* Finds the launch of an activity. */
#include <stdlib.h>

#include "feature/path/state.h"

static int by_edge(const void *va, const void *vb)
{
	const struct path_launch *a = va, *b = vb;

	PATH_ORDER(a->tgid, b->tgid);
	PATH_ORDER(a->domain, b->domain);
	PATH_ORDER(a->edge_id, b->edge_id);
	PATH_ORDER(a->start_ns, b->start_ns);
	return 0;
}

void path_sort_launches(struct buf *launches)
{
	if (launches->len)
		qsort(launches->data, buf_count(launches, struct path_launch), sizeof(struct path_launch), by_edge);
}

static bool is_launch_of(const struct path_launch *l, const struct path_work *w)
{
	return l->tgid == w->tgid && l->domain == w->domain && l->edge_id == w->edge_id;
}

const struct path_launch *path_launch_of(const struct buf *launches, const struct path_work *w)
{
	const struct path_launch like = {
		.tgid = w->tgid, .domain = w->domain, .edge_id = w->edge_id, .start_ns = w->start_ns + 1};
	const struct path_launch *all = (const struct path_launch *)launches->data;
	size_t low = 0, high = buf_count(launches, like), mid;

	if (w->domain == MXBPF_DOMAIN_NONE)
		return NULL;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (by_edge(&all[mid], &like) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low && is_launch_of(&all[low - 1], w))
		return &all[low - 1];
	return low < buf_count(launches, like) && is_launch_of(&all[low], w) ? &all[low] : NULL;
}
