// SPDX-License-Identifier: Apache-2.0
/*
 * Devices in a timeline: a process for each device, a track for each stream, and an arrow to each activity from the
 * span that launched it, which is a call of CUDA if these are recorded. Categories and args are those of Kineto, which
 * writes the traces of torch.profiler, because HTA and TensorBoard's plugin search for them.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "feature/activity/activity.h"
#include "feature/activity/occupancy.h"
#include "feature/activity/trace_plan.h"
#include "feature/lines/lines.h"

static const char *const categories[MXBPF_ACTIVITY_MAX] = {[MXBPF_ACTIVITY_KERNEL] = "kernel",
							   [MXBPF_ACTIVITY_COPY] = "gpu_memcpy",
							   [MXBPF_ACTIVITY_SET] = "gpu_memset",
							   [MXBPF_ACTIVITY_SYNC] = "cuda_sync"};

static const char *const sync_kinds[] = {[MXBPF_SYNC_UNKNOWN] = "Unknown Sync",
					 [MXBPF_SYNC_EVENT] = "Event Sync",
					 [MXBPF_SYNC_STREAM_WAITS] = "Stream Wait Event",
					 [MXBPF_SYNC_STREAM] = "Stream Sync",
					 [MXBPF_SYNC_CONTEXT] = "Context Sync"};

/* CUPTI_SYNCHRONIZATION_INVALID_VALUE: a wait for no stream in particular */
#define NO_STREAM UINT32_MAX

#define LINE_BYTES 256 /* of a line of the program */

/* torch's traces sort devices behind all processes of the host. */
#define SORT_INDEX 5000000u

static size_t nslices(const struct activity_plan *p)
{
	return buf_count(&p->slices, struct activity_slice);
}

static const struct mxbpf_gpu_device *about_of(const struct activity_plan *p, const struct activity_gpu *gpu)
{
	return gpu->about ? &p->abouts[gpu->about - 1] : NULL;
}

/* ---- the plan */

static int activity_survey(struct view_trace *t, void *state, const struct mxbpf_rec *r)
{
	return t->form->thread ? activity_plan_survey(state, r) : 0;
}

static int plan(struct view_trace *t, void *state)
{
	struct activity_plan *p = state;
	size_t i;

	for (i = 0; i < nslices(p); i++) {
		const struct activity_slice *a = buf_at(&p->slices, struct activity_slice, i);

		t->base_ns = a->start_ns < t->base_ns ? a->start_ns : t->base_ns;
	}
	if (t->form->thread)
		p->abouts = activity_devices(t->s.in->model, &p->nabouts);
	t->ndevices += (unsigned)p->nabouts;
	return nslices(p) && idle_trace_plan(&p->idle, t) ? -ENOMEM : activity_plan_finish(p, t);
}

/* ---- devices */

static void about(struct json *j, const void *state)
{
	const struct activity_plan *p = state;

	if (nslices(p))
		json_u64(j, "activities_unlaunched", p->nunlaunched);
}

/* Several processes of a job may number the same devices. A reader takes the first of a number. */
static bool is_first(const struct activity_plan *p, size_t i)
{
	const struct mxbpf_gpu_device *d = p->abouts;
	size_t k;

	for (k = 0; k < i && d[k].device != d[i].device; k++)
		;
	return k == i;
}

static void devices(struct view_trace *t, struct json *j, const void *state)
{
	const struct activity_plan *p = state;
	size_t i;

	for (i = 0; i < p->nabouts; i++) {
		const struct mxbpf_gpu_device *d = &p->abouts[i];
		char uuid[ACTIVITY_UUID_BYTES];

		if (!is_first(p, i))
			continue;
		json_object(j, NULL);
		json_u64(j, "id", d->device);
		json_string(j, "name", mdl_name(t->s.in->model, d->name_id, NULL));
		json_u64(j, "totalGlobalMem", d->memory_bytes);
		json_u64(j, "computeMajor", d->major);
		json_u64(j, "computeMinor", d->minor);
		json_u64(j, "maxThreadsPerMultiprocessor", d->threads_per_mp);
		json_u64(j, "regsPerMultiprocessor", d->registers_per_mp);
		json_u64(j, "warpSize", d->warp);
		json_u64(j, "sharedMemPerMultiprocessor", d->shared_per_mp);
		json_u64(j, "numSms", d->multiprocessors);
		if (*activity_uuid(d, false, uuid))
			json_string(j, "uuid", uuid);
		json_end(j);
	}
}

