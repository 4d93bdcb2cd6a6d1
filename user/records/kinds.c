// SPDX-License-Identifier: Apache-2.0
#include "records/kinds.h"

#include <errno.h>
#include <string.h>

#include "records/priv.h"

#define AT(type, field) offsetof(struct mxbpf_##type, field)
#define NAME(type, field)                                                                                              \
	{                                                                                                              \
		AT(type, field), MXBPF_NAME_SPAN, 0                                                                    \
	}
#define BYTES(type) .bytes = sizeof(struct mxbpf_##type)
#define SENT(type)  BYTES(type), .sent = {sizeof(struct mxbpf_##type)}

static unsigned count_sample(const struct mxbpf_rec *r)
{
	return mxbpf_sample_nspans((const struct mxbpf_sample *)r);
}

static unsigned count_kv(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_kv *)r)->nvalues;
}

static unsigned count_sched(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_sched *)r)->nslices;
}

static unsigned count_sequence(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_gpu_sequence *)r)->n;
}

static const struct kind kinds[] = {
	[MXBPF_SPAN] = {.name = "span",
			.bytes = MXBPF_SPAN_BYTES_MIN,
			.sent = {MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN), MXBPF_WITH_COST(MXBPF_SPAN_BYTES_DETAILS),
				 MXBPF_WITH_COST(MXBPF_SPAN_BYTES_ACCOUNT), MXBPF_WITH_COST(MXBPF_SPAN_BYTES_WHOLE)},
			.ids = {NAME(span, name_id),
				{AT(span, name_id), MXBPF_NAME_DOMAIN, KIND_ID_OF_MARK},
				{AT(span, args_id), MXBPF_NAME_ARGS, 0},
				{AT(span, stack_id), MXBPF_NAME_STACK, KIND_ID_RAW},
				{AT(span, layer_id), MXBPF_NAME_LAYER, 0}},
			.threads = {AT(span, tid), AT(span, end_tid)},
			.dur = AT(span, dur_ns),
			.fits = fits_span},
	[MXBPF_AGG] = {.name = "row", BYTES(agg), .of_row = true, .fits = fits_agg},
	[MXBPF_INSTANT] = {.name = "instant",
			   SENT(instant),
			   .ids = {NAME(instant, name_id), {AT(instant, name_id), MXBPF_NAME_DOMAIN, 0}},
			   .threads = {AT(instant, tid)},
			   .times = {AT(instant, last_ns)},
			   .fits = fits_instant},
	[MXBPF_TALLY] = {.name = "tally", BYTES(tally), .fits = fits_tally},
	[MXBPF_ALLOC] = {.name = "allocation",
			 .bytes = MXBPF_ALLOC_BYTES_MIN,
			 .sent = {MXBPF_ALLOC_BYTES_PLAIN, MXBPF_ALLOC_BYTES_OWNER, MXBPF_ALLOC_BYTES_STACK,
				  sizeof(struct mxbpf_alloc)},
			 .ids = {NAME(alloc, name_id),
				 {AT(alloc, layer_id), MXBPF_NAME_LAYER, 0},
				 NAME(alloc, scope_id),
				 NAME(alloc, label_id),
				 {AT(alloc, stack_id), MXBPF_NAME_STACK, KIND_ID_RAW}},
			 .threads = {AT(alloc, tid)},
			 .fits = fits_alloc},
	[MXBPF_SCHED] = {.name = "switch",
			 SENT(sched),
			 .fixed = sizeof(struct mxbpf_sched),
			 .ids = {NAME(sched, span_name_id)},
			 .threads = {AT(sched, tid)},
			 .times = {AT(sched, woken_ns), AT(sched, back_ns), AT(sched, span_start_ns)},
			 .end = AT(sched, back_ns),
			 .tail = {.bytes = sizeof(struct mxbpf_sched_slice),
				  .max = MXBPF_SCHED_SLICES_MAX,
				  .count = count_sched,
				  .ntimes = 2},
			 .fits = fits_sched},
	[MXBPF_OFF_CPU] = {.name = "short switch",
			   BYTES(off_cpu),
			   .threads = {AT(off_cpu, tid)},
			   .times = {AT(off_cpu, woken_ns), AT(off_cpu, back_ns)},
			   .end = AT(off_cpu, back_ns),
			   .fits = fits_off_cpu},
	[MXBPF_EDGE] = {.name = "edge",
			SENT(edge),
			.threads = {AT(edge, tid)},
			.times = {AT(edge, src_start_ns)},
			.fits = fits_edge},
	[MXBPF_NAME] = {.name = "name", BYTES(name), .fits = fits_name},
	[MXBPF_MEM] = {.name = "memory of a device", BYTES(mem)},
	[MXBPF_AGG_MEM] = {.name = "memory of a row", BYTES(agg_mem), .of_row = true, .fits = fits_agg_mem},
	[MXBPF_GROUP] = {.name = "what a row is of",
			 .bytes = MXBPF_GROUP_BYTES_MIN,
			 .ids = {NAME(group, name_id),
				 {AT(group, args_id), MXBPF_NAME_ARGS, 0},
				 {AT(group, stack_id), MXBPF_NAME_STACK, KIND_ID_RAW},
				 {AT(group, layer_id), MXBPF_NAME_LAYER, 0},
				 NAME(group, range_id)}},
	[MXBPF_AGG_ACCOUNT] = {.name = "account of a row",
			       .bytes = MXBPF_AGG_ACCOUNT_BYTES_MIN,
			       .of_row = true,
			       .fits = fits_agg_account},
	[MXBPF_GAUGE] = {.name = "gauge",
			 .bytes = MXBPF_GAUGE_BYTES_MIN,
			 .ids = {{AT(gauge, scope), MXBPF_NAME_SCOPE, KIND_ID_SHORT}},
			 .times = {AT(gauge, first_ns)}},
	[MXBPF_SAMPLE] = {.name = "sample",
			  BYTES(sample),
			  .fixed = sizeof(struct mxbpf_sample),
			  .ids = {{AT(sample, stack_id), MXBPF_NAME_STACK, 0},
				  {AT(sample, code_id), MXBPF_NAME_CODE, 0}},
			  .threads = {AT(sample, tid)},
			  .tail = {.bytes = sizeof(struct mxbpf_sample_span),
				   .count = count_sample,
				   .ids = true,
				   .id = {AT(sample_span, name_id), MXBPF_NAME_SPAN, 0}},
			  .fits = fits_sample,
			  .sent_fits = sent_sample},
	[MXBPF_AGG_COUNTERS] = {.name = "counters of a row",
				BYTES(agg_counters),
				.of_row = true,
				.fits = fits_agg_counters},
	[MXBPF_TEAM] = {.name = "parallel region",
			SENT(team),
			.ids = {NAME(team, name_id)},
			.times = {AT(team, span_start_ns)},
			.dur = AT(team, dur_ns),
			.fits = fits_team},
	[MXBPF_OPEN] = {.name = "open span",
			.bytes = MXBPF_OPEN_BYTES_MIN,
			.ids = {NAME(open, name_id),
				{AT(open, args_id), MXBPF_NAME_ARGS, 0},
				{AT(open, stack_id), MXBPF_NAME_STACK, KIND_ID_RAW},
				{AT(open, layer_id), MXBPF_NAME_LAYER, 0}},
			.threads = {AT(open, tid)},
			.fits = fits_open},
	[MXBPF_SLOW] = {.name = "slow span", BYTES(slow), .of_row = true, .fits = fits_slow},
	[MXBPF_LIFE] = {.name = "life", SENT(life), .ids = {NAME(life, name_id)}},
	[MXBPF_WAIT] = {.name = "wait",
			SENT(wait),
			.ids = {NAME(wait, name_id), NAME(wait, call_id), NAME(wait, op_id), NAME(wait, within_id)},
			.fits = fits_wait},
	[MXBPF_MEM_OWNER] = {.name = "memory owner",
			     .bytes = MXBPF_MEM_OWNER_BYTES_MIN,
			     .ids = {NAME(mem_owner, name_id),
				     {AT(mem_owner, layer_id), MXBPF_NAME_LAYER, 0},
				     NAME(mem_owner, scope_id),
				     NAME(mem_owner, label_id),
				     {AT(mem_owner, stack_id), MXBPF_NAME_STACK, 0}},
			     .fits = fits_mem_owner},
	[MXBPF_MEM_TIME] = {.name = "memory over time",
			    .bytes = MXBPF_MEM_TIME_BYTES_MIN,
			    .times = {AT(mem_time, peak_ns), AT(mem_time, last_ns), AT(mem_time, unused_peak_ns)}},
	[MXBPF_MEM_FAILED] = {.name = "allocation that failed",
			      BYTES(mem_failed),
			      .ids = {NAME(mem_failed, name_id),
				      {AT(mem_failed, layer_id), MXBPF_NAME_LAYER, 0},
				      {AT(mem_failed, stack_id), MXBPF_NAME_STACK, 0}},
			      .threads = {AT(mem_failed, tid)},
			      .fits = fits_mem_failed},
	[MXBPF_MEM_HOLDER] = {.name = "holder of memory",
			      BYTES(mem_holder),
			      .ids = {NAME(mem_holder, name_id),
				      {AT(mem_holder, layer_id), MXBPF_NAME_LAYER, 0},
				      {AT(mem_holder, stack_id), MXBPF_NAME_STACK, 0}},
			      .threads = {AT(mem_holder, tid)},
			      .fits = fits_mem_holder},
	[MXBPF_GPU_ALLOC] = {.name = "memory by a call of CUDA",
			     SENT(gpu_alloc),
			     .ids = {NAME(gpu_alloc, name_id)},
			     .dur = AT(gpu_alloc, dur_ns),
			     .threads = {AT(gpu_alloc, tid)}},
	[MXBPF_GPU_INSIDE] = {.name = "memory by calls on a GPU", BYTES(gpu_inside), .of_process = true},
	[MXBPF_GPU_USED] = {.name = "memory of a GPU", BYTES(gpu_used), .of_process = true},
	[MXBPF_LOST] = {.name = "lost time", BYTES(lost), .times = {AT(lost, to_ns)}, .counts = true},
	[MXBPF_STEP] = {.name = "moment of an iteration", SENT(step), .fits = fits_step},
	[MXBPF_VALUE] = {.name = "value of a counter",
			 SENT(value),
			 .ids = {NAME(value, name_id), {AT(value, name_id), MXBPF_NAME_DOMAIN, 0}},
			 .threads = {AT(value, tid)}},
	[MXBPF_KV] = {.name = "call of a store",
		      SENT(kv),
		      .fixed = sizeof(struct mxbpf_kv),
		      .ids = {NAME(kv, name_id)},
		      .tail = {.bytes = sizeof(struct mxbpf_kv_value),
			       .max = MXBPF_KV_VALUES_MAX,
			       .count = count_kv,
			       .ids = true,
			       .id = {AT(kv_value, key), MXBPF_NAME_SPAN, KIND_ID_OF_NAMED}},
		      .fits = fits_kv},
	[MXBPF_ITERATION] = {.name = "iteration", .bytes = MXBPF_ITERATION_BYTES_MIN, .fits = fits_iteration},
	[MXBPF_AGG_COST] = {.name = "cost of a row", BYTES(agg_cost), .of_row = true, .fits = fits_agg_cost},
	[MXBPF_PARTIAL] = {.name = "rows that lack calls",
			   BYTES(partial),
			   .ids = {NAME(partial, name_id)},
			   .fits = fits_partial},
	[MXBPF_SLICE] = {.name = "slices", BYTES(slice_part), .of_process = true},
	[MXBPF_AGG_ESTIMATE] = {.name = "estimate of a row",
				BYTES(agg_estimate),
				.of_row = true,
				.fits = fits_agg_estimate},
	[MXBPF_AGG_EXTENT] = {.name = "extent of a row",
			      BYTES(agg_extent),
			      .times = {AT(agg_extent, first_ns), AT(agg_extent, last_ns)},
			      .of_row = true,
			      .fits = fits_agg_extent},
	[MXBPF_ACTIVITY] = {.name = "activity of a device",
			    .bytes = MXBPF_ACTIVITY_BYTES_MIN,
			    .sent = {MXBPF_ACTIVITY_BYTES_MIN, sizeof(struct mxbpf_activity)},
			    .ids = {NAME(activity, name_id)},
			    .dur = AT(activity, dur_ns),
			    .track = AT(activity, track),
			    .fits = fits_activity},
	[MXBPF_LAUNCH] = {.name = "launch",
			  .bytes = MXBPF_LAUNCH_BYTES_MIN,
			  .sent = {MXBPF_LAUNCH_BYTES_MIN, sizeof(struct mxbpf_launch)},
			  .ids = {NAME(launch, call_id)},
			  .threads = {AT(launch, tid)},
			  .fits = fits_launch},
	[MXBPF_AGG_ACTIVITY] = {.name = "row of activities",
				.bytes = MXBPF_AGG_ACTIVITY_BYTES_MIN,
				.ids = {NAME(agg_activity, name_id)},
				.times = {AT(agg_activity, shape_ns)},
				.fits = fits_agg_activity},
	[MXBPF_GPU_DEVICE] = {.name = "device",
			      .bytes = MXBPF_GPU_DEVICE_BYTES_MIN,
			      .ids = {NAME(gpu_device, name_id)},
			      .of_process = true},
	[MXBPF_GPU_ACCOUNT] = {.name = "account of CUPTI's records",
			       .bytes = MXBPF_GPU_ACCOUNT_BYTES_MIN,
			       .of_process = true,
			       .counts = true},
	[MXBPF_AGG_GPU_WORK] = {.name = "row of work for devices",
				BYTES(agg_gpu_work),
				.ids = {NAME(agg_gpu_work, name_id),
					{AT(agg_gpu_work, layer_id), MXBPF_NAME_LAYER, 0},
					{AT(agg_gpu_work, stack_id), MXBPF_NAME_STACK, 0}},
				.fits = fits_agg_gpu_work},
	[MXBPF_AGG_GPU_STREAM] = {.name = "row of a stream",
				  BYTES(agg_gpu_stream),
				  .times = {AT(agg_gpu_stream, first_ns), AT(agg_gpu_stream, last_ns)},
				  .of_process = true},
	[MXBPF_AGG_GPU_IDLE] = {.name = "row of idle time of a device",
				BYTES(agg_gpu_idle),
				.ids = {NAME(agg_gpu_idle, name_id), {AT(agg_gpu_idle, stack_id), MXBPF_NAME_STACK, 0}},
				.times = {AT(agg_gpu_idle, first_ns), AT(agg_gpu_idle, last_ns)},
				.of_process = true,
				.fits = fits_agg_gpu_idle},
	[MXBPF_AGG_GPU_LAUNCH] = {.name = "row of launches into a stream",
				  BYTES(agg_gpu_launch),
				  .ids = {NAME(agg_gpu_launch, call_id)},
				  .of_process = true,
				  .fits = fits_agg_gpu_launch},
	[MXBPF_AGG_GPU_TYPES] = {.name = "time of a device by type of work",
				 BYTES(agg_gpu_types),
				 .times = {AT(agg_gpu_types, first_ns), AT(agg_gpu_types, last_ns)},
				 .of_process = true},
	[MXBPF_GPU_IDLE] = {.name = "piece of idle time of a device",
			    BYTES(gpu_idle),
			    .ids = {NAME(gpu_idle, name_id), {AT(gpu_idle, stack_id), MXBPF_NAME_STACK, 0}},
			    .dur = AT(gpu_idle, dur_ns),
			    .of_process = true,
			    .fits = fits_gpu_idle},
	[MXBPF_GPU_STEP] = {.name = "time of a device in an iteration", BYTES(gpu_step), .of_process = true},
	[MXBPF_GRAPH_NODE] = {.name = "node of a graph",
			      BYTES(graph_node),
			      .sent = {sizeof(struct mxbpf_graph_node)},
			      .threads = {AT(graph_node, tid)},
			      .fits = fits_graph_node},
	[MXBPF_AGG_GPU_GRAPH] = {.name = "row of an operator in a graph",
				 BYTES(agg_gpu_graph),
				 .ids = {NAME(agg_gpu_graph, name_id)},
				 .fits = fits_agg_gpu_graph},
	[MXBPF_GPU_PATH] = {.name = "part of a critical path",
			    BYTES(gpu_path),
			    .ids = {NAME(gpu_path, name_id)},
			    .times = {AT(gpu_path, end_ns)},
			    .of_process = true,
			    .fits = fits_gpu_path},
	[MXBPF_GPU_SEQUENCE] = {.name = "sequence of activities",
				BYTES(gpu_sequence),
				.fixed = sizeof(struct mxbpf_gpu_sequence),
				.ids = {NAME(gpu_sequence, name_id)},
				.tail = {.bytes = sizeof(uint64_t),
					 .count = count_sequence,
					 .ids = true,
					 .id = {0, MXBPF_NAME_SPAN, 0}},
				.of_process = true,
				.fits = fits_gpu_sequence},
	[MXBPF_GPU_LIMITS] = {.name = "rates of a device", BYTES(gpu_limits), .of_process = true},
	[MXBPF_KERNEL_METRIC] = {.name = "counter of a kernel",
				 BYTES(kernel_metric),
				 .ids = {NAME(kernel_metric, name_id)},
				 .threads = {AT(kernel_metric, tid)},
				 .of_process = true,
				 .fits = fits_kernel_metric},
	[MXBPF_COLLECTIVE] = {.name = "part of a collective",
			      .bytes = MXBPF_COLLECTIVE_BYTES_MIN,
			      .threads = {AT(collective, tid)},
			      .dur = AT(collective, dur_ns),
			      .of_process = true,
			      .fits = fits_collective},
	[MXBPF_AGG_COLLECTIVE] = {.name = "row of collectives",
				  .bytes = MXBPF_AGG_COLLECTIVE_BYTES_MIN,
				  .times = {AT(agg_collective, first_ns), AT(agg_collective, last_ns)},
				  .of_process = true,
				  .fits = fits_agg_collective},
	[MXBPF_AGG_OVERLAP] = {.name = "communication of a device", BYTES(agg_overlap), .of_process = true},
	[MXBPF_RANGE] = {.name = "start of a range",
			 SENT(range),
			 .ids = {NAME(range, name_id),
				 {AT(range, name_id), MXBPF_NAME_DOMAIN, 0},
				 NAME(range, domain_id),
				 NAME(range, category_id),
				 NAME(range, schema_id)},
			 .threads = {AT(range, tid)},
			 .fits = fits_range},
	[MXBPF_NEIGHBOUR] = {.name = "process of the machine", .bytes = MXBPF_NEIGHBOUR_BYTES_MIN, .of_process = true},
	[MXBPF_COLLECTOR] = {.name = "looks at the garbage collector",
			     BYTES(collector),
			     .times = {AT(collector, last_ns)},
			     .ids = {{AT(collector, stack_id), MXBPF_NAME_STACK, 0}},
			     .of_process = true,
			     .fits = fits_collector},
	[MXBPF_RESIDENT] = {.name = "memory of a process", .bytes = MXBPF_RESIDENT_BYTES_MIN, .of_process = true},
	[MXBPF_LOOK] = {.name = "sample of a thread's line", .bytes = MXBPF_LOOK_BYTES_MIN, .of_process = true},
	[MXBPF_TOUCHED] = {.name = "pages that were touched",
			   BYTES(touched),
			   .ids = {{AT(touched, stack_id), MXBPF_NAME_STACK, 0}},
			   .of_process = true},
	[MXBPF_NETWORK] = {.name = "connections of a rank", BYTES(network), .of_process = true},
	[MXBPF_TABLE] = {.name = "rows of a table", BYTES(table), .cells = true, .fits = fits_table},
	[MXBPF_AGG_LINE] = {.name = "row of lines",
			    .of_process = true,
			    .bytes = MXBPF_AGG_LINE_BYTES_MIN,
			    .ids = {NAME(agg_line, name_id), {AT(agg_line, stack_id), MXBPF_NAME_STACK, 0}}},
};

