// SPDX-License-Identifier: Apache-2.0
/* --memory: memory attribution of each device, at the end and at the peak. */
#include "feature/memory/memory.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/gpumem/gpumem.h"
#include "feature/lines/lines.h"
#include "feature/memory/growth.h"
#include "feature/memory/sheet.h"
#include "feature/steps/steps.h"
#include "mxbpf_config.h"
#include "view/priv.h"
#include "view/sheet.h"

static int memory_by_name(const struct memory_owners_row *a, const struct memory_owners_row *b)
{
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	order = order ? order : view_name_cmp(a->layer.data, a->layer.len, b->layer.data, b->layer.len);
	order = order ? order : view_name_cmp(a->scope.data, a->scope.len, b->scope.data, b->scope.len);
	order = order ? order : view_name_cmp(a->label.data, a->label.len, b->label.data, b->label.len);
	order = order ? order : view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
	order = order ? order : view_name_cmp(a->stack.data, a->stack.len, b->stack.data, b->stack.len);
	if (order)
		return order;
	return a->h.h.tgid < b->h.h.tgid ? -1 : a->h.h.tgid > b->h.h.tgid;
}

/* Memory from before the window has no owner and comes last. */
static int by_size(const void *va, const void *vb)
{
	const struct memory_owners_row *a = va, *b = vb;

	if (a->h.device != b->h.device)
		return a->h.device < b->h.device ? -1 : 1;
	if (a->h.flags != b->h.flags)
		return a->h.flags < b->h.flags ? -1 : 1;
	if (a->h.peak_bytes != b->h.peak_bytes)
		return a->h.peak_bytes > b->h.peak_bytes ? -1 : 1;
	if (a->h.alloc_bytes != b->h.alloc_bytes)
		return a->h.alloc_bytes > b->h.alloc_bytes ? -1 : 1;
	return memory_by_name(a, b);
}

/* Rows that are equal in this order look the same. */
static int by_looks(const void *va, const void *vb)
{
	const struct memory_owners_row *a = va, *b = vb;

	if (a->h.device != b->h.device)
		return a->h.device < b->h.device ? -1 : 1;
	if (a->h.flags != b->h.flags || a->h.cls != b->h.cls)
		return a->h.flags != b->h.flags ? a->h.flags - b->h.flags : a->h.cls - b->h.cls;
	return memory_by_name(a, b);
}

/* Merges rows that look the same. Returns the number of rows. */
static size_t memory_merge(struct memory_owners_row *r, size_t n)
{
	size_t i, last = 0;

	qsort(r, n, sizeof(*r), by_looks);
	for (i = 1; i < n; i++) {
		if (by_looks(&r[last], &r[i]))
			r[++last] = r[i];
		else
			memory_owner_add(&r[last].h, &r[i].h);
	}
	return n ? last + 1 : 0;
}

static int memory_sheet_by_device(const void *va, const void *vb)
{
	const struct mxbpf_mem_time *a = va, *b = vb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->h.tgid < b->h.tgid ? -1 : a->h.tgid > b->h.tgid;
}

/* Returns a text without data for an id without a name. */
static struct view_text memory_text_of(const struct mdl *m, enum mxbpf_name_kind kind, uint64_t id)
{
	struct view_text text = {0};

	if (id && kind == MXBPF_NAME_SPAN && id != MXBPF_NAME_UNNAMED)
		text.data = mdl_name(m, id, &text.len);
	else if (id && kind != MXBPF_NAME_SPAN)
		text.data = mdl_text(m, kind, id, &text.len);
	return text.len ? text : (struct view_text){0};
}

/* Returns the bytes at the end, without those that the window allocated and with those that it freed. */
static int64_t bytes_at_start(const struct mxbpf_mem_owner *h)
{
	return (int64_t)((uint64_t)h->live_bytes - h->alloc_bytes + h->free_bytes);
}

static bool has_stacks(const struct view *s)
{
	return s->in->session->details & MXBPF_DETAIL_STACK;
}

