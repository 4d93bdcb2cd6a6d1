// SPDX-License-Identifier: Apache-2.0
/*
 * Writes an output of any kind for well-formed records with arbitrary contents, as an untrusted recording may have
 * them. The first three bytes of an input choose the output and its options. Then each record has a byte of its kind, a
 * byte of enum form, and the bytes of its longest form without the first four. Fields that readers check are brought
 * into their limits (struct bound), so no record is refused. A mutator of our own knows these borders.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mxbpf_collective.h"
#include "mxbpf_config.h"
#include "mxbpf_cost.h"
#include "mxbpf_gauge.h"
#include "mxbpf_kv.h"
#include "mxbpf_life.h"
#include "mxbpf_lines.h"
#include "mxbpf_mark.h"
#include "mxbpf_memory.h"
#include "mxbpf_neighbours.h"
#include "mxbpf_omp.h"
#include "mxbpf_queue.h"
#include "mxbpf_kernels.h"
#include "mxbpf_range.h"
#include "mxbpf_roofline.h"
#include "mxbpf_sample.h"
#include "mxbpf_sched.h"
#include "mxbpf_step.h"
#include "mxbpf_graph.h"
#include "record/record.h"
#include "view/view.h"

#define HEAD_BYTES 3
#define IDS	   8  /* few, so that records refer to each other */
#define SMALL_NS   64 /* times of records with FORM_SMALL */
#define MORE_MAX   3  /* items behind a record */

/* The second byte of a record. For a name it is the length of its text / 512. */
enum form {
	FORM_SMALL = 1 << 0, /* few times, threads and devices, so that records overlap */
	FORM_SHORT = 1 << 1, /* as an older version wrote it */
	FORM_MORE = 3 << 2,  /* number of items behind it: values, slices, spans, buckets */
};

