// SPDX-License-Identifier: Apache-2.0
/*
 * Activities of devices in a timeline: a track for each stream, and an arrow to each activity from the span that
 * launched it. Records of devices and of threads come in any order, so the span is known only when all spans have been
 * read. Therefore activities are written before the spans, and arrows behind them.
 *
 * The survey needs 80 bytes for an activity and 40 bytes for a launch, and twice that while a buffer grows.
 */
#include "feature/activity/activity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxbpf_track.h"
#include "view/timeline/trace.h"

/* Kineto's names of the classes: tools search for these. */
static const char *const categories[MXBPF_ACTIVITY_MAX] = {[MXBPF_ACTIVITY_KERNEL] = "kernel",
							   [MXBPF_ACTIVITY_COPY] = "gpu_memcpy",
							   [MXBPF_ACTIVITY_SET] = "gpu_memset",
							   [MXBPF_ACTIVITY_SYNC] = "cuda_sync"};

/* Most tracks of one stream. CUPTI reports kernels of a CUDA graph in one stream although they overlap. */
#define LANES_MAX 16

struct activity {
	struct kind_track track;
	uint64_t start_ns, dur_ns, name_id, bytes, edge_id;
	uint64_t launch; /* 1 + place in launches; 0: none */
	uint32_t tid;	 /* of its track in the timeline */
	uint16_t domain;
	uint8_t cls;
};

struct launch {
	uint64_t ts_ns, edge_id;
	uint64_t span_start_ns; /* of the innermost span found so far; if span_tid is 0, there is none */
	uint32_t tgid, tid;
	uint32_t span_tid; /* thread or lane on which that span is drawn */
	uint16_t domain;
};

struct state {
	struct buf activities; /* struct activity; after the survey by track and time */
	struct buf launches;   /* struct launch; after the survey by thread and time */
	uint64_t nunlaunched;  /* activities with an edge whose launch is unknown */
};

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int survey(struct view_trace *t, void *vstate, const struct mxbpf_rec *r)
{
	struct state *state = vstate;
	const struct mxbpf_activity *a = (const void *)r;
	const struct mxbpf_launch *l = (const void *)r;
	struct launch launch;
	struct activity activity;

	if (!t->form->thread)
		return 0;
	if (r->kind == MXBPF_LAUNCH) {
		launch = (struct launch){
			.ts_ns = r->ts_ns, .edge_id = l->edge_id, .tgid = r->tgid, .tid = l->tid, .domain = l->domain};
		return buf_put(&state->launches, &launch, sizeof(launch));
	}
	activity = (struct activity){.start_ns = r->ts_ns,
				     .dur_ns = a->dur_ns,
				     .name_id = a->name_id,
				     .bytes = a->bytes,
				     .edge_id = a->edge_id,
				     .domain = a->domain,
				     .cls = a->cls};
	kind_track(r, &activity.track);
	return buf_put(&state->activities, &activity, sizeof(activity));
}

/* ---- between the passes */

static int by_thread(const void *x, const void *y)
{
	const struct launch *a = x, *b = y;

	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	return a->tid != b->tid ? ORDER(a->tid, b->tid) : ORDER(a->ts_ns, b->ts_ns);
}

static int by_edge(const struct launch *a, const struct launch *b)
{
	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	return a->domain != b->domain ? ORDER(a->domain, b->domain) : ORDER(a->edge_id, b->edge_id);
}

static int by_edge_and_time(const void *x, const void *y, void *launches)
{
	const struct launch *a = (struct launch *)launches + *(const uint64_t *)x;
	const struct launch *b = (struct launch *)launches + *(const uint64_t *)y;
	int order = by_edge(a, b);

	return order ? order : ORDER(a->ts_ns, b->ts_ns);
}

static int by_track(const struct kind_track *a, const struct kind_track *b)
{
	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	if (a->a != b->a)
		return ORDER(a->a, b->a);
	return a->b != b->b ? ORDER(a->b, b->b) : ORDER(a->c, b->c);
}

static int by_track_and_time(const void *x, const void *y)
{
	const struct activity *a = x, *b = y;
	int order = by_track(&a->track, &b->track);

	order = order ? order : ORDER(a->start_ns, b->start_ns);
	return order ? order : ORDER(b->dur_ns, a->dur_ns);
}

