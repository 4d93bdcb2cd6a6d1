// SPDX-License-Identifier: Apache-2.0
/*
 * What each thread and each stream of a GPU did over time, as shares of equal slices of the window. The time of a call
 * is its own, without calls in it, spread evenly over its duration. Only recordings have single calls.
 */
#include "view/page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/whole.h"
#include "model/feature.h"
#include "mxbpf_track.h"

#define LANES_MAX   1024 /* threads and streams that are counted */
#define LANES_SHOWN 32	 /* threads and streams that are shown, the busiest */

enum state { OPERATOR, WAIT, DATA, EXCHANGE, OTHER, KERNEL, COPY, STATES };

static const char *const words[STATES] = {
	[OPERATOR] = "in operators",
	[WAIT] = "waiting for results",
	[DATA] = "waiting for data",
	[EXCHANGE] = "exchanging parameters",
	[OTHER] = "in other calls of the runtime",
	[KERNEL] = "GPU: kernels",
	[COPY] = "GPU: copies and the like",
};

struct lane {
	uint64_t ns; /* sum over all states */
	uint32_t tgid, tid;
	struct mxbpf_track track; /* only of a stream */
	bool stream;
	float slice_ns[PAGE_SLICES][STATES]; /* a slice of a long window has more ns than 32 bits count */
};

/* Returns true for calls that do work. Annotations only contain calls. */
static bool is_work(unsigned cls)
{
	return cls < MXBPF_CLASS_TASK || cls > MXBPF_CLASS_STEP;
}

static enum state strip_state_of(unsigned cls)
{
	switch (cls) {
	case MXBPF_CLASS_WAIT:
		return WAIT;
	case MXBPF_CLASS_DATA:
		return DATA;
	case MXBPF_CLASS_KVSTORE:
		return EXCHANGE;
	case MXBPF_CLASS_API:
		return OTHER;
	}
	return OPERATOR;
}

/* Returns NULL without memory or room. */
static struct lane *lane_of(struct page_strip *p, uint64_t a, uint64_t b)
{
	uint64_t *at = hash_put(&p->places, a, b);
	struct lane *new;

	if (!at)
		return NULL;
	if (*at)
		return (struct lane *)(uintptr_t)*at;
	new = p->nlanes < LANES_MAX ? calloc(1, sizeof(*new)) : NULL;
	if (!new) {
		p->left_out++;
		return NULL;
	}
	p->nlanes++;
	*at = (uintptr_t) new;
	return new;
}

/* Spreads ns over the slices between two times. */
static void strip_add(struct page_strip *p, struct lane *l, enum state state, uint64_t from, uint64_t to, uint64_t ns)
{
	const uint64_t end = p->start_ns + PAGE_SLICES * p->slice_ns;
	const double each = to > from ? (double)ns / (double)(to - from) : 0;
	uint64_t i, low, high;

	from = from > p->start_ns ? from : p->start_ns;
	to = to < end ? to : end;
	for (i = (from - p->start_ns) / p->slice_ns; from < to && i < PAGE_SLICES; i++) {
		low = p->start_ns + i * p->slice_ns;
		high = low + p->slice_ns < to ? low + p->slice_ns : to;
		low = low > from ? low : from;
		l->slice_ns[i][state] += (float)((double)(high - low) * each);
		l->ns += whole((double)(high - low) * each);
		from = high;
	}
}

static void take_span(struct page_strip *p, const struct mxbpf_rec *r)
{
	struct mxbpf_span s;
	struct lane *l;

	kind_span(r, &s);
	if (s.flags & MXBPF_SPAN_ASYNC || !is_work(s.cls))
		return;
	l = lane_of(p, (uint64_t)s.h.tgid << 32 | s.tid, 0);
	if (!l)
		return;
	l->tgid = s.h.tgid;
	l->tid = s.tid;
	strip_add(p, l, strip_state_of(s.cls), s.h.ts_ns, s.h.ts_ns + s.dur_ns, s.self_ns);
}

