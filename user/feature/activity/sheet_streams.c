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

#define OWNERS_MAX     4  /* processes that are named behind a number */
#define INSTANCE_BYTES 13 /* "MIG-" and the first digits, as far as people compare them */

struct stream {
	struct view_text label, name; /* "GPU 0 stream 7"; name of the device */
	struct mxbpf_agg_gpu_stream a;
	uint64_t seen_ns; /* 0: not known */
	uint64_t idle_ns, overlap_ns;
	uint64_t multiprocessors, memory_bytes; /* 0: not known */
	double busy, overlap;
	struct view_text pci;			     /* place on the PCI bus */
	struct view_text uuid, whole_uuid, instance; /* whole_uuid, instance: of an instance of MIG */
	bool mps;
	char text[VIEW_LABEL_BYTES + 64], pci_text[16];
	char uuid_text[ACTIVITY_UUID_BYTES], whole_text[ACTIVITY_UUID_BYTES], instance_text[INSTANCE_BYTES];
};

struct streams {
	struct view_list list;
	bool contexts, overlaps, names, processes;
	bool instances, mps; /* some device is an instance of MIG, or is shared by MPS */
	uint64_t late;
};

/* ---- rows */

static void activity_sheet_streams_fill(const struct view *s, struct stream *r, const struct mxbpf_agg_gpu_stream *a)
{
	const struct mxbpf_gpu_device *d = gpu_device(s, a->h.tgid, a->track.device);
	const uint64_t seen_ns = activity_seen_ns(s->in->model, a->h.tgid, s->in->session->duration_ns);
	const uint64_t all_ns = seen_ns ? seen_ns : a->last_ns - a->first_ns;
	uint64_t both_ns = a->compute_ns;

	add_sat(&both_ns, a->copy_ns);
	r->a = *a;
	r->seen_ns = seen_ns;
	r->idle_ns = all_ns > a->busy_ns ? all_ns - a->busy_ns : 0;
	r->busy = all_ns ? (double)a->busy_ns / (double)all_ns : 0;
	r->busy = r->busy < 1 ? r->busy : 1;
	r->overlap_ns = both_ns > a->busy_ns ? both_ns - a->busy_ns : 0;
	if (!d)
		return;
	r->name.data = mdl_name(s->in->model, d->name_id, &r->name.len);
	r->multiprocessors = d->multiprocessors;
	r->memory_bytes = d->memory_bytes;
	snprintf(r->pci_text, sizeof(r->pci_text), "%04x:%02x:%02x.0", d->pci_domain & 0xffff, d->pci_bus,
		 d->pci_device);
	r->pci.len = strlen(r->pci_text);
	r->uuid.len = strlen(activity_uuid(d, false, r->uuid_text));
	if (activity_is_instance(d)) {
		r->whole_uuid.len = strlen(activity_uuid(d, true, r->whole_text));
		r->instance.len = (size_t)snprintf(r->instance_text, INSTANCE_BYTES, "%.12s", r->uuid_text);
	}
	r->mps = d->mps;
}

/* Sorting has moved the texts. */
static void activity_sheet_streams_put_texts(struct stream *r)
{
	r->pci.data = r->pci.len ? r->pci_text : NULL;
	r->uuid.data = r->uuid.len ? r->uuid_text : NULL;
	r->whole_uuid.data = r->whole_uuid.len ? r->whole_text : NULL;
	r->instance.data = r->instance.len ? r->instance_text : NULL;
}

static int activity_by_place(const void *va, const void *vb)
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

/* The process, as --by wants it; else its rank, or its number if it has none. */
static const char *owner_of(const struct view *s, uint32_t tgid, char buf[VIEW_LABEL_BYTES])
{
	const struct mdl_labels *l = mdl_labels_of(s->in->session, tgid);

	if (view_by_processes(s->opts->by))
		return gpu_owner(s, tgid, buf);
	if (l && l->numbers[MDL_RANK] != MDL_NO_NUMBER)
		view_label(l, VIEW_BY_RANK, buf);
	else
		snprintf(buf, VIEW_LABEL_BYTES, "%" PRIu32, tgid & MDL_PID_MASK);
	return buf;
}