/* "GPU 0: NVIDIA H200", and the process that used it if several did. */
static void write_process(struct view_trace *t, const struct activity_plan *p, const struct activity_gpu *gpu,
			  bool several)
{
	const struct mxbpf_gpu_device *d = about_of(p, gpu);
	char name[VIEW_PROCESS_BYTES + 256], of[VIEW_PROCESS_BYTES], uuid[ACTIVITY_UUID_BYTES];
	char label[ACTIVITY_UUID_BYTES + 64];
	const struct view_track k = {.pid = gpu->pid,
				     .name = name,
				     .label = label,
				     .placed = true,
				     .place = SORT_INDEX + (gpu - (const struct activity_gpu *)p->gpus.data)};
	size_t n = (size_t)snprintf(name, sizeof(name), "GPU %u", gpu->device);

	if (d)
		n += (size_t)snprintf(name + n, sizeof(name) - n, ": %.160s",
				      mdl_name(t->s.in->model, d->name_id, NULL));
	if (several)
		snprintf(name + n, sizeof(name) - n, ", process %u (%.300s)", gpu->tgid & MDL_PID_MASK,
			 view_trace_process_name(t, gpu->tgid, of));
	snprintf(label, sizeof(label), "GPU %u", gpu->device);
	if (d && *activity_uuid(d, false, uuid)) /* a viewer takes commas as the ends of labels */
		snprintf(label, sizeof(label), "GPU %u,%s,%04x:%02x:%02x.0", gpu->device, uuid, d->pci_domain & 0xffff,
			 d->pci_bus, d->pci_device);
	view_track(t, &k);
}

static struct idle_trace_gpu idle_of(const struct activity_gpu *gpu)
{
	return (struct idle_trace_gpu){gpu->tgid, gpu->device, gpu->pid};
}

static void write_track(struct view_trace *t, const struct activity_gpu *gpu, const struct activity_slice *a,
			unsigned lane, size_t place)
{
	char name[96], in[32] = "", stream[32] = "device", nth[32] = "";

	if (gpu->contexts)
		snprintf(in, sizeof(in), "context %u ", a->track.context);
	if (a->track.stream != NO_STREAM)
		snprintf(stream, sizeof(stream), "stream %u", a->track.stream);
	if (lane)
		snprintf(nth, sizeof(nth), " (%u)", lane + 1);
	snprintf(name, sizeof(name), "%s%s%s%s", in, stream, a->cls == MXBPF_ACTIVITY_SYNC ? " waits" : "", nth);
	view_trace_name_track(t, gpu->pid, a->tid, name, (int64_t)place);
}

/* The lanes of a track appear in the order of their numbers, but for the first one, whose id is any number. */
static void write_tracks(struct view_trace *t, void *state, size_t place)
{
	const struct activity_plan *p = state;
	const struct activity_slice *a = (const struct activity_slice *)p->slices.data;
	const struct activity_gpu *gpus = (const struct activity_gpu *)p->gpus.data;
	const size_t ngpus = buf_count(&p->gpus, struct activity_gpu);
	uint32_t next = VIEW_STREAM_TID; /* first id that has no name */
	struct idle_trace_gpu idle;
	unsigned lane = 0;
	size_t i;

	for (i = 0; i < nslices(p); i++) {
		const bool begins = !i || !activity_plan_same_track(&a[i], &a[i - 1]);

		if (!i || a[i].gpu != a[i - 1].gpu) {
			idle = idle_of(&gpus[a[i].gpu]);
			write_process(t, p, &gpus[a[i].gpu], gpus[0].tgid != gpus[ngpus - 1].tgid);
			place += idle_trace_track(&p->idle, t, &idle, place);
		}
		if (!begins && a[i].tid != next)
			continue;
		lane = begins ? 0 : lane + 1;
		write_track(t, &gpus[a[i].gpu], &a[i], lane, place++);
		next += a[i].tid == next;
	}
}

/* ---- activities */

static char *put_ratio(char *p, const char *key, double value)
{
	return p + sprintf(p, ",\"%s\":%.6g", key, value);
}

/* The args whose values depend on the number of multiprocessors. */
static char *put_load(char *p, const struct activity_shape *s, const struct mxbpf_gpu_device *d)
{
	const double blocks = (double)s->grid[0] * s->grid[1] * s->grid[2] / d->multiprocessors;
	const uint32_t threads = (uint32_t)s->block[0] * s->block[1] * s->block[2];

	p = put_ratio(p, "blocks per SM", blocks);
	return d->warp ? put_ratio(p, "warps per SM", blocks * threads / d->warp) : p;
}

