// SPDX-License-Identifier: Apache-2.0
/* Rows and what each of them did in each of the last seconds. */
#include "top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "feature/cost/cost.h"
#include "feature/lines/lines.h"

/* ---- tables */

struct top_row *top_row_find(const struct top *t, enum top_view v, uint64_t a, uint64_t b)
{
	const uint64_t *at = hash_get(&t->tables[v].places, a, b);

	return at && *at ? top_row(t, v, *at - 1) : NULL;
}

struct top_row *top_row_put(struct top *t, enum top_view v, uint64_t a, uint64_t b)
{
	struct top_table *table = &t->tables[v];
	struct top_row new = {.id = t->ids + 1, .a = a, .b = b, .rank = MDL_NO_NUMBER}, *old = top_row_find(t, v, a, b);
	uint64_t *at;

	if (old || top_rows(t, v) >= TOP_ROWS_MAX)
		return old;
	at = hash_put(&table->places, a, b);
	if (!at || buf_put(&table->rows, &new, sizeof(new)))
		return NULL;
	t->ids++;
	*at = top_rows(t, v);
	return top_row(t, v, *at - 1);
}

static void row_fini(struct top_row *row)
{
	free(row->name);
	free(row->values);
}

void top_rows_clear(struct top *t, enum top_view v)
{
	size_t i;

	for (i = 0; i < top_rows(t, v); i++)
		row_fini(top_row(t, v, i));
	t->tables[v].rows.len = 0;
	hash_clear(&t->tables[v].places);
}

/* Removes rows that did nothing in the last minute, if there are many. Rows of jobs stay, because others name them. */
static int make_room(struct top *t, enum top_view v)
{
	struct top_table *table = &t->tables[v];
	size_t n = top_rows(t, v), kept = 0, i;
	uint64_t *at;

	if (v == TOP_JOBS || n < TOP_ROWS_MAX / 4 * 3)
		return 0;
	hash_clear(&table->places);
	for (i = 0; i < n; i++) {
		if (top_row(t, v, i)->minute.calls <= 0 && !top_row(t, v, i)->alive) {
			row_fini(top_row(t, v, i));
			continue;
		}
		if (kept != i)
			*top_row(t, v, kept) = *top_row(t, v, i);
		at = hash_put(&table->places, top_row(t, v, kept)->a, top_row(t, v, kept)->b);
		if (!at)
			return -ENOMEM;
		*at = ++kept;
	}
	table->rows.len = kept * sizeof(struct top_row);
	return 0;
}

static int begin_second(struct top *t, const struct mdl_interval *in)
{
	const unsigned slot = t->n % TOP_SECONDS;
	int err = 0;
	unsigned v;
	size_t i;

	for (v = 0; v < TOP_VIEWS && !err; v++) {
		err = t->frozen ? 0 : make_room(t, v);
		for (i = 0; i < top_rows(t, v); i++) {
			top_row(t, v, i)->parts[slot] = (struct top_part){0};
			top_row(t, v, i)->alive = false;
		}
	}
	t->lost[slot] = in->session->loss.dropped;
	t->sliced[slot] = cost_has_slices(in->model);
	t->added_ns = in->session->cost.added_ns;
	return err;
}

/* ---- calls */

static void set_name(struct top_row *row, const char *name, size_t len)
{
	if (!row->name)
		row->name = strndup(name, len);
}

static struct top_row *operator_of(struct top *t, const struct mdl_interval *in, const struct mdl_row *from,
				   uint32_t job)
{
	struct top_row *row = top_row_put(t, TOP_OPERATORS, (uint64_t)job << 8 | from->cls, from->name_id);
	const char *name, *kind;
	size_t len;

	if (!row || row->name)
		return row;
	name = mdl_name(in->model, from->name_id, &len);
	kind = mdl_class_title(in->session, from->cls);
	set_name(row, name, len);
	snprintf(row->kind, sizeof(row->kind), "%s", kind ? kind : mdl_category(from->cls));
	row->cls = from->cls;
	row->job = job;
	return row;
}

static struct top_row *thread_of(struct top *t, const struct mdl *m, const struct mdl_row *from, uint32_t job)
{
	struct top_row *row = top_row_put(t, TOP_THREADS, from->tgid, from->tid);
	const char *name;

	if (!row || row->name)
		return row;
	name = from->tid ? mdl_thread_name(m, from->tgid, from->tid) : "[not told apart]";
	if (name) /* it may come later */
		set_name(row, name, strlen(name));
	row->tgid = from->tgid;
	row->tid = from->tid;
	row->job = job;
	return row;
}

