// SPDX-License-Identifier: Apache-2.0
#include "compare/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/stats.h"
#include "feature/cost/cost.h"
#include "feature/steps/steps.h"
#include "mxbpf_track.h"
#include "records/kinds.h"

#define ALLOCS_MAX (8u << 20) /* limit of allocations; they take 128 MiB */

const char *const cmp_kind_words[CMP_KINDS] = {
	[CMP_ITERATION] = "iteration", [CMP_RUNQ] = "waiting for a CPU",
	[CMP_PART] = "part",	       [CMP_OPERATOR] = "operator",
	[CMP_LAYER] = "layer",	       [CMP_KERNEL] = "kernel",
	[CMP_MEMORY] = "memory",
};

/* Time in operators is in their rows. */
const char *const cmp_part_words[MXBPF_STEP_PARTS] = {
	[MXBPF_PART_DATA] = "waiting for data", [MXBPF_PART_WAIT] = "waiting for results",
	[MXBPF_PART_KVSTORE] = "exchange",	[MXBPF_PART_API] = "C API",
	[MXBPF_PART_OUTSIDE] = CMP_OUTSIDE,
};

/* While the events of a recording are read. */
struct reading {
	struct cmp_samples *x;
	const struct mdl *m;
	const struct mdl_session *s;
	size_t last; /* bin of the record before, because records are nearly in order */
	uint64_t first_ns;
};

static uint64_t samples_key_of(enum cmp_kind kind, const char *name, size_t len, const char *detail, size_t detail_len)
{
	const char tag[2] = {(char)('a' + kind), detail ? 'd' : '-'};

	return hash_text(hash_text(hash_text(HASH_SEED, tag, sizeof(tag)), name, len), detail, detail_len);
}

static char *dup_text(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

const struct cmp_series *cmp_series_find(const struct cmp_samples *x, uint64_t key)
{
	size_t i;

	for (i = 0; i < buf_count(&x->series, struct cmp_series); i++)
		if (buf_at(&x->series, struct cmp_series, i)->key == key)
			return buf_at(&x->series, struct cmp_series, i);
	return NULL;
}

static void series_fini(struct cmp_series *s)
{
	free(s->name);
	free(s->detail);
	free(s->value);
}

struct cmp_series *cmp_series_add(struct cmp_samples *x, enum cmp_kind kind, const char *name, size_t len,
				  const char *detail, size_t detail_len)
{
	struct cmp_series s = {.kind = kind, .name_len = len, .detail_len = detail_len};
	struct cmp_series *at;

	s.key = samples_key_of(kind, name, len, detail, detail_len);
	at = (struct cmp_series *)cmp_series_find(x, s.key);
	if (at) /* two ids with the same text */
		return at;
	s.name = dup_text(name, len);
	s.detail = detail ? dup_text(detail, detail_len) : NULL;
	s.value = calloc(x->n ? x->n : 1, sizeof(*s.value));
	if (s.name && s.value && (s.detail || !detail) && !buf_put(&x->series, &s, sizeof(s)))
		return buf_at(&x->series, struct cmp_series, buf_count(&x->series, s) - 1);
	series_fini(&s);
	return NULL;
}

void cmp_samples_fini(struct cmp_samples *x)
{
	struct cmp_shape *shape;
	size_t i;

	for (i = 0; i < buf_count(&x->series, struct cmp_series); i++)
		series_fini(buf_at(&x->series, struct cmp_series, i));
	for (i = 0; i < buf_count(&x->shapes, struct cmp_shape); i++) {
		shape = buf_at(&x->shapes, struct cmp_shape, i);
		free(shape->name);
		free(shape->args);
	}
	buf_fini(&x->series);
	buf_fini(&x->shapes);
	buf_fini(&x->allocs);
	hash_fini(&x->by_id);
	hash_fini(&x->by_shape);
	free(x->bin);
	*x = (struct cmp_samples){0};
}

/* ---- bins */

/*
 * Returns the first iteration of the process that starts at or after from_ns, and their number. They are ordered by
 * process and time.
 */
static const struct mxbpf_iteration *iterations_of(const struct buf *all, uint32_t tgid, uint64_t from_ns, size_t *n)
{
	const struct mxbpf_iteration *it = (const void *)all->data;
	const size_t most = buf_count(all, *it);
	size_t first = 0, end;

	while (first < most && (it[first].h.tgid != tgid || it[first].h.ts_ns < from_ns))
		first++;
	end = first;
	while (end < most && it[end].h.tgid == tgid)
		end++;
	*n = end - first;
	return it + first;
}

/* Adds to a row of the iteration, if it has the name. */
static int add_part(struct cmp_samples *x, enum cmp_kind kind, const char *name, size_t bin, uint64_t ns)
{
	struct cmp_series *s = name ? cmp_series_add(x, kind, name, strlen(name), NULL, 0) : NULL;

	if (!s)
		return name ? -ENOMEM : 0;
	s->value[bin] += (float)ns;
	s->calls++;
	return 0;
}

/* Adds an iteration. Subtracts waiting for a CPU and the cost of watching, which are known for each of its parts. */
static int add_iteration(struct reading *r, const struct mxbpf_iteration *it, size_t bin)
{
	const bool known = it->flags & MXBPF_ITERATION_COST;
	uint64_t waited = 0, cost = 0, part_cost, runq, all;
	int err = 0;
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS && !err; i++) {
		runq = known ? it->runq_ns[i] : 0;
		part_cost = known ? mdl_permille(it->cost_ns[i], r->s->cost.scale) : 0;
		waited += runq;
		cost += part_cost;
		all = runq + part_cost;
		if (it->flags & MXBPF_ITERATION_PARTS)
			err = add_part(r->x, CMP_PART, cmp_part_words[i], bin,
				       it->part_ns[i] > all ? it->part_ns[i] - all : 0);
	}
	all = waited + cost < it->dur_ns ? waited + cost : it->dur_ns;
	if (!err)
		err = add_part(r->x, CMP_ITERATION, cmp_kind_words[CMP_ITERATION], bin, it->dur_ns - all);
	return err ? err : add_part(r->x, CMP_RUNQ, cmp_kind_words[CMP_RUNQ], bin, waited);
}