/* Kineto's estimate: the theoretical occupancy, or less if there are too few blocks for it. Then what limits it. */
static char *put_occupancy(char *p, const struct activity_shape *s, const struct mxbpf_gpu_device *d)
{
	struct mxbpf_agg_activity a = {.cls = MXBPF_ACTIVITY_KERNEL,
				       .shape_ns = 1,
				       .static_shared = s->static_shared,
				       .dynamic_shared = s->dynamic_shared,
				       .registers = s->registers};
	const double blocks = (double)s->grid[0] * s->grid[1] * s->grid[2] / d->multiprocessors;
	const double threads = (double)s->block[0] * s->block[1] * s->block[2];
	char limits[OCCUPANCY_TEXT_BYTES];
	struct occupancy o;
	double occupancy;

	memcpy(a.grid, s->grid, sizeof(a.grid));
	memcpy(a.block, s->block, sizeof(a.block));
	o = activity_occupancy(d, &a);
	occupancy = o.share;
	if (isnan(occupancy) || !d->threads_per_mp)
		return p;
	if (blocks * threads / d->threads_per_mp < occupancy)
		occupancy = blocks * threads / d->threads_per_mp;
	p = view_put_u64(put(p, ",\"est. achieved occupancy %\":"), (uint64_t)(0.5 + occupancy * 100));
	if (o.limits)
		p = put(put(put(p, ",\"occupancy limit\":\""), occupancy_limits_text(o.limits, limits)), "\"");
	if (o.grid)
		p = put(put(put(p, ",\"grid limit\":\""), occupancy_grids[o.grid]), "\"");
	return p;
}

static char *put_kernel(char *p, const struct activity_shape *s, const struct mxbpf_gpu_device *d)
{
	unsigned i;

	if (s->block[0]) { /* 0: a record of an older format */
		p = view_put_u64(put(p, ",\"registers per thread\":"), s->registers);
		p = view_put_u64(put(p, ",\"shared memory\":"), (uint64_t)s->static_shared + s->dynamic_shared);
		if (d && d->multiprocessors)
			p = put_load(p, s, d);
		for (i = 0; i < 3; i++)
			p = view_put_u64(put(p, i ? "," : ",\"grid\":["), s->grid[i]);
		for (i = 0; i < 3; i++)
			p = view_put_u64(put(p, i ? "," : "],\"block\":["), s->block[i]);
		*p++ = ']';
		if (d && d->multiprocessors)
			p = put_occupancy(p, s, d);
	}
	return p;
}

static char *put_bytes_moved(char *p, const struct activity_slice *a)
{
	if (a->cls != MXBPF_ACTIVITY_COPY && a->cls != MXBPF_ACTIVITY_SET)
		return p;
	p = view_put_u64(put(p, ",\"bytes\":"), a->bytes);
	return a->dur_ns ? put_ratio(p, "memory bandwidth (GB/s)", (double)a->bytes / (double)a->dur_ns) : p;
}

static const char *sync_kind(const struct activity_slice *a)
{
	return sync_kinds[a->copy < sizeof(sync_kinds) / sizeof(sync_kinds[0]) ? a->copy : MXBPF_SYNC_UNKNOWN];
}

/*
 * HTA takes everything with a stream for work of the device, so a wait has none. The stream that was waited for is in
 * the member that HTA reads for it.
 */
static char *put_stream(char *p, const struct activity_slice *a)
{
	if (a->cls != MXBPF_ACTIVITY_SYNC)
		return view_put_u64(put(p, ",\"stream\":"), a->track.stream);
	p = put(put(p, ",\"stream\":-1,\"cuda_sync_kind\":\""), sync_kind(a));
	*p++ = '"';
	return a->track.stream == NO_STREAM ? p : view_put_u64(put(p, ",\"wait_on_stream\":"), a->track.stream);
}

/* The operator that captured the node of a graph, and its line of the program if there are stacks. */
static void write_capture(struct view_trace *t, const struct activity_plan *plan, const struct activity_shape *s)
{
	const struct activity_launch *node =
		s->captured ? buf_at(&plan->launches, struct activity_launch, s->captured - 1) : NULL;
	const char *line;
	char text[LINE_BYTES];
	size_t len;

	if (!node || !node->name_id)
		return;
	out_puts(t->s.out, ",\"captured by\":");
	view_trace_string(t, mdl_name(t->s.in->model, node->name_id, NULL));
	line = lines_of_program(t->s.in->model, node->stack_id, &len);
	if (!line)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)len, line);
	out_puts(t->s.out, ",\"captured at\":");
	view_trace_string(t, text);
}