const struct kind *kind_numbered(unsigned number)
{
	return number < sizeof(kinds) / sizeof(kinds[0]) && kinds[number].bytes ? &kinds[number] : NULL;
}

const struct kind *kind_of(const struct mxbpf_rec *r)
{
	return kind_numbered(r->kind);
}

/* ---- checks */

/* The size of a sample depends on its numbers of spans and of Python frames. */
bool sent_sample(const struct mxbpf_rec *r, size_t size)
{
	const size_t off = MXBPF_SAMPLE_BYTES(mxbpf_sample_nspans((const struct mxbpf_sample *)r));
	const struct mxbpf_sample_where *where = (const void *)((const char *)r + off);

	return size >= off + MXBPF_SAMPLE_WHERE_BYTES(0) && where->python.n <= MXBPF_STACK_FRAMES_MAX &&
	       size == off + MXBPF_SAMPLE_WHERE_BYTES(where->python.n);
}

static bool is_size_sent(const struct kind *k, size_t size)
{
	unsigned i;

	if (k->tail.max && size > k->fixed)
		return (size - k->fixed) % k->tail.bytes == 0 && (size - k->fixed) / k->tail.bytes <= k->tail.max;
	for (i = 0; i < KIND_SIZES_MAX && k->sent[i]; i++)
		if (size == k->sent[i])
			return true;
	return false;
}