/* The fixed part of the longest form. */
static const size_t bytes_of[] = {
	[MXBPF_SPAN] = sizeof(struct mxbpf_span),
	[MXBPF_AGG] = sizeof(struct mxbpf_agg),
	[MXBPF_TALLY] = sizeof(struct mxbpf_tally),
	[MXBPF_ALLOC] = sizeof(struct mxbpf_alloc),
	[MXBPF_EDGE] = sizeof(struct mxbpf_edge),
	[MXBPF_NAME] = sizeof(struct mxbpf_name),
	[MXBPF_MEM] = sizeof(struct mxbpf_mem),
	[MXBPF_AGG_MEM] = sizeof(struct mxbpf_agg_mem),
	[MXBPF_GROUP] = sizeof(struct mxbpf_group),
	[MXBPF_AGG_ACCOUNT] = sizeof(struct mxbpf_agg_account),
	[MXBPF_AGG_COUNTERS] = sizeof(struct mxbpf_agg_counters),
	[MXBPF_AGG_EXTENT] = sizeof(struct mxbpf_agg_extent),
	[MXBPF_SLOW] = sizeof(struct mxbpf_slow),
	[MXBPF_TEAM] = sizeof(struct mxbpf_team),
	[MXBPF_SCHED] = sizeof(struct mxbpf_sched),
	[MXBPF_OFF_CPU] = sizeof(struct mxbpf_off_cpu),
	[MXBPF_SAMPLE] = sizeof(struct mxbpf_sample),
	[MXBPF_GAUGE] = sizeof(struct mxbpf_gauge),
	[MXBPF_OPEN] = sizeof(struct mxbpf_open),
	[MXBPF_LIFE] = sizeof(struct mxbpf_life),
	[MXBPF_WAIT] = sizeof(struct mxbpf_wait),
	[MXBPF_STEP] = sizeof(struct mxbpf_step),
	[MXBPF_ITERATION] = sizeof(struct mxbpf_iteration),
	[MXBPF_MEM_OWNER] = sizeof(struct mxbpf_mem_owner),
	[MXBPF_MEM_TIME] = sizeof(struct mxbpf_mem_time),
	[MXBPF_MEM_FAILED] = sizeof(struct mxbpf_mem_failed),
	[MXBPF_MEM_HOLDER] = sizeof(struct mxbpf_mem_holder),
	[MXBPF_GPU_ALLOC] = sizeof(struct mxbpf_gpu_alloc),
	[MXBPF_GPU_INSIDE] = sizeof(struct mxbpf_gpu_inside),
	[MXBPF_GPU_USED] = sizeof(struct mxbpf_gpu_used),
	[MXBPF_INSTANT] = sizeof(struct mxbpf_instant),
	[MXBPF_VALUE] = sizeof(struct mxbpf_value),
	[MXBPF_ACTIVITY] = sizeof(struct mxbpf_activity),
	[MXBPF_LAUNCH] = sizeof(struct mxbpf_launch),
	[MXBPF_AGG_ACTIVITY] = sizeof(struct mxbpf_agg_activity),
	[MXBPF_GPU_DEVICE] = sizeof(struct mxbpf_gpu_device),
	[MXBPF_GPU_ACCOUNT] = sizeof(struct mxbpf_gpu_account),
	[MXBPF_AGG_GPU_WORK] = sizeof(struct mxbpf_agg_gpu_work),
	[MXBPF_AGG_GPU_STREAM] = sizeof(struct mxbpf_agg_gpu_stream),
	[MXBPF_AGG_GPU_IDLE] = sizeof(struct mxbpf_agg_gpu_idle),
	[MXBPF_AGG_GPU_LAUNCH] = sizeof(struct mxbpf_agg_gpu_launch),
	[MXBPF_AGG_GPU_TYPES] = sizeof(struct mxbpf_agg_gpu_types),
	[MXBPF_GPU_IDLE] = sizeof(struct mxbpf_gpu_idle),
	[MXBPF_GPU_STEP] = sizeof(struct mxbpf_gpu_step),
	[MXBPF_GRAPH_NODE] = sizeof(struct mxbpf_graph_node),
	[MXBPF_AGG_GPU_GRAPH] = sizeof(struct mxbpf_agg_gpu_graph),
	[MXBPF_GPU_PATH] = sizeof(struct mxbpf_gpu_path),
	[MXBPF_GPU_LIMITS] = sizeof(struct mxbpf_gpu_limits),
	[MXBPF_KERNEL_METRIC] = sizeof(struct mxbpf_kernel_metric),
	[MXBPF_COLLECTIVE] = sizeof(struct mxbpf_collective),
	[MXBPF_AGG_COLLECTIVE] = sizeof(struct mxbpf_agg_collective),
	[MXBPF_AGG_OVERLAP] = sizeof(struct mxbpf_agg_overlap),
	[MXBPF_KV] = sizeof(struct mxbpf_kv),
	[MXBPF_GPU_SEQUENCE] = sizeof(struct mxbpf_gpu_sequence),
	[MXBPF_AGG_COST] = sizeof(struct mxbpf_agg_cost),
	[MXBPF_PARTIAL] = sizeof(struct mxbpf_partial),
	[MXBPF_SLICE] = sizeof(struct mxbpf_slice_part),
	[MXBPF_AGG_ESTIMATE] = sizeof(struct mxbpf_agg_estimate),
	[MXBPF_RANGE] = sizeof(struct mxbpf_range),
	[MXBPF_LOST] = sizeof(struct mxbpf_lost),
	[MXBPF_NEIGHBOUR] = sizeof(struct mxbpf_neighbour),
	[MXBPF_LOOK] = sizeof(struct mxbpf_look),
	[MXBPF_RESIDENT] = sizeof(struct mxbpf_resident),
	[MXBPF_AGG_LINE] = sizeof(struct mxbpf_agg_line),
	[MXBPF_NETWORK] = sizeof(struct mxbpf_network),
	[MXBPF_COLLECTOR] = sizeof(struct mxbpf_collector),
	[MXBPF_TOUCHED] = sizeof(struct mxbpf_touched),
	[MXBPF_TABLE] = sizeof(struct mxbpf_table) + sizeof(struct mxbpf_table_column),
};
#define NKINDS (sizeof(bytes_of) / sizeof(bytes_of[0]))

/* A field that readers check, and its limits. */
struct bound {
	uint16_t kind, off, bytes;
	uint32_t low, limit;
};