static void put_label(const struct view *s, struct stream *r, bool contexts, bool processes)
{
	char context[24] = "", process[VIEW_LABEL_BYTES + 2] = "", owner[VIEW_LABEL_BYTES];

	if (processes)
		snprintf(process, sizeof(process), "%s ", owner_of(s, r->a.h.tgid, owner));
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
			activity_sheet_streams_fill(s, &r[n++], a);
	}
	t->list.all = n;
	if (n)
		qsort(r, n, sizeof(*r), activity_by_place);
	for (i = 0; i < n; i++) {
		t->contexts |= r[i].a.track.context != r[0].a.track.context;
		t->overlaps |= r[i].overlap_ns;
		t->names |= r[i].name.len;
		t->instances |= r[i].instance.len;
		t->mps |= r[i].mps;
		add_sat(&t->late, r[i].a.late);
	}
	t->processes = n && r[0].a.h.tgid != r[n - 1].a.h.tgid;
	for (i = 0; i < n; i++) {
		put_label(s, &r[i], t->contexts, t->processes);
		activity_sheet_streams_put_texts(&r[i]);
	}
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
	gpu_put_title(s, table, prefix, "GPUs:");
}

static void below_devices(struct view *s, const void *table, const char *prefix)
{
	const struct streams *t = table;
	char n[32];

	if (t->late)
		out_printf(s->out, "%s%s activities arrived so late that a part of them may count as idle\n", prefix,
			   fmt_count(t->late, n));
	if (t->instances)
		out_printf(
			s->out,
			"%sMIG divides a GPU: busy, idle and the number of multiprocessors are those of the instance\n",
			prefix);
	if (t->mps)
		out_printf(s->out,
			   "%sMPS shares a GPU among processes: busy is what this process ran, and others may have run "
			   "at once\n",
			   prefix);
}

static void above_streams(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Streams of GPUs:");
}

#define ROW	     struct stream
#define SEEN(member) .shown = offsetof(struct streams, member)
#define BUSY_COLUMNS                                                                                                   \
	PID_COLUMN(a.h.tgid), {"count", NULL, "activities", TBL_COUNT, SUM_AT(a.count), .name_min = 20},               \
		{"busy_ns",                                                                                            \
		 NULL,                                                                                                 \
		 "busy",                                                                                               \
		 TBL_NS,                                                                                               \
		 SUM_AT(a.busy_ns),                                                                                    \
		 TBL_TIGHT,                                                                                            \
		 .help = "time in which at least one kernel, copy or set ran"},                                        \
		{NULL,                                                                                                 \
		 NULL,                                                                                                 \
		 "share",                                                                                              \
		 TBL_SHARE,                                                                                            \
		 AT(busy),                                                                                             \
		 .digits = 1,                                                                                          \
		 .help = "busy as part of the time in which GPUs were watched"},                                       \
		{"idle_ns",                                                                                            \
		 NULL,                                                                                                 \
		 "idle",                                                                                               \
		 TBL_NS,                                                                                               \
		 SUM_AT(idle_ns),                                                                                      \
		 TBL_TIGHT,                                                                                            \
		 .help = "the rest of the time in which GPUs were watched"},                                           \
		{"compute_ns",                                                                                         \
		 NULL,                                                                                                 \
		 "compute",                                                                                            \
		 TBL_NS,                                                                                               \
		 SUM_AT(a.compute_ns),                                                                                 \
		 TBL_TIGHT,                                                                                            \
		 .name_min = 16,                                                                                       \
		 .help = "time in which at least one kernel or set ran"},                                              \
		{"copy_ns",                                                                                            \
		 NULL,                                                                                                 \
		 "copies",                                                                                             \
		 TBL_NS,                                                                                               \
		 SUM_AT(a.copy_ns),                                                                                    \
		 TBL_TIGHT,                                                                                            \
		 .help = "time in which at least one copy ran"},                                                       \
	{                                                                                                              \
		"overlap_ns", NULL, "overlap", TBL_NS, SUM_AT(overlap_ns), TBL_TIGHT | TBL_DASH,                       \
			.name_min = 12, .help = "time in which copies and other work ran at once"                      \
	}

const struct tbl_metric activity_seen = {.name = "mxbpf_gpu_seen_seconds",
					 .help = "Time in which the agent watched the GPU"};