bool kind_sent(const struct mxbpf_rec *r, size_t size)
{
	const struct kind *k = size >= sizeof(*r) ? kind_of(r) : NULL;

	return k && r->size == size && size >= k->bytes &&
	       (k->sent_fits ? k->sent_fits(r, size) : is_size_sent(k, size)) && (!k->fits || k->fits(r));
}

static bool kinds_fits(const struct mxbpf_rec *r, size_t left)
{
	const struct kind *k;

	if (!kind_is_whole(r, left))
		return false;
	k = kind_of(r);
	return !k || (r->size >= k->bytes && (!k->fits || k->fits(r)));
}

const struct mxbpf_rec *kind_check_next(const void *recs, size_t bytes, size_t *pos, bool *bad)
{
	const struct mxbpf_rec *r;

	*bad = false;
	if (*pos >= bytes) /* an empty batch may be NULL */
		return NULL;
	r = (const void *)((const char *)recs + *pos);
	*bad = !kinds_fits(r, bytes - *pos);
	if (*bad)
		return NULL;
	*pos += r->size;
	return r;
}

int kind_check(const void *recs, size_t bytes)
{
	size_t pos = 0;
	bool bad;

	while (kind_check_next(recs, bytes, &pos, &bad))
		;
	return bad ? -EBADMSG : 0;
}