#define BOUND(kind, type, field, low, limit)                                                                           \
	{                                                                                                              \
		kind, offsetof(struct mxbpf_##type, field), sizeof(((struct mxbpf_##type *)0)->field), low, limit      \
	}
#define CLASS(kind, type)	  BOUND(kind, type, cls, 1, MXBPF_CLASS_MAX)
#define CLASS_OR_NONE(kind, type) BOUND(kind, type, cls, 0, MXBPF_CLASS_MAX)
#define DEVICE(kind, type)	  BOUND(kind, type, device, 0, 2)

static const struct bound bounds[] = {
	BOUND(MXBPF_SPAN, span, link, 0, IDS),
	CLASS(MXBPF_AGG, agg),
	CLASS(MXBPF_AGG_MEM, agg_mem),
	CLASS(MXBPF_AGG_COST, agg_cost),
	CLASS(MXBPF_PARTIAL, partial),
	CLASS(MXBPF_AGG_ESTIMATE, agg_estimate),
	CLASS(MXBPF_AGG_ACCOUNT, agg_account),
	CLASS(MXBPF_SLOW, slow),
	CLASS(MXBPF_AGG_COUNTERS, agg_counters),
	CLASS(MXBPF_AGG_EXTENT, agg_extent),
	CLASS(MXBPF_OPEN, open),
	CLASS_OR_NONE(MXBPF_TALLY, tally),
	CLASS_OR_NONE(MXBPF_TEAM, team),
	CLASS_OR_NONE(MXBPF_RANGE, range),
	CLASS_OR_NONE(MXBPF_ALLOC, alloc),
	CLASS_OR_NONE(MXBPF_MEM_OWNER, mem_owner),
	CLASS_OR_NONE(MXBPF_MEM_FAILED, mem_failed),
	CLASS_OR_NONE(MXBPF_MEM_HOLDER, mem_holder),
	CLASS_OR_NONE(MXBPF_AGG_GPU_WORK, agg_gpu_work),
	CLASS_OR_NONE(MXBPF_AGG_GPU_GRAPH, agg_gpu_graph),
	BOUND(MXBPF_EDGE, edge, src_cls, 0, MXBPF_CLASS_MAX),
	BOUND(MXBPF_SCHED, sched, span_cls, 0, MXBPF_CLASS_MAX),
	BOUND(MXBPF_SCHED, sched, state, 0, MXBPF_SCHED_STATES),
	BOUND(MXBPF_RANGE, range, data.nvalues, 0, MXBPF_RANGE_VALUES + 1),
	BOUND(MXBPF_RANGE, range, data.type, 0, MXBPF_RANGE_TYPES),
	BOUND(MXBPF_INSTANT, instant, what, 0, MXBPF_INSTANT_WHATS),
	BOUND(MXBPF_INSTANT, instant, scope, 0, MXBPF_SCOPES),
	BOUND(MXBPF_WAIT, wait, what, 0, MXBPF_WAIT_WHATS),
	BOUND(MXBPF_STEP, step, what, 1, MXBPF_STEP_WHATS),
	BOUND(MXBPF_ITERATION, iteration, told, 1, MXBPF_STEP_WHATS),
	BOUND(MXBPF_NAME, name, id, 0, IDS),
	BOUND(MXBPF_NAME, name, kind, 0, MXBPF_NAME_DOMAIN + 1),
	BOUND(MXBPF_GROUP, group, id, 0, IDS),
	BOUND(MXBPF_ACTIVITY, activity, cls, 1, MXBPF_ACTIVITY_MAX),
	BOUND(MXBPF_ACTIVITY, activity, edge_id, 0, IDS),
	BOUND(MXBPF_ACTIVITY, activity, domain, 0, 2),
	BOUND(MXBPF_LAUNCH, launch, edge_id, 0, IDS),
	BOUND(MXBPF_LAUNCH, launch, domain, 1, 2),
	BOUND(MXBPF_AGG_ACTIVITY, agg_activity, cls, 1, MXBPF_ACTIVITY_MAX),
	BOUND(MXBPF_AGG_GPU_WORK, agg_gpu_work, of, 0, MXBPF_WORK_OFS),
	BOUND(MXBPF_AGG_GPU_IDLE, agg_gpu_idle, cause, 0, MXBPF_IDLE_CAUSES),
	BOUND(MXBPF_GPU_IDLE, gpu_idle, cause, 0, MXBPF_IDLE_CAUSES),
	BOUND(MXBPF_GPU_PATH, gpu_path, part, 1, MXBPF_PATH_PARTS),
	BOUND(MXBPF_GRAPH_NODE, graph_node, node, 1, 9),
	BOUND(MXBPF_GRAPH_NODE, graph_node, original, 0, 8),
	BOUND(MXBPF_GRAPH_NODE, graph_node, tid, 1, 3),
	BOUND(MXBPF_AGG_GPU_GRAPH, agg_gpu_graph, captured, 0, MXBPF_CAPTURED_UNSEEN + 1),
	BOUND(MXBPF_KERNEL_METRIC, kernel_metric, number, 0, MXBPF_KERNEL_COUNTERS),
	BOUND(MXBPF_KERNEL_METRIC, kernel_metric, first, 0, 2),
	BOUND(MXBPF_COLLECTIVE, collective, backend, 0, MXBPF_BACKENDS),
	BOUND(MXBPF_COLLECTIVE, collective, op, 0, MXBPF_COLLECTIVE_OPS),
	BOUND(MXBPF_AGG_COLLECTIVE, agg_collective, backend, 0, MXBPF_BACKENDS),
	BOUND(MXBPF_AGG_COLLECTIVE, agg_collective, op, 0, MXBPF_COLLECTIVE_OPS),
};

/* Fields that few values make meet those of other records. */
static const struct bound smalls[] = {
	BOUND(MXBPF_SPAN, span, seq, 0, IDS),
	BOUND(MXBPF_SPAN, span, origin, 0, IDS),
	BOUND(MXBPF_ACTIVITY, activity, track.device, 0, 2),
	BOUND(MXBPF_ACTIVITY, activity, track.context, 0, 2),
	BOUND(MXBPF_ACTIVITY, activity, track.stream, 0, 2),
	BOUND(MXBPF_ACTIVITY, activity, graph, 0, 4),
	BOUND(MXBPF_ACTIVITY, activity, graph_node, 0, 8),
	DEVICE(MXBPF_AGG_ACTIVITY, agg_activity),
	DEVICE(MXBPF_AGG_GPU_IDLE, agg_gpu_idle),
	DEVICE(MXBPF_GPU_IDLE, gpu_idle),
	DEVICE(MXBPF_GPU_STEP, gpu_step),
	DEVICE(MXBPF_GPU_LIMITS, gpu_limits),
	DEVICE(MXBPF_AGG_GPU_TYPES, agg_gpu_types),
	DEVICE(MXBPF_GPU_DEVICE, gpu_device),
	BOUND(MXBPF_GPU_DEVICE, gpu_device, major, 0, 16),
	BOUND(MXBPF_AGG_GPU_STREAM, agg_gpu_stream, track.device, 0, 2),
	BOUND(MXBPF_AGG_GPU_LAUNCH, agg_gpu_launch, track.device, 0, 2),
	BOUND(MXBPF_AGG_GPU_GRAPH, agg_gpu_graph, graph, 0, 4),
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* The outputs go to stdout and are not needed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = open("/dev/null", O_WRONLY);
	unsigned i;

	for (i = 0; i < 256; i++)
		if (kind_numbered(i) && (i >= NKINDS || !bytes_of[i])) {
			fprintf(stderr, "a kind has no size in bytes_of: %s\n", kind_numbered(i)->name);
			abort();
		}
	return dup2(fd, STDOUT_FILENO) < 0;
}

/* ---- the parts of a record that readers check */

static void bring_into(struct mxbpf_rec *r, const struct bound *b, size_t n)
{
	uint64_t value;

	for (; n--; b++) {
		if (b->kind != r->kind || b->off + b->bytes > r->size)
			continue;
		value = 0;
		memcpy(&value, (char *)r + b->off, b->bytes);
		value = b->low + value % (b->limit - b->low);
		memcpy((char *)r + b->off, &value, b->bytes);
	}
}

static uint16_t tame_buckets(void *at, unsigned n)
{
	struct mxbpf_bucket *b = at;
	unsigned i, index = 0;

	for (i = 0; i < n; i++)
		b[i].index = index += 1 + b[i].index % 64;
	return (uint16_t)n;
}

static void tame_text(struct mxbpf_name *n)
{
	uint32_t i;

	n->len = n->h.size - (uint32_t)sizeof(*n);
	for (i = 0; n->kind == MXBPF_NAME_ARGS && i < n->len; i++)
		n->text[i] = "[],8-0\"\n"[n->text[i] & 7];
}

static void tame_spans(struct mxbpf_sample *s, unsigned n)
{
	struct mxbpf_sample_span *spans = (struct mxbpf_sample_span *)(s + 1);
	unsigned i;

	mxbpf_sample_set_nspans(s, n);
	for (i = 0; i < n; i++)
		spans[i].cls = 1 + spans[i].cls % (MXBPF_CLASS_MAX - 1);
}

/* A column of one of the tables, whose cells are the rest of the record. */
static void tame_table(struct mxbpf_table *t)
{
	static const char *const tables[] = {"teams", "samples", "raised", "backward", "kernels by range", "none"};
	static const char *const columns[] = {"name_id", "class",    "count",	     "regions",
					      "flags",	 "total_ns", "first_unix_ns"};
	const size_t head = sizeof(*t) + sizeof(t->columns[0]);

	t->ncols = t->h.size >= head;
	snprintf(t->name, sizeof(t->name), "%s", tables[(uint8_t)t->name[0] % 6]);
	if (!t->ncols)
		return;
	snprintf(t->columns[0].name, sizeof(t->columns[0].name), "%s", columns[(uint8_t)t->columns[0].name[0] % 7]);
	t->columns[0].nvalues = 1;
	t->columns[0].id_of %= MXBPF_NAME_KINDS + 1;
	t->nrows = (uint16_t)((t->h.size - head) / sizeof(uint64_t));
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The lists behind records, and what is no bound. n: how many items there is room for. */
static void tame_lists(struct mxbpf_rec *r, unsigned n)
{
	struct mxbpf_agg_activity *activity = (void *)r;

	switch (r->kind) {
	case MXBPF_SPAN: /* a field of 7 bits */
		((struct mxbpf_span *)r)->cls = 1 + ((struct mxbpf_span *)r)->cls % (MXBPF_CLASS_MAX - 1);
		break;
	case MXBPF_AGG:
		((struct mxbpf_agg *)r)->nbuckets = tame_buckets((struct mxbpf_agg *)r + 1, n);
		break;
	case MXBPF_AGG_ACTIVITY:
		activity->unlaunched %= activity->count ? activity->count : 1;
		if (r->size >= sizeof(*activity))
			activity->nbuckets = tame_buckets(activity + 1, n);
		break;
	case MXBPF_AGG_GPU_WORK:
		((struct mxbpf_agg_gpu_work *)r)->nbuckets = tame_buckets((struct mxbpf_agg_gpu_work *)r + 1, n);
		break;
	case MXBPF_AGG_GPU_LAUNCH:
		((struct mxbpf_agg_gpu_launch *)r)->nbuckets = tame_buckets((struct mxbpf_agg_gpu_launch *)r + 1, n);
		break;
	case MXBPF_SAMPLE:
		tame_spans((struct mxbpf_sample *)r, n);
		break;
	case MXBPF_SCHED:
		((struct mxbpf_sched *)r)->nslices = (uint8_t)n;
		break;
	case MXBPF_KV:
		((struct mxbpf_kv *)r)->nvalues = (uint16_t)n;
		((struct mxbpf_kv *)r)->nsent %= (uint16_t)(n + 1);
		break;
	case MXBPF_GPU_SEQUENCE:
		((struct mxbpf_gpu_sequence *)r)->count |= 1;
		((struct mxbpf_gpu_sequence *)r)->n = n < MXBPF_SEQUENCE_MIN ? MXBPF_SEQUENCE_MIN : n;
		break;
	case MXBPF_NAME:
		tame_text((struct mxbpf_name *)r);
		break;
	case MXBPF_TABLE:
		tame_table((struct mxbpf_table *)r);
		break;
	}
}

/* Times that readers check, with few values if `small`. */
static void tame_times(struct mxbpf_rec *r, const struct kind *k, bool small)
{
	struct mxbpf_agg_collective *collective = (void *)r;
	struct mxbpf_sched *sched = (void *)r;
	struct mxbpf_off_cpu *off = (void *)r;
	struct mxbpf_gpu_path *path = (void *)r;
	uint64_t *at;
	unsigned i;

	r->ts_ns = small ? r->ts_ns % SMALL_NS : r->ts_ns >> 1;
	for (i = 0; small && i < KIND_TIMES_MAX && k->times[i] && k->times[i] < r->size; i++) {
		at = (uint64_t *)((char *)r + k->times[i]);
		*at %= SMALL_NS;
	}
	if (k->dur) {
		at = (uint64_t *)((char *)r + k->dur);
		*at = small ? *at % SMALL_NS : *at >> 1;
	}
	if (r->kind == MXBPF_SCHED) {
		sched->woken_ns = later(sched->woken_ns, r->ts_ns);
		sched->back_ns = later(sched->back_ns, sched->woken_ns);
		sched->ran_ns %= r->ts_ns + 1;
	} else if (r->kind == MXBPF_OFF_CPU) {
		off->woken_ns = later(off->woken_ns, r->ts_ns);
		off->back_ns = later(off->back_ns, off->woken_ns);
	} else if (r->kind == MXBPF_GPU_PATH) {
		path->end_ns = later(path->end_ns, r->ts_ns);
	} else if (r->kind == MXBPF_ITERATION) {
		((struct mxbpf_iteration *)r)->dur_ns >>= 1;
	} else if (r->kind == MXBPF_AGG_COLLECTIVE) {
		collective->count += !collective->count;
		collective->matched %= collective->count;
	}
}

static void tame_ids(struct mxbpf_rec *r, const struct kind *k)
{
	struct kind_id_walk w = {0};
	uint32_t *tid;
	unsigned i;

	while (kind_next_id(r, &w))
		if (w.flags & KIND_ID_SHORT)
			*(uint16_t *)((char *)r + w.off) %= IDS;
		else
			*(uint64_t *)((char *)r + w.off) %= IDS;
	if (k->of_row && r->size >= sizeof(*r) + sizeof(uint64_t))
		*(uint64_t *)(r + 1) %= IDS;
	for (i = 0; i < KIND_THREADS_MAX && k->threads[i]; i++) {
		tid = (uint32_t *)((char *)r + k->threads[i]);
		*tid = 1 + *tid % 3;
	}
}

static void tame(struct mxbpf_rec *r, unsigned form, unsigned more)
{
	const struct kind *k = kind_of(r);

	r->tgid %= 2;
	bring_into(r, bounds, sizeof(bounds) / sizeof(*bounds));
	if (form & FORM_SMALL)
		bring_into(r, smalls, sizeof(smalls) / sizeof(*smalls));
	tame_lists(r, more);
	tame_times(r, k, form & FORM_SMALL);
	tame_ids(r, k);
}

/* A record that is still refused must not get into a model. */
static bool passes(const struct mxbpf_rec *r)
{
	size_t pos = 0;
	bool bad;

	return kind_check_next(r, r->size, &pos, &bad);
}

static size_t item_bytes(unsigned kind)
{
	const struct kind_tail *tail = &kind_numbered(kind)->tail;

	return tail->bytes ? tail->bytes : sizeof(struct mxbpf_bucket);
}

/* Makes a record of the bytes of an input, which are repeated where they end. */
static int make_one(const uint8_t *data, size_t size, unsigned kind, unsigned form, struct buf *b)
{
	const bool is_name = kind == MXBPF_NAME, is_short = !is_name && form & FORM_SHORT;
	const unsigned more = is_name || is_short ? 0 : kind == MXBPF_GPU_SEQUENCE ? MORE_MAX : (form & FORM_MORE) >> 2;
	const size_t fixed = is_short ? kind_numbered(kind)->bytes : bytes_of[kind];
	const size_t len = fixed + (is_name ? form % 65 * 512 : more * item_bytes(kind));
	struct mxbpf_rec *r = buf_add(b, len);
	size_t i;

	if (!r)
		return -1;
	memset(r, 0, len);
	for (i = 4; i < len && size; i++)
		((uint8_t *)r)[i] = data[i < size ? i : i % size];
	r->kind = (uint16_t)kind;
	r->size = (uint16_t)len;
	tame(r, is_name ? FORM_SMALL : form, more);
	if (!passes(r))
		b->len -= len;
	return 0;
}

static size_t record_bytes(const uint8_t *data, size_t size)
{
	const size_t bytes = 2 + bytes_of[*data % NKINDS];

	return bytes < size ? bytes : size;
}

static int make(const uint8_t *data, size_t size, struct buf *b)
{
	size_t bytes;

	for (; size > 2; data += bytes, size -= bytes) {
		bytes = record_bytes(data, size);
		if (bytes_of[*data % NKINDS] && make_one(data + 2, size - 2, *data % NKINDS, data[1], b))
			return -1;
	}
	return 0;
}

/* ---- the mutator */

static unsigned next_random(unsigned *seed)
{
	return *seed = *seed * 1103515245 + 12345, *seed >> 8;
}

/* Numbers at which checks fail. */
static uint64_t edge(unsigned *seed)
{
	static const uint64_t edges[] = {0,   1,   2,	  3,	     7,		 8,	    127,       128,
					 255, 256, 65535, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
	const unsigned at = next_random(seed) % (sizeof(edges) / sizeof(*edges) + 3);

	return at < sizeof(edges) / sizeof(*edges) ? edges[at] : next_random(seed) % 1024;
}

/* Sets a field of a record. */
static void set_field(uint8_t *rec, size_t bytes, unsigned *seed)
{
	const size_t width = (size_t)1 << next_random(seed) % 4;
	const uint64_t value = edge(seed);

	if (bytes < 2 + width)
		return;
	memcpy(rec + 2 + next_random(seed) % ((bytes - 2) / width) * width, &value, width);
}

/* Puts a record of any kind before a place. Returns the new size. */
static size_t insert(uint8_t *data, size_t size, size_t max, size_t at, unsigned *seed)
{
	unsigned kind = next_random(seed) % NKINDS;
	const int fill = next_random(seed) % 3 ? (int)next_random(seed) % 4 : (int)next_random(seed);
	size_t bytes;

	while (!bytes_of[kind])
		kind = next_random(seed) % NKINDS;
	bytes = 2 + bytes_of[kind];
	if (size + bytes > max)
		return size;
	memmove(data + at + bytes, data + at, size - at);
	memset(data + at, fill, bytes);
	data[at] = (uint8_t)kind;
	data[at + 1] = (uint8_t)(next_random(seed) % 16);
	return size + bytes;
}

/* Returns where record *n of an input begins. If there are not so many, *n is their number and it returns the end. */
static size_t find_record(const uint8_t *data, size_t size, size_t *n)
{
	size_t at = HEAD_BYTES, i;

	for (i = 0; i < *n && at + 2 < size; i++)
		at += record_bytes(data + at, size - at);
	*n = i;
	return at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t at, bytes, n = SIZE_MAX;
	const unsigned what = next_random(&seed) % 8;

	if (size <= HEAD_BYTES + 2 || !what)
		return LLVMFuzzerMutate(data, size, max);
	find_record(data, size, &n);
	n = next_random(&seed) % n;
	at = find_record(data, size, &n);
	bytes = record_bytes(data + at, size - at);
	switch (what) {
	case 1: /* an output and its options */
		data[next_random(&seed) % HEAD_BYTES] = (uint8_t)next_random(&seed);
		return size;
	case 2:
		return insert(data, size, max, at, &seed);
	case 3:
		memmove(data + at, data + at + bytes, size - at - bytes);
		return size - bytes;
	case 4: /* twice */
		if (size + bytes > max)
			return size;
		memmove(data + at + bytes, data + at, size - at);
		return size + bytes;
	case 5:
		data[at + 1] = (uint8_t)next_random(&seed);
		return size;
	default:
		set_field(data + at, bytes, &seed);
		return size;
	}
}

/* ---- outputs */

struct tape {
	struct buf recs;
	bool done;
};

static int tape_rewind(void *ctx)
{
	((struct tape *)ctx)->done = false;
	return 0;
}

static int tape_next(void *ctx, const void **recs, size_t *bytes)
{
	struct tape *t = ctx;

	*recs = t->recs.data;
	*bytes = t->recs.len;
	t->done = !t->done;
	return t->done && *bytes;
}

static const struct view_ops *chosen(unsigned byte)
{
	unsigned n = 0;

	while (view_registry[n])
		n++;
	return view_registry[byte % n];
}

/* Data sets are folders. FUZZ_DIR is a folder in memory for them; without it they are left out. */
static struct out_dir *folder(const struct view_ops *ops)
{
	const char *dir = getenv("FUZZ_DIR");
	struct out_dir *d = NULL;
	char path[4096];
	struct err e = {0};

	snprintf(path, sizeof(path), "%s/%d", dir ? dir : "", (int)getpid());
	if (dir && out_dir_open(path, ops->mark, "{}", &d, &e))
		abort();
	return d;
}

/* A lack of memory, which an input can cause by its own size, is no defect. */
static void write_one(struct tape *t, struct mdl *m, struct mdl_session *s, struct view_opts *opts,
		      const struct view_ops *ops)
{
	struct view_source source = {tape_rewind, tape_next, t, t->recs.len};
	const struct view_input in = {s, m, &source};
	struct out_dir *dir = ops->mark ? folder(ops) : NULL;
	struct err e = {0};
	struct out *o = NULL;

	if (ops->mark && !dir)
		return;
	opts->dir = dir;
	if (!dir && out_open("-", false, &o, &e))
		abort();
	if (view_write(ops, &in, opts, o, &e) && (e.code != -ENOMEM || !e.why[0]))
		abort();
	if (o)
		out_commit(o, &e);
	out_dir_close(dir);
}

/* Readers must accept each record that a model writes. A wrong size in one would keep a reader from ending. */
static void check_emitted(const struct mdl *m)
{
	const struct mxbpf_rec *r, *last = NULL;
	struct buf recs = {0};
	bool bad = false;
	size_t pos = 0;

	if (mdl_emit(m, &recs))
		recs.len = 0;
	while ((r = kind_check_next(recs.data, recs.len, &pos, &bad)))
		last = r;
	if (bad) {
		r = (const void *)(recs.data + pos);
		fprintf(stderr, "a record of kind %u and %u bytes behind one of kind %u is not valid\n", r->kind,
			r->size, last ? last->kind : 0);
		abort();
	}
	buf_fini(&recs);
}

/* A session with everything that a description can have. */
static void read_session(struct mdl_session *s)
{
	static const char text[] =
		"{\"pid\":1,\"given_pid\":2,\"given_comm\":\"g\",\"features\":4294967295,\"sample_hz\":99,\"comm\":"
		"\"c\","
		"\"hostname\":\"h\",\"agent_route\":\"r\",\"mem_title\":\"memory\",\"rank\":1,\"world_size\":2,\"job_"
		"backend\":\"b\","
		"\"cpu_model\":\"m\",\"kernel\":\"6.8\",\"python\":\"3.11\",\"start_unix_ns\":\"9000000000\",\"start_"
		"mono_ns\":\"1\","
		"\"duration_ns\":\"1000\",\"paused_ns\":\"7\",\"hits\":\"9\",\"left_out\":\"1\",\"api_probed\":2,\"api_"
		"left\":3,"
		"\"iterations\":\"4\",\"sampled_iterations\":\"2\",\"open_spans\":\"1\",\"followed\":\"1\","
		"\"unfollowed\":\"1\","
		"\"unlabelled\":\"1\",\"follow_lag_ns\":\"20000000\",\"stranger_hits\":\"5\",\"stranger_ns\":\"900\","
		"\"cost.scale\":1000,\"cost.shrink\":100,\"cost.uncertain\":50,\"cost.added_ns\":\"50\",\"cost.thread_"
		"ns\":\"40\","
		"\"cost.trap_ns\":\"3\",\"cost.agent_helps\":true,\"cost.beats\":\"9\",\"cost.beat_watched_ns\":\"90\","
		"\"cost.beat_unwatched_ns\":\"80\",\"late_libs\":\"1\",\"late_refused\":\"1\",\"cut_records\":\"1\","
		"\"team_cpus\":4,"
		"\"fault_ns\":500,\"fault_own_ns\":100,\"account\":true,\"sched\":true,\"life\":true,\"held\":true,"
		"\"loss\":{\"attempted\":\"9\",\"stored\":\"5\",\"dropped\":\"4\",\"truncated\":\"1\",\"unreadable\":"
		"\"1\",\"unmatched\":\"1\"},"
		"\"class_title\":[null,\"api\",\"operator\",\"wait\",\"kernel\",\"task\",\"frame\",\"event\",\"step\","
		"\"data\","
		"\"kvstore\",\"custom\"],\"libs\":[{\"path\":\"p\",\"build_id\":\"i\",\"runtime\":\"PyTorch\"}],"
		"\"probes\":[{\"name\":\"op.a\",\"group\":\"op\",\"status\":\"refused\",\"reason\":\"x\"},{\"name\":"
		"\"a\",\"status\":\"attached\"}],"
		"\"devices\":[{\"type\":1,\"name\":\"cpu\"},{\"type\":2,\"numbered\":true,\"name\":\"gpu\"}],"
		"\"fallbacks\":[{\"name\":\"f\",\"at_ns\":\"5\",\"spans\":\"2\"}],\"notes\":[{\"name\":\"n\",\"text\":"
		"\"t\"}],"
		"\"processes\":[{\"pid\":0,\"role\":\"rank\",\"of\":2},{\"pid\":1,\"role\":\"rank\",\"rank\":1,\"of\":"
		"2,\"by_order\":true}],"
		"\"labels\":[{\"pid\":1,\"rank\":1,\"role\":\"worker\",\"job\":\"j\",\"runtime\":\"PyTorch\"},{\"pid\":"
		"0}],"
		"\"counters\":[{\"name\":\"cycles\"},{\"name\":\"instructions\"}],\"gaps\":[{\"pid\":1,\"gap_ns\":"
		"\"7\"},{\"pid\":0}],"
		"\"sources\":[{\"name\":\"probes\",\"late\":\"1\",\"loss.dropped\":\"3\"},{\"name\":\"agent\"}]}";

	if (rec_meta_read(text, sizeof(text) - 1, s, NULL))
		abort();
}

/* Writes an output as the first bytes of an input want it. */
static void write_as(const uint8_t *head, struct tape *t, struct mdl *m, struct mdl_session *s)
{
	struct view_opts opts = {.sort = head[0] % VIEW_SORT_NKEYS,
				 .by = head[1] % VIEW_BY_NWORDS,
				 .backward = head[1] & 0x80,
				 .ascending = head[0] & 0x80,
				 .advice = head[0] & 0x10,
				 .brief = head[0] & 0x08,
				 .no_parts = head[1] & 0x04,
				 .top = head[0] & 0x40 ? 2 : 0};
	struct mdl *sum;

	s->details = head[1] & 0x40 ? ~0u : 0;
	s->account = head[1] & 0x10;
	s->held = s->life = s->sched = head[1] & 0x08;
	check_emitted(m);
	sum = head[0] & 0x20 ? mdl_sum(m) : NULL;
	write_one(t, sum ? sum : m, s, &opts, chosen(head[2] & 0x7f));
	mdl_free(sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mdl_session plain = {.mxbpf_version = "",
				    .comm = "c",
				    .cmdline = "",
				    .hostname = "h",
				    .class_title = {NULL, "api", "operator", "wait", "kernel", "task", "frame", "event",
						    "step", "data", "kvstore", "custom"},
				    .mem_title = "memory",
				    .start_mono_ns = 32},
			   rich = {0};
	struct tape t = {0};
	struct mdl *m = mdl_new();

	if (size > HEAD_BYTES && m && !make(data + HEAD_BYTES, size - HEAD_BYTES, &t.recs) &&
	    !mdl_feed(m, t.recs.data, t.recs.len)) {
		if (data[2] & 0x80)
			read_session(&rich);
		else
			plain.trace_form = data[1] & 0x20 ? "kineto" : NULL;
		write_as(data, &t, m, data[2] & 0x80 ? &rich : &plain);
	}
	mdl_session_fini(&rich);
	mdl_free(m);
	buf_fini(&t.recs);
	return 0;
}
