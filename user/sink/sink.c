// SPDX-License-Identifier: Apache-2.0
/* The one driver of all sinks. */
#include "sink/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int (*record_fn)(struct snk *s, const struct mxbpf_rec *r);

static int one_window(struct snk *s, record_fn each, const void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;
	int err = 0;

	while (!err && (r = kind_next(recs, bytes, &pos)))
		err = each(s, r);
	return err;
}

/* One pass over the records; *done counts over all passes. */
int snk_pass(struct snk *s, record_fn each, uint64_t *done, uint64_t of)
{
	struct snk_source *src = s->in->source;
	const void *recs;
	size_t bytes;
	int err = src->rewind(src->ctx);

	/* After a failed write the rest would be for nothing; out_commit() says why. */
	while (!err && !out_error(s->out) && (err = src->next(src->ctx, &recs, &bytes)) > 0) {
		err = one_window(s, each, recs, bytes);
		*done += bytes;
		if (s->opts->progress)
			s->opts->progress(s->opts->progress_ctx, *done, of);
	}
	if (err)
		err_set(s->err, ERR_RUNTIME, err, "cannot read the records: %s", strerror(-err));
	return err;
}

static int all_records(struct snk *s)
{
	const struct snk_ops *ops = s->ops;
	uint64_t done = 0, of = s->in->source->total_bytes * (!!ops->survey + !!ops->record);
	int err = 0;

	if (ops->survey)
		err = snk_pass(s, ops->survey, &done, of);
	if (!err && ops->surveyed)
		err = ops->surveyed(s);
	if (!err && ops->record)
		err = snk_pass(s, ops->record, &done, of);
	return err;
}

static int one_table(struct snk *s, enum mxbpf_class cls)
{
	struct snk_table t = {.cls = cls, .title = s->in->session->class_title[cls]};
	const struct mdl_row **rows;
	size_t i;
	int err;

	if (s->ops->merge_names)
		err = snk_merged_rows(s->in->model, cls, s->opts, !s->ops->merge_users, &rows, &t.nrows_all);
	else
		err = snk_sorted_rows(s->in->model, cls, s->opts, &rows, &t.nrows_all);
	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	for (i = 0; i < t.nrows_all; i++) {
		if (__builtin_add_overflow(t.self_ns, rows[i]->self_ns, &t.self_ns))
			t.self_ns = UINT64_MAX;
		t.memory |= rows[i]->alloc_bytes || rows[i]->self_alloc_bytes;
	}
	t.rows = rows;
	t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
	if (s->events) {
		t.nrows = t.nrows_all;
		snk_events_table(s, &t);
	}
	err = s->ops->table(s, &t);
	free(rows);
	return err;
}

