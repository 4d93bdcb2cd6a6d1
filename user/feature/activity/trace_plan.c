// SPDX-License-Identifier: Apache-2.0
#include "feature/activity/trace_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Most tracks of one stream. CUPTI reports kernels of a CUDA graph in one stream although they overlap. */
#define LANES_MAX 16

/* Devices of a job that have an entry. The others are drawn in the process of the last one. */
#define GPUS_MAX 65535

/* Largest ordinal that is a process id in the timeline. torch's tools support no larger one. */
#define ORDINAL_MAX 63

#define COPIES_MAX 8 /* of a copy of a node of a graph */

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* ---- the first pass */

static int find_shape(struct activity_plan *p, const struct mxbpf_activity *a, uint32_t *place)
{
	struct activity_shape s;
	uint64_t *at;

	memset(&s, 0, sizeof(s));
	s.graph_node = a->graph_node;
	s.graph = a->graph;
	s.tgid = a->graph ? a->h.tgid : 0;
	memcpy(s.grid, a->grid, sizeof(s.grid));
	memcpy(s.block, a->block, sizeof(s.block));
	s.static_shared = a->static_shared;
	s.dynamic_shared = a->dynamic_shared;
	s.registers = a->registers;
	at = hash_put(&p->shape_of, s.graph_node, hash_text(HASH_SEED, (const char *)&s, sizeof(s)));
	if (!at)
		return -ENOMEM;
	*place = (uint32_t)*at - 1;
	if (*at && !memcmp(buf_at(&p->shapes, struct activity_shape, *place), &s, sizeof(s)))
		return 0;
	if (buf_put(&p->shapes, &s, sizeof(s)))
		return -ENOMEM;
	*at = buf_count(&p->shapes, struct activity_shape);
	*place = (uint32_t)*at - 1;
	return 0;
}

static int survey_activity(struct activity_plan *p, const struct mxbpf_rec *r)
{
	struct mxbpf_activity a = {.graph = 0};
	struct activity_slice slice;

	memcpy(&a, r, r->size < sizeof(a) ? r->size : sizeof(a));
	slice = (struct activity_slice){
		.start_ns = r->ts_ns,
		.dur_ns = a.dur_ns,
		.name_id = a.name_id,
		.bytes = a.bytes,
		.edge_id = a.edge_id,
		.track = a.track,
		.tgid = r->tgid,
		.domain = a.domain,
		.cls = a.cls,
		.copy = a.cls == MXBPF_ACTIVITY_SYNC ? a.sync_type : a.copy,
		.from = a.from,
		.to = a.to,
	};
	if (find_shape(p, &a, &slice.shape))
		return -ENOMEM;
	return buf_put(&p->slices, &slice, sizeof(slice));
}

/* A node whose original was not captured before our eyes is found by nothing. */
static int survey_node(struct activity_plan *p, const struct mxbpf_graph_node *n)
{
	const struct activity_launch node = {
		.ts_ns = n->h.ts_ns, .edge_id = n->node, .tgid = n->h.tgid, .tid = n->tid, .domain = ACTIVITY_NODE};
	uint64_t *at;

	if (!n->original)
		return buf_put(&p->launches, &node, sizeof(node));
	at = hash_put(&p->original_of, n->node, n->h.tgid);
	if (at)
		*at = n->original;
	return at ? 0 : -ENOMEM;
}

int activity_plan_survey(struct activity_plan *p, const struct mxbpf_rec *r)
{
	const struct mxbpf_launch *l = (const void *)r;
	struct activity_launch launch;

	if (r->kind == MXBPF_ACTIVITY)
		return survey_activity(p, r);
	if (r->kind == MXBPF_GRAPH_NODE)
		return survey_node(p, (const void *)r);
	launch = (struct activity_launch){
		.ts_ns = r->ts_ns, .edge_id = l->edge_id, .tgid = r->tgid, .tid = l->tid, .domain = l->domain};
	return buf_put(&p->launches, &launch, sizeof(launch));
}

