// SPDX-License-Identifier: Apache-2.0
/*
 * Live bytes of a device and the number of spans that are open at the same time depend on the order of time. Records of
 * a window come in any order, so the model collects them and folds them in order when the window is complete.
 */
#include "model/priv.h"

#include <errno.h>
#include <string.h>

static int add_moment(struct buf *b, uint64_t ns, uint64_t what)
{
	struct timed *p = buf_add(b, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct timed){ns, what};
	return 0;
}

static void note_time(struct mdl *m, unsigned cls, uint64_t ns)
{
	/* CUPTI reports calls of CUDA seconds later, in no order; there is nothing to warn of. */
	if (ns < m->folded_ns[m->source][cls] && cls != MXBPF_CLASS_CUDA)
		m->tallies[cls][MXBPF_TALLY_LATE]++;
	if (ns > m->window.newest_ns[cls])
		m->window.newest_ns[cls] = ns;
}

/* A record of a span is sent when the span ends. A span of 0 ns counts as open for 1 ns. */
int window_span(struct mdl *m, const struct mxbpf_span *s)
{
	uint64_t close_ns = s->h.ts_ns;

	add_sat(&close_ns, s->dur_ns ? s->dur_ns : 1);
	note_time(m, s->cls, close_ns);
	if (add_moment(&m->window.opens, s->h.ts_ns, s->cls) || add_moment(&m->window.closes, close_ns, s->cls))
		return -ENOMEM;
	return 0;
}

int window_alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	if (!a->bytes && a->h.size < MXBPF_ALLOC_BYTES_OWNER)
		return 0;
	note_time(m, MXBPF_CLASS_NONE, a->h.ts_ns);
	return add_moment(&m->window.allocs, a->h.ts_ns, (uintptr_t)a);
}

/*
 * Finds the largest number of spans of each class that were open at the same time. The ends of a window's spans are in
 * it. A span that started in an earlier window is counted from its own start on.
 */
static int fold_open(struct mdl *m)
{
	struct window *w = &m->window;
	int64_t open[MXBPF_CLASS_MAX] = {0};
	size_t n, nends;
	const struct timed *begin, *end;
	uint64_t *max;
	size_t i = 0, k;

	if (timed_sort(&w->opens, &w->spare) || timed_sort(&w->closes, &w->spare))
		return -ENOMEM;
	n = buf_count(&w->opens, struct timed);
	nends = buf_count(&w->closes, struct timed); /* without memory, a start can lack its end */
	begin = (const void *)w->opens.data;
	end = (const void *)w->closes.data;
	/* A span is not open together with one that starts at its end. */
	for (k = 0; k < n; k++) {
		for (; i < nends && end[i].ns <= begin[k].ns; i++)
			open[end[i].what]--;
		max = &m->tallies[begin[k].what][MXBPF_TALLY_MAX_OPEN];
		if (++open[begin[k].what] > 0 && (uint64_t)open[begin[k].what] > *max)
			*max = (uint64_t)open[begin[k].what];
	}
	return 0;
}

static void account(struct mdl_mem_row *r, int64_t bytes)
{
	uint64_t n = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;

	if (bytes > 0) {
		add_sat(&r->alloc_bytes, n);
		add_sat(&r->live_bytes, n);
	} else {
		add_sat(&r->free_bytes, n);
		r->live_bytes -= n < r->live_bytes ? n : r->live_bytes;
	}
	if (r->live_bytes > r->peak_bytes)
		r->peak_bytes = r->live_bytes;
	if (r->live_bytes < r->low_bytes || !(r->allocs + r->frees))
		r->low_bytes = r->live_bytes;
	add_sat(bytes > 0 ? &r->allocs : &r->frees, 1);
}

/* An allocation that failed does not count, and a free of unknown size only if another profiler has counted it. */
static bool is_counted(const struct mxbpf_alloc *a)
{
	return a->bytes || (a->h.size >= MXBPF_ALLOC_BYTES_OWNER && a->flags & MXBPF_ALLOC_COUNTED);
}

static int fold_allocs(struct mdl *m)
{
	struct window *w = &m->window;
	const struct mxbpf_alloc *a;
	struct mdl_mem_row *r;
	size_t i;

	if (timed_sort(&w->allocs, &w->spare))
		return -ENOMEM;
	for (i = 0; i < buf_count(&w->allocs, struct timed); i++) {
		a = (const void *)(uintptr_t)buf_at(&w->allocs, struct timed, i)->what;
		r = is_counted(a) ? mem_row(m, a->h.tgid, a->device) : NULL;
		if (r)
			account(r, a->bytes);
		else if (is_counted(a))
			return -ENOMEM;
		if (features_alloc(m, a))
			return -ENOMEM;
	}
	return 0;
}

int window_fold(struct mdl *m)
{
	struct window *w = &m->window;
	int err = fold_open(m), err2 = fold_allocs(m);
	unsigned i;

	for (i = 0; i < MXBPF_CLASS_MAX; i++)
		if (w->newest_ns[i] > m->folded_ns[m->source][i])
			m->folded_ns[m->source][i] = w->newest_ns[i];
	memset(w->newest_ns, 0, sizeof(w->newest_ns));
	w->opens.len = w->closes.len = w->allocs.len = 0;
	return err ? err : err2;
}

void window_fini(struct window *w)
{
	buf_fini(&w->opens);
	buf_fini(&w->closes);
	buf_fini(&w->allocs);
	buf_fini(&w->spare);
}
