// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of mxnet.profiler.dumps(). Categories, rows, order and arithmetic are the same, also where they are odd,
 * so that scripts can parse them. What mxbpf adds stands behind them in lines that begin with '#'.
 */
#include "mxbpf_config.h"
#include "feature/marks/marks.h"
#include "view/compat/mxnet.h"
#include "view/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that MXNet leaves out: its profiler's own C API, which runs with profiling off, and names with other tables. */
static const struct {
	enum mxbpf_class cls;
	bool prefix;
	const char *name;
} hidden[] = {
	{MXBPF_CLASS_OPERATOR, false, "Custom"},
	{MXBPF_CLASS_OPERATOR, false, "_backward_Custom"},
	{MXBPF_CLASS_OPERATOR, false, "CustomOperatorWait"},
	{MXBPF_CLASS_API, true, "MXProfile"},
	{MXBPF_CLASS_API, true, "MXSetProfiler"},
	{MXBPF_CLASS_API, true, "MXSetProcessProfiler"},
	{MXBPF_CLASS_API, true, "MXDumpP"}, /* MXDumpProfile, MXDumpProcessProfile */
	{MXBPF_CLASS_API, false, "MXProcessProfilePause"},
	{MXBPF_CLASS_API, false, "MXNotifyShutdown"}, /* called at exit, after the last dumps() */
};

static bool is_hidden(enum mxbpf_class cls, const char *name, size_t len)
{
	size_t i, n;

	for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		n = strlen(hidden[i].name);
		if (hidden[i].cls == cls && (len == n || (hidden[i].prefix && len > n)) &&
		    !memcmp(hidden[i].name, name, n))
			return true;
	}
	return false;
}

double view_mxnet_avg(const struct view_mxnet_row *r)
{
	if (!r->counter)
		return r->total / (double)r->count;
	return r->max > r->min ? (double)(uint64_t)((r->max - r->min) / 2)
			       : 0; /* the cast is defined, because a file can have any numbers */
}

float view_mxnet_thousandth(double v)
{
	return (float)(v / 1000);
}

static struct view_mxnet_row *row_add(struct buf *rows, const char *name, size_t len)
{
	struct view_mxnet_row *r = buf_add(rows, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct view_mxnet_row){.name = malloc(len + 1), .len = len};
	if (!r->name)
		return NULL;
	memcpy(r->name, name, len);
	r->name[len] = 0;
	return r;
}

static int mxnet_by_name(const void *va, const void *vb)
{
	const struct view_mxnet_row *a = va, *b = vb;
	int order = view_name_cmp(a->name, a->len, b->name, b->len);

	return order ? order : a->counter - b->counter;
}

static void mxnet_merge(struct view_mxnet_row *to, const struct view_mxnet_row *from)
{
	to->count += from->count;
	to->total += from->total;
	to->self += from->self;
	to->p99 = from->p99 > to->p99 ? from->p99 : to->p99;
	to->min = from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
}

/* MXNet tells rows apart by name only, so rows of all devices and processes are merged. */
static void merge_names(struct buf *rows)
{
	struct view_mxnet_row *p = (void *)rows->data;
	size_t n = buf_count(rows, struct view_mxnet_row), kept = 0, i;

	if (!n)
		return;
	qsort(p, n, sizeof(*p), mxnet_by_name);
	for (i = 1; i < n; i++) {
		if (mxnet_by_name(&p[kept], &p[i])) {
			p[++kept] = p[i];
			continue;
		}
		mxnet_merge(&p[kept], &p[i]);
		free(p[i].name);
	}
	rows->len = (kept + 1) * sizeof(*p);
}

/*
 * While its profiler aggregates, MXNet runs each operator of a bulk by itself. So a bulk whose operators were recorded
 * has no row. The first recordings do not mark bulks; there the name of the operator tells.
 */
static bool is_old_bulk(const struct view *s, const struct mdl_row *r, const char *name, size_t len)
{
	static const char bulk[] = "ImperativeBulk";

	return s->in->session->class_title[MXBPF_CLASS_API] && r->cls == MXBPF_CLASS_OPERATOR &&
	       r->self_ns < r->total_ns && len == strlen(bulk) && !memcmp(name, bulk, len);
}

/* Operations that MXNet does not name have no row in its tables. */
static bool has_row(const struct mdl_row *r, const char *name, size_t len)
{
	return r->name_id != MXBPF_NAME_UNNAMED && !is_hidden(r->cls, name, len);
}