static void take_activity(struct page_strip *p, const struct mxbpf_activity *a)
{
	struct lane *l;

	if (a->cls == MXBPF_ACTIVITY_SYNC)
		return;
	l = lane_of(p, (uint64_t)a->h.tgid << 32 | a->track.device,
		    1ull << 63 | (uint64_t)a->track.context << 32 | a->track.stream);
	if (!l)
		return;
	l->stream = true;
	l->tgid = a->h.tgid;
	l->track = a->track;
	strip_add(p, l, a->cls == MXBPF_ACTIVITY_KERNEL ? KERNEL : COPY, a->h.ts_ns, a->h.ts_ns + a->dur_ns, a->dur_ns);
}

void page_strip_begin(struct page_strip *p, const struct mdl_session *s)
{
	p->start_ns = s->start_mono_ns;
	p->slice_ns = (s->duration_ns + s->paused_ns) / PAGE_SLICES + 1;
}

void page_strip_take(struct page_strip *p, const struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_SPAN)
		take_span(p, r);
	else if (r->kind == MXBPF_ACTIVITY)
		take_activity(p, (const struct mxbpf_activity *)r);
}

/* Streams first, then the busiest. */
static int strip_by_time(const void *va, const void *vb)
{
	const struct lane *const *a = va, *const *b = vb;

	if ((*a)->stream != (*b)->stream)
		return (*a)->stream ? -1 : 1;
	return (*a)->ns > (*b)->ns ? -1 : (*a)->ns < (*b)->ns;
}

static void strip_put_name(struct json *j, struct view *s, const struct lane *l)
{
	const char *name = l->stream ? NULL : mdl_thread_name(s->in->model, l->tgid, l->tid);
	char text[160];

	if (l->stream)
		snprintf(text, sizeof(text), "GPU %" PRIu32 " stream %" PRIu32, l->track.device, l->track.stream);
	else
		snprintf(text, sizeof(text), "%.60s%s%" PRIu32, name ? name : "", name ? " " : "", l->tid);
	json_string(j, "name", text);
	json_u64(j, "pid", l->tgid);
}

static double time_in(const struct lane *l, unsigned first, unsigned n, unsigned state)
{
	double sum = 0;

	while (n--)
		sum += l->slice_ns[first + n][state];
	return sum;
}

/* A slice is a list of thousandths of its time, by state. States at its end that have none are left out. */
static void put_lane(struct json *j, const struct page_strip *p, struct view *s, const struct lane *l, unsigned joined)
{
	const double whole = (double)(p->slice_ns * joined);
	unsigned i, state, states;

	json_line(j, 0);
	json_object(j, NULL);
	strip_put_name(j, s, l);
	json_array(j, "slices");
	for (i = 0; i < PAGE_SLICES; i += joined) {
		for (states = STATES; states && time_in(l, i, joined, states - 1) <= 0; states--)
			;
		json_array(j, NULL);
		for (state = 0; state < states; state++)
			json_printf(j, NULL, "%.0f", 1000 * time_in(l, i, joined, state) / whole);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* Returns how many slices become one, so that the page does not grow with the number of lanes. */
static unsigned joined_slices(size_t lanes)
{
	return lanes > LANES_SHOWN / 2 ? 4 : lanes > LANES_SHOWN / 4 ? 2 : 1;
}

void page_strip_put(struct page_strip *p, struct view *s)
{
	struct lane **all = calloc(p->nlanes + 1, sizeof(struct lane *));
	struct json j = {.out = s->out, .tight = true};
	const struct hash_entry *h;
	size_t pos = 0, n = 0, i;
	unsigned joined;

	while (all && (h = hash_next(&p->places, &pos)))
		if (h->val)
			all[n++] = (struct lane *)(uintptr_t)h->val;
	if (n)
		qsort(all, n, sizeof(struct lane *), strip_by_time);
	joined = joined_slices(n);
	json_object(&j, NULL);
	json_u64(&j, "slice_ns", p->slice_ns * joined);
	json_u64(&j, "lanes_left_out", p->left_out + (n > LANES_SHOWN ? n - LANES_SHOWN : 0));
	json_array(&j, "states");
	for (i = 0; i < STATES; i++)
		json_string(&j, NULL, words[i]);
	json_end(&j);
	json_array(&j, "lanes");
	for (i = 0; i < n && i < LANES_SHOWN; i++)
		put_lane(&j, p, s, all[i], joined);
	json_end(&j);
	json_end(&j);
	free(all);
}

void page_strip_fini(struct page_strip *p)
{
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&p->places, &pos)))
		free((struct lane *)(uintptr_t)h->val);
	hash_fini(&p->places);
}
