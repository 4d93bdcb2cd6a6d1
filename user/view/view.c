// SPDX-License-Identifier: Apache-2.0
/* Drives every output. */
#include "view/priv.h"
#include "view/sheet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int (*record_fn)(struct view *s, const struct mxbpf_rec *r);

static int one_window(struct view *s, record_fn each, const void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;
	int err = 0;

	while (!err && (r = kind_next(recs, bytes, &pos)))
		err = each(s, r);
	return err;
}

int view_pass(struct view *s, record_fn each, uint64_t *done, uint64_t of)
{
	struct view_source *src = s->in->source;
	const void *recs;
	size_t bytes;
	int err = src->rewind(src->ctx);

	/* A failed write ends the pass; out_commit() reports the error. */
	while (!err && !(s->out && out_error(s->out)) && (err = src->next(src->ctx, &recs, &bytes)) > 0) {
		err = one_window(s, each, recs, bytes);
		*done += bytes;
		if (s->opts->progress)
			s->opts->progress(s->opts->progress_ctx, *done, of);
	}
	if (err)
		err_set(s->err, ERR_RUNTIME, err, "cannot read the records: %s", strerror(-err));
	return err;
}

static int all_records(struct view *s)
{
	const struct view_ops *ops = s->ops;
	uint64_t done = 0, of = s->in->source->total_bytes * (!!ops->survey + !!ops->record);
	int err = 0;

	if (ops->survey)
		err = view_pass(s, ops->survey, &done, of);
	if (!err && ops->surveyed)
		err = ops->surveyed(s);
	if (!err && ops->record)
		err = view_pass(s, ops->record, &done, of);
	return err;
}

static bool has_rows(const struct view *s, enum mxbpf_class cls)
{
	size_t n;

	mdl_rows(s->in->model, cls, &n);
	return n;
}

size_t view_rows_max(const struct view *s, size_t n)
{
	const size_t max = s->opts->top ? s->opts->top : s->rows ? s->rows : n;

	return max < n ? max : n;
}

/*
 * Returns true if a short output leaves the table out: each wait is inside a call of the C API, whose row has its time.
 */
static bool is_said(const struct view *s, enum mxbpf_class cls)
{
	return cls == MXBPF_CLASS_WAIT && s->opts->by == VIEW_BY_NAME && has_rows(s, MXBPF_CLASS_API);
}

static int one_table(struct view *s, enum mxbpf_class cls)
{
	struct view_table t = {.cls = cls, .title = mdl_class_title(s->in->session, cls)};
	const struct mdl_row **rows;
	size_t i;
	int err;

	if (s->opts->brief && s->ops->people && is_said(s, cls)) {
		if (has_rows(s, cls))
			view_leave_out(s, t.title);
		return 0;
	}
	if (s->ops->merge_names)
		err = view_merged_rows(s->in, cls, s->opts, !s->ops->merge_users, &rows, &t.nrows_all);
	else
		err = view_sorted_rows(s->in, cls, s->opts, &rows, &t.nrows_all);
	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	for (i = 0; i < t.nrows_all; i++) {
		if (__builtin_add_overflow(t.self_ns, rows[i]->self_ns, &t.self_ns))
			t.self_ns = UINT64_MAX;
		t.memory |= rows[i]->alloc_bytes || rows[i]->self_alloc_bytes;
	}
	t.rows = rows;
	t.nrows = view_rows_max(s, t.nrows_all);
	if (s->events) {
		t.nrows = t.nrows_all;
		view_events_table(s, &t);
	}
	err = s->ops->table(s, &t);
	free(rows);
	return err;
}

