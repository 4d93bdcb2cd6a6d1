// SPDX-License-Identifier: Apache-2.0
/*
 * Counters of devices in a timeline: how many launches of a stream have not ended, and how much copies and sets move at
 * a time. A stream that never has more than one launch has no counter, because its slices say all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "feature/activity/trace_plan.h"

#define RATE_MAX 1e12 /* MB per second: more is nonsense of a recording */
#define SETS	 255  /* the kind of a counter of sets; those of copies are enum mxbpf_copy */

static const char *const directions[] = {
	[MXBPF_COPY_HTOD] = "HtoD", [MXBPF_COPY_DTOH] = "DtoH", [MXBPF_COPY_HTOA] = "HtoA", [MXBPF_COPY_ATOH] = "AtoH",
	[MXBPF_COPY_ATOA] = "AtoA", [MXBPF_COPY_ATOD] = "AtoD", [MXBPF_COPY_DTOA] = "DtoA", [MXBPF_COPY_DTOD] = "DtoD",
	[MXBPF_COPY_HTOH] = "HtoH", [MXBPF_COPY_PTOP] = "PtoP",
};

/* A counter rises or falls. */
struct change {
	uint64_t ns;
	int64_t by; /* launches, or MB per second */
	uint16_t gpu;
	uint8_t kind; /* of a counter of bytes; 0 for launches */
};

static int by_counter(const void *va, const void *vb)
{
	const struct change *a = va, *b = vb;

	if (a->gpu != b->gpu)
		return a->gpu < b->gpu ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int put_change(struct buf *changes, const struct change *like, uint64_t from_ns, uint64_t to_ns)
{
	struct change one = *like;

	one.ns = from_ns;
	if (buf_put(changes, &one, sizeof(one)))
		return -ENOMEM;
	one.ns = to_ns;
	one.by = -one.by;
	return buf_put(changes, &one, sizeof(one));
}

/* Writes the values of the counter whose changes these are. */
static void write_values(struct view_trace *t, uint32_t pid, const char *name, const struct change *c, size_t n)
{
	const bool launches = !c->kind;
	char text[32];
	struct view_counter v = {
		.pid = pid, .name = view_text_of(name), .unit = launches ? "launches" : "GB/s", .value = text};
	int64_t value = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		value += c[i].by;
		if ((i + 1 < n && c[i + 1].ns == c[i].ns) || c[i].ns < t->base_ns)
			continue;
		if (launches)
			*view_put_i64(text, value) = '\0';
		else
			snprintf(text, sizeof(text), "%.4g", (double)value / 1e3);
		v.ts_ns = c[i].ns;
		view_counter(t, &v);
	}
}

/* ---- queues */

static int64_t highest(const struct change *c, size_t n)
{
	int64_t value = 0, most = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		value += c[i].by;
		if (i + 1 == n || c[i + 1].ns != c[i].ns)
			most = value > most ? value : most;
	}
	return most;
}

static void write_queue(struct view_trace *t, const struct activity_plan *p, const struct activity_slice *a,
			struct buf *changes)
{
	const struct activity_gpu *gpu = buf_at(&p->gpus, struct activity_gpu, a->gpu);
	struct change *c = (struct change *)changes->data;
	const size_t n = buf_count(changes, *c);
	char name[64], in[32] = "";

	if (n)
		qsort(c, n, sizeof(*c), by_counter);
	if (highest(c, n) < 2)
		return;
	if (gpu->contexts)
		snprintf(in, sizeof(in), "context %u ", a->track.context);
	snprintf(name, sizeof(name), "%sstream %u queue", in, a->track.stream);
	write_values(t, gpu->pid, name, c, n);
}

/* From the start of a launch to the end of the last of its activities that follow one another in the stream. */
static int add_launch(const struct activity_plan *p, const struct activity_slice *a, size_t n, struct buf *changes)
{
	const struct change one = {.by = 1, .gpu = a->gpu};
	const struct activity_launch *l = buf_at(&p->launches, struct activity_launch, a->launch - 1);
	uint64_t end_ns = 0;
	size_t i;

	for (i = 0; i < n; i++)
		end_ns = a[i].start_ns + a[i].dur_ns > end_ns ? a[i].start_ns + a[i].dur_ns : end_ns;
	return l->ts_ns < end_ns ? put_change(changes, &one, l->ts_ns, end_ns) : 0;
}

static int write_queues(struct view_trace *t, const struct activity_plan *p)
{
	const struct activity_slice *a = (const struct activity_slice *)p->slices.data;
	const size_t n = buf_count(&p->slices, *a);
	struct buf changes = {0};
	size_t i, k;
	int err = 0;

	for (i = 0; !err && i < n; i = k) {
		for (k = i + 1; k < n && a[k].launch == a[i].launch && activity_plan_same_track(&a[k], &a[i]); k++)
			;
		if (a[i].launch && a[i].cls != MXBPF_ACTIVITY_SYNC)
			err = add_launch(p, &a[i], k - i, &changes);
		if (err || (k < n && activity_plan_same_track(&a[k], &a[i])))
			continue;
		write_queue(t, p, &a[i], &changes);
		changes.len = 0;
	}
	buf_fini(&changes);
	return err;
}

/* ---- bytes */

static void write_rate(struct view_trace *t, const struct activity_plan *p, const struct change *c, size_t n)
{
	const bool known = c->kind < sizeof(directions) / sizeof(directions[0]) && directions[c->kind];
	char name[32];

	snprintf(name, sizeof(name), "Memcpy %s", known ? directions[c->kind] : "");
	write_values(t, buf_at(&p->gpus, struct activity_gpu, c->gpu)->pid, c->kind == SETS ? "Memset" : name, c, n);
}

static int64_t rate_of(const struct activity_slice *a)
{
	const double rate = 1e3 * (double)a->bytes / (double)a->dur_ns;

	return rate < RATE_MAX ? (int64_t)rate : (int64_t)RATE_MAX;
}

static int write_rates(struct view_trace *t, const struct activity_plan *p)
{
	const struct activity_slice *a;
	struct buf changes = {0};
	struct change one, *c;
	size_t n, i, k;
	int err = 0;

	for (i = 0; !err && i < buf_count(&p->slices, *a); i++) {
		a = buf_at(&p->slices, struct activity_slice, i);
		if ((a->cls != MXBPF_ACTIVITY_COPY && a->cls != MXBPF_ACTIVITY_SET) || !a->bytes || !a->dur_ns)
			continue;
		one = (struct change){.gpu = a->gpu,
				      .kind = a->cls == MXBPF_ACTIVITY_SET ? SETS
					      : a->copy			   ? a->copy
									   : SETS - 1};
		one.by = rate_of(a);
		err = put_change(&changes, &one, a->start_ns, a->start_ns + a->dur_ns);
	}
	c = (struct change *)changes.data;
	n = buf_count(&changes, *c);
	if (n)
		qsort(c, n, sizeof(*c), by_counter);
	for (i = 0; !err && i < n; i = k) {
		for (k = i + 1; k < n && c[k].gpu == c[i].gpu && c[k].kind == c[i].kind; k++)
			;
		write_rate(t, p, &c[i], k - i);
	}
	buf_fini(&changes);
	return err;
}

int activity_counters(struct view_trace *t, const struct activity_plan *p)
{
	const int err = write_queues(t, p);

	return err ? err : write_rates(t, p);
}
