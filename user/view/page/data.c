// SPDX-License-Identifier: Apache-2.0
/* The data that the page's script draws: iterations over time, and stacks for flame graphs. */
#include "view/page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "feature/activity/activity.h"
#include "feature/lines/lines.h"
#include "feature/steps/steps.h"

#define POINTS_MAX 3000 /* points of the iterations; with more iterations, each point is the longest of several */
#define STACKS_MAX 3000 /* stacks of each kind */

static void put_iteration(struct json *j, const struct view *s, const struct mxbpf_iteration *it)
{
	unsigned part;

	json_line(j, 0);
	json_array(j, NULL);
	json_u64(j, NULL, it->h.tgid);
	json_u64(j, NULL, it->nr);
	json_printf(j, NULL, "%.6f", (double)(int64_t)(it->h.ts_ns - s->in->session->start_mono_ns) / 1e9);
	json_u64(j, NULL, it->dur_ns);
	json_i64(j, NULL, it->live_bytes);
	json_u64(j, NULL, it->flags & MXBPF_ITERATION_GPU ? it->gpu_ns : 0);
	json_u64(j, NULL, it->tid);
	for (part = 0; it->flags & MXBPF_ITERATION_PARTS && part < MXBPF_STEP_PARTS; part++)
		json_u64(j, NULL, it->part_ns[part]);
	json_end(j);
}

/* Iterations come ordered by process, thread and time. */
static void put_iterations(struct json *j, const struct view *s, struct mdl *m)
{
	static const char *const columns[] = {"pid", "number", "start_s", "ns", "live_bytes", "gpu_ns", "thread"};
	size_t n, i, k, of;
	const struct mxbpf_iteration *it = steps_iterations(m, &n), *longest;
	unsigned part;

	of = (n + POINTS_MAX - 1) / POINTS_MAX;
	json_object(j, "iterations");
	json_u64(j, "each_of", of);
	json_array(j, "parts");
	for (part = 0; part < MXBPF_STEP_PARTS; part++)
		json_string(j, NULL, steps_part_words(part, mdl_in_python(s->in->session)));
	json_end(j);
	json_array(j, "columns");
	for (part = 0; part < sizeof(columns) / sizeof(columns[0]); part++)
		json_string(j, NULL, columns[part]);
	json_end(j);
	json_array(j, "rows");
	for (i = 0; i < n; i = k) {
		longest = &it[i];
		for (k = i + 1; k < n && k < i + of && it[k].h.tgid == it[i].h.tgid && it[k].tid == it[i].tid; k++)
			longest = it[k].dur_ns > longest->dur_ns ? &it[k] : longest;
		put_iteration(j, s, longest);
	}
	json_end(j);
	json_end(j);
}

/* ---- stacks: the lines of Python, the innermost first, with an operator or a call inside of them */

/* Lines are written once, at the end, because most stacks share most of them. */
struct lines {
	struct hash places; /* hash of the text -> 1 + place in texts */
	struct buf texts;   /* struct view_text, borrowed from the model */
};

/* Returns the place of a line, or -1 without memory. */
static int64_t line_place(struct lines *l, const char *text, size_t len)
{
	uint64_t *at = hash_put(&l->places, hash_text(HASH_SEED, text, len), len);

	if (at && !*at && !buf_put(&l->texts, &(struct view_text){text, len}, sizeof(struct view_text)))
		*at = buf_count(&l->texts, struct view_text);
	return at ? (int64_t)*at - 1 : -1;
}

/* A stack is a list of places in the lines. */
static void put_stack(struct json *j, struct lines *l, const char *text, size_t len)
{
	const char *end = text ? text + len : NULL, *next;

	json_array(j, NULL);
	for (; text && text < end; text = next + 1) {
		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next : end;
		if (next > text)
			json_i64(j, NULL, line_place(l, text, (size_t)(next - text)));
	}
	json_end(j);
}

static void put_lines(struct json *j, const struct lines *l)
{
	const struct view_text *t;
	size_t i;

	json_array(j, "lines");
	for (i = 0; i < buf_count(&l->texts, *t); i++) {
		t = buf_at(&l->texts, struct view_text, i);
		json_text(j, NULL, t->data, t->len);
	}
	json_end(j);
}

static void data_put_name(struct json *j, const struct mdl *m, uint64_t id)
{
	size_t len = 0;
	const char *text = id ? mdl_name(m, id, &len) : NULL;

	json_text(j, NULL, text ? text : "", text ? len : 0);
}

static int by_looks(const void *va, const void *vb)
{
	const struct mxbpf_agg_line *const *a = va, *const *b = vb;

	return (*a)->count > (*b)->count ? -1 : (*a)->count < (*b)->count;
}

/* Writes how often a look, ten times a second, found a thread at each stack. */
static void put_looks(struct json *j, const struct mdl *m, size_t max, struct lines *l)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *rows = lines_rows(m, &n), **sorted = calloc(n + 1, sizeof(*sorted));
	const char *text;

	json_array(j, "looks");
	for (i = 0; sorted && i < n; i++)
		sorted[i] = &rows[i];
	if (sorted)
		qsort(sorted, n, sizeof(*sorted), by_looks);
	for (i = 0; sorted && i < n && i < max; i++) {
		text = mdl_text(m, MXBPF_NAME_STACK, sorted[i]->stack_id, &len);
		if (!text || sorted[i]->rank)
			continue;
		json_line(j, 0);
		json_array(j, NULL);
		put_stack(j, l, text, len);
		data_put_name(j, m, sorted[i]->cls ? sorted[i]->name_id : 0);
		json_u64(j, NULL, sorted[i]->count);
		json_end(j);
	}
	json_end(j);
	free(sorted);
}

