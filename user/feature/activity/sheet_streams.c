// SPDX-License-Identifier: Apache-2.0
/* How busy GPUs and their streams were, and which records of CUPTI were lost. */
#include "feature/activity/sheet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "view/priv.h"

struct stream {
	struct view_text label, name; /* "GPU 0 stream 7"; name of the device */
	struct mxbpf_agg_gpu_stream a;
	uint64_t idle_ns, overlap_ns;
	uint64_t multiprocessors, memory_bytes; /* 0: not known */
	double busy, overlap;
	char text[64];
};

struct streams {
	struct view_list list;
	bool contexts, overlaps, names;
	uint64_t late;
};

/* ---- rows */

static uint64_t seen_ns(const struct view *s, const struct mxbpf_agg_gpu_stream *a)
{
	const uint64_t ns = activity_seen_ns(s->in->model, a->h.tgid, s->in->session->duration_ns);

	return ns ? ns : a->last_ns - a->first_ns;
}

static void fill(const struct view *s, struct stream *r, const struct mxbpf_agg_gpu_stream *a)
{
	const struct mxbpf_gpu_device *d = gpu_device(s, a->h.tgid, a->track.device);
	const uint64_t all_ns = seen_ns(s, a);
	uint64_t both_ns = a->compute_ns;

	add_sat(&both_ns, a->copy_ns);
	r->a = *a;
	r->idle_ns = all_ns > a->busy_ns ? all_ns - a->busy_ns : 0;
	r->busy = all_ns ? (double)a->busy_ns / (double)all_ns : 0;
	r->busy = r->busy < 1 ? r->busy : 1;
	r->overlap_ns = both_ns > a->busy_ns ? both_ns - a->busy_ns : 0;
	if (!d)
		return;
	r->name.data = mdl_name(s->in->model, d->name_id, &r->name.len);
	r->multiprocessors = d->multiprocessors;
	r->memory_bytes = d->memory_bytes;
}

static int by_place(const void *va, const void *vb)
{
	const struct mxbpf_agg_gpu_stream *a = &((const struct stream *)va)->a, *b = &((const struct stream *)vb)->a;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->track.device != b->track.device)
		return a->track.device < b->track.device ? -1 : 1;
	if (a->busy_ns != b->busy_ns)
		return a->busy_ns > b->busy_ns ? -1 : 1;
	return memcmp(&a->track, &b->track, sizeof(a->track));
}

static void put_label(struct stream *r, bool contexts, bool processes)
{
	char context[24] = "", process[24] = "";

	if (processes)
		snprintf(process, sizeof(process), "%" PRIu32 " ", r->a.h.tgid);
	if (contexts)
		snprintf(context, sizeof(context), " context %" PRIu32, r->a.track.context);
	if (r->a.whole)
		snprintf(r->text, sizeof(r->text), "%sGPU %" PRIu32, process, r->a.track.device);
	else
		snprintf(r->text, sizeof(r->text), "%sGPU %" PRIu32 "%s stream %" PRIu32, process, r->a.track.device,
			 context, r->a.track.stream);
	r->label = view_word(r->text);
}

static int make_of(const struct view *s, struct streams *t, bool whole)
{
	struct buf all = {0};
	const struct mxbpf_agg_gpu_stream *a;
	struct stream *r = NULL;
	size_t i, n = 0;
	int err = activity_streams(s->in->model, &all);

	if (!err)
		t->list.rows = r = calloc(buf_count(&all, *a) + 1, sizeof(*r));
	for (i = 0; r && i < buf_count(&all, *a); i++) {
		a = buf_at(&all, struct mxbpf_agg_gpu_stream, i);
		if (!a->whole == !whole)
			fill(s, &r[n++], a);
	}
	t->list.all = n;
	if (n)
		qsort(r, n, sizeof(*r), by_place);
	for (i = 0; i < n; i++) {
		t->contexts |= r[i].a.track.context != r[0].a.track.context;
		t->overlaps |= r[i].overlap_ns;
		t->names |= r[i].name.len;
		add_sat(&t->late, r[i].a.late);
	}
	for (i = 0; i < n; i++)
		put_label(&r[i], t->contexts, r[0].a.h.tgid != r[n - 1].a.h.tgid);
	buf_fini(&all);
	gpu_show_empty(s, &t->list);
	return r ? 0 : -ENOMEM;
}