/* ---- fields */

/* Returns the number of bytes that hold fields at their places: the cost of a span stands behind any form of it. */
static size_t form_bytes(const struct mxbpf_rec *r)
{
	const size_t off = r->kind == MXBPF_SPAN ? mxbpf_span_cost_off(r->size) : 0;

	return off ? off : r->size;
}

/* Returns true if the record has the field. Shorter forms lack the last fields. */
static bool has_id(const struct mxbpf_rec *r, const struct kind_id *id, size_t off)
{
	if (off + (id->flags & KIND_ID_SHORT ? sizeof(uint16_t) : sizeof(uint64_t)) > form_bytes(r))
		return false;
	if (id->flags & KIND_ID_OF_MARK)
		return ((const struct mxbpf_span *)r)->flags & MXBPF_SPAN_USER;
	return !(id->flags & KIND_ID_OF_NAMED) || ((const struct mxbpf_kv *)r)->flags & MXBPF_KV_NAMED;
}

/* Points the walk to a field. Returns false if the record lacks it, or if the id is 0. */
static bool at_id(const struct mxbpf_rec *r, const struct kind_id *id, size_t off, struct kind_id_walk *w)
{
	const char *at = (const char *)r + off;

	if (!has_id(r, id, off))
		return false;
	w->id = id->flags & KIND_ID_SHORT ? *(const uint16_t *)at : *(const uint64_t *)at;
	w->off = (uint16_t)off;
	w->of = (enum mxbpf_name_kind)id->of;
	w->flags = id->flags;
	return w->id;
}