static void rates_add_call(struct top *t, const struct mdl_row *from, struct top_row *row, bool of_many)
{
	struct top_part *part = row ? top_part_now(t, row) : NULL;

	if (!part)
		return;
	part->calls += of_many && from->traits & MXBPF_TRAIT_BULK ? 0 : (uint32_t)from->count; /* its operators count */
	part->self_ns += from->self_ns;
	part->known |= from->estimate.count > 0;
	row->partial |= from->estimate.count > 0;
}

static uint32_t rates_place(const struct top *t, enum top_view v, const struct top_row *row)
{
	return row ? (uint32_t)(row - top_row(t, v, 0)) + 1 : 0;
}

static uint64_t left(uint64_t all, uint64_t nested)
{
	return all > nested ? all - nested : 0;
}

static int take_row(struct top *t, const struct mdl_interval *in, const struct mdl_row *from)
{
	struct top_row *of[TOP_VIEWS] = {NULL};
	struct top_cell cell = {.calls = from->count,
				.self_ns = from->self_ns,
				.total_ns = from->total_ns,
				.runq_ns = left(from->account.runq_ns, from->account.nested_runq_ns),
				.blocked_ns = left(from->account.blocked_ns, from->account.nested_blocked_ns),
				.max_ns = from->max_ns};
	unsigned v;

	of[TOP_PROCESSES] = top_process_put(t, in->session, from->tgid);
	if (of[TOP_PROCESSES]) {
		of[TOP_JOBS] = top_row(t, TOP_JOBS, of[TOP_PROCESSES]->job - 1);
		of[TOP_OPERATORS] = operator_of(t, in, from, of[TOP_PROCESSES]->job);
		of[TOP_THREADS] = thread_of(t, in->model, from, of[TOP_PROCESSES]->job);
	}
	for (v = 0; v < TOP_VIEWS; v++) {
		rates_add_call(t, from, of[v], v != TOP_OPERATORS);
		cell.rows[v] = rates_place(t, v, of[v]);
	}
	if (of[TOP_OPERATORS])
		of[TOP_OPERATORS]->partial |= cost_is_partial(in->model, from, false);
	t->partial |= of[TOP_OPERATORS] && of[TOP_OPERATORS]->partial;
	if (t->frozen)
		return 0;
	t->left_out += of[TOP_OPERATORS] && of[TOP_THREADS] ? 0 : from->count;
	cell.p50_ns = mdl_percentile(from, 0.5);
	return buf_put(&t->cells, &cell, sizeof(cell));
}

/* Adds the rows of calls. Rows of several devices or shapes are added up. */
static int take_rows(struct top *t, const struct mdl_interval *in)
{
	const struct mdl_row *const *rows;
	size_t n, i;
	unsigned k;
	int err = 0;

	if (!t->frozen)
		t->left_out = t->table.left_out = t->cells.len = 0;
	for (k = 0; k < MDL_NCLASSES; k++) {
		rows = mdl_rows(in->model, mdl_classes[k].cls, &n);
		for (i = 0; i < n && !err; i++)
			err = take_row(t, in, rows[i]);
	}
	return err;
}

/* ---- lines of Python */

static void keep_line(struct top_row *row, const struct mdl *m, const struct mxbpf_agg_line *l)
{
	const char *text;
	size_t len;

	if (!row || l->count <= row->line_looks)
		return;
	text = lines_of_program(m, l->stack_id, &len);
	if (!text)
		return;
	len = len < sizeof(row->line) - 1 ? len : sizeof(row->line) - 1;
	memcpy(row->line, text, len);
	row->line[len] = '\0';
	row->line_looks = l->count;
}

/* Sets the lines of threads. A thread that no look found in this second keeps its line. */
static void take_lines(struct top *t, const struct mdl *m)
{
	size_t n, i;
	const struct mxbpf_agg_line *lines = lines_rows(m, &n);
	const struct top_row *process;
	unsigned v;

	for (v = 0; v < TOP_VIEWS; v++)
		for (i = 0; i < top_rows(t, v); i++)
			top_row(t, v, i)->line_looks = 0;
	for (i = 0; i < n; i++) {
		process = lines[i].rank ? NULL : top_row_find(t, TOP_PROCESSES, lines[i].h.tgid, 0);
		if (!process)
			continue;
		keep_line(top_row_find(t, TOP_THREADS, lines[i].h.tgid, lines[i].tid), m, &lines[i]);
		if (lines[i].main)
			keep_line((struct top_row *)process, m, &lines[i]);
		if (lines[i].cls)
			keep_line(top_row_find(t, TOP_OPERATORS, (uint64_t)process->job << 8 | lines[i].cls,
					       lines[i].name_id),
				  m, &lines[i]);
	}
}