static int make_devices(const struct view *s, void *table)
{
	return make_of(s, table, true);
}

static int make_streams(const struct view *s, void *table)
{
	return make_of(s, table, false);
}

static void above_devices(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	out_printf(s->out, "%sGPUs: ", prefix);
	view_put_rows(s, t);
	out_puts(s->out, "\n");
}

static void below_devices(struct view *s, const void *table, const char *prefix)
{
	const struct streams *t = table;
	char n[32];

	if (t->late)
		out_printf(s->out, "%s%s activities arrived so late that a part of them may count as idle\n", prefix,
			   fmt_count(t->late, n));
}

static void above_streams(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sStreams of GPUs: ", prefix);
	view_put_rows(s, table);
	out_puts(s->out, "\n");
}

static int print_streams(struct view *s, const void *table)
{
	return gpu_print_more(s, &sheet_gpu_streams, table, "streams of GPUs");
}

#define ROW	     struct stream
#define SEEN(member) .shown = offsetof(struct streams, member)
#define BUSY_COLUMNS                                                                                                    \
	PID_COLUMN(a.h.tgid), {"count", NULL, "activities", VIEW_COUNT, AT(a.count), .name_min = 20},                   \
		{"busy_ns",                                                                                             \
		 NULL,                                                                                                  \
		 "busy",                                                                                                \
		 VIEW_NS,                                                                                               \
		 AT(a.busy_ns),                                                                                         \
		 VIEW_TIGHT,                                                                                            \
		 .help = "time in which at least one kernel, copy or set ran"},                                         \
		{NULL,                                                                                                  \
		 NULL,                                                                                                  \
		 "share",                                                                                               \
		 VIEW_SHARE,                                                                                            \
		 AT(busy),                                                                                              \
		 .digits = 1,                                                                                           \
		 .help = "busy as part of the time in which GPUs were watched"},                                        \
		{"idle_ns",                                                                                             \
		 NULL,                                                                                                  \
		 "idle",                                                                                                \
		 VIEW_NS,                                                                                               \
		 AT(idle_ns),                                                                                           \
		 VIEW_TIGHT,                                                                                            \
		 .help = "the rest of the time in which GPUs were watched"},                                            \
		{"compute_ns",	   NULL,       "compute",      VIEW_NS,                                                 \
		 AT(a.compute_ns), VIEW_TIGHT, .name_min = 16, .help = "time in which at least one kernel or set ran"}, \
		{"copy_ns",                                                                                             \
		 NULL,                                                                                                  \
		 "copies",                                                                                              \
		 VIEW_NS,                                                                                               \
		 AT(a.copy_ns),                                                                                         \
		 VIEW_TIGHT,                                                                                            \
		 .help = "time in which at least one copy ran"},                                                        \
	{                                                                                                               \
		"overlap_ns", NULL, "overlap", VIEW_NS, AT(overlap_ns), VIEW_TIGHT | VIEW_DASH,                         \
			.name_min = 12, .help = "time in which copies and other work ran at once"                       \
	}

static const struct view_column device_columns[] = {
	{NULL, "name", "gpu", VIEW_TEXT, AT(label)},
	{"gpu", "", NULL, VIEW_COUNT, AT(a.track.device), .help = "number of the GPU in the process"},
	{"name", "", "device", VIEW_TEXT, AT(name), VIEW_OMIT, SEEN(names)},
	{"multiprocessors", NULL, NULL, VIEW_COUNT, AT(multiprocessors), VIEW_OMIT},
	{"memory_bytes", NULL, NULL, VIEW_BYTES, AT(memory_bytes), VIEW_OMIT},
	BUSY_COLUMNS,
	{"late", NULL, NULL, VIEW_COUNT, AT(a.late),
	 .help = "activities that arrived so late that a part of them may count as idle"},
	{0},
};