int view_write_sheet(struct view *s, const struct view_sheet *sh)
{
	struct view_list *t;
	int err;

	if (!view_shows_sheet(s->ops, sh) || (!sh->if_any && !sh->when(s)))
		return 0;
	t = calloc(1, sh->table_bytes);
	if (!t)
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	t->people = s->ops->people;
	err = sh->stored ? view_make_stored(s, sh, t) : sh->make(s, t);
	t->n = sh->whole && !(t->people && s->opts->brief) ? t->all : view_rows_max(s, t->all);
	if (err)
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
	else if (t->n || t->empty_too || !sh->if_any)
		err = s->ops->sheet(s, sh, t);
	if (sh->fini)
		sh->fini(t);
	free(t->rows);
	free(t);
	return err;
}

static bool is_first(const struct view *s, const struct view_sheet *sh)
{
	return s->ops->people && (sh->first || (sh->brief_first && s->opts->brief));
}

/* The sheets that stand before the tables of calls, or behind them. */
static int sheets(struct view *s, bool first)
{
	const struct view_sheet *const *sh;
	int err = 0;

	for (sh = view_sheets; !err && *sh; sh++)
		if (!(*sh)->of_class && !(*sh)->at_end && first == is_first(s, *sh))
			err = view_write_sheet(s, *sh);
	return err;
}

static int view_run(struct view *s)
{
	int err = s->ops->begin ? s->ops->begin(s) : 0;
	size_t i;

	if (!err && (s->ops->needs_records || (s->ops->reads_records && s->in->source)))
		err = all_records(s);
	if (!err && s->opts->by == VIEW_BY_EVENT && s->ops->details)
		err = view_events_read(s);
	err = err ? err : sheets(s, true);
	for (i = 0; !err && s->ops->table && i < MDL_NCLASSES; i++)
		if (mdl_class_title(s->in->session, mdl_classes[i].cls) &&
		    (!mdl_classes[i].rare || has_rows(s, mdl_classes[i].cls)))
			err = one_table(s, mdl_classes[i].cls);
	err = err ? err : sheets(s, false);
	if (!err && s->ops->end)
		err = s->ops->end(s);
	return err;
}

/* rows: number of rows of each table in a short output; 0: as many as opts allow */
static int write_once(const struct view_ops *ops, const struct view_input *in, const struct view_opts *opts,
		      unsigned rows, struct out *out, struct err *e)
{
	struct view *s = calloc(1, ops->state_bytes ? ops->state_bytes : sizeof(*s));
	int err;

	if (!s)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	*s = (struct view){.ops = ops, .in = in, .opts = opts, .out = out, .err = e, .rows = rows};
	err = view_run(s);
	if (ops->fini)
		ops->fini(s);
	view_events_fini(s);
	free(s);
	return err;
}

static void count_lines(void *ctx, const char *data, size_t n)
{
	unsigned *lines = ctx;

	while (n--)
		*lines += *data++ == '\n';
}

/*
 * Returns how many rows each table can have so that the output fits on VIEW_BRIEF_LINES. It writes the output and
 * counts its lines, because its other lines follow from the data: findings, neighbours, losses, notes.
 */
static unsigned fitting_rows(const struct view_ops *ops, const struct view_input *in, const struct view_opts *opts)
{
	unsigned rows = VIEW_BRIEF_ROWS, lines = VIEW_BRIEF_LINES + 1;
	struct out *out;
	struct err e = {0};

	for (; rows > VIEW_BRIEF_LEAST && lines > VIEW_BRIEF_LINES; rows -= lines > VIEW_BRIEF_LINES) {
		lines = 0;
		if (out_open_take(count_lines, &lines, &out))
			break;
		if (write_once(ops, in, opts, rows, out, &e) || out_flush(out, &e))
			lines = 0; /* the output itself reports the error */
		out_abort(out);
	}
	return rows;
}

int view_write(const struct view_ops *ops, const struct view_input *in, const struct view_opts *opts, struct out *out,
	       struct err *e)
{
	unsigned rows = 0;

	ops = view_for(ops, in->session);
	if (opts->brief && ops->people && !opts->top)
		rows = fitting_rows(ops, in, opts);
	return write_once(ops, in, opts, rows, out, e);
}