static void set_times(struct view_mxnet_row *to, const struct mdl_row *r)
{
	to->count = r->count;
	to->total = (double)r->total_ns / 1000;
	to->self = (double)r->self_ns / 1000;
	to->p99 = (double)mdl_percentile(r, 0.99) / 1000;
	to->min = (double)r->min_ns / 1000;
	to->max = (double)r->max_ns / 1000;
}

static int gather(const struct view *s, enum mxbpf_class cls, struct view_mxnet_category *c)
{
	const struct view_opts names = {.by = VIEW_BY_NAME, .sort = VIEW_SORT_NAME, .no_parts = true};
	struct view_mxnet_row *to;
	const struct mdl_row **rows, *r;
	const char *name;
	size_t n, i, len;

	if (view_merged_rows(s->in, cls, &names, false, &rows, &n))
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		r = rows[i];
		name = mdl_name(s->in->model, r->name_id, &len);
		if (r->nbulks || is_old_bulk(s, r, name, len) || !has_row(r, name, len))
			continue;
		to = row_add(&c->rows, name, len);
		if (!to)
			break;
		set_times(to, r);
	}
	free(rows);
	return i < n ? -ENOMEM : 0;
}

/* MXNet has two counters among the durations: calls so far, and calls that are running. */
static int add_api_counters(const struct view *s, struct view_mxnet_category *c)
{
	struct view_mxnet_row *r;
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < buf_count(&c->rows, struct view_mxnet_row); i++)
		count += buf_at(&c->rows, struct view_mxnet_row, i)->count;
	if (!count)
		return 0;
	r = row_add(&c->rows, "MXNet C API Calls", 17);
	if (!r)
		return -ENOMEM;
	r->counter = true;
	r->count = count;
	r->total = r->self = r->p99 = r->max = (double)count;
	r->min = 1;
	if (s->in->session->stats) /* then it was not counted */
		return 0;
	r = row_add(&c->rows, "MXNet C API Concurrency", 23);
	if (!r)
		return -ENOMEM;
	r->counter = true;
	r->count = 2 * count;
	r->p99 = r->max = (double)mdl_tally(s->in->model, MXBPF_CLASS_API, MXBPF_TALLY_MAX_OPEN);
	return 0;
}

static int gather_mem(const struct view *s, struct view_mxnet_category *c)
{
	const struct mdl_mem_row *const *rows;
	struct view_mxnet_row *to;
	char dev[48], name[64];
	size_t n, i;

	rows = mdl_mem_rows(s->in->model, &n);
	for (i = 0; i < n; i++) {
		mdl_device_name(s->in->session, rows[i]->device, dev);
		to = row_add(&c->rows, name, (size_t)snprintf(name, sizeof(name), "Memory: %s", dev));
		if (!to)
			return -ENOMEM;
		to->counter = true;
		to->count = rows[i]->allocs + rows[i]->frees;
		to->total = to->self = (double)rows[i]->live_bytes;
		to->min = (double)rows[i]->low_bytes;
		to->p99 = to->max = (double)rows[i]->peak_bytes;
	}
	return 0;
}

static double mxnet_key_of(const struct view_mxnet_row *r, enum view_sort by)
{
	const double keys[VIEW_SORT_NKEYS] = {
		[VIEW_SORT_TOTAL] = r->total,
		[VIEW_SORT_SELF] = r->self,
		[VIEW_SORT_COUNT] = (double)r->count,
		[VIEW_SORT_AVG] = view_mxnet_avg(r),
		[VIEW_SORT_MIN] = r->min,
		[VIEW_SORT_MAX] = r->max,
		[VIEW_SORT_P99] = r->p99,
	};

	return keys[by];
}

/* MXNet uses a heap of (value, name): of equal values the larger name comes first, in both directions. */
static int mxnet_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct view_opts *opts = vopts;
	double a = mxnet_key_of(va, opts->sort), b = mxnet_key_of(vb, opts->sort);

	if (a != b)
		return (a < b) == opts->ascending ? -1 : 1;
	return opts->sort == VIEW_SORT_NAME ? mxnet_by_name(va, vb) : -mxnet_by_name(va, vb);
}

static void sort_and_cut(struct buf *rows, const struct view_opts *opts)
{
	size_t n = buf_count(rows, struct view_mxnet_row), i;

	if (n)
		qsort_r(rows->data, n, sizeof(struct view_mxnet_row), mxnet_by_opts, (void *)opts);
	if (!opts->top || n <= opts->top)
		return;
	for (i = opts->top; i < n; i++)
		free(buf_at(rows, struct view_mxnet_row, i)->name);
	rows->len = opts->top * sizeof(struct view_mxnet_row);
}