/* ---- launches */

static int activity_by_thread(const void *x, const void *y)
{
	const struct activity_launch *a = x, *b = y;

	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	return a->tid != b->tid ? ORDER(a->tid, b->tid) : ORDER(a->ts_ns, b->ts_ns);
}

static int by_edge(const struct activity_launch *a, const struct activity_launch *b)
{
	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	return a->domain != b->domain ? ORDER(a->domain, b->domain) : ORDER(a->edge_id, b->edge_id);
}

static int by_edge_and_time(const void *x, const void *y, void *launches)
{
	const struct activity_launch *a = (struct activity_launch *)launches + *(const uint32_t *)x;
	const struct activity_launch *b = (struct activity_launch *)launches + *(const uint32_t *)y;
	int order = by_edge(a, b);

	return order ? order : ORDER(a->ts_ns, b->ts_ns);
}

/* Returns 1 + the place of the last launch of the activity's edge before the activity started; 0: none. */
static uint32_t launch_of(const struct activity_plan *p, const struct activity_slice *a, const uint32_t *order)
{
	const struct activity_launch key = {.tgid = a->tgid, .domain = a->domain, .edge_id = a->edge_id};
	size_t low = 0, high = buf_count(&p->launches, struct activity_launch), mid;
	const struct activity_launch *l;
	int side;

	while (low < high) {
		mid = low + (high - low) / 2;
		l = buf_at(&p->launches, struct activity_launch, order[mid]);
		side = by_edge(l, &key);
		if (side < 0 || (!side && l->ts_ns <= a->start_ns))
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || a->domain == MXBPF_DOMAIN_NONE ||
	    by_edge(buf_at(&p->launches, struct activity_launch, order[low - 1]), &key))
		return 0;
	return order[low - 1] + 1;
}

/* Finds the capture of each node. Copies of copies are those of child graphs. */
static void find_captures(struct activity_plan *p, const uint32_t *order)
{
	struct activity_slice node = {.domain = ACTIVITY_NODE, .start_ns = UINT64_MAX};
	struct activity_shape *s;
	const uint64_t *original;
	size_t i, copies;

	for (i = 0; i < buf_count(&p->shapes, *s); i++) {
		s = buf_at(&p->shapes, struct activity_shape, i);
		if (!s->graph)
			continue;
		node.edge_id = s->graph_node;
		node.tgid = s->tgid;
		for (copies = 0; copies < COPIES_MAX; copies++) {
			original = hash_get(&p->original_of, node.edge_id, node.tgid);
			if (!original)
				break;
			node.edge_id = *original;
		}
		s->captured = launch_of(p, &node, order);
	}
}