/* The first cell of a column in a row, and in *cells the number of cells in a row. */
static unsigned first_cell(const struct mxbpf_table *t, unsigned column, unsigned *cells)
{
	unsigned i, first = 0;

	for (*cells = i = 0; i < t->ncols; i++) {
		if (i == column)
			first = *cells;
		*cells += t->columns[i].nvalues;
	}
	return first;
}

/* Item k of a column is in its row k / nvalues. */
static __u64 *at_cell(const struct mxbpf_table *t, unsigned column, unsigned item)
{
	const unsigned n = t->columns[column].nvalues;
	unsigned cells, first = first_cell(t, column, &cells);

	return (__u64 *)mxbpf_table_cells(t) + (size_t)item / n * cells + first + item % n;
}

/* Walks column by column over the cells that hold ids. */
static bool next_cell(const struct mxbpf_table *t, struct kind_id_walk *w)
{
	const struct mxbpf_table_column *c;
	const __u64 *at;

	for (; w->i < t->ncols; w->i++, w->item = 0) {
		c = &t->columns[w->i];
		while (c->id_of && w->item < (unsigned)t->nrows * c->nvalues) {
			at = at_cell(t, w->i, w->item++);
			w->id = *at;
			w->off = (uint16_t)((const char *)at - (const char *)t);
			w->of = (enum mxbpf_name_kind)(c->id_of - 1);
			w->flags = 0;
			if (w->id)
				return true;
		}
	}
	return false;
}