static struct memory_owners_row owner_of(const struct view *s, const struct mxbpf_mem_owner *h)
{
	const struct mdl *m = s->in->model;
	struct memory_owners_row r = {
		.h = *h,
		.layer = memory_text_of(m, MXBPF_NAME_LAYER, h->layer_id),
		.scope = memory_text_of(m, MXBPF_NAME_SPAN, h->scope_id),
		.label = memory_text_of(m, MXBPF_NAME_SPAN, h->label_id),
	};

	if (s->opts->by != VIEW_BY_MODULE) /* whose rows are those of modules, whatever the line in them */
		r.line.data = lines_of_program(m, h->stack_id, &r.line.len);
	if (h->stack_id && view_shows_stack(s))
		r.stack.data = view_stack(m, s->opts, h->stack_id, &r.stack.len);

	if (h->cls) {
		r.name.data = mdl_name(m, h->name_id, &r.name.len);
		r.category = view_word(mdl_category(h->cls));
	} else {
		r.name = view_word(h->flags & MXBPF_MEM_OWNER_BEFORE ? "[before]"
				   : h->flags & MXBPF_MEM_OWNER_MORE ? "[more]"
								     : "[no operator]");
	}
	return r;
}

/*
 * Mean time of an iteration of the loop with the most time, with the cost of watching, because memory grew in that
 * time; 0: there are none. The sum over processes is one loop.
 */
static uint64_t mean_iteration(struct mdl *m)
{
	const struct mxbpf_iteration *it;
	uint64_t ns, most = 0, mean = 0;
	size_t n, i, k;

	it = steps_iterations(m, &n);
	for (i = 0; i < n; i = k) {
		ns = 0;
		for (k = i; k < n && it[k].h.tgid == it[i].h.tgid && (!it[i].h.tgid || it[k].tid == it[i].tid); k++)
			add_sat(&ns, steps_end_ns(&it[k]) - it[k].h.ts_ns);
		if (ns > most) {
			most = ns;
			mean = ns / (k - i);
		}
	}
	return mean;
}

/*
 * Growth is told by the least memory of each part of the window. If a part is shorter than an iteration, the least of
 * it depends on which parts of iterations lie in it.
 */
static bool has_whole_iterations(const struct memory_owners_row *r, uint64_t iteration_ns)
{
	return iteration_ns <= r->h.grown_ns / (GROWTH_PARTS - 2);
}

static void set_growth(struct memory_owners *t, struct memory_owners_row *r, uint64_t iteration_ns)
{
	const double each = iteration_ns ? (double)iteration_ns : 1e9;
	uint64_t bytes;

	if (r->h.grown_bytes <= 0 || !r->h.grown_ns || !has_whole_iterations(r, iteration_ns))
		return;
	bytes = whole((double)r->h.grown_bytes * each / (double)r->h.grown_ns);
	r->grown_each = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
	t->per_iteration |= iteration_ns != 0;
	t->per_second |= !iteration_ns;
}

int memory_owners_make(const struct view *s, void *table)
{
	const struct mdl *m = s->in->model;
	const uint64_t iteration_ns = mean_iteration(s->in->model);
	const struct mxbpf_mem_time *d;
	const struct mxbpf_mem_owner *h;
	struct memory_owners *t = table;
	struct memory_owners_row *r;
	size_t i;

	while (memory_device(m, t->ndevices))
		t->ndevices++;
	while (memory_owner(m, t->list.all))
		t->list.all++;
	t->devices = calloc(t->ndevices + 1, sizeof(*t->devices));
	t->list.rows = r = calloc(t->list.all + 1, sizeof(*r));
	if (!t->devices || !r)
		return -ENOMEM;
	for (i = 0; (d = memory_device(m, i)); i++)
		t->devices[i] = *d;
	for (i = 0; (h = memory_owner(m, i)); i++) {
		r[i] = owner_of(s, h);
		if (has_stacks(s) && !h->stack_id)
			add_sat(&t->lineless, h->allocs);
	}
	if (has_stacks(s))
		t->list.all = memory_merge(r, t->list.all);
	t->lines = has_stacks(s) && !view_shows_stack(s);
	for (i = 0; i < t->list.all; i++) {
		r[i].start_bytes = bytes_at_start(&r[i].h);
		t->layers |= !!r[i].layer.len;
		t->scopes |= r[i].scope.len || r[i].label.len;
		t->carried |= r[i].start_bytes != 0;
		set_growth(t, &r[i], iteration_ns);
	}
	t->fresh = !t->carried;
	t->several = t->ndevices > 1;
	qsort(t->devices, t->ndevices, sizeof(*t->devices), memory_sheet_by_device);
	qsort(r, t->list.all, sizeof(*r), by_size);
	return 0;
}

