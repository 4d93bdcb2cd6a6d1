// SPDX-License-Identifier: Apache-2.0
/* Launches of work by call, and the queues of streams. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/launches/launches.h"
#include "view/gpu.h"

/* A row of either table. */
struct row {
	struct view_text name, gpu; /* name of the call, or of the stream */
	struct mxbpf_agg_gpu_launch a;
	uint64_t hist[MXBPF_HIST_BUCKETS];
	uint64_t call_avg_ns, delay_avg_ns, delay_p50_ns, delay_p99_ns;
	double queue_avg, shorter; /* mean of the watched time; part of the launches */
	char text[VIEW_LABEL_BYTES + 64];
};

struct table {
	struct view_list list;
	bool devices, contexts, processes; /* rows differ in these */
	uint64_t launches;
};

static int by_call(const void *va, const void *vb)
{
	const struct mxbpf_agg_gpu_launch *a = &((const struct row *)va)->a, *b = &((const struct row *)vb)->a;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->track.device != b->track.device)
		return a->track.device < b->track.device ? -1 : 1;
	return a->call_id < b->call_id ? -1 : a->call_id > b->call_id;
}

static int by_stream(const void *va, const void *vb)
{
	const struct mxbpf_agg_gpu_launch *a = &((const struct row *)va)->a, *b = &((const struct row *)vb)->a;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->track.device != b->track.device)
		return a->track.device < b->track.device ? -1 : 1;
	if (a->track.context != b->track.context)
		return a->track.context < b->track.context ? -1 : 1;
	return a->track.stream < b->track.stream ? -1 : a->track.stream > b->track.stream;
}

/* Rows of a process and a device with the most launches first. */
static int by_count(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->a.h.tgid != b->a.h.tgid)
		return a->a.h.tgid < b->a.h.tgid ? -1 : 1;
	if (a->a.track.device != b->a.track.device)
		return a->a.track.device < b->a.track.device ? -1 : 1;
	if (a->a.count != b->a.count)
		return a->a.count > b->a.count ? -1 : 1;
	return by_call(va, vb);
}

static void launches_sheet_add(struct row *to, const struct row *from)
{
	size_t i;

	add_sat(&to->a.count, from->a.count);
	add_sat(&to->a.call_ns, from->a.call_ns);
	add_sat(&to->a.slow_calls, from->a.slow_calls);
	add_sat(&to->a.shorter, from->a.shorter);
	add_sat(&to->a.delay_ns, from->a.delay_ns);
	add_sat(&to->a.delayed, from->a.delayed);
	add_sat(&to->a.queued_ns, from->a.queued_ns);
	add_sat(&to->a.full_ns, from->a.full_ns);
	to->a.call_max_ns = from->a.call_max_ns > to->a.call_max_ns ? from->a.call_max_ns : to->a.call_max_ns;
	to->a.delay_max_ns = from->a.delay_max_ns > to->a.delay_max_ns ? from->a.delay_max_ns : to->a.delay_max_ns;
	to->a.queue_max = from->a.queue_max > to->a.queue_max ? from->a.queue_max : to->a.queue_max;
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		add_sat(&to->hist[i], from->hist[i]);
}

static void launches_finish(const struct view *s, struct row *r)
{
	const struct mdl_extent extent = {r->a.count, 0, r->a.delay_max_ns};
	const uint64_t all_ns = activity_seen_ns(s->in->model, r->a.h.tgid, s->in->session->duration_ns);

	if (!r->a.count)
		return;
	r->call_avg_ns = r->a.call_ns / r->a.count;
	r->delay_avg_ns = r->a.delay_ns / r->a.count;
	r->delay_p50_ns = mdl_hist_percentile(r->hist, &extent, 0.50);
	r->delay_p99_ns = mdl_hist_percentile(r->hist, &extent, 0.99);
	r->shorter = (double)r->a.shorter / (double)r->a.count;
	r->queue_avg = all_ns ? (double)r->a.queued_ns / (double)all_ns : 0;
}