const struct view_sheet sheet_gpu_devices = {
	.title = "GPUs",
	.help = "How busy each GPU was, as far as this job used it; absent if no GPU had work.",
	.list_help = "GPUs that had work, by process and number",
	.member = "gpu",
	.list = "devices",
	.csv = "GPUs",
	.columns = device_columns,
	.row_bytes = sizeof(struct stream),
	.table_bytes = sizeof(struct streams),
	.if_any = true,
	.when = gpu_when,
	.make = make_devices,
	.above = above_devices,
	.below = below_devices,
};

static const struct view_column stream_columns[] = {
	{NULL, "name", "stream", VIEW_TEXT, AT(label)},
	{"gpu", "", NULL, VIEW_COUNT, AT(a.track.device), .help = "number of the GPU in the process"},
	{"context", "", NULL, VIEW_COUNT, AT(a.track.context), .help = "as CUPTI numbers it"},
	{"stream", "", NULL, VIEW_COUNT, AT(a.track.stream), .help = "as CUPTI numbers it"},
	BUSY_COLUMNS,
	{0},
};

const struct view_sheet sheet_gpu_streams = {
	.title = "Streams of GPUs",
	.help = "How busy each stream was; absent if no GPU had work.",
	.list_help = "streams that had work, by process, GPU and busy time",
	.member = "gpu",
	.list = "streams",
	.csv = "Streams of GPUs",
	.columns = stream_columns,
	.row_bytes = sizeof(struct stream),
	.table_bytes = sizeof(struct streams),
	.if_any = true,
	.when = gpu_when,
	.make = make_streams,
	.above = above_streams,
	.print = print_streams,
};
#undef ROW

/* ---- records of CUPTI */

static int make_loss(const struct view *s, void *table)
{
	struct view_list *t = table;
	size_t n;
	const struct mxbpf_gpu_account *all = activity_accounts(s->in->model, &n);
	struct mxbpf_gpu_account *r = calloc(n + 1, sizeof(*r));

	t->rows = r;
	gpu_show_empty(s, t);
	if (!r)
		return -ENOMEM;
	if (n)
		memcpy(r, all, n * sizeof(*r));
	t->all = n;
	return 0;
}

static void put_count(struct view *s, uint64_t n, const char *what)
{
	char text[32];

	if (n)
		out_printf(s->out, "%s: %s\n", what, fmt_count(n, text));
}

static int print_loss(struct view *s, const void *table)
{
	const struct view_list *t = table;
	const struct mxbpf_gpu_account *r = t->rows;
	struct mxbpf_gpu_account sum = {.records = 0};
	size_t i;

	for (i = 0; i < t->all; i++, r++) {
		add_sat(&sum.dropped, r->dropped);
		add_sat(&sum.scrapped, r->scrapped);
		add_sat(&sum.unreadable, r->unreadable);
		add_sat(&sum.unsent, r->unsent);
		add_sat(&sum.unmeasured, r->unmeasured);
		add_sat(&sum.early, r->early);
		add_sat(&sum.unjoined, r->unjoined);
		add_sat(&sum.threadless, r->threadless);
		add_sat(&sum.unnamed, r->unnamed);
		add_sat(&sum.unknown, r->unknown);
	}
	put_count(s, sum.dropped, "GPU records lost because CUPTI had no buffer");
	put_count(s, sum.scrapped, "GPU records lost because all buffers of the agent were full");
	put_count(s, sum.unreadable,
		  "GPU records lost because they were incomplete at the end, or behind such a record");
	put_count(s, sum.unsent, "GPU records lost because mxbpf did not read them fast enough");
	put_count(s, sum.unmeasured, "GPU records left out because CUPTI did not measure their times");
	put_count(s, sum.unknown, "GPU records left out because their kind is unknown");
	put_count(s, sum.threadless, "launches in no operator because their thread is unknown");
	put_count(s, sum.unjoined,
		  "activities of CUDA graphs without their launch, because CUPTI below 13.1 U1 names it wrongly in "
		  "later windows");
	put_count(s, sum.unnamed, "GPU records without a name because the agent's memory for names was full");
	put_count(s, sum.early,
		  "activities that begin before their launch, because the clocks of CPU and GPU differ a little");
	if (sum.dropped || sum.scrapped || sum.unreadable || sum.unsent || sum.unmeasured || sum.unknown ||
	    sum.threadless || sum.unnamed || sum.early || sum.unjoined)
		out_puts(s->out, "\n");
	return 0;
}