void memory_owners_fini(void *table)
{
	free(((struct memory_owners *)table)->devices);
}

static int64_t mean_bytes(const struct view *s, const struct mxbpf_mem_time *t)
{
	const struct mdl_session *ss = s->in->session;

	return memory_mean(t, ss->start_mono_ns, ss->start_mono_ns + ss->duration_ns + ss->paused_ns);
}

/* Freed memory from before the window counts as negative. */
static const char *signed_bytes(int64_t bytes, char buf[32])
{
	char text[24];

	fmt_bytes(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, text);
	snprintf(buf, 32, "%s%s", bytes < 0 ? "-" : "", text);
	return buf;
}

static void put_count(struct view *s, uint64_t n, const char *prefix, const char *what)
{
	char text[32];

	if (n)
		out_printf(s->out, "%s         %s %s\n", prefix, fmt_count(n, text), what);
}

/* Returns the bytes of a device at the start, summed over all rows. */
static int64_t start_bytes(const struct memory_owners *held, const struct mxbpf_mem_time *t)
{
	const struct memory_owners_row *r = held->list.rows;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < held->list.all; i++)
		if (t->device == r[i].h.device && t->h.tgid == r[i].h.h.tgid)
			sum += (uint64_t)r[i].start_bytes;
	return (int64_t)sum;
}