static int bin_iterations(struct reading *r, const struct mxbpf_iteration *it, size_t n)
{
	struct cmp_samples *x = r->x;
	const size_t each = (n + CMP_BINS_MAX - 1) / CMP_BINS_MAX;
	double *wall = calloc(n, sizeof(*wall));
	struct cmp_bin *b;
	int err = 0;
	size_t i;

	x->n = n / each;
	x->count = x->n * each;
	x->bin = calloc(x->n, sizeof(*x->bin));
	if (!x->bin || !wall)
		err = -ENOMEM;
	for (i = 0; i < x->count && !err; i++) {
		b = &x->bin[i / each];
		b->start_ns = b->iterations++ ? b->start_ns : it[i].h.ts_ns;
		b->end_ns = it[i].h.ts_ns + it[i].dur_ns;
		wall[i] = (double)it[i].dur_ns;
		err = add_iteration(r, &it[i], i / each);
	}
	x->wall_ns = err ? 0 : cmp_median(wall, x->count);
	free(wall);
	return err;
}

static int bin_slices(struct cmp_samples *x, const struct mdl_session *s)
{
	const uint64_t all = s->duration_ns + s->paused_ns;
	size_t i;

	x->n = all ? CMP_SLICES : 0;
	x->count = x->n;
	x->bin = calloc(CMP_SLICES, sizeof(*x->bin));
	if (!x->bin)
		return -ENOMEM;
	for (i = 0; i < x->n; i++)
		x->bin[i] = (struct cmp_bin){s->start_mono_ns + all / CMP_SLICES * i,
					     s->start_mono_ns + all / CMP_SLICES * (i + 1), 1};
	return 0;
}