#define ROW struct mxbpf_gpu_account
static const struct view_column loss_columns[] = {
	PID_COLUMN(h.tgid),
	{"records", NULL, NULL, VIEW_COUNT, AT(records),
	 .help = "records of CUPTI; the next six counts, unmeasured and unsent add up to it"},
	{"activities", NULL, NULL, VIEW_COUNT, AT(activities), .help = "kernels, copies, sets and waits"},
	{"calls", NULL, NULL, VIEW_COUNT, AT(calls), .help = "calls of CUDA"},
	{"nested", NULL, NULL, VIEW_COUNT, AT(nested), .help = "calls of the driver inside a call of the runtime"},
	{"overheads", NULL, NULL, VIEW_COUNT, AT(overheads), .help = "CUPTI's own work"},
	{"outside", NULL, NULL, VIEW_COUNT, AT(outside), .help = "began before the window, or their launch did"},
	{"queries", NULL, NULL, VIEW_COUNT, AT(queries),
	 .help = "queries of streams and events, which CUPTI takes for waits, and waits whose call is not known"},
	{"dropped", NULL, NULL, VIEW_COUNT, AT(dropped), .help = "lost because CUPTI had no buffer"},
	{"scrapped", NULL, NULL, VIEW_COUNT, AT(scrapped), .help = "lost because all buffers of the agent were full"},
	{"unreadable", NULL, NULL, VIEW_COUNT, AT(unreadable),
	 .help = "lost because they were incomplete at the end, or behind such a record; an estimate"},
	{"unsent", NULL, NULL, VIEW_COUNT, AT(unsent), .help = "lost because mxbpf could not read them fast enough"},
	{"unmeasured", NULL, NULL, VIEW_COUNT, AT(unmeasured), .help = "left out because CUPTI did not measure them"},
	{"unknown", NULL, NULL, VIEW_COUNT, AT(unknown), .help = "records of unknown kinds, which are left out"},
	{"early", NULL, NULL, VIEW_COUNT, AT(early), .help = "activities that begin before their launch"},
	{"unjoined", NULL, NULL, VIEW_COUNT, AT(unjoined),
	 .help = "activities of graphs without their launch, which CUPTI below 13.1 U1 names wrongly after its first "
		 "use"},
	{"threadless", NULL, NULL, VIEW_COUNT, AT(threadless), .help = "launches of unknown threads"},
	{"unnamed", NULL, NULL, VIEW_COUNT, AT(unnamed), .help = "records without room for their name"},
	{"subscriptions", NULL, NULL, VIEW_COUNT, AT(subscriptions), .help = "times that mxbpf held CUPTI"},
	{"held_ns", NULL, NULL, VIEW_NS, AT(held_ns), .help = "how long mxbpf held CUPTI"},
	{"counted_launches", NULL, NULL, VIEW_COUNT, AT(counted_launches), VIEW_OMIT,
	 .help = "launches that probes on CUDA's libraries counted"},
	{0},
};

const struct view_sheet sheet_gpu_loss = {
	.title = "Records of GPUs",
	.help = "What became of CUPTI's records; people read what was lost. Absent if CUPTI was not used.",
	.list_help = "one for each process",
	.member = "gpu",
	.list = "records",
	.columns = loss_columns,
	.row_bytes = sizeof(struct mxbpf_gpu_account),
	.table_bytes = sizeof(struct view_list),
	.whole = true,
	.if_any = true,
	.when = gpu_when,
	.make = make_loss,
	.print = print_loss,
};