static int by_self(const void *va, const void *vb)
{
	const struct mdl_row *const *a = va, *const *b = vb;

	return (*a)->self_ns > (*b)->self_ns ? -1 : (*a)->self_ns < (*b)->self_ns;
}

/* Operators with their stacks, which --py-stacks reads. */
static void put_operators(struct json *j, struct mdl *m, size_t max, struct lines *l)
{
	size_t n, i, len;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n),
				    **sorted = calloc(n + 1, sizeof(*sorted));
	const char *text;

	json_array(j, "operators");
	for (i = 0; sorted && i < n; i++)
		sorted[i] = rows[i];
	if (sorted)
		qsort(sorted, n, sizeof(*sorted), by_self);
	for (i = 0; sorted && i < n && i < max; i++) {
		text = sorted[i]->stack_id ? mdl_text(m, MXBPF_NAME_STACK, sorted[i]->stack_id, &len) : NULL;
		json_line(j, 0);
		json_array(j, NULL);
		put_stack(j, l, text, text ? len : 0);
		data_put_name(j, m, sorted[i]->name_id);
		json_u64(j, NULL, sorted[i]->self_ns);
		json_u64(j, NULL, sorted[i]->count);
		json_i64(j, NULL, sorted[i]->self_alloc_bytes);
		json_end(j);
	}
	json_end(j);
	free(sorted);
}

/* ---- the time of kernels and copies on GPUs, by the operator that launched them and its stack */

/* An operator on a stack, or without one. */
struct gpu_work {
	uint64_t ns, name_id, stack_id;
	const char *instead; /* of a name */
};

static int by_gpu_ns(const void *va, const void *vb)
{
	const struct gpu_work *a = va, *b = vb;

	return a->ns > b->ns ? -1 : a->ns < b->ns;
}

static uint64_t caller_of(const struct mxbpf_agg_gpu_work *a)
{
	return (uint64_t)a->h.tgid << 16 | (uint64_t)a->cls << 8 | a->user;
}

/*
 * Lists the work of GPUs by name and stack. Time of a name that no stack has comes without one. Rows of stacks without
 * a name, which old recordings have, are skipped.
 */
static int list_gpu_work(const struct mdl *m, struct buf *out)
{
	size_t n, i;
	const struct activity_work *const *rows = activity_work_rows(m, &n);
	struct hash told = {0};
	struct gpu_work w;
	uint64_t *sum;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (rows[i]->a.of != MXBPF_WORK_OF_STACK || !rows[i]->a.name_id)
			continue;
		w = (struct gpu_work){rows[i]->a.self.gpu_ns, rows[i]->a.name_id, rows[i]->a.stack_id, NULL};
		sum = hash_put(&told, w.name_id, caller_of(&rows[i]->a));
		if (sum)
			*sum += w.ns;
		err = sum ? buf_put(out, &w, sizeof(w)) : -ENOMEM;
	}
	for (i = 0; !err && i < n; i++) {
		if (rows[i]->a.of == MXBPF_WORK_OF_LAYER || rows[i]->a.of == MXBPF_WORK_OF_GRAPH ||
		    rows[i]->a.of == MXBPF_WORK_OF_STACK)
			continue;
		w = (struct gpu_work){rows[i]->a.self.gpu_ns, rows[i]->a.name_id, 0, NULL};
		sum = hash_get(&told, w.name_id, caller_of(&rows[i]->a));
		w.ns -= sum && *sum < w.ns ? *sum : sum ? w.ns : 0;
		w.instead = rows[i]->a.of == MXBPF_WORK_OF_OUTSIDE   ? "[outside of calls]"
			    : rows[i]->a.of == MXBPF_WORK_OF_UNKNOWN ? "[launch not seen]"
								     : NULL;
		err = w.ns ? buf_put(out, &w, sizeof(w)) : 0;
	}
	hash_fini(&told);
	return err;
}

static void put_gpu_work(struct json *j, const struct mdl *m, size_t max, struct lines *l)
{
	struct buf list = {0};
	const struct gpu_work *w;
	const char *text;
	size_t i, len;

	json_array(j, "kernels");
	if (!list_gpu_work(m, &list) && list.len)
		qsort(list.data, buf_count(&list, *w), sizeof(*w), by_gpu_ns);
	for (i = 0; i < buf_count(&list, *w) && i < max; i++) {
		w = buf_at(&list, struct gpu_work, i);
		text = w->stack_id ? mdl_text(m, MXBPF_NAME_STACK, w->stack_id, &len) : NULL;
		json_line(j, 0);
		json_array(j, NULL);
		put_stack(j, l, text, text ? len : 0);
		if (w->instead)
			json_string(j, NULL, w->instead);
		else
			data_put_name(j, m, w->name_id);
		json_u64(j, NULL, w->ns);
		json_end(j);
	}
	json_end(j);
	buf_fini(&list);
}

void page_stacks(struct json *j, struct mdl *m, size_t max)
{
	struct lines l = {0};

	put_looks(j, m, max, &l);
	put_operators(j, m, max, &l);
	put_gpu_work(j, m, max, &l);
	put_lines(j, &l);
	hash_fini(&l.places);
	buf_fini(&l.texts);
}

void page_data(struct view *s)
{
	struct mdl *m = s->in->processes ? s->in->processes : s->in->model;
	struct json j = {.out = s->out, .tight = true};

	json_object(&j, NULL);
	json_u64(&j, "start_unix_ns", s->in->session->start_unix_ns);
	json_u64(&j, "duration_ns", s->in->session->duration_ns);
	put_iterations(&j, s, m);
	page_stacks(&j, m, STACKS_MAX);
	json_end(&j);
}