/* Copies the rows of the model, and adds those up that are equal by `order`. Returns NULL if out of memory. */
static struct row *launches_collect(const struct view *s, struct table *t, int (*order)(const void *, const void *))
{
	const struct launches_row *from;
	struct buf all = {0};
	struct row *r = NULL;
	size_t i, n = 0;

	if (!launches_rows(s->in->model, &all))
		t->list.rows = r = calloc(buf_count(&all, *from) + 1, sizeof(*r));
	for (i = 0; r && i < buf_count(&all, *from); i++) {
		from = buf_at(&all, struct launches_row, i);
		if (!from->a.count)
			continue;
		r[n].a = from->a;
		memcpy(r[n++].hist, from->hist, sizeof(from->hist));
		add_sat(&t->launches, from->a.count);
	}
	if (r)
		qsort(r, n, sizeof(*r), order);
	for (i = 0; r && i < n; i++) {
		if (t->list.all && !order(&r[t->list.all - 1], &r[i])) {
			launches_sheet_add(&r[t->list.all - 1], &r[i]);
		} else if (t->list.all++ != i) {
			r[t->list.all - 1] = r[i];
		}
	}
	for (i = 0; r && i < t->list.all; i++) {
		launches_finish(s, &r[i]);
		t->processes |= r[i].a.h.tgid != r[0].a.h.tgid;
		t->devices |= r[i].a.h.tgid != r[0].a.h.tgid || r[i].a.track.device != r[0].a.track.device;
		t->contexts |= r[i].a.track.context != r[0].a.track.context;
	}
	buf_fini(&all);
	gpu_show_empty(s, &t->list);
	return r;
}

static void put_gpu(const struct view *s, const struct table *t, struct row *r, const char *rest)
{
	char process[VIEW_LABEL_BYTES + 2] = "", owner[VIEW_LABEL_BYTES];

	if (t->processes)
		snprintf(process, sizeof(process), "%s ", gpu_owner(s, r->a.h.tgid, owner));
	snprintf(r->text, sizeof(r->text), "%sGPU %" PRIu32 "%s", process, r->a.track.device, rest);
}

/* ---- launches */

static int make_launches(const struct view *s, void *table)
{
	struct table *t = table;
	struct row *r = launches_collect(s, t, by_call);
	size_t i;

	if (!r)
		return -ENOMEM;
	if (t->list.all)
		qsort(r, t->list.all, sizeof(*r), by_count);
	for (i = 0; i < t->list.all; i++) {
		put_gpu(s, t, &r[i], "");
		r[i].gpu = view_word(r[i].text);
		r[i].name = view_word("[other]");
		if (r[i].a.call_id)
			r[i].name.data = mdl_name(s->in->model, r[i].a.call_id, &r[i].name.len);
	}
	return 0;
}