static void write_activity(struct view_trace *t, const struct activity_plan *plan, const struct activity_slice *a)
{
	const struct activity_gpu *gpu = buf_at(&plan->gpus, struct activity_gpu, a->gpu);
	const struct activity_shape *s = buf_at(&plan->shapes, struct activity_shape, a->shape);
	const struct activity_launch *l =
		a->launch ? buf_at(&plan->launches, struct activity_launch, a->launch - 1) : NULL;
	const bool wait = a->cls == MXBPF_ACTIVITY_SYNC && a->copy; /* HTA knows waits by the name of their kind */
	struct view_text name = wait ? (struct view_text){sync_kind(a), strlen(sync_kind(a))}
				     : view_trace_text(t, a->name_id, view_text_name);
	const struct view_event e = {.letter = 'X',
				     .pid = gpu->pid,
				     .tid = a->tid,
				     .ts_ns = a->start_ns,
				     .dur_ns = a->dur_ns,
				     .category = categories[a->cls],
				     .name = name};
	char *start, *p;

	view_event_begin(t, &e);
	start = p = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	if (l && l->external_id)
		p = put(view_put_u64(put(p, "\"External id\":"), l->external_id), ",");
	p = view_put_u64(put(p, "\"device\":"), a->track.device);
	p = view_put_u64(put(p, ",\"context\":"), a->track.context);
	p = put_stream(p, a);
	/* A wait has the id of a call that launches nothing, and HTA takes what it cannot join for an error. */
	if (a->domain != MXBPF_DOMAIN_NONE && (l || a->cls != MXBPF_ACTIVITY_SYNC))
		p = view_put_u64(put(p, ",\"correlation\":"), a->edge_id);
	if (a->cls == MXBPF_ACTIVITY_KERNEL)
		p = put_kernel(p, s, about_of(plan, gpu));
	p = put_bytes_moved(p, a);
	if (s->graph) {
		p = view_put_u64(put(p, ",\"graph id\":"), s->graph);
		p = view_put_u64(put(p, ",\"graph node id\":"), s->graph_node);
	}
	out_filled(t->s.out, (size_t)(p - start));
	write_capture(t, plan, s);
	view_event_end(t, &e);
}

/* ---- spans and arrows */

static void activity_trace_span(struct view_trace *t, void *state, const struct mxbpf_span *s,
				const struct view_place *place)
{
	struct activity_plan *p = state;

	if (p->launches.len)
		activity_plan_span(p, s, place->tid,
				   t->form->external_id ? t->form->external_id(t, place->ordinal) : 0);
}

/* The id that a call of CUDA shares with what it launched. */
static void activity_args(struct view_trace *t, void *state, const struct mxbpf_span *s)
{
	const struct activity_launch *l = s->cls == MXBPF_CLASS_CUDA ? activity_plan_launch(state, s) : NULL;
	char *start, *p;

	if (!l)
		return;
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = view_put_u64(put(start, ",\"correlation\":"), l->edge_id);
	out_filled(t->s.out, (size_t)(p - start));
}

static void write_end(struct view_trace *t, char letter, uint64_t id, uint32_t pid, uint32_t tid, uint64_t ts_ns)
{
	const struct view_event e = {.letter = letter,
				     .pid = pid,
				     .tid = tid,
				     .ts_ns = ts_ns,
				     .category = "ac2g",
				     .name = view_text_of("ac2g"),
				     .id = id};

	view_event(t, &e);
}

/*
 * Activities, behind all spans, because the operator of a launch is known then, and their arrows. Each activity has an
 * arrow of its own, because a flow of this format has one end. No arrow goes back in time.
 */
static void activities(struct view_trace *t, void *state)
{
	const struct activity_plan *p = state;
	uint64_t id = t->plan.narrows;
	const struct activity_launch *l;
	size_t i;

	for (i = 0; i < nslices(p); i++) {
		const struct activity_slice *a = buf_at(&p->slices, struct activity_slice, i);

		write_activity(t, p, a);
		l = a->launch ? buf_at(&p->launches, struct activity_launch, a->launch - 1) : NULL;
		if (!l || !l->span_tid || l->span_start_ns >= a->start_ns)
			continue;
		id++;
		write_end(t, 's', id, l->tgid, l->span_tid, l->span_start_ns);
		write_end(t, 'f', id, buf_at(&p->gpus, struct activity_gpu, a->gpu)->pid, a->tid, a->start_ns);
	}
	if (activity_counters(t, p))
		view_trace_no_memory(t);
}

/* Why devices ran nothing. */
static void idle_pieces(struct view_trace *t, void *state)
{
	const struct activity_plan *p = state;
	struct idle_trace_gpu gpu;
	size_t i;

	for (i = 0; i < buf_count(&p->gpus, struct activity_gpu); i++) {
		gpu = idle_of(buf_at(&p->gpus, struct activity_gpu, i));
		idle_trace_slices(&p->idle, t, &gpu);
	}
}

static void activity_trace_fini(void *state)
{
	activity_plan_fini(state);
}

const struct view_trace_feature activity_trace = {
	.state_bytes = sizeof(struct activity_plan),
	.kinds = {MXBPF_ACTIVITY, MXBPF_LAUNCH, MXBPF_GRAPH_NODE},
	.survey = activity_survey,
	.plan = plan,
	.about = about,
	.devices = devices,
	.tracks = write_tracks,
	.span = activity_trace_span,
	.args = {[VIEW_ARGS_NUMBERS] = activity_args},
	.arrows = activities,
	.after = idle_pieces,
	.fini = activity_trace_fini,
};