static int by_device(const void *va, const void *vb)
{
	const struct mdl_mem_row *a = *(const struct mdl_mem_row *const *)va;
	const struct mdl_mem_row *b = *(const struct mdl_mem_row *const *)vb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

static int mem_table(struct snk *s)
{
	size_t n;
	const struct mdl_mem_row *const *all = mdl_mem_rows(s->in->model, &n);
	const struct mdl_mem_row **rows;
	int err;

	rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (n)
		memcpy(rows, all, n * sizeof(*rows));
	qsort(rows, n, sizeof(*rows), by_device);
	err = s->ops->mem(s, rows, n);
	free(rows);
	return err;
}

static int joins(struct snk *s)
{
	struct snk_join *rows;
	struct snk_joins t = {0};
	unsigned cls;
	int err = snk_joins(s, &rows, &t.nrows_all);

	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		t.unjoined += mdl_counter(s->in->model, cls, MXBPF_COUNTER_UNJOINED);
	t.rows = rows;
	t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
	err = s->ops->joins(s, &t);
	free(rows);
	return err;
}

static int slow(struct snk *s)
{
	struct snk_slow t = {0};
	struct mdl_slow *rows;
	int err = mdl_slow(s->in->model, s->in->session->fault_ns, &rows, &t.nrows_all);

	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	t.rows = rows;
	t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
	err = t.nrows ? s->ops->slow(s, &t) : 0;
	free(rows);
	return err;
}

static int samples(struct snk *s)
{
	struct snk_sample *rows;
	struct snk_samples t = {0};
	size_t i;
	int err = snk_samples(s, &rows, &t.nrows_all);

	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	for (i = 0; i < t.nrows_all; i++)
		if (__builtin_add_overflow(t.count, rows[i].count, &t.count))
			t.count = UINT64_MAX;
	t.rows = rows;
	t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
	err = s->ops->samples(s, &t);
	free(rows);
	return err;
}

static int opens(struct snk *s)
{
	const struct mxbpf_open *rows;
	size_t n;

	rows = mdl_opens(s->in->model, &n);
	return n ? s->ops->opens(s, rows, n) : 0;
}

static int scheds(struct snk *s)
{
	struct snk_scheds_table t;
	int err = snk_scheds(s, &t);

	err = err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : s->ops->sched(s, &t);
	free(t.rows);
	free(t.items);
	return err;
}

static int teams(struct snk *s)
{
	struct snk_team *rows;
	struct snk_teams t = {0};
	size_t i;
	int err = snk_teams(s, &rows, &t.nrows_all);

	if (err)
		return err_set(s->err, ERR_RUNTIME, err, "out of memory");
	for (i = 0; i < t.nrows_all; i++)
		mdl_team_merge(&t.sum, &rows[i].t);
	t.rows = rows;
	t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
	err = s->ops->teams(s, &t);
	free(rows);
	return err;
}

static int lives(struct snk *s)
{
	const struct mdl_life **rows = NULL;
	struct mxbpf_wait *waits = NULL;
	struct snk_lives t = {0};
	int err = snk_life_rows(s, &rows, &t.nrows_all);

	err = err ? err : snk_wait_rows(s, &waits, &t.nwaits_all);
	if (err) {
		err = err_set(s->err, ERR_RUNTIME, err, "out of memory");
	} else {
		t.rows = rows;
		t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
		t.waits = waits;
		t.nwaits = s->opts->top && s->opts->top < t.nwaits_all ? s->opts->top : t.nwaits_all;
		err = s->ops->lives(s, &t);
	}
	free(rows);
	free(waits);
	return err;
}

static int iterations(struct snk *s)
{
	struct snk_iterations t;
	int err = snk_iterations(s, &t);

	if (err)
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
	else if (t.nloops)
		err = s->ops->iterations(s, &t);
	free((void *)t.loops);
	free((void *)t.slowest);
	return err;
}

static int kvs(struct snk *s)
{
	struct snk_kv *rows;
	struct snk_kvs t = {0};
	int err = snk_kvs(s, &rows, &t.nrows_all);

	t.rows = rows;
	t.nrows = s->opts->top && s->opts->top < t.nrows_all ? s->opts->top : t.nrows_all;
	if (err)
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
	else if (t.nrows)
		err = s->ops->kvs(s, &t);
	snk_kvs_free(rows, t.nrows_all);
	return err;
}

static int activities(struct snk *s)
{
	struct snk_activity *rows;
	struct snk_activities t = {0};
	int err = snk_activities(s, &rows, &t);

	if (err)
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
	else if (t.nrows)
		err = s->ops->activities(s, &t);
	free(rows);
	return err;
}

static int held(struct snk *s)
{
	struct snk_held t;
	int err = snk_held_make(s, &t);

	err = err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : s->ops->held(s, &t);
	snk_held_free(&t);
	return err;
}

static int marks(struct snk *s)
{
	struct snk_marks t = {0};
	int err = snk_marks(s, &t);

	if (err)
		err_set(s->err, ERR_RUNTIME, err, "out of memory");
	else if (t.nvalues || t.ninstants)
		err = s->ops->marks(s, &t);
	free(t.values);
	free(t.instants);
	return err;
}

static bool has_rows(const struct snk *s, enum mxbpf_class cls)
{
	size_t n;

	mdl_rows(s->in->model, cls, &n);
	return n;
}

static int run(struct snk *s)
{
	int err = s->ops->begin ? s->ops->begin(s) : 0;
	size_t i;

	if (!err && s->ops->needs_records)
		err = all_records(s);
	if (!err && s->opts->by == SNK_BY_EVENT && s->ops->details)
		err = snk_events_read(s);
	for (i = 0; !err && s->ops->table && i < MDL_NCLASSES; i++)
		if (s->in->session->class_title[mdl_classes[i].cls] &&
		    (!mdl_classes[i].rare || has_rows(s, mdl_classes[i].cls)))
			err = one_table(s, mdl_classes[i].cls);
	if (!err && s->ops->mem && s->in->session->mem_title)
		err = mem_table(s);
	if (!err && s->ops->held && s->in->session->held)
		err = held(s);
	if (!err && s->ops->marks)
		err = marks(s);
	if (!err && s->ops->joins && s->opts->backward)
		err = joins(s);
	if (!err && s->ops->kvs)
		err = kvs(s);
	if (!err && s->ops->activities)
		err = activities(s);
	if (!err && s->ops->teams && s->in->session->team_cpus)
		err = teams(s);
	if (!err && s->ops->lives && s->in->session->life)
		err = lives(s);
	if (!err && s->ops->slow && s->in->session->account)
		err = slow(s);
	if (!err && s->ops->sched && s->in->session->sched)
		err = scheds(s);
	if (!err && s->ops->samples && s->in->session->sample_hz)
		err = samples(s);
	if (!err && s->ops->iterations)
		err = iterations(s);
	if (!err && s->ops->opens)
		err = opens(s);
	if (!err && s->ops->end)
		err = s->ops->end(s);
	return err;
}

int snk_write(const struct snk_ops *ops, const struct snk_input *in, const struct snk_opts *opts, struct out *out,
	      struct err *e)
{
	struct snk *s;
	int err;

	ops = snk_for(ops, in->session);
	s = calloc(1, ops->state_bytes ? ops->state_bytes : sizeof(*s));
	if (!s)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	*s = (struct snk){.ops = ops, .in = in, .opts = opts, .out = out, .err = e};
	err = run(s);
	if (ops->fini)
		ops->fini(s);
	snk_events_fini(s);
	free(s);
	return err;
}