static void above_launches(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char text[64], n[32];

	snprintf(text, sizeof(text), "Launches: %s in", fmt_count(t->launches, n));
	gpu_put_title(s, &t->list, prefix, text);
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column launch_columns[] = {
	{"name", NULL, "call", TBL_TEXT, AT(name)},
	{NULL, NULL, "gpu", TBL_TEXT, AT(gpu), SEEN(devices)},
	PID_COLUMN(a.h.tgid),
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(a.track.device), .help = "number of the GPU in the process"},
	{"count", NULL, "launches", TBL_COUNT, SUM_AT(a.count), .help = "launches whose work was recorded"},
	{"call_avg_ns", NULL, "call", TBL_NS, AT(call_avg_ns), TBL_TIGHT, .help = "mean duration of the call"},
	{"call_max_ns", NULL, "max", TBL_NS, AT(a.call_max_ns), TBL_TIGHT, .name_min = 20},
	{"slow_calls", NULL, ">50us", TBL_COUNT, SUM_AT(a.slow_calls), TBL_DASH, .help = "calls longer than 50 us"},
	{"shorter", NULL, "shorter", TBL_COUNT, SUM_AT(a.shorter), TBL_DASH,
	 .help = "launches whose work took less time than the call; launches of CUDA graphs with several activities do "
		 "not count"},
	{NULL, NULL, "share", TBL_SHARE, AT(shorter), TBL_DASH, .name_min = 14,
	 .help = "shorter as part of the launches"},
	{"delay_avg_ns", NULL, "delay", TBL_NS, AT(delay_avg_ns), TBL_TIGHT | TBL_DASH,
	 .help = "mean time from the end of the call to the start of its work; 0 if that began before"},
	{"delay_p50_ns", NULL, NULL, TBL_NS, AT(delay_p50_ns)},
	{"delay_p99_ns", NULL, "p99", TBL_NS, AT(delay_p99_ns), TBL_TIGHT | TBL_DASH, .name_min = 24},
	{"delay_max_ns", NULL, "max", TBL_NS, AT(a.delay_max_ns), TBL_TIGHT | TBL_DASH},
	{"delayed", NULL, ">100us", TBL_COUNT, SUM_AT(a.delayed), TBL_DASH, .help = "delays longer than 100 us"},
	{0},
};

const struct view_sheet sheet_gpu_launches = {
	.title = "Launches",
	.help = "How long calls of CUDA that launch work took, and how long the work waited; absent if there is none.",
	.list_help = "calls that launched work, by process, GPU and number of launches",
	.member = "gpu",
	.list = "launches",
	.csv = "Launches",
	.columns = launch_columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.make = make_launches,
	.above = above_launches,
	.left_out = "launches",
};

/* ---- queues */

static int make_queues(const struct view *s, void *table)
{
	struct table *t = table;
	struct row *r = launches_collect(s, t, by_stream);
	char context[24] = "", rest[64];
	size_t i;

	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->list.all; i++) {
		if (t->contexts)
			snprintf(context, sizeof(context), " context %" PRIu32, r[i].a.track.context);
		snprintf(rest, sizeof(rest), "%s stream %" PRIu32, context, r[i].a.track.stream);
		put_gpu(s, t, &r[i], rest);
		r[i].name = view_word(r[i].text);
	}
	return 0;
}

static void above_queues(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Queues of streams:");
}

static const struct tbl_column queue_columns[] = {
	{NULL, "name", "stream", TBL_TEXT, AT(name)},
	PID_COLUMN(a.h.tgid),
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(a.track.device), .help = "number of the GPU in the process"},
	{"context", "", NULL, TBL_COUNT, AT(a.track.context), .help = "as CUPTI numbers it"},
	{"stream", "", NULL, TBL_COUNT, KEY_AT(a.track.stream), .help = "as CUPTI numbers it"},
	{"count", NULL, "launches", TBL_COUNT, SUM_AT(a.count), .help = "launches whose work was recorded"},
	{"queue_avg", NULL, "queue avg", TBL_RATIO, AT(queue_avg), .digits = 2, .data_digits = 6,
	 .help = "mean number of launches whose work had not ended, over the time in which the GPU was watched"},
	{"queue_max", NULL, "max", TBL_COUNT, AT(a.queue_max),
	 .help = "most launches whose work had not ended; more than 2,048 count as so many"},
	{"full_ns", NULL, "full", TBL_NS, SUM_AT(a.full_ns), TBL_TIGHT | TBL_DASH,
	 .help = "time with 1,024 of them or more, in which a launch waits for the stream"},
	{0},
};

const struct view_sheet sheet_gpu_queues = {
	.title = "Queues of streams",
	.help = "How many launches each stream had before it; absent if no GPU had work.",
	.list_help = "streams that had work, by process, GPU and number",
	.member = "gpu",
	.list = "queues",
	.csv = "Queues of streams",
	.columns = queue_columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.make = make_queues,
	.above = above_queues,
	.left_out = "queues",
};