bool kind_next_id(const struct mxbpf_rec *r, struct kind_id_walk *w)
{
	const struct kind *k = kind_of(r);
	unsigned i;

	if (!k)
		return false;
	if (k->cells)
		return next_cell((const struct mxbpf_table *)r, w);
	while (w->i < KIND_IDS_MAX && k->ids[w->i].off) {
		i = w->i++;
		if (at_id(r, &k->ids[i], k->ids[i].off, w))
			return true;
	}
	if (!k->tail.ids)
		return false;
	while (w->item < k->tail.count(r)) {
		i = w->item++;
		if (at_id(r, &k->tail.id, k->fixed + i * k->tail.bytes + k->tail.id.off, w))
			return true;
	}
	return false;
}

uint32_t kind_thread(const struct mxbpf_rec *r, unsigned i)
{
	const struct kind *k = kind_of(r);
	uint32_t tid, first;

	if (!k || i >= KIND_THREADS_MAX || !k->threads[i])
		return 0;
	tid = *(const uint32_t *)((const char *)r + k->threads[i]);
	first = *(const uint32_t *)((const char *)r + k->threads[0]);
	return i && tid == first ? 0 : tid;
}

bool kind_track(const struct mxbpf_rec *r, struct kind_track *track)
{
	const struct kind *k = kind_of(r);
	const struct mxbpf_track *on;

	*track = (struct kind_track){.tgid = r->tgid, .of = KIND_TRACK_THREAD, .a = kind_thread(r, 0)};
	if (!k || !k->track)
		return track->a;
	on = (const void *)((const char *)r + k->track);
	*track = (struct kind_track){r->tgid, KIND_TRACK_STREAM, on->device, on->context, on->stream};
	return true;
}