/* Returns the bin of a time, or x->n. Bins do not overlap, but there can be gaps between them. */
static size_t bin_of(const struct cmp_samples *x, uint64_t ns, size_t near)
{
	size_t low = 0, high = x->n, middle;

	if (near < x->n && x->bin[near].start_ns <= ns && ns < x->bin[near].end_ns)
		return near;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (x->bin[middle].end_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < x->n && x->bin[low].start_ns <= ns ? low : x->n;
}

/* ---- events */

/* Returns the row of two ids; `kind` tells apart ids of details. Returns NULL without memory or beyond the limit. */
static struct cmp_series *samples_row_of(struct reading *r, enum cmp_kind kind, uint64_t name_id, uint64_t detail_id,
					 const char *detail, size_t detail_len, int *err)
{
	struct cmp_samples *x = r->x;
	uint64_t *at = hash_put(&x->by_id, name_id, detail_id ^ (uint64_t)kind << 60);
	struct cmp_series *s;
	const char *name;
	size_t len;

	if (!at) {
		*err = -ENOMEM;
		return NULL;
	}
	if (*at)
		return buf_at(&x->series, struct cmp_series, *at - 1);
	if (buf_count(&x->series, struct cmp_series) >= CMP_SERIES_MAX) {
		x->left_out++;
		return NULL;
	}
	name = mdl_name(r->m, name_id, &len);
	s = cmp_series_add(x, kind, name, len, detail, detail_len);
	if (!s)
		*err = -ENOMEM;
	else
		*at = 1 + (uint64_t)(s - (struct cmp_series *)x->series.data);
	return s;
}

static int add_shape(struct reading *r, const struct mxbpf_span *s)
{
	struct cmp_samples *x = r->x;
	uint64_t *at = hash_put(&x->by_shape, s->name_id, s->args_id);
	struct cmp_shape shape = {.calls = 1};
	const char *name, *args;

	if (!at)
		return -ENOMEM;
	if (*at) {
		buf_at(&x->shapes, struct cmp_shape, *at - 1)->calls++;
		return 0;
	}
	args = mdl_text(r->m, MXBPF_NAME_ARGS, s->args_id, &shape.args_len);
	if (!args || buf_count(&x->shapes, struct cmp_shape) >= CMP_SERIES_MAX)
		return 0;
	name = mdl_name(r->m, s->name_id, &shape.name_len);
	shape.name_key = samples_key_of(CMP_OPERATOR, name, shape.name_len, NULL, 0);
	shape.key = hash_text(shape.name_key, args, shape.args_len);
	shape.name = dup_text(name, shape.name_len);
	shape.args = dup_text(args, shape.args_len);
	if (!shape.name || !shape.args || buf_put(&x->shapes, &shape, sizeof(shape))) {
		free(shape.name);
		free(shape.args);
		return -ENOMEM;
	}
	*at = buf_count(&x->shapes, struct cmp_shape);
	return 0;
}

static int add_span(struct reading *r, const struct mxbpf_rec *rec)
{
	const size_t bin = bin_of(r->x, rec->ts_ns, r->last);
	const char *layer;
	struct cmp_series *row;
	uint64_t runq, blocked, raw;
	struct mxbpf_span s;
	size_t len;
	int err = 0;

	kind_span(rec, &s);
	if (bin == r->x->n || (s.cls != MXBPF_CLASS_OPERATOR && s.cls != MXBPF_CLASS_KERNEL))
		return 0;
	r->last = bin;
	runq = s.flags & MXBPF_SPAN_ACCOUNT && s.account.runq_ns > s.nested.runq_ns
		       ? s.account.runq_ns - s.nested.runq_ns
		       : 0;
	blocked = s.flags & MXBPF_SPAN_ACCOUNT && s.account.blocked_ns > s.nested.blocked_ns
			  ? s.account.blocked_ns - s.nested.blocked_ns
			  : 0;
	raw = s.self_ns;
	cost_take_span(r->m, &s, r->s);
	raw -= s.self_ns;
	s.self_ns = s.self_ns > runq ? s.self_ns - runq : 0;
	row = samples_row_of(r, CMP_OPERATOR, s.name_id, 0, NULL, 0, &err);
	if (!row)
		return err;
	row->calls++;
	row->cost_ns += (double)raw;
	row->blocked_ns += s.flags & MXBPF_SPAN_ASYNC ? 0 : (double)blocked;
	row->value[bin] += (float)s.self_ns;
	if (s.args_id && !err)
		err = add_shape(r, &s);
	layer = s.layer_id ? mdl_text(r->m, MXBPF_NAME_LAYER, s.layer_id, &len) : NULL;
	row = layer && !err ? samples_row_of(r, CMP_LAYER, s.name_id, s.layer_id, layer, len, &err) : NULL;
	if (row) {
		row->calls++;
		row->value[bin] += (float)s.self_ns;
	}
	return err;
}

static int add_kernel(struct reading *r, const struct mxbpf_rec *rec)
{
	const struct mxbpf_activity a = kind_activity(rec);
	const size_t bin = bin_of(r->x, rec->ts_ns, r->last);
	struct cmp_series *row;
	char grid[48];
	int err = 0, len;

	if (bin == r->x->n || a.cls == MXBPF_ACTIVITY_SYNC)
		return 0;
	len = snprintf(grid, sizeof(grid), "%" PRIu32 "x%" PRIu32 "x%" PRIu32, a.grid[0], a.grid[1], a.grid[2]);
	row = samples_row_of(r, CMP_KERNEL, a.name_id, hash_text(HASH_SEED, (const char *)a.grid, sizeof(a.grid)) >> 8,
			     a.cls == MXBPF_ACTIVITY_KERNEL ? grid : NULL,
			     a.cls == MXBPF_ACTIVITY_KERNEL ? (size_t)len : 0, &err);
	if (!row)
		return err;
	row->calls++;
	row->value[bin] += (float)a.dur_ns;
	return 0;
}

static int add_alloc(struct reading *r, const struct mxbpf_rec *rec)
{
	const struct mxbpf_alloc *a = (const void *)rec;
	const struct cmp_alloc moment = {rec->ts_ns, a->bytes};

	if (buf_count(&r->x->allocs, moment) >= ALLOCS_MAX || !a->bytes)
		return 0;
	return buf_put(&r->x->allocs, &moment, sizeof(moment));
}

static int add_batch(void *ctx, const void *recs, size_t bytes)
{
	struct reading *r = ctx;
	const struct mxbpf_rec *rec;
	size_t pos = 0;
	int err = 0;

	while (!err && (rec = kind_next(recs, bytes, &pos))) {
		if (r->x->tgid && rec->tgid != r->x->tgid)
			continue;
		if (rec->kind == MXBPF_SPAN)
			err = add_span(r, rec);
		else if (rec->kind == MXBPF_ACTIVITY)
			err = add_kernel(r, rec);
		else if (rec->kind == MXBPF_ALLOC)
			err = add_alloc(r, rec);
		r->x->events |= rec->kind == MXBPF_SPAN;
	}
	return err;
}

/* Finds the oldest event that was kept: older iterations lack their calls. */
static int find_first(void *ctx, const void *recs, size_t bytes)
{
	struct reading *r = ctx;
	const struct mxbpf_rec *rec;
	size_t pos = 0;

	while ((rec = kind_next(recs, bytes, &pos)))
		if (rec->kind == MXBPF_SPAN && (!r->first_ns || kind_end_ns(rec) < r->first_ns))
			r->first_ns = kind_end_ns(rec);
	return 0;
}

/* ---- memory */

static int samples_by_time(const void *va, const void *vb)
{
	const struct cmp_alloc *a = va, *b = vb;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/*
 * Makes the row of memory: how much each bin needs beyond its lowest point. Live memory counts from the start of the
 * window, at any place of an iteration, so only differences within a recording can be compared with others.
 */
static int add_memory(struct cmp_samples *x)
{
	struct cmp_alloc *a = (struct cmp_alloc *)x->allocs.data;
	const size_t n = buf_count(&x->allocs, *a);
	int64_t live = 0, high = 0, low = 0, most = 0, least = 0;
	struct cmp_series *s;
	size_t i, bin = 0;

	if (!n)
		return 0;
	s = cmp_series_add(x, CMP_MEMORY, cmp_kind_words[CMP_MEMORY], 6, NULL, 0);
	if (!s)
		return -ENOMEM;
	qsort(a, n, sizeof(*a), samples_by_time);
	for (i = 0; i < n; i++) {
		for (; bin < x->n && a[i].ns >= x->bin[bin].end_ns; bin++) {
			s->value[bin] = (float)(most - least);
			most = least = live;
		}
		live += a[i].bytes;
		high = live > high ? live : high;
		low = live < low ? live : low;
		most = live > most ? live : most;
		least = live < least ? live : least;
	}
	for (; bin < x->n; bin++) {
		s->value[bin] = (float)(most - least);
		most = least = live;
	}
	s->calls = n;
	x->peak_known = true;
	x->peak_bytes = (uint64_t)(high - low);
	return 0;
}

/* Sums of bins become means of their iterations. Memory is no sum. */
static void divide(struct cmp_samples *x)
{
	struct cmp_series *s;
	size_t i, k;

	for (i = 0; i < buf_count(&x->series, *s); i++) {
		s = buf_at(&x->series, struct cmp_series, i);
		for (k = 0; k < x->n && s->kind != CMP_MEMORY; k++)
			s->value[k] /= (float)x->bin[k].iterations;
	}
}

int cmp_samples_take(struct cmp_samples *x, const struct cmp_from *from, uint32_t tgid)
{
	struct reading r = {.x = x, .m = from->m, .s = from->s};
	const struct mxbpf_iteration *it;
	size_t n;
	int err = 0;

	*x = (struct cmp_samples){0};
	if (from->s->cut_records)
		err = from->each(from->source, find_first, &r);
	it = iterations_of(from->iterations, tgid, r.first_ns, &n);
	x->iterations = tgid && n >= CMP_LEAST;
	x->tgid = x->iterations ? tgid : 0;
	if (!err)
		err = x->iterations ? bin_iterations(&r, it, n) : bin_slices(x, from->s);
	if (!err)
		err = from->each(from->source, add_batch, &r);
	if (!err)
		err = add_memory(x);
	divide(x);
	buf_fini(&x->allocs);
	return err;
}