/* MXNet keeps categories in a std::map. */
static int by_title(const void *va, const void *vb)
{
	const struct view_mxnet_category *a = va, *b = vb;

	return strcmp(a->title, b->title);
}

/* Returns the category with this title, cut as MXNet cuts it. NULL: -ENOMEM. */
static struct view_mxnet_category *category(struct view_mxnet_tables *t, const char *of, size_t len, const char *kind)
{
	struct view_mxnet_category *c;
	char title[MXBPF_MARK_TEXT];
	size_t i;

	snprintf(title, sizeof(title), "%.*s%s", (int)len, of, kind);
	for (i = 0; i < buf_count(&t->categories, struct view_mxnet_category); i++) {
		c = buf_at(&t->categories, struct view_mxnet_category, i);
		if (!strcmp(c->title, title))
			return c;
	}
	c = buf_add(&t->categories, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct view_mxnet_category){.title = strdup(title)};
	if (c->title)
		return c;
	t->categories.len -= sizeof(*c);
	return NULL;
}

/* The category of a user annotation: its domain, and for some kinds also the kind. */
static const struct {
	enum mxbpf_class cls;
	const char *kind;
} mark_kinds[] = {{MXBPF_CLASS_TASK, ""}, {MXBPF_CLASS_FRAME, ",frame"}, {MXBPF_CLASS_EVENT, "event"}};

static int gather_mark(const struct view *s, struct view_mxnet_tables *t, const struct mdl_row *r, const char *kind)
{
	size_t len, domain_len;
	const char *domain = marks_domain(s->in->model, r->name_id, &domain_len);
	const char *name = mdl_name(s->in->model, r->name_id, &len);
	struct view_mxnet_category *c = category(t, domain, domain_len, kind);
	struct view_mxnet_row *to = c ? row_add(&c->rows, name, len) : NULL;

	if (!to)
		return -ENOMEM;
	set_times(to, r);
	return 0;
}

static int gather_values(const struct view *s, struct view_mxnet_tables *t)
{
	const struct mxbpf_value *all;
	struct view_mxnet_category *c;
	struct view_mxnet_row *to;
	const char *name, *domain;
	size_t n, i, len;

	all = marks_values(s->in->model, &n);
	for (i = 0; i < n; i++) {
		domain = marks_domain(s->in->model, all[i].name_id, &len);
		c = category(t, domain, len, "");
		name = mdl_name(s->in->model, all[i].name_id, &len);
		to = c ? row_add(&c->rows, name, len) : NULL;
		if (!to)
			return -ENOMEM;
		to->counter = true;
		to->count = all[i].count;
		to->total = to->self = (double)all[i].value;
		to->min = (double)all[i].min;
		to->p99 = to->max = (double)all[i].max;
	}
	return 0;
}

/* MXNet has a category for markers that never has a row. */
static int gather_markers(const struct view *s, struct view_mxnet_tables *t)
{
	const struct mxbpf_instant *all;
	struct view_mxnet_category *c;
	const char *domain;
	size_t n, i, len;

	all = marks_instants(s->in->model, &n);
	for (i = 0; i < n; i++) {
		if (all[i].what != MXBPF_INSTANT_MARKER)
			continue;
		domain = marks_domain(s->in->model, all[i].name_id, &len);
		c = category(t, domain, len, ",instant_marker");
		if (!c)
			return -ENOMEM;
		c->bare = true;
	}
	return 0;
}

static int gather_marks(const struct view *s, struct view_mxnet_tables *t)
{
	const struct mdl_row *const *rows;
	size_t n, i, k;
	int err = 0;

	for (k = 0; k < sizeof(mark_kinds) / sizeof(mark_kinds[0]); k++) {
		rows = mdl_rows(s->in->model, mark_kinds[k].cls, &n);
		for (i = 0; !err && i < n; i++)
			err = gather_mark(s, t, rows[i], mark_kinds[k].kind);
	}
	err = err ? err : gather_values(s, t);
	return err ? err : gather_markers(s, t);
}

static int gather_all(const struct view *s, struct view_mxnet_tables *t)
{
	const struct mdl_session *ss = s->in->session;
	const char *mem = ss->mem_title, *api = ss->class_title[MXBPF_CLASS_API],
		   *op = ss->class_title[MXBPF_CLASS_OPERATOR], *custom = ss->class_title[MXBPF_CLASS_CUSTOM];
	struct view_mxnet_category *c = NULL;

	if (mem && !(c = category(t, mem, strlen(mem), "")))
		return -ENOMEM;
	if (mem) {
		c->memory = true;
		if (gather_mem(s, c))
			return -ENOMEM;
	}
	if (op && (!(c = category(t, op, strlen(op), "")) || gather(s, MXBPF_CLASS_OPERATOR, c)))
		return -ENOMEM;
	if (custom && (!(c = category(t, custom, strlen(custom), "")) || gather(s, MXBPF_CLASS_CUSTOM, c)))
		return -ENOMEM;
	if (api &&
	    (!(c = category(t, api, strlen(api), "")) || gather(s, MXBPF_CLASS_API, c) || add_api_counters(s, c)))
		return -ENOMEM;
	return gather_marks(s, t);
}