/* Returns 1 + the place of the last launch of the activity's edge before the activity started; 0: none. */
static uint64_t launch_of(const struct state *state, const struct activity *a, const uint64_t *order)
{
	const struct launch key = {.tgid = a->track.tgid, .domain = a->domain, .edge_id = a->edge_id};
	size_t low = 0, high = buf_count(&state->launches, struct launch), mid;
	const struct launch *l;
	int side;

	while (low < high) {
		mid = low + (high - low) / 2;
		l = buf_at(&state->launches, struct launch, order[mid]);
		side = by_edge(l, &key);
		if (side < 0 || (!side && l->ts_ns <= a->start_ns))
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || a->domain == MXBPF_DOMAIN_NONE ||
	    by_edge(buf_at(&state->launches, struct launch, order[low - 1]), &key))
		return 0;
	return order[low - 1] + 1;
}

static int join(struct state *state)
{
	size_t n = buf_count(&state->launches, struct launch), i;
	uint64_t *order = calloc(n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		order[i] = i;
	if (n) {
		qsort(state->launches.data, n, sizeof(struct launch), by_thread);
		qsort_r(order, n, sizeof(*order), by_edge_and_time, state->launches.data);
	}
	for (i = 0; i < buf_count(&state->activities, struct activity); i++) {
		struct activity *a = buf_at(&state->activities, struct activity, i);

		a->launch = launch_of(state, a, order);
		state->nunlaunched += !a->launch && a->domain != MXBPF_DOMAIN_NONE;
	}
	free(order);
	return 0;
}

/* Activities of one stream that do not overlap share a lane. */
static void assign_lanes(struct activity *a, size_t n)
{
	uint64_t busy_ns[LANES_MAX];
	uint32_t tid = VIEW_STREAM_TID;
	unsigned nlanes = 0, k;
	size_t i;

	for (i = 0; i < n; i++) {
		if (i && by_track(&a[i].track, &a[i - 1].track)) {
			tid += nlanes;
			nlanes = 0;
		}
		for (k = 0; k < nlanes && busy_ns[k] > a[i].start_ns; k++)
			;
		if (k == LANES_MAX)
			k--;
		nlanes = k == nlanes ? k + 1 : nlanes;
		busy_ns[k] = a[i].start_ns + a[i].dur_ns;
		a[i].tid = tid + k;
	}
}

static int plan(struct view_trace *t, void *vstate)
{
	struct state *state = vstate;
	size_t n = buf_count(&state->activities, struct activity), i;
	struct activity *a = (struct activity *)state->activities.data;

	for (i = 0; i < n; i++)
		t->base_ns = a[i].start_ns < t->base_ns ? a[i].start_ns : t->base_ns;
	if (n)
		qsort(a, n, sizeof(*a), by_track_and_time);
	assign_lanes(a, n);
	return join(state);
}

/* ---- tracks and activities */

static bool has_contexts(const struct activity *a, size_t n, size_t i)
{
	size_t first = i, last = i;

	while (first && a[first - 1].track.tgid == a[i].track.tgid && a[first - 1].track.a == a[i].track.a)
		first--;
	while (last + 1 < n && a[last + 1].track.tgid == a[i].track.tgid && a[last + 1].track.a == a[i].track.a)
		last++;
	return a[first].track.b != a[last].track.b;
}

static void write_track(struct view_trace *t, const struct activity *a, unsigned lane, bool contexts, size_t place)
{
	char name[96], in[32] = "", nth[32] = "";

	if (contexts)
		snprintf(in, sizeof(in), " context %u", a->track.b);
	if (lane)
		snprintf(nth, sizeof(nth), " (%u)", lane + 1);
	snprintf(name, sizeof(name), "GPU %u%s stream %u%s", a->track.a, in, a->track.c, nth);
	view_trace_name_track(t, a->track.tgid, a->tid, name, place);
}

static void write_activity(struct view_trace *t, const struct activity *a)
{
	struct view_text name = view_trace_text(t, a->name_id, view_text_name);
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;

	p = put(start, ",\n{\"ph\":\"X\",");
	p = view_put_where(t, p, a->track.tgid, a->tid, a->start_ns);
	p = put(p, ",\"dur\":");
	p = view_put_us(p, a->dur_ns);
	p = put(p, ",\"cat\":\"");
	p = put(p, categories[a->cls]);
	p = put(p, "\",\"name\":\"");
	out_filled(t->s.out, (size_t)(p - start));
	out_write(t->s.out, name.data, name.len);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = view_put_u64(put(start, "\",\"args\":{\"device\":"), a->track.a);
	p = view_put_u64(put(p, ",\"context\":"), a->track.b);
	p = view_put_u64(put(p, ",\"stream\":"), a->track.c);
	if (a->domain != MXBPF_DOMAIN_NONE)
		p = view_put_u64(put(p, ",\"correlation\":"), a->edge_id);
	if (a->bytes)
		p = view_put_u64(put(p, ",\"bytes\":"), a->bytes);
	p = put(p, "}}");
	out_filled(t->s.out, (size_t)(p - start));
}

static bool has_thread(const struct view_trace *t, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < buf_count(&t->plan.tracks, struct view_plan_track); i++)
		if (buf_at(&t->plan.tracks, struct view_plan_track, i)->tgid == tgid)
			return true;
	return tgid == t->s.in->session->pid;
}

