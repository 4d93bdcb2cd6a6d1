// SPDX-License-Identifier: Apache-2.0
/*
 * Live bytes of a device and the number of spans that are open at the same time depend on the order of time. Records of
 * a window come in any order, so the model collects them and folds them in order when the window is complete.
 */
#include "model/priv.h"

#include <errno.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS	   (1u << DIGIT_BITS)

static int add_moment(struct buf *b, uint64_t ns, uint64_t what)
{
	struct moment *p = buf_add(b, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct moment){ns, what};
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
	if (add_moment(&m->window.opens, s->h.ts_ns, s->cls * 2u) ||
	    add_moment(&m->window.closes, close_ns, s->cls * 2u + 1))
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

static void sort_digit(const struct moment *from, struct moment *to, size_t n, uint64_t low_ns, unsigned shift)
{
	size_t start[DIGITS] = {0}, sum = 0, count, i;

	for (i = 0; i < n; i++)
		start[(from[i].ns - low_ns) >> shift & (DIGITS - 1)]++;
	for (i = 0; i < DIGITS; i++) {
		count = start[i];
		start[i] = sum;
		sum += count;
	}
	for (i = 0; i < n; i++)
		to[start[(from[i].ns - low_ns) >> shift & (DIGITS - 1)]++] = from[i];
}

/*
 * A radix sort, lowest digit first. A window is short, so three passes are enough. A sort that compares would take
 * longer than the rest of the folding.
 */
int window_sort(struct buf *moments, struct buf *spare)
{
	size_t n = buf_count(moments, struct moment), i;
	uint64_t low_ns = UINT64_MAX, high_ns = 0;
	struct moment *p = (void *)moments->data;
	struct buf other;
	unsigned shift;

	spare->len = 0;
	if (!n)
		return 0;
	if (!buf_add(spare, moments->len))
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		low_ns = p[i].ns < low_ns ? p[i].ns : low_ns;
		high_ns = p[i].ns > high_ns ? p[i].ns : high_ns;
	}
	for (shift = 0; shift < 64 && (high_ns - low_ns) >> shift; shift += DIGIT_BITS) {
		sort_digit((void *)moments->data, (void *)spare->data, n, low_ns, shift);
		other = *moments;
		*moments = *spare;
		*spare = other;
	}
	return 0;
}

/*
 * Finds the largest number of spans of each class that were open at the same time. The ends of a window's spans are in
 * it. A span that started in an earlier window is counted from its own start on.
 */
static int fold_open(struct mdl *m)
{
	struct window *w = &m->window;
	int64_t open[MXBPF_CLASS_MAX] = {0};
	const struct moment *p;
	uint64_t *max;
	size_t i;

	/* Ends stand before starts, and the sort is stable: a span is not open together with one that starts at its
	 * end. */
	if (buf_put(&w->closes, w->opens.data, w->opens.len) || window_sort(&w->closes, &w->spare))
		return -ENOMEM;
	for (i = 0; i < buf_count(&w->closes, struct moment); i++) {
		p = buf_at(&w->closes, struct moment, i);
		max = &m->tallies[p->what / 2][MXBPF_TALLY_MAX_OPEN];
		open[p->what / 2] += p->what % 2 ? -1 : 1;
		if (open[p->what / 2] > 0 && (uint64_t)open[p->what / 2] > *max)
			*max = (uint64_t)open[p->what / 2];
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

static int fold_allocs(struct mdl *m)
{
	struct window *w = &m->window;
	const struct mxbpf_alloc *a;
	struct mdl_mem_row *r;
	size_t i;

	if (window_sort(&w->allocs, &w->spare))
		return -ENOMEM;
	for (i = 0; i < buf_count(&w->allocs, struct moment); i++) {
		a = (const void *)(uintptr_t)buf_at(&w->allocs, struct moment, i)->what;
		r = a->bytes ? mem_row(m, a->h.tgid, a->device) : NULL;
		if (a->bytes && !r)
			return -ENOMEM;
		if (r)
			account(r, a->bytes);
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