/* Returns the bytes that are still allocated since before the window, so that their owners are not known. */
static uint64_t before_bytes(const struct memory_owners *held, const struct mxbpf_mem_time *t)
{
	const struct memory_owners_row *r = held->list.rows;
	int64_t bytes = t->before_bytes;
	size_t i;

	for (i = 0; i < held->list.all; i++)
		if (t->device == r[i].h.device && t->h.tgid == r[i].h.h.tgid && r[i].h.flags & MXBPF_MEM_OWNER_BEFORE)
			add_sat_any(&bytes, r[i].h.live_bytes);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* What the allocator says of itself. Of it, owners are known for what the window allocated. */
static void put_totals(struct view *s, const struct memory_owners *held, const struct mxbpf_mem_time *t,
		       const char *prefix)
{
	const uint64_t unused = memory_unused(t);
	const struct mxbpf_gpu_inside inside = gpumem_inside(s->in->model, t);
	char bytes[4][24];

	out_printf(s->out, "%s         its allocator has %s reserved (%s at most) and %s allocated (%s at most)\n",
		   prefix, fmt_bytes(t->pool_bytes, bytes[0]), fmt_bytes(t->pool_peak_bytes, bytes[1]),
		   fmt_bytes(t->total_bytes, bytes[2]), fmt_bytes(t->total_peak_bytes, bytes[3]));
	if (before_bytes(held, t))
		out_printf(s->out, "%s         allocated before the window, so by an unknown owner: %s\n", prefix,
			   fmt_bytes(before_bytes(held, t), bytes[0]));
	out_printf(s->out, "%s         reserved and not allocated: %s (%.0f%%) at the end, %s at most", prefix,
		   fmt_bytes(unused, bytes[0]), t->pool_bytes ? 100.0 * (double)unused / (double)t->pool_bytes : 0.0,
		   fmt_bytes(t->unused_peak_bytes, bytes[1]));
	if (t->unused_peak_ns)
		out_printf(s->out, " (at %.6f s)",
			   (double)(int64_t)(t->unused_peak_ns - s->in->session->start_mono_ns) / 1e9);
	if (inside.largest_free_bytes != MXBPF_GPU_INSIDE_UNKNOWN)
		out_printf(s->out, "; largest piece %s at the end", fmt_bytes(inside.largest_free_bytes, bytes[2]));
	out_puts(s->out, "\n");
}

static void memory_put_device(struct view *s, const struct memory_owners *held, const struct mxbpf_mem_time *t,
			      const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	const int64_t start = start_bytes(held, t);
	char dev[48], bytes[3][32];

	out_printf(s->out, "%s", prefix);
	mdl_device_name(ss, t->device, dev);
	view_put_safe(s->out, dev, strlen(dev));
	out_printf(s->out, ": peak %s", signed_bytes(t->peak_bytes, bytes[0]));
	if (t->peak_ns)
		out_printf(s->out, " at %.6f s", (double)(int64_t)(t->peak_ns - ss->start_mono_ns) / 1e9);
	if (start)
		out_printf(s->out, ", %s at the start", signed_bytes(start, bytes[1]));
	out_printf(s->out, ", mean %s, %s at the end\n", signed_bytes(mean_bytes(s, t), bytes[1]),
		   signed_bytes(t->live_bytes, bytes[2]));
	if (t->pool_peak_bytes && !t->counted)
		out_printf(s->out, "%s         its pool took %s at most; the program used %s of it then\n", prefix,
			   signed_bytes((int64_t)t->pool_peak_bytes, bytes[0]),
			   signed_bytes((int64_t)t->pool_used_bytes, bytes[1]));
	if (memory_unexplained(t))
		out_printf(s->out, "%s         %s of what it has allocated are not explained: events were lost\n",
			   prefix, signed_bytes(memory_unexplained(t), bytes[0]));
	if (t->counted)
		put_totals(s, held, t, prefix);
	put_count(s, t->unsized, prefix, "frees of earlier memory have an unknown size");
	put_count(s, t->missed, prefix, "frees were not seen: their addresses were given out again");
	put_count(s, t->untracked, prefix, "allocations were not tracked, so their frees are not known");
}

/* Shows all four if memory existed at the start (--reset): at start + allocated - freed = not freed. */
static void memory_sheet_above(struct view *s, const void *table, const char *prefix)
{
	const struct memory_owners *t = table;
	size_t i;

	out_printf(s->out, "%sMemory held", prefix);
	out_puts(s->out, !t->ndevices ? ": nothing seen\n"
			 : t->carried ? ", beyond what was there when the session began\n"
				      : ", beyond what was there when the window began\n");
	if (t->carried)
		out_printf(s->out, "%sat the start of this window + allocated - freed in it = not freed\n", prefix);
	for (i = 0; i < t->ndevices; i++)
		memory_put_device(s, t, &t->devices[i], prefix);
}

static void memory_sheet_below(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	char n[32];

	if (t->n < t->all)
		out_printf(s->out, "%s%zu more rows are not shown%s\n", prefix, t->all - t->n, view_hint(s));
	if (((const struct memory_owners *)table)->lineless)
		out_printf(s->out, "%s%s allocations have no line: their Python stacks are not known\n", prefix,
			   fmt_count(((const struct memory_owners *)table)->lineless, n));
}

static bool memory_sheet_when(const struct view *s)
{
	return s->in->session->held;
}

#define ROW	     struct memory_owners_row
#define WHEN(member) .when = offsetof(struct memory_owners, member)
#define SEEN(member) .shown = offsetof(struct memory_owners, member)
static const struct tbl_column columns[] = {
	{"name", NULL, "made by", TBL_TEXT, AT(name),
	 .help = "innermost operator or call of the C API that allocated; [no operator]: none was open; [before]: "
		 "frees of memory from before the window; [more]: rows beyond the limit"},
	{"category", "", NULL, TBL_TEXT, AT(category), TBL_NULL},
	{"device", NULL, "device", TBL_DEVICE, AT(h.device), SEEN(several)},
	PID_COLUMN(h.h.tgid),
	{"layer", NULL, "layer", TBL_TEXT, AT(layer), TBL_NULL, WHEN(layers),
	 .help = "layer of the operator; requires --layers"},
	{"scope", NULL, "scope", TBL_TEXT, AT(scope), TBL_NULL, WHEN(scopes),
	 .help = "profiler scope of the allocating call, if the runtime has scopes"},
	{"array", NULL, "array", TBL_TEXT, AT(label), TBL_NULL, WHEN(scopes), .name_min = 20,
	 .help = "what the runtime calls it"},
	{"allocs", NULL, "allocs", TBL_COUNT, SUM_AT(h.allocs)},
	{"frees", NULL, NULL, TBL_COUNT, SUM_AT(h.frees),
	 .help = "number of these allocations that were freed, by any thread"},
	{"start_bytes", NULL, "at start", TBL_BYTES, AT(start_bytes), TBL_SIGNED, SEEN(carried),
	 .help = "bytes that were alive at the start of the window; 0 without --reset. start_bytes + alloc_bytes - "
		 "free_bytes = live_bytes"},
	{"alloc_bytes", NULL, "allocated", TBL_BYTES, SUM_AT(h.alloc_bytes), .help = "bytes allocated in the window"},
	{"free_bytes", NULL, "freed", TBL_BYTES, SUM_AT(h.free_bytes), SEEN(fresh), .name_min = 16,
	 .help = "bytes freed in the window"},
	{NULL, NULL, "freed", TBL_BYTES, SUM_AT(h.free_bytes), SEEN(carried)},
	{"peak_bytes", NULL, "at peak", TBL_BYTES, MAX_AT(h.peak_bytes), TBL_SIGNED, SEEN(fresh),
	 .help = "bytes that were alive at the peak of the device"},
	{NULL, NULL, "at peak", TBL_BYTES, AT(h.peak_bytes), TBL_SIGNED, SEEN(carried), .name_min = 16},
	{"live_bytes", NULL, "not freed", TBL_BYTES, MAX_AT(h.live_bytes), TBL_SIGNED,
	 .help = "bytes that were alive at the end of the window"},
	{"live_blocks", NULL, "blocks", TBL_COUNT, AT(h.live_blocks), .name_min = 12},
	{"grown_bytes", "", NULL, TBL_BYTES, AT(h.grown_bytes), TBL_SIGNED,
	 .help = "by how much live_bytes grew in grown_ns, if they did all the way: the least of each part of the "
		 "window counts; 0: they did not, or the window is too short"},
	{"grown_ns", "", NULL, TBL_NS, AT(h.grown_ns)},
	{NULL, NULL, "grows/iter", TBL_BYTES, AT(grown_each), TBL_SIGNED | TBL_DASH, SEEN(per_iteration)},
	{NULL, NULL, "grows/s", TBL_BYTES, AT(grown_each), TBL_SIGNED | TBL_DASH, SEEN(per_second)},
	{"line", NULL, "line", TBL_TEXT, AT(line), TBL_NULL | TBL_BELOW, SEEN(lines), .asked = has_stacks,
	 .help = "with --py-stacks: the line of the program that allocated, that is the innermost one that is neither "
		 "of Python's library nor of an installed package; null: unknown"},
	{"stack", NULL, "stack", TBL_LINES, AT(stack), .asked = view_shows_stack,
	 .help = "of the allocation, innermost first; with --by stack"},
	{0},
};
#undef ROW

const struct view_sheet sheet_memory = {
	.title = "Memory held",
	.help = "Requires --memory: operators that hold the memory of each device.",
	.list_help = "the sum of their peak_bytes is the device's peak_bytes, that of their live_bytes its live_bytes",
	.member = "memory",
	.list = "holders",
	.csv = "held",
	.columns = columns,
	.row_bytes = sizeof(struct memory_owners_row),
	.table_bytes = sizeof(struct memory_owners),
	.when = memory_sheet_when,
	.make = memory_owners_make,
	.fini = memory_owners_fini,
	.above = memory_sheet_above,
	.below = memory_sheet_below,
};

/* ---- devices */

struct device {
	struct mxbpf_mem_time t;
	int64_t mean_bytes;
	uint64_t lineless;
	uint64_t peak_ns; /* TBL_UNKNOWN */
	struct {
		uint64_t last_bytes, peak_bytes, used_bytes;
	} pool;
	struct {
		uint64_t total_bytes, total_peak_bytes, pool_bytes, pool_peak_bytes, pool_total_bytes;
		uint64_t before_bytes, unused_bytes, unused_peak_bytes, largest_free_bytes;
		uint64_t unused_peak_ns; /* TBL_UNKNOWN */
		int64_t unexplained_bytes;
	} allocator;
};

/* Returns the number of allocations whose stack is unknown. */
static uint64_t lineless_of(const struct view *s, const struct mxbpf_mem_time *t)
{
	const struct mxbpf_mem_owner *h;
	uint64_t n = 0;
	size_t i;

	for (i = 0; (h = memory_owner(s->in->model, i)); i++)
		if (h->device == t->device && h->h.tgid == t->h.tgid && !h->stack_id)
			add_sat(&n, h->allocs);
	return n;
}

static void set_allocator(const struct view *s, struct device *to, const struct memory_owners *held,
			  const struct mxbpf_mem_time *t)
{
	to->allocator.largest_free_bytes = gpumem_inside(s->in->model, t).largest_free_bytes;
	to->allocator.total_bytes = t->total_bytes;
	to->allocator.total_peak_bytes = t->total_peak_bytes;
	to->allocator.pool_bytes = t->pool_bytes;
	to->allocator.pool_peak_bytes = t->pool_peak_bytes;
	to->allocator.pool_total_bytes = t->pool_total_bytes;
	to->allocator.before_bytes = before_bytes(held, t);
	to->allocator.unused_bytes = memory_unused(t);
	to->allocator.unused_peak_bytes = t->unused_peak_bytes;
	to->allocator.unused_peak_ns = t->unused_peak_ns ? t->unused_peak_ns : TBL_UNKNOWN;
	to->allocator.unexplained_bytes = memory_unexplained(t);
}

static int make_devices(const struct view *s, void *table)
{
	struct view_list *t = table;
	struct memory_owners held = {0};
	struct device *r = NULL;
	size_t i;
	int err = memory_owners_make(s, &held);

	if (!err)
		t->rows = r = calloc(held.ndevices + 1, sizeof(*r));
	for (i = 0; r && i < held.ndevices; i++) {
		const struct mxbpf_mem_time *d = &held.devices[i];

		r[i] = (struct device){.t = *d,
				       .mean_bytes = mean_bytes(s, d),
				       .lineless = lineless_of(s, d),
				       .peak_ns = d->peak_ns ? d->peak_ns : TBL_UNKNOWN};
		if (d->pool_peak_bytes) {
			r[i].pool.last_bytes = d->pool_bytes;
			r[i].pool.peak_bytes = d->pool_peak_bytes;
			r[i].pool.used_bytes = d->pool_used_bytes;
		}
		if (d->counted)
			set_allocator(s, &r[i], &held, d);
	}
	t->all = held.ndevices;
	free(held.list.rows);
	memory_owners_fini(&held);
	return r ? 0 : -ENOMEM;
}

#define ROW struct device
static const struct tbl_column pool_columns[] = {
	{"last_bytes", "", NULL, TBL_BYTES, AT(pool.last_bytes), .help = "size of the pool at its last allocation"},
	{"peak_bytes", "", NULL, TBL_BYTES, AT(pool.peak_bytes)},
	{"used_bytes", "", NULL, TBL_BYTES, AT(pool.used_bytes),
	 .help = "bytes of the window's allocations that were alive at that moment"},
	{0},
};

static const struct tbl_column allocator_columns[] = {
	{"allocated_bytes", "", NULL, TBL_BYTES, AT(allocator.total_bytes), .help = "allocated at its last report"},
	{"allocated_peak_bytes", "", NULL, TBL_BYTES, AT(allocator.total_peak_bytes)},
	{"before_bytes", "", NULL, TBL_BYTES, AT(allocator.before_bytes),
	 .help = "of allocated_bytes, allocated before the window: their owners are not known"},
	{"reserved_bytes", "", NULL, TBL_BYTES, AT(allocator.pool_bytes),
	 .help = "taken from the device at its last report"},
	{"reserved_peak_bytes", "", NULL, TBL_BYTES, AT(allocator.pool_peak_bytes)},
	{"reserved_peak_allocated_bytes", "", NULL, TBL_BYTES, AT(allocator.pool_total_bytes),
	 .help = "most that were allocated while reserved_peak_bytes were reserved"},
	{"unused_bytes", "", NULL, TBL_BYTES, AT(allocator.unused_bytes),
	 .help = "reserved and not allocated at its last report"},
	{"unused_peak_bytes", "", NULL, TBL_BYTES, AT(allocator.unused_peak_bytes)},
	{"unused_peak_unix_ns", "", NULL, TBL_MOMENT, AT(allocator.unused_peak_ns), TBL_NULL,
	 .help = "when this was; null: all that is reserved was always allocated"},
	{"largest_free_bytes", "", NULL, TBL_BYTES, AT(allocator.largest_free_bytes), TBL_NULL,
	 .help = "of unused_bytes, the largest piece; null: not known, see docs/memory.md"},
	{"unexplained_bytes", "", NULL, TBL_BYTES, AT(allocator.unexplained_bytes), TBL_SIGNED,
	 .help = "allocated_bytes less what its events add up to: 0, if none was lost"},
	{0},
};

static const struct tbl_column device_columns[] = {
	{"device", NULL, NULL, TBL_DEVICE, AT(t.device)},
	PID_COLUMN(t.h.tgid),
	{"peak_bytes", NULL, NULL, TBL_BYTES, MAX_AT(t.peak_bytes), TBL_SIGNED,
	 .help = "largest number of bytes alive; for several processes the sum of their peaks, an upper bound"},
	{"peak_unix_ns", NULL, NULL, TBL_MOMENT, AT(peak_ns), TBL_NULL,
	 .help = "when the device first held as much; null: it never held more than at the start"},
	{"mean_bytes", NULL, NULL, TBL_BYTES, MAX_AT(mean_bytes), TBL_SIGNED,
	 .help = "mean over the time of the window"},
	{"live_bytes", NULL, NULL, TBL_BYTES, MAX_AT(t.live_bytes), TBL_SIGNED,
	 .help = "bytes alive at the end; below 0 if more earlier memory was freed"},
	{"unsized_frees", "held.lost", NULL, TBL_COUNT, AT(t.unsized), TBL_OWN_ROW,
	 .help = "number of frees of earlier memory whose size is not known"},
	{"missed_frees", "held.lost", NULL, TBL_COUNT, AT(t.missed), TBL_OWN_ROW,
	 .help = "number of frees that were not seen; their addresses were allocated again"},
	{"untracked_allocs", "held.lost", NULL, TBL_COUNT, AT(t.untracked), TBL_OWN_ROW,
	 .help = "that there was no room to remember: they count as alive for ever"},
	{"lineless_allocs", "held.lost", NULL, TBL_COUNT, AT(lineless), TBL_OWN_ROW, .asked = has_stacks,
	 .help = "with --py-stacks: those whose Python stack is not known"},
	{"pool", NULL, NULL, TBL_OBJECT, .at = 0, .bytes = sizeof(struct device), TBL_OMIT, .columns = pool_columns,
	 .help = "pool of the runtime, if it keeps one: all bytes that the pool has taken from the device, also before "
		 "the window"},
	{"allocator", "", NULL, TBL_OBJECT, .at = 0, .bytes = sizeof(struct device), TBL_OMIT,
	 .columns = allocator_columns,
	 .help = "what the allocator of the device says of itself, if it counts, as PyTorch's do: all bytes, also "
		 "those "
		 "from before the window"},
	{0},
};
#undef ROW

const struct view_sheet sheet_memory_devices = {
	.title = "Memory held: devices, in JSON and CSV",
	.help = "Requires --memory: memory of each device, beyond what was there when the window began. Bytes are "
		"those that the runtime requested.",
	.member = "memory",
	.list = "devices",
	.csv = "held.device",
	.columns = device_columns,
	.row_bytes = sizeof(struct device),
	.table_bytes = sizeof(struct view_list),
	.whole = true,
	.when = memory_sheet_when,
	.make = make_devices,
};