static const struct tbl_column device_columns[] = {
	{NULL, "name", "gpu", TBL_TEXT, AT(label)},
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(a.track.device), .label = "gpu",
	 .help = "number of the GPU in the process"},
	{NULL, NULL, NULL, TBL_NS, AT(a.busy_ns),
	 .metric = METRIC("mxbpf_gpu_busy_seconds",
			  "Time in which the GPU did work of the process, as the agent saw it")},
	{NULL, NULL, NULL, TBL_NS, AT(seen_ns), .metric = &activity_seen},
	{"name", "", "device", TBL_TEXT, AT(name), TBL_OMIT, SEEN(names)},
	{"pci", "", "pci", TBL_TEXT, LAST_AT(pci), TBL_OMIT, SEEN(processes),
	 .help = "place of the GPU on the PCI bus, by which processes have the same one"},
	{NULL, NULL, "instance", TBL_TEXT, AT(instance), TBL_OMIT, SEEN(instances)},
	{"uuid", NULL, NULL, TBL_TEXT, LAST_AT(uuid), TBL_OMIT,
	 .help = "of the GPU (GPU-...), or of the instance that MIG gave to the process (MIG-...)"},
	{"mig_gpu_uuid", NULL, NULL, TBL_TEXT, LAST_AT(whole_uuid), TBL_OMIT, .help = "of the GPU that MIG divides"},
	{"mps", NULL, NULL, TBL_BOOL, AT(mps), TBL_OMIT,
	 .help = "MPS shares the GPU: busy is what this process ran, and others may have run at once"},
	{"multiprocessors", NULL, NULL, TBL_COUNT, AT(multiprocessors), TBL_OMIT},
	{"memory_bytes", NULL, NULL, TBL_BYTES, AT(memory_bytes), TBL_OMIT},
	BUSY_COLUMNS,
	{"late", NULL, NULL, TBL_COUNT, AT(a.late),
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

static const struct tbl_column stream_columns[] = {
	{NULL, "name", "stream", TBL_TEXT, AT(label)},
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(a.track.device), .help = "number of the GPU in the process"},
	{"context", "", NULL, TBL_COUNT, AT(a.track.context), .help = "as CUPTI numbers it"},
	{"stream", "", NULL, TBL_COUNT, KEY_AT(a.track.stream), .help = "as CUPTI numbers it"},
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
	.left_out = "streams of GPUs",
};
#undef ROW

/* ---- records of CUPTI */

/* Accounts arrive in any order. */
static int by_process(const void *va, const void *vb)
{
	const struct mxbpf_gpu_account *a = va, *b = vb;

	return a->h.tgid < b->h.tgid ? -1 : a->h.tgid > b->h.tgid;
}

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
	qsort(r, n, sizeof(*r), by_process);
	t->all = n;
	return 0;
}

/* The members of the account that people read: their places in it. */
static const struct {
	uint16_t at;
	const char *what;
} losses[] = {
#define AT_COUNT(member) offsetof(struct mxbpf_gpu_account, member)
	{AT_COUNT(dropped), "GPU records lost because CUPTI had no buffer"},
	{AT_COUNT(scrapped), "GPU records lost because all buffers of the agent were full"},
	{AT_COUNT(unreadable), "GPU records lost because they were incomplete at the end, or behind such a record"},
	{AT_COUNT(unsent), "GPU records lost because mxbpf did not read them fast enough"},
	{AT_COUNT(unmeasured), "GPU records left out because CUPTI did not measure their times"},
	{AT_COUNT(unknown), "GPU records left out because their kind is unknown"},
	{AT_COUNT(threadless), "launches in no operator because their thread is unknown"},
	{AT_COUNT(unjoined), "activities of CUDA graphs without their launch, because CUPTI below 13.1 U1 names it "
			     "wrongly in later windows"},
	{AT_COUNT(unnamed), "GPU records without a name because the agent's memory for names was full"},
	{AT_COUNT(early),
	 "activities that begin before their launch, because the clocks of CPU and GPU differ a little"},
#undef AT_COUNT
};

static uint64_t count_at(const struct mxbpf_gpu_account *a, uint16_t at)
{
	return *(const __u64 *)((const char *)a + at);
}