/* Times keep their order: those that are too large become the largest one. */
static void shift(void *at, uint64_t by_ns)
{
	uint64_t *ns = at;

	if (*ns)
		*ns = *ns > UINT64_MAX - by_ns ? UINT64_MAX : *ns + by_ns;
}

static void shift_cells(struct mxbpf_table *t, uint64_t by_ns)
{
	unsigned i, item, nitems;

	for (i = 0; i < t->ncols; i++) {
		nitems = t->columns[i].flags & MXBPF_TABLE_TIME ? (unsigned)t->nrows * t->columns[i].nvalues : 0;
		for (item = 0; item < nitems; item++)
			shift(at_cell(t, i, item), by_ns);
	}
}

void kind_shift_times(struct mxbpf_rec *r, uint64_t by_ns)
{
	const struct kind *k = kind_of(r);
	unsigned i, item;

	shift(&r->ts_ns, by_ns);
	if (!k)
		return;
	if (k->cells)
		shift_cells((struct mxbpf_table *)r, by_ns);
	for (i = 0; i < KIND_TIMES_MAX && k->times[i] && k->times[i] < r->size; i++)
		shift((char *)r + k->times[i], by_ns);
	for (item = 0; k->tail.ntimes && item < k->tail.count(r); item++)
		for (i = 0; i < k->tail.ntimes; i++)
			shift((char *)r + k->fixed + item * k->tail.bytes + i * sizeof(uint64_t), by_ns);
}