static void about(struct json *j, const void *vstate)
{
	const struct state *state = vstate;

	if (state->activities.len)
		json_u64(j, "activities_unlaunched", state->nunlaunched);
}

static void write_tracks(struct view_trace *t, void *vstate, size_t place)
{
	const struct state *state = vstate;
	const struct activity *a = (const struct activity *)state->activities.data;
	size_t n = buf_count(&state->activities, struct activity), i;
	uint32_t first = VIEW_STREAM_TID; /* first track of the stream */
	uint32_t next = VIEW_STREAM_TID;  /* first track without a name */
	bool contexts = false;

	for (i = 0; i < n; i++) {
		if ((!i || a[i].track.tgid != a[i - 1].track.tgid) && !has_thread(t, a[i].track.tgid))
			t->form->process(t, a[i].track.tgid, false);
		if (!i || a[i].track.tgid != a[i - 1].track.tgid || a[i].track.a != a[i - 1].track.a)
			contexts = has_contexts(a, n, i);
		if (!i || by_track(&a[i].track, &a[i - 1].track))
			first = next;
		if (a[i].tid == next) {
			write_track(t, &a[i], a[i].tid - first, contexts, place++);
			next++;
		}
		write_activity(t, &a[i]);
	}
}

/* ---- arrows */

/* The first launch of the thread since the start of the span. */
static size_t first_launch(const struct state *state, const struct mxbpf_span *s)
{
	const struct launch key = {.tgid = s->h.tgid, .tid = s->tid, .ts_ns = s->h.ts_ns};
	size_t low = 0, high = buf_count(&state->launches, struct launch), mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (by_thread(buf_at(&state->launches, struct launch, mid), &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* While a span with MXBPF_SPAN_ASYNC was open, its thread was in other spans. */
static void span(struct view_trace *t, void *vstate, const struct mxbpf_span *s, uint32_t drawn_tid)
{
	const struct state *state = vstate;
	size_t n = buf_count(&state->launches, struct launch), i;
	struct launch *l;

	if (!n || s->flags & MXBPF_SPAN_ASYNC)
		return;
	for (i = first_launch(state, s); i < n; i++) {
		l = buf_at(&state->launches, struct launch, i);
		if (l->tgid != s->h.tgid || l->tid != s->tid ||
		    (l->ts_ns > s->h.ts_ns && l->ts_ns - s->h.ts_ns >= s->dur_ns))
			break;
		if (l->span_tid && l->span_start_ns >= s->h.ts_ns)
			continue;
		l->span_start_ns = s->h.ts_ns;
		l->span_tid = drawn_tid;
	}
}

static void write_end(struct view_trace *t, const char *ph, uint64_t id, uint32_t tgid, uint32_t tid, uint64_t ts_ns)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;

	p = put(start, ",\n{\"ph\":");
	p = put(p, ph);
	p = put(p, ",\"id\":");
	p = view_put_u64(p, id);
	*p++ = ',';
	p = view_put_where(t, p, tgid, tid, ts_ns);
	p = put(p, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}");
	out_filled(t->s.out, (size_t)(p - start));
}

/* Each activity has an arrow of its own, because a flow of this format has one end. No arrow goes back in time. */
static void arrows(struct view_trace *t, void *vstate)
{
	const struct state *state = vstate;
	uint64_t id = t->plan.narrows;
	const struct launch *l;
	size_t i;

	for (i = 0; i < buf_count(&state->activities, struct activity); i++) {
		const struct activity *a = buf_at(&state->activities, struct activity, i);

		l = a->launch ? buf_at(&state->launches, struct launch, a->launch - 1) : NULL;
		if (!l || !l->span_tid || l->span_start_ns >= a->start_ns)
			continue;
		id++;
		write_end(t, "\"s\"", id, l->tgid, l->span_tid, l->span_start_ns);
		write_end(t, "\"f\",\"bp\":\"e\"", id, a->track.tgid, a->tid, a->start_ns);
	}
}

static void fini(void *vstate)
{
	struct state *state = vstate;

	buf_fini(&state->activities);
	buf_fini(&state->launches);
}

const struct view_trace_feature activity_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_ACTIVITY, MXBPF_LAUNCH},
	.survey = survey,
	.plan = plan,
	.about = about,
	.tracks = write_tracks,
	.span = span,
	.arrows = arrows,
	.fini = fini,
};