/* Names the processes that a number is of, if there are several. */
static void put_losers(struct view *s, const struct view_list *t, uint16_t at)
{
	const struct mxbpf_gpu_account *r = t->rows;
	char owner[VIEW_LABEL_BYTES], n[32];
	unsigned named = 0;
	size_t i;

	for (i = 0; i < t->all && t->all > 1; i++) {
		if (!count_at(&r[i], at))
			continue;
		if (named++ == OWNERS_MAX) {
			out_puts(s->out, ", ...");
			break;
		}
		out_printf(s->out, "%s%s of ", named == 1 ? " (" : ", ", fmt_count(count_at(&r[i], at), n));
		owner_of(s, r[i].h.tgid, owner);
		view_put_safe(s->out, owner, strlen(owner));
	}
	if (named)
		out_puts(s->out, ")");
}

static int print_loss(struct view *s, const void *table)
{
	const struct view_list *t = table;
	const struct mxbpf_gpu_account *r = t->rows;
	bool any = false;
	uint64_t sum;
	char n[32];
	size_t i, k;

	for (k = 0; k < sizeof(losses) / sizeof(losses[0]); k++) {
		for (sum = 0, i = 0; i < t->all; i++)
			add_sat(&sum, count_at(&r[i], losses[k].at));
		if (!sum)
			continue;
		any = true;
		out_printf(s->out, "%s: %s", losses[k].what, fmt_count(sum, n));
		put_losers(s, t, losses[k].at);
		out_puts(s->out, "\n");
	}
	if (any)
		out_puts(s->out, "\n");
	return 0;
}

#define ROW struct mxbpf_gpu_account
static const struct tbl_column loss_columns[] = {
	PID_COLUMN(h.tgid),
	{"records", NULL, NULL, TBL_COUNT, AT(records),
	 .help = "records of CUPTI; the next six counts, memory, unmeasured and unsent add up to it"},
	{"activities", NULL, NULL, TBL_COUNT, AT(activities), .help = "kernels, copies, sets and waits"},
	{"calls", NULL, NULL, TBL_COUNT, AT(calls), .help = "calls of CUDA"},
	{"nested", NULL, NULL, TBL_COUNT, AT(nested), .help = "calls of the driver inside a call of the runtime"},
	{"overheads", NULL, NULL, TBL_COUNT, AT(overheads), .help = "CUPTI's own work"},
	{"outside", NULL, NULL, TBL_COUNT, AT(outside), .help = "began before the window, or their launch did"},
	{"queries", NULL, NULL, TBL_COUNT, AT(queries),
	 .help = "queries of streams and events, which CUPTI takes for waits, and waits whose call is not known"},
	{"memory", "", NULL, TBL_COUNT, AT(memory), TBL_OMIT,
	 .help = "memory that calls allocated or freed, with --memory"},
	{"dropped", NULL, NULL, TBL_COUNT, AT(dropped), .help = "lost because CUPTI had no buffer"},
	{"scrapped", NULL, NULL, TBL_COUNT, AT(scrapped), .help = "lost because all buffers of the agent were full"},
	{"unreadable", NULL, NULL, TBL_COUNT, AT(unreadable),
	 .help = "lost because they were incomplete at the end, or behind such a record; an estimate"},
	{"unsent", NULL, NULL, TBL_COUNT, AT(unsent), .help = "lost because mxbpf could not read them fast enough"},
	{"unmeasured", NULL, NULL, TBL_COUNT, AT(unmeasured), .help = "left out because CUPTI did not measure them"},
	{"unknown", NULL, NULL, TBL_COUNT, AT(unknown), .help = "records of unknown kinds, which are left out"},
	{"early", NULL, NULL, TBL_COUNT, AT(early), .help = "activities that begin before their launch"},
	{"unjoined", NULL, NULL, TBL_COUNT, AT(unjoined),
	 .help = "activities of graphs without their launch, which CUPTI below 13.1 U1 names wrongly after its first "
		 "use"},
	{"threadless", NULL, NULL, TBL_COUNT, AT(threadless), .help = "launches of unknown threads"},
	{"unnamed", NULL, NULL, TBL_COUNT, AT(unnamed), .help = "records without room for their name"},
	{"subscriptions", NULL, NULL, TBL_COUNT, AT(subscriptions), .help = "times that mxbpf held CUPTI"},
	{"held_ns", NULL, NULL, TBL_NS, AT(held_ns), .help = "how long mxbpf held CUPTI"},
	{"counted_launches", NULL, NULL, TBL_COUNT, AT(counted_launches), TBL_OMIT,
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