/* ---- rates */

/* Computes rates. called_ns: the part of the window in which calls are known. */
static struct top_rates rates(const struct top_part *sum, uint64_t window_ns, uint64_t called_ns)
{
	const double ns = (double)window_ns, called = (double)(called_ns ? called_ns : window_ns);

	if (!window_ns)
		return (struct top_rates){0};
	return (struct top_rates){
		.calls = sum->calls * 1e9 / called,
		.iterations = sum->iterations * 1e9 / ns,
		.share = (double)sum->self_ns / called,
		.cpu = (double)sum->cpu_ns / ns,
		.avg_ns = sum->calls ? sum->self_ns / sum->calls : 0,
	};
}

static bool rates_is_known(const struct top *t, const struct top_row *row, unsigned slot)
{
	return !t->sliced[slot] || !row->partial || row->parts[slot].known;
}

/* Returns the last second in which the calls of a row are known. Of calls in slices, some seconds are not. */
static unsigned last_known(const struct top *t, const struct top_row *row)
{
	unsigned k;

	for (k = 0; k < TOP_SECONDS && k <= t->n; k++)
		if (rates_is_known(t, row, (unsigned)((t->n - k) % TOP_SECONDS)))
			return (unsigned)((t->n - k) % TOP_SECONDS);
	return t->n % TOP_SECONDS;
}

/* Computes the rates of a row. They are 0 in seconds before the row existed. */
static void rate_row(const struct top *t, struct top_row *row, uint64_t window_ns)
{
	const unsigned slot = t->n % TOP_SECONDS, called = last_known(t, row);
	struct top_part sum = {0}, second = row->parts[slot];
	uint64_t called_ns = 0;
	unsigned k;

	for (k = 0; k < TOP_SECONDS; k++) {
		sum.iterations += row->parts[k].iterations;
		sum.cpu_ns += row->parts[k].cpu_ns;
		if (!rates_is_known(t, row, k))
			continue;
		called_ns += t->jobs[0][k].window_ns;
		sum.calls += row->parts[k].calls;
		sum.self_ns += row->parts[k].self_ns;
	}
	second.calls = row->parts[called].calls;
	second.self_ns = row->parts[called].self_ns;
	row->minute = rates(&sum, window_ns, called_ns);
	row->second = rates(&second, t->jobs[0][slot].window_ns, t->jobs[0][called].window_ns);
}

static void show_second(struct top *t)
{
	uint64_t window_ns = 0;
	unsigned k, v;
	size_t i;

	t->minute_lost = 0;
	for (k = 0; k < TOP_SECONDS; k++) {
		window_ns += t->jobs[0][k].window_ns;
		t->minute_lost += t->lost[k];
	}
	t->shown_lost = t->lost[t->n % TOP_SECONDS];
	for (v = 0; v < TOP_VIEWS; v++)
		for (i = 0; i < top_rows(t, v); i++)
			rate_row(t, top_row(t, v, i), window_ns);
	t->at = t->n + 1;
}

int top_take(struct top *t, const struct mdl_interval *in)
{
	const uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int err = begin_second(t, in);

	t->own_ns = t->own_before_ns ? own_ns - t->own_before_ns : 0;
	t->own_before_ns = own_ns;
	t->account = in->session->account;
	err = err ? err : cost_estimate(in->model, in->session);
	err = err ? err : top_take_processes(t, in);
	err = err ? err : take_rows(t, in);
	err = err ? err : top_take_iterations(t, in);
	err = err || t->frozen ? err : top_take_finding(t, in);
	err = err || t->frozen ? err : top_take_table(t, in);
	if (err)
		return err;
	take_lines(t, in->model);
	if (!t->frozen)
		show_second(t);
	t->n++;
	return 0;
}

void top_fini(struct top *t)
{
	unsigned v;
	size_t i;

	for (v = 0; v < TOP_VIEWS; v++) {
		top_rows_clear(t, v);
		buf_fini(&t->tables[v].rows);
		hash_fini(&t->tables[v].places);
	}
	for (i = 0; i <= TOP_JOBS_MAX; i++)
		free(t->jobs[i]);
	buf_fini(&t->cells);
}
