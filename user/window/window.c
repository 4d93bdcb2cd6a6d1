// SPDX-License-Identifier: Apache-2.0
#include "window/window.h"

#include <string.h>

static const struct win_times *times_at(const struct buf *b, size_t bytes, size_t i)
{
	return buf_place(b, i * bytes);
}

struct win_work win_work_of(const struct mxbpf_activity *a)
{
	return (struct win_work){.start_ns = a->h.ts_ns,
				 .end_ns = a->h.ts_ns + a->dur_ns,
				 .edge_id = a->edge_id,
				 .name_id = a->name_id,
				 .track = a->track,
				 .tgid = a->h.tgid,
				 .domain = a->domain,
				 .cls = a->cls};
}

int win_put(struct win_queue *q, const void *item, size_t bytes)
{
	const struct win_times *t = item;

	q->newest_ns = t->start_ns > q->newest_ns ? t->start_ns : q->newest_ns;
	return buf_put(&q->all, item, bytes);
}

bool win_is_due(size_t n, size_t kept, size_t least, size_t most)
{
	return n >= least && (n >= 2 * kept || n >= most);
}

uint64_t win_horizon(const struct win_queue *q)
{
	return q->newest_ns > WIN_HOLD_NS ? q->newest_ns - WIN_HOLD_NS : 0;
}

uint64_t win_until(struct win_queue *q, size_t bytes, size_t most)
{
	const uint64_t until_ns = win_horizon(q);
	const size_t n = q->all.len / bytes;
	uint64_t half_ns;

	if (n < most)
		return until_ns;
	buf_sort(&q->all, bytes, win_by_times);
	half_ns = times_at(&q->all, bytes, n / 2)->start_ns;
	return half_ns >= until_ns ? half_ns + 1 : until_ns; /* also if all begin at once */
}

size_t win_ready(struct win_queue *q, size_t bytes, int (*order)(const void *, const void *), uint64_t until_ns)
{
	const size_t n = q->all.len / bytes;
	size_t i = 0;

	buf_sort(&q->all, bytes, order);
	while (i < n && times_at(&q->all, bytes, i)->start_ns < until_ns)
		i++;
	return i;
}

void win_take(struct win_queue *q, size_t bytes, size_t n)
{
	uint64_t last_ns;

	if (!n)
		return;
	last_ns = times_at(&q->all, bytes, n - 1)->start_ns;
	q->taken_ns = last_ns > q->taken_ns ? last_ns : q->taken_ns;
	q->all.len -= n * bytes;
	memmove(q->all.data, q->all.data + n * bytes, q->all.len);
}

bool win_is_late(const struct win_queue *q, uint64_t start_ns)
{
	return start_ns < q->taken_ns;
}

int win_copy(struct win_queue *to, const struct win_queue *from)
{
	to->kept = from->kept;
	to->newest_ns = from->newest_ns;
	to->taken_ns = from->taken_ns;
	return buf_put(&to->all, from->all.data, from->all.len);
}

int win_by_times(const void *va, const void *vb)
{
	const struct win_times *a = va, *b = vb;

	BUF_ORDER(a->start_ns, b->start_ns);
	BUF_ORDER(a->end_ns, b->end_ns);
	return 0;
}

int win_put_latest(struct buf *b, const void *item, size_t bytes, size_t max, uint64_t *lost_ns)
{
	const size_t n = b->len / bytes, gone = n < max ? 0 : n - n / 2;
	size_t i;

	for (i = 0; i < gone; i++)
		if (times_at(b, bytes, i)->end_ns > *lost_ns)
			*lost_ns = times_at(b, bytes, i)->end_ns;
	return buf_put_latest(b, item, bytes, max);
}