/* A wait of the host is launched by nothing, so it lacks no launch. */
static int activity_join(struct activity_plan *p)
{
	size_t n = buf_count(&p->launches, struct activity_launch), i;
	uint32_t *order = calloc(n + 1, sizeof(*order));

	if (!order || n > UINT32_MAX - 1) {
		free(order);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	if (n) {
		qsort(p->launches.data, n, sizeof(struct activity_launch), activity_by_thread);
		qsort_r(order, n, sizeof(*order), by_edge_and_time, p->launches.data);
	}
	for (i = 0; i < buf_count(&p->slices, struct activity_slice); i++) {
		struct activity_slice *a = buf_at(&p->slices, struct activity_slice, i);

		a->launch = launch_of(p, a, order);
		p->nunlaunched += !a->launch && a->domain != MXBPF_DOMAIN_NONE && a->cls != MXBPF_ACTIVITY_SYNC;
	}
	find_captures(p, order);
	free(order);
	return 0;
}

/* ---- devices and tracks */

static int by_track(const struct activity_slice *a, const struct activity_slice *b)
{
	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	if (a->track.device != b->track.device)
		return ORDER(a->track.device, b->track.device);
	if (a->track.context != b->track.context)
		return ORDER(a->track.context, b->track.context);
	if (a->track.stream != b->track.stream)
		return ORDER(a->track.stream, b->track.stream);
	return ORDER(a->cls == MXBPF_ACTIVITY_SYNC, b->cls == MXBPF_ACTIVITY_SYNC);
}

static int by_track_and_time(const void *x, const void *y)
{
	const struct activity_slice *a = x, *b = y;
	int order = by_track(a, b);

	order = order ? order : ORDER(a->start_ns, b->start_ns);
	return order ? order : ORDER(b->dur_ns, a->dur_ns);
}

bool activity_plan_same_track(const struct activity_slice *a, const struct activity_slice *b)
{
	return !by_track(a, b);
}

static bool has_process(const struct activity_plan *p, const struct view_trace *t, uint32_t pid)
{
	size_t i;

	for (i = 0; i < buf_count(&t->plan.tracks, struct view_plan_track); i++)
		if (buf_at(&t->plan.tracks, struct view_plan_track, i)->tgid == pid)
			return true;
	for (i = 0; i < buf_count(&p->gpus, struct activity_gpu); i++)
		if (buf_at(&p->gpus, struct activity_gpu, i)->pid == pid)
			return true;
	return pid == t->s.in->session->pid;
}

/*
 * A device has its ordinal as process id, as in torch's traces: TensorBoard's plugin requires it. If that id is taken
 * by a process of the job, or by the same ordinal in another process of it, the device has an id above all processes.
 * Then a viewer draws no two of them as one.
 */
static int add_gpu(struct activity_plan *p, const struct view_trace *t, const struct activity_slice *a)
{
	const size_t n = buf_count(&p->gpus, struct activity_gpu);
	struct activity_gpu gpu = {.tgid = a->tgid, .device = a->track.device, .pid = a->track.device};
	size_t i;

	if (gpu.device > ORDINAL_MAX || has_process(p, t, gpu.pid))
		gpu.pid = VIEW_DEVICE_PID + (uint32_t)n;
	for (i = 0; i < p->nabouts && !gpu.about; i++)
		if (p->abouts[i].h.tgid == gpu.tgid && p->abouts[i].device == gpu.device)
			gpu.about = (uint32_t)i + 1;
	return buf_put(&p->gpus, &gpu, sizeof(gpu));
}

static int assign_gpus(struct activity_plan *p, const struct view_trace *t)
{
	struct activity_slice *a = (struct activity_slice *)p->slices.data;
	size_t n = buf_count(&p->slices, struct activity_slice), i, ngpus = 0;

	for (i = 0; i < n; i++) {
		if ((!i || a[i].tgid != a[i - 1].tgid || a[i].track.device != a[i - 1].track.device) &&
		    ngpus < GPUS_MAX) {
			if (add_gpu(p, t, &a[i]))
				return -ENOMEM;
			ngpus++;
		} else if (i && a[i].track.context != a[i - 1].track.context) {
			buf_at(&p->gpus, struct activity_gpu, ngpus - 1)->contexts = true;
		}
		a[i].gpu = (uint16_t)(ngpus - 1);
	}
	return 0;
}

static bool keeps_number(const struct activity_slice *a, uint32_t context)
{
	return a->track.context == context && a->cls != MXBPF_ACTIVITY_SYNC && a->track.stream &&
	       a->track.stream < VIEW_PLAN_LANE_TID;
}

/*
 * The first lane of a stream has the stream's number as its id, as in torch's traces. All other tracks have ids of
 * their own: further lanes, waits, and streams of a second context, which repeat the numbers of the first.
 */
static void assign_lanes(const struct activity_plan *p)
{
	struct activity_slice *a = (struct activity_slice *)p->slices.data;
	size_t n = buf_count(&p->slices, struct activity_slice), i;
	uint32_t next = VIEW_STREAM_TID, lanes[LANES_MAX], context = 0;
	uint64_t busy_ns[LANES_MAX];
	unsigned nlanes = 0, k;

	for (i = 0; i < n; i++) {
		if (!i || by_track(&a[i], &a[i - 1]))
			nlanes = 0;
		if (!i || a[i].gpu != a[i - 1].gpu)
			context = a[i].track.context;
		for (k = 0; k < nlanes && busy_ns[k] > a[i].start_ns; k++)
			;
		if (k == LANES_MAX)
			k--;
		if (k == nlanes)
			lanes[nlanes++] = !k && keeps_number(&a[i], context) ? a[i].track.stream : next++;
		busy_ns[k] = a[i].start_ns + a[i].dur_ns;
		a[i].tid = lanes[k];
	}
}

int activity_plan_finish(struct activity_plan *p, const struct view_trace *t)
{
	size_t n = buf_count(&p->slices, struct activity_slice);

	hash_fini(&p->shape_of);
	p->shape_of = (struct hash){0};
	if (n)
		qsort(p->slices.data, n, sizeof(struct activity_slice), by_track_and_time);
	if (assign_gpus(p, t))
		return -ENOMEM;
	assign_lanes(p);
	return activity_join(p);
}

/* ---- the second pass */

/* The first launch of the thread since the start of the span. */
static size_t first_launch(const struct activity_plan *p, const struct mxbpf_span *s)
{
	const struct activity_launch key = {.tgid = s->h.tgid, .tid = s->tid, .ts_ns = s->h.ts_ns};

	return buf_first(&p->launches, sizeof(key), &key, activity_by_thread);
}

const struct activity_launch *activity_plan_launch(const struct activity_plan *p, const struct mxbpf_span *s)
{
	size_t i = first_launch(p, s);
	const struct activity_launch *l = buf_at(&p->launches, struct activity_launch, i);

	if (i == buf_count(&p->launches, struct activity_launch) || l->domain == ACTIVITY_NODE ||
	    l->tgid != s->h.tgid || l->tid != s->tid || l->ts_ns != s->h.ts_ns)
		return NULL;
	return l;
}

static void span_of_node(struct activity_launch *node, const struct mxbpf_span *s)
{
	if (s->cls != MXBPF_CLASS_OPERATOR || s->flags & MXBPF_SPAN_USER ||
	    (node->name_id && node->op_start_ns >= s->h.ts_ns))
		return;
	node->op_start_ns = s->h.ts_ns;
	node->name_id = s->name_id;
	node->stack_id = s->stack_id;
}

/* While a span with MXBPF_SPAN_ASYNC was open, its thread was in other spans. */
void activity_plan_span(struct activity_plan *p, const struct mxbpf_span *s, uint32_t drawn_tid, uint32_t external_id)
{
	size_t n = buf_count(&p->launches, struct activity_launch), i;
	struct activity_launch *l;

	if (!n || s->flags & MXBPF_SPAN_ASYNC)
		return;
	for (i = first_launch(p, s); i < n; i++) {
		l = buf_at(&p->launches, struct activity_launch, i);
		if (l->tgid != s->h.tgid || l->tid != s->tid ||
		    (l->ts_ns > s->h.ts_ns && l->ts_ns - s->h.ts_ns >= s->dur_ns))
			break;
		if (l->domain == ACTIVITY_NODE) {
			span_of_node(l, s);
			continue;
		}
		if (s->cls != MXBPF_CLASS_CUDA && (!l->external_id || l->op_start_ns < s->h.ts_ns)) {
			l->op_start_ns = s->h.ts_ns;
			l->external_id = external_id;
		}
		if (!l->span_tid || l->span_start_ns < s->h.ts_ns) {
			l->span_start_ns = s->h.ts_ns;
			l->span_tid = drawn_tid;
		}
	}
}

void activity_plan_fini(struct activity_plan *p)
{
	buf_fini(&p->slices);
	buf_fini(&p->launches);
	buf_fini(&p->shapes);
	buf_fini(&p->gpus);
	hash_fini(&p->shape_of);
	idle_trace_fini(&p->idle);
	hash_fini(&p->original_of);
}