static void category_fini(struct view_mxnet_category *c)
{
	size_t i;

	for (i = 0; i < buf_count(&c->rows, struct view_mxnet_row); i++)
		free(buf_at(&c->rows, struct view_mxnet_row, i)->name);
	buf_fini(&c->rows);
	free(c->title);
}

int view_mxnet_make(const struct view *s, struct view_mxnet_tables *t)
{
	struct view_mxnet_category *c;
	size_t n, i, kept = 0;

	*t = (struct view_mxnet_tables){0};
	if (gather_all(s, t))
		return -ENOMEM;
	c = (void *)t->categories.data;
	n = buf_count(&t->categories, struct view_mxnet_category);
	for (i = 0; i < n; i++) {
		merge_names(&c[i].rows);
		sort_and_cut(&c[i].rows, s->opts);
		if (c[i].rows.len || c[i].bare)
			c[kept++] = c[i];
		else
			category_fini(&c[i]);
	}
	t->categories.len = kept * sizeof(*c);
	if (kept)
		qsort(c, kept, sizeof(*c), by_title);
	return 0;
}

void view_mxnet_fini(struct view_mxnet_tables *t)
{
	size_t i;

	for (i = 0; i < buf_count(&t->categories, struct view_mxnet_category); i++)
		category_fini(buf_at(&t->categories, struct view_mxnet_category, i));
	buf_fini(&t->categories);
}

static void put_heads(const struct view_mxnet_category *c, struct out *o)
{
	view_put_utf8(o, c->title, strlen(c->title));
	out_puts(o, "\n=================\n");
	if (c->memory) {
		out_printf(o, "%-25s%16s %16s %16s %16s\n", "Name", "Total Count", "Min Use  (kB)", "Max Use  (kB)",
			   "Avg Use  (kB)");
		out_printf(o, "%-25s%16s %16s %16s %16s\n", "----", "-----------", "-------------", "-------------",
			   "-------------");
		return;
	}
	out_printf(o, "%-25s%16s %16s %16s %16s %16s\n", "Name", "Total Count", "Time (ms)", "Min Time (ms)",
		   "Max Time (ms)", "Avg Time (ms)");
	out_printf(o, "%-25s%16s %16s %16s %16s %16s\n", "----", "-----------", "---------", "-------------",
		   "-------------", "-------------");
}

/* A long name moves the rest of its line to the right. */
static void mxnet_put_row(const struct view_mxnet_row *r, bool memory, struct out *o)
{
	view_put_utf8(o, r->name, r->len);
	out_printf(o, "%*s%16llu", r->len < 25 ? (int)(25 - r->len) : 0, "", (unsigned long long)r->count);
	if (!memory)
		out_printf(o, " %16.4f", (double)view_mxnet_thousandth(r->total));
	out_printf(o, " %16.4f %16.4f %16.4f\n", (double)view_mxnet_thousandth(r->min),
		   (double)view_mxnet_thousandth(r->max), (double)view_mxnet_thousandth(view_mxnet_avg(r)));
}

static int mxnet_end(struct view *s)
{
	const struct view_mxnet_category *c;
	struct view_mxnet_tables t;
	size_t i, k;
	int err = view_mxnet_make(s, &t);

	if (err) {
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
		goto out;
	}
	out_puts(s->out, "\nProfile Statistics:\n\tNote the difference in units for different entries.\n");
	for (k = 0; k < buf_count(&t.categories, struct view_mxnet_category); k++) {
		c = buf_at(&t.categories, struct view_mxnet_category, k);
		put_heads(c, s->out);
		for (i = 0; i < buf_count(&c->rows, struct view_mxnet_row); i++)
			mxnet_put_row(buf_at(&c->rows, struct view_mxnet_row, i), c->memory, s->out);
		out_puts(s->out, "\n");
	}
	view_footer(s, "# ");
out:
	view_mxnet_fini(&t);
	return err;
}

const struct view_ops view_mxnet = {
	.name = "mxnet",
	.layout = true,
	.help = "the text of mxnet.profiler.dumps(), with lines about loss behind it",
	.magic = view_text_magic,
	.end = mxnet_end,
};