uint64_t kind_end_ns(const struct mxbpf_rec *r)
{
	const struct kind *k = kind_of(r);

	if (k && k->end)
		return *(const uint64_t *)((const char *)r + k->end);
	return r->ts_ns + (k && k->dur ? *(const uint64_t *)((const char *)r + k->dur) : 0);
}

/* It runs for every span, so it writes only what the record lacks. */
void kind_span(const struct mxbpf_rec *r, struct mxbpf_span *s)
{
	const size_t form = form_bytes(r), bytes = form < sizeof(*s) ? form : sizeof(*s);

	if (form == MXBPF_SPAN_BYTES_PLAIN) { /* the same with sizes that the compiler knows */
		memcpy(s, r, MXBPF_SPAN_BYTES_PLAIN);
		memset((char *)s + MXBPF_SPAN_BYTES_PLAIN, 0, sizeof(*s) - MXBPF_SPAN_BYTES_PLAIN);
	} else {
		memcpy(s, r, bytes);
		memset((char *)s + bytes, 0, sizeof(*s) - bytes);
	}
	if (bytes < offsetof(struct mxbpf_span, counters) + sizeof(s->counters[0]))
		s->counters[0] = MXBPF_COUNTER_NONE;
	if (form < r->size)
		memcpy(&s->cost, (const char *)r + form, sizeof(s->cost));
	if (s->flags & MXBPF_SPAN_ASYNC)
		s->self_ns = 0; /* the first recordings stored dur_ns here */
	if (bytes < MXBPF_SPAN_BYTES_ACCOUNT && s->flags & MXBPF_SPAN_ACCOUNT)
		s->account = (struct mxbpf_account){.on_cpu_ns = s->dur_ns, .end_cpu = s->cpu};
}

struct mxbpf_activity kind_activity(const struct mxbpf_rec *r)
{
	struct mxbpf_activity a = {.cls = MXBPF_ACTIVITY_NONE};

	memcpy(&a, r, r->size < sizeof(a) ? r->size : sizeof(a));
	return a;
}

struct mxbpf_launch kind_launch(const struct mxbpf_rec *r)
{
	struct mxbpf_launch l = {.edge_id = 0};

	memcpy(&l, r, r->size < sizeof(l) ? r->size : sizeof(l));
	return l;
}
